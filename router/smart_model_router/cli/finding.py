"""What the doctor finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. A `problem` is to be mended now; a `warning` will only hurt some day."""

    level: Literal["ok", "warning", "problem"]
    topic: str
    text: str
