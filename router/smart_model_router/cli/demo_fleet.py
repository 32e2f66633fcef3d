"""The fleet of the demo, three providers on loopback sockets and the real local model, and what is measured of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from types import MappingProxyType, TracebackType
from typing import Any, Self

from smart_model_router.domain.events import AttemptFinished, BreakerChanged, Event
from smart_model_router.domain.report import RouteReport
from smart_model_router.router import SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer, RecordedRequest


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
    """The number of times that a breaker moved from CLOSED to OPEN (`open`), or back to CLOSED (`closed`)."""
    moves = (event for event in events if isinstance(event, BreakerChanged))
    return sum(move.to_state == to_state and (to_state != "open" or move.from_state == "closed") for move in moves)


def due_at(events: Iterable[Event], owner: str) -> float | None:
    """The monotonic instant at which the probe of the breaker that opened last is due; None when none opened."""
    moves = [event for event in events if isinstance(event, BreakerChanged) and event.owner == owner]
    return moves[-1].open_until if moves else None


def probe_spans(events: Sequence[Event]) -> dict[str, list[tuple[float, float]]]:
    """The times in which a breaker's probes were in flight, by provider: to the end, or a stream to its first content.

    A call on probation while every breaker is CLOSED is none: of those there may be several where nothing else is free.
    """
    tripped = _tripped(events)
    spans: dict[str, list[tuple[float, float]]] = {}
    for event in events:
        if not (isinstance(event, AttemptFinished) and event.probe):
            continue
        spells = [*tripped.get(event.target, ()), *tripped.get(event.provider, ())]
        if any(began <= event.admitted_at < ended for began, ended in spells):
            verdict = event.ttft_seconds if event.stream else None
            ends_at = event.at if verdict is None else event.admitted_at + verdict
            spans.setdefault(event.provider, []).append((event.admitted_at, ends_at))
    return spans


def _tripped(events: Iterable[Event]) -> dict[str, list[tuple[float, float]]]:
    """The times in which a breaker was not CLOSED, by the target or provider it belongs to."""
    spells: dict[str, list[tuple[float, float]]] = {}
    since: dict[tuple[str, str], float] = {}
    for event in events:
        if not isinstance(event, BreakerChanged):
            continue
        began = since.setdefault((event.owner, event.kind), event.at)
        if event.to_state == "closed":
            del since[event.owner, event.kind]
            spells.setdefault(event.owner, []).append((began, event.at))
    for (owner, _), began in since.items():
        spells.setdefault(owner, []).append((began, math.inf))
    return spells


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


MODEL = "demo"
PRIMARY, SECOND, LOWER = "atlas", "boreas", "cirrus"
REMOTES = (PRIMARY, SECOND, LOWER)
LAST_RESORT = "local/smollm2"

TIMINGS: Mapping[str, float] = MappingProxyType(
    {
        "breaker open": 3.0,
        "cooldown after failures": 1.0,
        "cooldown after timeouts": 1.0,
        "slow start after a recovery": 1.0,
        "patience with a silent stream": 1.0,
        "wait before the last resort, at most": 4.0,
    }
)
"""Seconds. All short, so that the demo is; the defaults are ten times as long."""

LOCAL_SECONDS = 90.0
"""The most that the model may take to load, and to answer. It is real, and machines differ."""


def target(provider: str) -> str:
    """The one target of a provider."""
    return f"{provider}/{'small' if provider == LOWER else 'large'}"


def configuration(urls: Mapping[str, str]) -> dict[str, Any]:
    """The configuration as a user would write it, but for the short timings. `urls` are the providers' by name."""
    remotes = {name: {"kind": "openai_compatible", "base_url": url, "api_key": "demo"} for name, url in urls.items()}
    return {
        "version": 1,
        "providers": {**remotes, "local": {"kind": "local"}},
        "models": {
            MODEL: {
                "strategy": "ordered",
                "tiers": [
                    {"name": "frontier", "targets": [target(PRIMARY), target(SECOND)]},
                    {"name": "standard", "targets": [target(LOWER)]},
                ],
                "last_resort": [{"target": LAST_RESORT, "timeout": LOCAL_SECONDS}],
            }
        },
        "local": {"start_timeout": LOCAL_SECONDS},
        "routing": {"last_resort_after": TIMINGS["wait before the last resort, at most"]},
        "resilience": {
            "breaker": {"open": TIMINGS["breaker open"]},
            "cooldown": {
                "failure": TIMINGS["cooldown after failures"],
                "timeout": TIMINGS["cooldown after timeouts"],
            },
            "slow_start": TIMINGS["slow start after a recovery"],
            "timeouts": {"first_content": TIMINGS["patience with a silent stream"]},
        },
    }


class DemoFleet:
    """Servers and router, alive within `async with`. `events` are all the router told, oldest first."""

    inline = True

    def __init__(self) -> None:
        self.servers = {name: FaultServer(name=name, models=[target(name).partition("/")[2]]) for name in REMOTES}
        self.events: list[Event] = []
        self.router: SmartModelRouter
        self._stack = AsyncExitStack()

    def emit(self, event: Event) -> None:
        """Take an event of the router (ports.EventSink)."""
        self.events.append(event)

    def fail(self, *faults: Fault, at: tuple[str, ...] = (PRIMARY,)) -> None:
        """Let these providers follow this script from now on."""
        for name in at:
            self.servers[name].set(list(faults))

    def heal(self) -> None:
        """Let every provider be well again."""
        for server in self.servers.values():
            server.set(None)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for server in self.servers.values():
                await stack.enter_async_context(server)
            urls = {name: server.base_url for name, server in self.servers.items()}
            router = SmartModelRouter.from_config(configuration(urls), sinks=[self])
            self.router = await stack.enter_async_context(router)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()
