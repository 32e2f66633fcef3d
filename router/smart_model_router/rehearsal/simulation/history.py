"""The history of one run: every event, every request, every call that reached a provider, and what was wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from smart_model_router.domain.events import (
    AttemptFinished,
    BreakerChanged,
    Event,
    OfflineChanged,
    ProbeStarted,
    RestStarted,
    SheddingChanged,
)
from smart_model_router.rehearsal.simulation.provider_behaviour import SimulatedProvider, Spell
from smart_model_router.rehearsal.simulation.workload import WorkloadRequest

E = TypeVar("E", AttemptFinished, BreakerChanged, OfflineChanged, ProbeStarted, RestStarted, SheddingChanged)
MOST_VIOLATIONS = 50
"""More than this many only repeat what the first of them say."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken: which, when (seconds from the beginning), and how."""

    promise: str
    at: float
    text: str

    def __str__(self) -> str:
        return f"{self.promise} at {self.at:.3f}: {self.text}"


@dataclass
class History:
    """One run. `began` is the loop's instant of the beginning; `at` of events and arrivals count from 0, too.

    `bound` is what the checkers reckoned: a target or a provider, from when, and until when at most it is left alone.
    """

    scenario: str
    seed: int
    began: float
    spells: Sequence[Spell] = ()
    events: list[Event] = field(default_factory=list)
    asked: list[WorkloadRequest] = field(default_factory=list)
    providers: Mapping[str, SimulatedProvider] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    bound: list[tuple[str, float, float]] = field(default_factory=list)
    begun: int = 0
    lasted: float = 0.0

    def violate(self, promise: str, now: float, text: str) -> None:
        """Write down that a promise was broken at the loop's instant `now`."""
        if len(self.violations) < MOST_VIOLATIONS:
            self.violations.append(Violation(promise, now - self.began, text))

    def bind(self, owner: str, now: float, until: float) -> None:
        """Record that no call to a target (or a provider) is needed before the loop's instant `until`."""
        self.bound.append((owner, now - self.began, until - self.began))

    def of(self, kind: type[E], *, start: float = 0.0, end: float = float("inf")) -> list[E]:
        """The events of one kind from `start` to `end`, seconds from the beginning."""
        return [e for e in self.events if isinstance(e, kind) and start <= e.at - self.began < end]

    @property
    def log(self) -> bytes:
        """The event log: a line an event. The same seed gives the same bytes, in every process."""
        return "".join(f"{event!r}\n" for event in self.events).encode()

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the log's SHA-256."""
        return hashlib.sha256(self.log).hexdigest()[:16]

    def between(self, start: float, end: float) -> list[WorkloadRequest]:
        """The requests that arrived in a span (seconds from the beginning) and whose callers stayed."""
        return [asked for asked in self.asked if start <= asked.at < end and not asked.left]

    def share_of(self, target: str, start: float, end: float) -> float:
        """Which share of those requests a target served; 0 without any."""
        asked = self.between(start, end)
        return sum(one.served_by == target for one in asked) / len(asked) if asked else 0.0

    def served_share(self, start: float, end: float, *, last_resort: bool = True) -> float:
        """The share of those requests that were served; without `last_resort`, its answers do not count."""
        asked = self.between(start, end)
        return sum(_counts(one, last_resort) for one in asked) / len(asked) if asked else 0.0

    def calls(self, provider: str, start: float, end: float) -> int:
        """How many calls reached a provider in a span."""
        return sum(start <= at - self.began < end for at in self.providers[provider].arrivals)

    @property
    def wasted(self) -> int:
        """Calls that reached a provider and came to nothing."""
        return sum(isinstance(e, AttemptFinished) and e.failure_class is not None for e in self.events)

    def blame(self, promise: str, texts: Iterable[str]) -> None:
        """Write down what a look at the whole run found."""
        for text in texts:
            self.violate(promise, self.began + self.lasted, text)


def _counts(asked: WorkloadRequest, last_resort: bool) -> bool:
    if asked.served_by is None or asked.report is None:
        return False
    return last_resort or not asked.report.last_resort
