"""What a breaker promises about its open time: one trip is one event, it grows by rule and only there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router.core.breaker import BreakerConfig
from smart_model_router.events import BreakerChanged
from smart_model_router.simulation.checkers.base import Checker

if TYPE_CHECKING:
    from smart_model_router.events import Event
    from smart_model_router.runtime.state import RouterState
    from smart_model_router.simulation.history import History
    from smart_model_router.simulation.witness import BreakerShot, Settled

_EPSILON = 1e-6
_JITTER = 1.1
"""The dice add up to a tenth (routing.md section 3)."""


class OneOpening(Checker):
    """I4: one trip gives one OPEN event; late failures never extend OPEN."""

    def __init__(self, state: RouterState, history: History) -> None:
        super().__init__(state, history)
        self._trips: dict[tuple[str, str], int] = {}
        self._told: dict[tuple[str, str], int] = {}

    def settled(self, settled: Settled) -> None:
        gate, now = settled.held.gate, settled.now
        own = "stream" if settled.held.lease.stream else "whole"
        self._look((gate.id, own), settled.before.own, settled.after.own, now)
        self._look((gate.provider.name, "transport"), settled.before.transport, settled.after.transport, now)

    def event(self, event: Event) -> None:
        if isinstance(event, BreakerChanged) and event.to_state == "open":
            key = (event.owner, event.kind)
            self._told[key] = self._told.get(key, 0) + 1
            if self._told[key] > self._trips.get(key, 0):
                self.violate("I4", event.at, f"{event.owner} ({event.kind}): an OPEN event without a trip")

    def finish(self) -> None:
        if self._trips != self._told:
            now = self.history.began + self.history.lasted
            self.violate("I4", now, f"trips {self._trips}, OPEN events {self._told}")

    def _look(self, key: tuple[str, str], before: BreakerShot, after: BreakerShot, now: float) -> None:
        if after.open_until is not None and after.generation != before.generation:
            self._trips[key] = self._trips.get(key, 0) + 1
        if before.open_until is not None and now < before.open_until and after.open_until != before.open_until:
            self.violate("I4", now, f"{key[0]} ({key[1]}): a verdict moved the end of OPEN")


@dataclass(slots=True)
class _Course:
    index: int = 0
    closed_at: float = 0.0
    lasted: float = 0.0


class OpenTime(Checker):
    """I5: 0 < open time <= cap, growing with each failed probe, falling only with proven health."""

    def __init__(self, state: RouterState, history: History) -> None:
        super().__init__(state, history)
        self._courses: dict[tuple[str, str], _Course] = {}

    def event(self, event: Event) -> None:
        if not isinstance(event, BreakerChanged):
            return
        course = self._courses.setdefault((event.owner, event.kind), _Course())
        if event.to_state == "closed":
            course.closed_at, course.lasted = event.at, 0.0
        elif event.to_state == "open" and event.open_until is not None:
            self._opened(event, course, event.open_until - event.at)

    def _opened(self, event: BreakerChanged, course: _Course, seconds: float) -> None:
        config = self._config()
        if event.reason == "probe_failed":
            course.index += config.open * config.open_multiplier**course.index < config.open_cap
        else:
            course.index = max(0, course.index - int((event.at - course.closed_at) / config.open))
        least = min(config.open_cap, config.open * config.open_multiplier**course.index)
        most = min(config.open_cap, least * _JITTER)
        self.history.bind(event.owner, event.at, event.at + min(seconds, most))
        if not least - _EPSILON <= seconds <= most + _EPSILON:
            self.violate("I5", event.at, f"{event.owner}: open for {seconds:.3f} s, not {least:.3f} to {most:.3f}")
        if seconds < course.lasted - _EPSILON:
            self.violate("I5", event.at, f"{event.owner}: open for {seconds:.3f} s after {course.lasted:.3f}")
        course.lasted = seconds

    def _config(self) -> BreakerConfig:
        return next(iter(self.state.fleet.gates.values())).config.breaker
