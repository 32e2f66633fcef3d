"""The statistics store that keeps everything in memory: the verified fake of ports.StatsStore."""

from __future__ import annotations

from collections import Counter, deque
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.events import AttemptFinished
    from smart_model_router.domain.outcome import FailureClass


class MemoryStore:
    """Keeps totals by target and class (None is a success), and the newest `limit` (> 0) observations.

    It passes tests/conformance/stores.py, as every store must.
    """

    def __init__(self, *, limit: int = 10_000) -> None:
        self._totals: Counter[tuple[str, FailureClass | None]] = Counter()
        self._observations: deque[AttemptFinished] = deque(maxlen=limit)
        self._closed = False

    @property
    def totals(self) -> Mapping[tuple[str, FailureClass | None], int]:
        """How many observations there were by (target id, class), a live view."""
        return MappingProxyType(self._totals)

    @property
    def observations(self) -> tuple[AttemptFinished, ...]:
        """The newest observations, oldest first."""
        return tuple(self._observations)

    def observe(self, observation: AttemptFinished) -> None:
        """Take one observation; after `aclose` it is dropped."""
        if not self._closed:
            self._totals[observation.target, observation.failure_class] += 1
            self._observations.append(observation)

    async def aclose(self) -> None:
        """Take no more. What was observed can still be read."""
        self._closed = True
