"""What a target, its credential and its limits are called where several processes speak of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owners:
    """How a target, its credential and its limits are named among processes: no key, 8 hex digits of its SHA-256."""

    target: str
    credential: str
    limits: str
    slots: bool = False
    """True where the provider's bulkhead is one for all processes of the host."""
