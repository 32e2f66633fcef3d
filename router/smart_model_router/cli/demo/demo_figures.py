"""The measurements of the demo: from the answers, the router's events, and the calls that arrived at providers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from smart_model_router.domain.events import AttemptFinished, BreakerChanged, Event
from smart_model_router.domain.report import RouteReport
from smart_model_router_providers.fault import RecordedRequest


@dataclass(frozen=True, slots=True)
class Expectation:
    """Something the story promises, whether it came true, and the figure that says so."""

    text: str
    came_true: bool
    measured: str


@dataclass(slots=True)
class DemoFigures:
    """Counts of questions and answers, and what was measured on the way. Durations are seconds.

    `requests` are questions: one whose stream was cut after its first words (`interrupted`) was asked again.
    `retry_after_waited_seconds` is the provider's view: from the call it answered with 429 to the next to arrive.
    `primary_share` is the share of questions that the primary served after its last recovery, in [0, 1].
    """

    requests: int = 0
    answered: int = 0
    failed: int = 0
    degraded: int = 0
    interrupted: int = 0
    local_answers: int = 0
    served_by: Counter[str] = field(default_factory=Counter)
    breaker_opened: int = 0
    breaker_closed: int = 0
    probes: int = 0
    probes_max_in_flight: int = 0
    retry_after_waited_seconds: float | None = None
    recovery_seconds: float | None = None
    primary_share: float | None = None
    seconds: float = 0.0
    expectations: list[Expectation] = field(default_factory=list)

    @property
    def as_promised(self) -> bool:
        """True when every expectation came true."""
        return all(expectation.came_true for expectation in self.expectations)

    def count(self, report: RouteReport) -> None:
        """A question was answered."""
        self.answered += 1
        self.served_by[str(report.target)] += 1
        self.degraded += report.degraded
        self.local_answers += report.last_resort

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; durations to the millisecond."""
        figures = asdict(self)
        figures["served_by"] = dict(self.served_by.most_common())
        return {key: round(value, 3) if isinstance(value, float) else value for key, value in figures.items()}


def waited_after_429(requests: Iterable[RecordedRequest]) -> float | None:
    """Seconds from the first call answered with 429 to the next that arrived; None when either is missing."""
    for refused, following in pairwise(requests):
        if refused.status == 429:
            return following.at - refused.at
    return None


def trips(events: Iterable[Event], to_state: str) -> int:
    """How often a breaker moved from CLOSED to OPEN (`open`), or back to CLOSED (`closed`)."""
    moves = (event for event in events if isinstance(event, BreakerChanged))
    return sum(move.to_state == to_state and (to_state != "open" or move.from_state == "closed") for move in moves)


def due_at(events: Iterable[Event], owner: str) -> float | None:
    """The monotonic instant at which the probe of the breaker that opened last is due; None when none opened."""
    moves = [event for event in events if isinstance(event, BreakerChanged) and event.owner == owner]
    return moves[-1].open_until if moves else None


def probe_spans(events: Iterable[Event]) -> dict[str, list[tuple[float, float]]]:
    """From when to when each probe was in flight, by provider: to its end, or a stream to its first content."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for event in events:
        if isinstance(event, AttemptFinished) and event.probe:
            verdict = event.ttft_seconds if event.stream else None
            ends_at = event.at if verdict is None else event.admitted_at + verdict
            spans.setdefault(event.provider, []).append((event.admitted_at, ends_at))
    return spans


def half_open_spans(
    events: Iterable[Event], owner: str, requests: Iterable[RecordedRequest]
) -> list[list[tuple[float, float]]]:
    """The calls at a provider while the breaker of its target `owner` was HALF_OPEN: one list for each such spell.

    A spell begins when a probe is due and ends when the breaker moves. Streams have a breaker of their own.
    """
    arrived = list(requests)
    spells: list[list[tuple[float, float]]] = []
    due: dict[str, float] = {}
    for event in events:
        if not isinstance(event, BreakerChanged) or event.owner != owner:
            continue
        began = due.pop(event.kind, None)
        if began is not None:
            calls = (r for r in arrived if began <= r.at < event.at and r.stream == (event.kind == "stream"))
            spells.append([(call.at, event.at if call.ended_at is None else call.ended_at) for call in calls])
        if event.open_until is not None:
            due[event.kind] = event.open_until
    return spells


def most_at_once(spans: Iterable[tuple[float, float]]) -> int:
    """The most of these spans that overlap; one that ends as another begins does not."""
    edges = sorted(edge for begin, end in spans for edge in ((begin, 1), (end, -1)))
    most = now = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most
