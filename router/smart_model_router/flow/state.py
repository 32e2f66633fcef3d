"""The state that all requests of one router share, and the consequences of a settled call."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from smart_model_router.coordination import Coordinator
from smart_model_router.core.breaker import BreakerState
from smart_model_router.core.fallback import BackoffConfig, RetryBudget, Shedding
from smart_model_router.core.flow_config import PatienceConfig, RoutingConfig, TimeoutConfig
from smart_model_router.core.gate import Gate
from smart_model_router.core.gate_registry import GateRegistry
from smart_model_router.core.lease import Lease, Settlement
from smart_model_router.core.passthrough_rules import Route
from smart_model_router.core.selection import Load, View
from smart_model_router.core.selection.affinity import Homes
from smart_model_router.core.selection.exploration import Exploration
from smart_model_router.core.tiers import ModelRoute
from smart_model_router.domain.events import (
    AttemptFinished,
    BreakerChanged,
    ContentSeen,
    Event,
    OfflineChanged,
    RestStarted,
    SheddingChanged,
)
from smart_model_router.domain.forwarded_headers import Destination
from smart_model_router.domain.outcome import CAPACITY_REASONS, Failure, FailureClass, LimitReading, Snapshot
from smart_model_router.domain.ports import Clock, Dice, EventSink, Provider, StatsStore, TimerHandle
from smart_model_router.domain.redaction import ContentCapture
from smart_model_router.domain.report_text import ProviderAdvice
from smart_model_router.domain.request import WAITING_CRITICALITIES, Target
from smart_model_router.domain.shared_state import ClockReading
from smart_model_router.flow.clock import Watchdog, here
from smart_model_router.flow.kept_responses import KeptResponses
from smart_model_router.flow.operator_commands import OperatorCommands
from smart_model_router.flow.plain_log import PlainLog
from smart_model_router.flow.portal import Portal
from smart_model_router.flow.reference_resolution import ResponseMakers
from smart_model_router.flow.wait_queue import FULL, Due, Waiter, WaitQueue

RECENT_EVENTS = 1000
_ANY_PROVIDER = Destination()


class Book(Protocol):
    """The in-memory statistics (smart_model_router_stats.StatsBook)."""

    def observe(self, event: AttemptFinished) -> None:
        """Take in one ended call."""
        ...

    def snapshot(self, target_id: str, now: float) -> Snapshot:
        """The statistics of a target for decisions."""
        ...

    def median(self, target_id: str, now: float, *, stream: bool) -> float | None:
        """The median seconds of whole answers, or of streams to first content; None when none is known."""
        ...

    def least_median(self, target_ids: Iterable[str], now: float, *, stream: bool) -> float | None:
        """The `median` of the quickest of these targets; None when none of them has one."""
        ...

    def restore(self, event: AttemptFinished) -> None:
        """Take in a call that ended before this process began."""
        ...

    def reset_window(self, target_id: str, now: float) -> None:
        """Forget recent outcomes and latencies: the target came back."""
        ...

    def add(self, target: Target) -> None:
        """Add a target that a wildcard has made."""
        ...

    def forget(self, name: str) -> None:
        """Keep nothing of a target that no longer exists."""
        ...


class ModelRoutes(Protocol):
    """Every model by the names callers use (wildcards.py)."""

    @property
    def names(self) -> tuple[str, ...]:
        """The models that were made of wildcards."""
        ...

    def __getitem__(self, name: str, /) -> ModelRoute:
        """The route that `name` leads to. Raises ModelNotFound."""
        ...

    def revive(self, targets: Iterable[str], may_use: Callable[[str], bool] = ...) -> None:
        """Make the models of these targets, of wildcards whose names a caller may use."""
        ...

    def continue_from(self, names: Iterable[str]) -> None:
        """Make the models that a replaced router had made of its wildcards, as far as they are known here."""
        ...


@dataclass(kw_only=True)
class RouterState:
    """The parts of one router. Belongs to one event loop; nothing here is thread-safe."""

    clock: Clock
    dice: Dice
    fleet: GateRegistry
    providers: Mapping[str, Provider]
    book: Book
    budget: RetryBudget
    shedding: Shedding
    routing: RoutingConfig
    timeouts: TimeoutConfig
    patience: PatienceConfig
    backoff: BackoffConfig
    classify: Callable[[BaseException], Failure]
    scrub: Callable[[Failure], Failure] = lambda failure: failure
    """Takes our keys out of a provider's text: some repeat the key they were shown."""
    scrub_text: Callable[[str], str] = lambda text: text
    """Takes our keys out of a text by a person."""
    dropped: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Top-level fields of a body that a provider does not get, by provider name."""
    destinations: Mapping[str, Destination] = field(default_factory=dict)
    """The facts that decide which of the client's headers a provider gets, by provider name."""
    advice: Mapping[str, ProviderAdvice] = field(default_factory=dict)
    """The places of a provider's settings, by provider name, for the remedies that reports and errors name."""
    proven_versions: set[tuple[str, str]] = field(default_factory=set)
    """Provider and version of Anthropic's API, where a client's call with it was answered."""
    sinks: Sequence[EventSink] = ()
    store: StatsStore | None = None
    content: ContentCapture | None = None
    """The capture of prompts and answers for sinks; None captures nothing."""
    hedges: RetryBudget | None = None
    """The budget of hedges, beside `budget`; None: nothing is hedged."""
    degrade: bool = True
    wall: Callable[[], float] = time.time
    """Epoch seconds, for people and for answers that are stamped with them; no decision reads it."""
    here: Callable[[], ClockReading] = here
    """The clocks that other processes read as well."""
    log: PlainLog = field(init=False)
    """The lines for the standard `logging`."""
    looks: Exploration = field(default_factory=Exploration)
    homes: Homes = field(default_factory=Homes)
    closed: bool = False
    sink_errors: int = 0
    rejected_fields: Counter[str] = field(default_factory=Counter)
    """The number of unreadable rate-limit fields, by provider: its format may have changed."""
    counted_before: Counter[str] = field(default_factory=Counter)
    """The counts of the replaced routers, by metric."""
    routes: Mapping[str, Route] = field(default_factory=dict)
    """The routes of `gateway.passthrough`, by path."""
    windows: dict[str, int] = field(default_factory=dict)
    """The context window that a target named when it refused a longer prompt, in tokens."""
    not_found: dict[str, int] = field(default_factory=dict)
    """The 404s in a row of each passthrough target; only of those that have answered since the start."""
    recent: deque[Event] = field(default_factory=lambda: deque(maxlen=RECENT_EVENTS))
    held: dict[Lease, Gate] = field(default_factory=dict)
    """Every lease that is not settled yet: if the loop stops during their calls, the next loop gives them back."""
    loose: set[asyncio.Task[Any]] = field(default_factory=set)
    """Tasks that close the connections of hedges' losers: a loop alone does not keep its tasks alive."""
    detached: dict[asyncio.Task[Any], str] = field(default_factory=dict)
    """Calls that run on for their verdict after their caller has left, and the target of each."""
    guards: dict[str, float] = field(default_factory=dict)
    """The last use of each name of `router.guard`, the longest unused first."""
    forgetting: TimerHandle | None = None
    """The timer for dropping the first of them."""
    ticking: set[Watchdog] = field(default_factory=set)
    """The timers of the calls under way, their streams and their back-offs: a closing router expires them all."""
    request_ids: Iterator[str] = field(init=False)
    """Unique within the process, short enough for a log line."""
    model_routes: ModelRoutes = field(init=False)
    wait_queue: WaitQueue = field(init=False)
    portal: Portal = field(init=False)
    words: OperatorCommands = field(init=False)
    makers: ResponseMakers = field(init=False)
    coordinator: Coordinator | None = field(init=False, default=None)
    """This router's part in the state that processes share; None shares nothing."""
    kept: KeptResponses | None = field(init=False, default=None)
    """Its answers by translation that later requests may refer to; None keeps none."""
    together: list[RouterState] = field(init=False, repr=False, compare=False)
    """This router, the replaced ones that still have requests, and the one that replaced it."""
    _health_at: float = 0.0

    def __post_init__(self) -> None:
        instance = f"{int(self.dice.roll() * 16**6):06x}"
        self.request_ids = map(f"req-{instance}-{{}}".format, count(1))
        self.log = PlainLog(self.clock.now, self.wall)
        self.sinks = (self.log, *self.sinks)
        self.wait_queue = WaitQueue(self.clock, self.routing.max_waiting, self._look)
        self.portal = Portal(self._moved)
        self.words = OperatorCommands(self)
        self.makers = ResponseMakers(self)
        self.together = [self]

    def continue_from(self, before: RouterState) -> frozenset[str]:
        """Take the place of another router; return the ids of the unchanged targets.

        Both run on one loop: this one has served no request yet, that one finishes its own. Unchanged targets have one
        state in both (see `GateRegistry.continue_from`), and one queue of waiters.
        """
        now = self.clock.now()
        self.model_routes.continue_from(before.model_routes.names)
        shared = self.coordinator is not None or before.coordinator is not None
        unchanged = self.fleet.continue_from(before.fleet, shared=shared)
        self.words.continue_from(before.words)
        if self.coordinator is not None:
            self.coordinator.continue_from(before.coordinator)
            self.coordinator.changed()
        self.wait_queue.continue_from(before.wait_queue, () if shared else unchanged)
        self.makers.continue_from(before.makers)
        if self.kept is not None and before.kept is not None:
            self.kept.continue_from(before.kept)
        self.log.continue_from(before.log)
        self.homes = before.homes
        self.not_found = {target: times for target, times in before.not_found.items() if target in unchanged}
        if unchanged:
            self.looks = before.looks
        if self.budget.config == before.budget.config:
            self.budget = before.budget
        if self.hedges is not None and before.hedges is not None and self.hedges.config == before.hedges.config:
            self.hedges = before.hedges
        self.together = before.together
        self.together.append(self)
        self.pump(None)  # a provider may have more slots now
        self.update_shedding(now)
        return unchanged

    def leave(self) -> None:
        """Begin no more requests and end those under way, without blame for any target."""
        self.closed = True
        self.wait_queue.close()
        for watchdog in tuple(self.ticking):
            watchdog.expire()
        if self.forgetting is not None:
            self.forgetting.cancel()
        for task in tuple(self.detached):
            task.cancel()
        self.together[:] = [state for state in self.together if state is not self]

    def destination(self, target: Target) -> Destination:
        """The facts about a target's provider that decide on the client's headers."""
        return self.destinations.get(target.provider, _ANY_PROVIDER)

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Hold on to a task until it has ended."""
        self.loose.add(task)
        task.add_done_callback(self.loose.discard)

    def detach(self, task: asyncio.Task[Any], target: str) -> None:
        """Let a call run on until it has its verdict, or the router closes."""
        self.detached[task] = target
        task.add_done_callback(lambda done: self.detached.pop(done, None))

    def emit(self, event: Event) -> None:
        """Tell the sinks; one that raises is isolated and counted."""
        if type(event) is not ContentSeen:  # too large to be kept, and meant for sinks alone
            self.recent.append(event)
        for sink in self.sinks:
            try:
                sink.emit(event)
            except Exception:  # noqa: BLE001 - a sink may be a user's own code: its bugs must not fail a request
                self.sink_errors += 1

    def emit_all(self, events: Sequence[Event]) -> None:
        """Tell the sinks about many events of one kind, as `emit` does."""
        self.recent.extend(events)
        for sink in self.sinks:
            for event in events:
                try:
                    sink.emit(event)
                except Exception:  # noqa: BLE001 - as above
                    self.sink_errors += 1

    def view(
        self,
        targets: Iterable[str],
        now: float,
        *,
        stream: bool = False,
        session: str | None = None,
        key: str | None = None,
        home: str | None = None,
    ) -> View:
        """The selector's view of these targets. `key` and `home` are those of a request that has no session, too."""
        gates, snapshot = self.fleet.gates, self.book.snapshot
        snapshots = {target: snapshot(target, now) for target in targets}
        new = [target for target, known in snapshots.items() if known.last_success_at is None]
        tried = frozenset(target for target in new if gates[target].tried) if new else frozenset[str]()

        def load(target: str) -> Load:
            gate = gates[target]
            kept = 0.0 if key is None else self.homes.in_use(target, now) / gate.provider.bulkhead.slots
            return Load(gate.load(now) + kept, gate.chosen_at)

        return View(snapshots, stream, session, tried, key, home, load)

    def observe(self, event: AttemptFinished, *, of_answers: bool = True) -> None:
        """Record an ended attempt in the statistics, then emit it. Decisions count it only with `of_answers`."""
        if of_answers:
            self.book.observe(event)
            if self.coordinator is not None:
                self.coordinator.observe(event)
        if self.store is not None:
            try:
                self.store.observe(event)
            except Exception:  # noqa: BLE001 - as above
                self.sink_errors += 1
        self.emit(event)

    def apply(
        self, gate: Gate, settlement: Settlement, now: float, cause: Failure | None, *, since: float | None = None
    ) -> None:
        """Draw the consequences of a settled (or proven) call: events, fresh statistics, the next waiters.

        `since` is the admission of that call (now, where there was none): from then on the target counts as returned.
        """
        since = now if since is None else since
        for moved in settlement.moved:
            transition = moved.transition
            owner = gate.provider.name if moved.kind == "transport" else gate.id
            self.emit(
                BreakerChanged(
                    at=now,
                    owner=owner,
                    kind=moved.kind,
                    from_state=transition.from_state,
                    to_state=transition.to_state,
                    reason=transition.reason,
                    open_until=transition.open_until,
                )
            )
            if moved.kind == "transport" and transition.to_state is BreakerState.CLOSED:
                self._reset_windows(gate.provider.name, since)
        if settlement.recovered:
            self.begin_anew(gate.id, since)
        rest = settlement.rest
        if rest is not None:
            failure_class = cause.failure_class if cause is not None else FailureClass.CANCELLED
            self.emit(
                RestStarted(
                    at=now,
                    target=gate.id,
                    reason=rest.reason,
                    seconds=rest.until - now,
                    failure_class=failure_class,
                    hinted=rest.hinted,
                )
            )
        if settlement.offline is not None:
            if not settlement.offline:
                self.fleet.make_transports_due(now)
            self.emit(OfflineChanged(at=now, offline=settlement.offline))
        if settlement.moved or settlement.rest or settlement.offline is not None:
            self.update_shedding(now)
        if self.coordinator is not None:
            self.coordinator.settled(gate, settlement)
        if self.wait_queue.shared.waiting:
            everyone = bool(settlement.moved) or settlement.offline is not None
            self.pump(None if everyone else gate.provider.name)

    def heard(self, gate: Gate, lease: Lease, reading: LimitReading) -> None:
        """Apply the rate limits in the head of a stream at once, as the rest of the answer may take minutes."""
        lease.heard(reading, self.clock.now())
        if reading.rejected:
            self.count_rejected(gate.provider.name, reading)
        if reading.buckets and self.wait_queue.shared.waiting:
            self.pump(gate.provider.name)

    def count_rejected(self, provider: str, reading: LimitReading) -> None:
        """Count the unreadable rate-limit fields of an answer."""
        self.rejected_fields[provider] += reading.rejected

    def update_shedding(self, now: float) -> None:
        """Update shedding by system health; emit its beginning or end.

        Between two updates only time passed: OPEN breakers came due. So the health of the last seconds is computed
        afterwards, and calm does not begin only with the present update.
        """
        before, ratio = self.shedding.active, self.fleet.open_ratio(now)
        if before:
            then = max(self._health_at, now - self.shedding.calm)
            self.shedding.update(self.fleet.open_ratio(then), then)
        self._health_at = now
        self.shedding.update(ratio, now)
        if self.shedding.active != before:
            if self.shedding.active:
                self.wait_queue.wake(len(WAITING_CRITICALITIES))
            self.emit(SheddingChanged(at=now, shedding=self.shedding.active, open_ratio=ratio))

    def _moved(self) -> None:
        """Clear the state of a loop that is gone: drop its waiters, and give back the leases of its calls."""
        self.wait_queue.forget()
        self.detached.clear()
        self.ticking.clear()
        self.forgetting = None
        now = self.clock.now()
        while self.held:
            lease, gate = self.held.popitem()
            self.apply(gate, lease.release(now), now, None)

    def _reset_windows(self, provider: str, since: float) -> None:
        for target in self.fleet.targets(provider):
            self.begin_anew(target, since)

    def begin_anew(self, target: str, since: float) -> None:
        """Reset statistics after recovery: older samples describe the outage."""
        self.book.reset_window(target, since)
        if self.coordinator is not None:
            self.coordinator.begins_anew(target)

    def pump(self, provider: str | None) -> None:
        """Wake the next waiters of a provider's gates (of all gates when more than one provider may have changed)."""
        for state in list(self.together):
            for target in state.fleet.targets(provider):
                state.wait_queue.pump(target)

    def queued(self, target: str) -> int:
        """Return how many requests wait for a target."""
        return self.wait_queue.queued(target)

    def _look(self, gate_id: str, waiter: Waiter, now: float) -> Due:
        """The instant at which a waiter should try this gate: at once an isolated one, as no request waits for that."""
        gate = self.fleet.gates[gate_id]
        if gate.isolated:
            return Due(now)
        if not gate.provider.has_slot:
            return FULL
        if gate_id in waiter.resorts:
            return Due(now if gate.resort_refusal() is None else None)
        refusal = gate.refusal(waiter.gates[gate_id], now, stream=waiter.stream, pacing=waiter.pacing)
        if refusal is None:
            return Due(now)
        return Due(gate.ready_at(refusal), lane_alone=refusal.reason not in CAPACITY_REASONS)
