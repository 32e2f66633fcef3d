"""Faults in data, reported and counted instead of raised: a bad timestamp must not prevent an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Note:
    """One fault: a code to count by, what it was found in (an id, a key), and the detail a person needs."""

    code: str
    subject: str = ""
    detail: str = ""


class Notes:
    """Collects notes. Every one is counted; only the first `keep` are kept, so that bad data cannot fill the memory."""

    def __init__(self, keep: int = 100) -> None:
        self._keep = keep
        self._kept: list[Note] = []
        self._counts: dict[str, int] = {}

    def add(self, code: str, subject: object = "", detail: object = "") -> None:
        """Count a fault, and keep it while there is room."""
        self._counts[code] = self._counts.get(code, 0) + 1
        if len(self._kept) < self._keep:
            self._kept.append(Note(code, str(subject), str(detail)))

    @property
    def kept(self) -> tuple[Note, ...]:
        """The first notes, in the order they came."""
        return tuple(self._kept)

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each code came, read-only."""
        return MappingProxyType(self._counts)
