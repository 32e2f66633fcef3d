"""A scenario, the setting that a seed makes of it, the history of a run, and the checkers that watch it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from smart_model_router.core.flow_config import Measures
from smart_model_router.domain.events import (
    AttemptFinished,
    BreakerChanged,
    Event,
    OfflineChanged,
    ProbeStarted,
    RestStarted,
    SheddingChanged,
)
from smart_model_router.flow.state import RouterState
from smart_model_router.rehearsal.simulation.provider_behaviour import Condition, Healthy, SimulatedProvider, Spell
from smart_model_router.rehearsal.simulation.workload import Traffic, WorkloadRequest
from smart_model_router.router import SmartModelRouter

if TYPE_CHECKING:
    from smart_model_router.core.gate import Gate
    from smart_model_router.rehearsal.simulation.trace import Held, Refused, RunTrace, Settled

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
        """The share of those requests that a target served; 0 without any."""
        asked = self.between(start, end)
        return sum(one.served_by == target for one in asked) / len(asked) if asked else 0.0

    def served_share(self, start: float, end: float, *, last_resort: bool = True) -> float:
        """The share of those requests that were served; without `last_resort`, its answers do not count."""
        asked = self.between(start, end)
        return sum(_counts(one, last_resort) for one in asked) / len(asked) if asked else 0.0

    def calls(self, provider: str, start: float, end: float) -> int:
        """The number of calls that reached a provider in a span."""
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


class Checker:
    """One or more invariants of docs/design/routing.md section 0. Every hook may be left as it is.

    `needs` are the measures without which the promise is not made.
    """

    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, state: RouterState, history: History) -> None:
        self.state = state
        self.history = history
        self.recorder: RunTrace

    @classmethod
    def applies(cls, measures: Measures) -> bool:
        """True when the promise is made under these measures."""
        return all(getattr(measures, name) for name in cls.needs)

    def admitted(self, held: Held, now: float) -> None:
        """A gate admitted a call."""

    def refused(self, refused: Refused) -> None:
        """A gate refused a call."""

    def settled(self, settled: Settled) -> None:
        """A lease was settled, or settled again."""

    def proved(self, settled: Settled) -> None:
        """A stream that was a probe or on probation counts as a success from now on, and goes on."""

    def let_in(self, gate: Gate, now: float) -> None:
        """The operator closed a gate's breakers and ended its rests."""

    def event(self, event: Event) -> None:
        """The router told an event."""

    def ended(self, asked: WorkloadRequest) -> None:
        """A request ended for its caller."""

    def finish(self) -> None:
        """The run is over and everything has ended."""

    def violate(self, promise: str, now: float, text: str) -> None:
        """Write it down."""
        self.history.violate(promise, now, text)


Expectation = Callable[[History], Iterable[str]]
"""A look at the whole run: a sentence for each thing that is not as promised."""
Order = Callable[[SmartModelRouter, RouterState], object]
"""An operator's action on the router, or on a part of it."""
Fallback = Literal["healthy", "partly ill", "none"]
"""The best provider left at the worst moment, apart from the most ill one and the last resort.

It is well (`healthy`), loses or refuses a part of its calls (`partly ill`), or is down or does not exist (`none`).
"""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The definition of a simulation. Durations and instants are seconds, instants counted from the beginning.

    `tiers` are targets best first, `usual` how providers behave between their spells, `wall_steps` when the wall clock
    jumps and by how much, `orders` what an operator does and when. `expect` are whole-run promises by name.
    """

    tiers: Sequence[Sequence[str]]
    traffic: Sequence[Traffic]
    last_resort: Sequence[str] = ()
    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    routing: Mapping[str, Any] = field(default_factory=dict)
    resilience: Mapping[str, Any] = field(default_factory=dict)
    usual: Mapping[str, Condition] = field(default_factory=dict)
    spells: Sequence[Spell] = ()
    wall_steps: Sequence[tuple[float, float]] = ()
    orders: Sequence[tuple[float, Order]] = ()
    expect: Mapping[str, Expectation] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The providers, in order of appearance."""
        mentioned = [target for tier in (*self.tiers, self.last_resort) for target in tier]
        return tuple(dict.fromkeys(target.partition("/")[0] for target in mentioned))

    def usually(self, provider: str) -> Condition:
        """The behaviour of a provider outside of its spells."""
        return self.usual.get(provider, Healthy())

    def config(self, measures: Measures) -> dict[str, Any]:
        """The configuration of the router."""
        # A last resort is near: it must not count among the remotes whose silence means that we are offline.
        only_near = {t.partition("/")[0] for t in self.last_resort} - {
            t.partition("/")[0] for tier in self.tiers for t in tier
        }
        kinds = {name: "scripted" if name in only_near else "openai_compatible" for name in self.names}
        bases = {name: {"kind": kind} for name, kind in kinds.items()}
        urls = {name: {"base_url": "http://simulated.invalid/v1"} for name in self.names if name not in only_near}
        return {
            "version": 1,
            "providers": {
                name: {**bases[name], **urls.get(name, {}), **self.providers.get(name, {})} for name in self.names
            },
            "models": {
                "smart": {
                    "tiers": [{"targets": list(tier)} for tier in self.tiers],
                    "last_resort": list(self.last_resort),
                }
            },
            "routing": dict(self.routing),
            "resilience": {**self.resilience, "measures": asdict(measures)},
        }


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A named situation. `make` turns the seed's dice into a setting; `fallback` is the worst that it draws."""

    name: str
    about: str
    fallback: Fallback
    make: Callable[[Random], Setting]
