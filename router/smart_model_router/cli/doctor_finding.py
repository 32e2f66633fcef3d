"""The result of one check of `smr doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check.

    A `problem` prevents serving; a `warning` is about later trouble, a `note` about a limit worth knowing.
    """

    level: Literal["ok", "note", "warning", "problem"]
    topic: str
    text: str
