"""The one order of hits: score first, then where they came from, how much they matter, how new they are, their id."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from smart_model_router_scoring.options import is_number
from smart_model_router_scoring.times import epoch_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smart_model_router_scoring.notes import Notes
    from smart_model_router_scoring.recall.memory import Hit, Memory, Timestamp

SortKey = tuple[float, float, float, float, "_NewestFirst"]


def sort_key(hit: Hit) -> SortKey:
    """Score, source rank, original score, importance, time (newest first), id; what is no number or no time is last."""
    memory = hit.memory
    return (
        _falling(hit.score),
        memory.source_rank if is_number(memory.source_rank) else math.inf,
        _falling(memory.original_score),
        _falling(memory.importance),
        _NewestFirst(memory),
    )


class _NewestFirst:
    """Time and id of a memory. The time is read when everything before it was equal, which is seldom: it is text."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @cached_property
    def _key(self) -> tuple[float, str]:
        return (-age_rank(self._memory.timestamp), self._memory.id)

    def __lt__(self, other: _NewestFirst) -> bool:
        return self._key < other._key


def sort_hits(hits: Iterable[Hit]) -> list[Hit]:
    """A new list, best first. Equal ids aside, the order they came in plays no part."""
    return sorted(hits, key=sort_key)


def note_faults(memory: Memory, notes: Notes) -> None:
    """Note what `sort_key` has to put last."""
    numbers = (
        ("bad_source_rank", memory.source_rank),
        ("bad_original_score", memory.original_score),
        ("bad_importance", memory.importance),
    )
    for code, value in numbers:
        if not is_number(value):
            notes.add(code, memory.id, value)
    if memory.timestamp is None:
        notes.add("no_time", memory.id)
    elif epoch_seconds(memory.timestamp) is None:
        notes.add("bad_time", memory.id, memory.timestamp)


def age_rank(time: Timestamp) -> float:
    """Seconds since 1970, and before every one of them for what is no time."""
    at = epoch_seconds(time)
    return -math.inf if at is None else at


def _falling(value: float) -> float:
    return -value if is_number(value) else math.inf
