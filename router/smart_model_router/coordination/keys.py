"""What a target, its credential and its limits are called where several processes speak of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedKeys:
    """How a target, its credential and its limits are named among processes: no key, 8 hex digits of its SHA-256."""

    target: str
    credential: str
    limits: str
    slots: str = ""
    """The name of its provider's bulkhead; "" where each process has its own."""
