"""router.guard: the same breaker, cooldown, buckets and bulkhead for any awaitable (a search API, a database)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated
from weakref import ref

from smart_model_router.core.checked_options import Count, Interval, Options, Unit
from smart_model_router.core.fallback import comes_due, least_retry_after
from smart_model_router.core.flow_config import GateConfig
from smart_model_router.core.gate import Gate, Pacing
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import Cost, RateLimitTracker
from smart_model_router.core.target_state import ProviderState
from smart_model_router.domain.errors import AllTargetsFailed, ConfigurationError, RouterUnavailable
from smart_model_router.domain.events import AttemptFinished, GuardsExpired
from smart_model_router.domain.outcome import NO_READING, Failure, FailureClass, LimitReading, Refusal
from smart_model_router.flow.admission import is_granted
from smart_model_router.flow.clock import EARLY, Watchdog
from smart_model_router.flow.state import RouterState

FORGET_SECONDS = 3600.0
"""A name that was not used for so long is forgotten, with its state."""
_SWEEP_SECONDS = 60.0
"""Names are checked no more often than this, so that thousands of them are forgotten together."""
_ONE = Cost(0, 0)
_BEHIND = Refusal("bulkhead")
_PACINGS: tuple[Pacing, Pacing] = ("off", "eager")
_LEFT = Failure(FailureClass.CANCELLED, "the caller left")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardLimits(Options):
    """The limits of a guarded resource: `slots` calls in flight, `rpm` calls a minute (None is not limited)."""

    slots: Annotated[int, Unit("count"), Interval(ge=1, le=100_000)] = 20
    rpm: Count | None = None


class GuardLease:
    """The handle of a guarded block. Its `fail` reports a failure that is no exception."""

    def __init__(self) -> None:
        self.failure: Failure | None = None

    def fail(self, failure_class: FailureClass, message: str = "") -> None:
        """Report that the block failed, although it raises nothing."""
        self.failure = Failure(failure_class, message)


@asynccontextmanager
async def guard(
    state: RouterState, name: str, limits: GuardLimits | None, config: GateConfig
) -> AsyncGenerator[GuardLease]:
    """Admit one block; see SmartModelRouter.guard."""
    admitted: list[tuple[Gate, Lease]] = []
    over = False

    async def admit() -> None:
        most = state.timeouts.total if state.routing.max_wait is None else state.routing.max_wait
        gate = _gate(state, name, limits, config)
        admitted.append(await admit_one(state, (gate,), state.clock.now() + most))
        if over:  # the caller had left before this began, too early to be cancelled
            give_back(_LEFT)

    def give_back(failure: Failure | None) -> None:
        nonlocal over
        over = True
        while admitted:
            gate, lease = admitted.pop()
            _settle(state, gate, lease, failure)

    try:
        await state.portal.reach(admit)
    except BaseException:  # admitted there while the caller left here
        state.portal.tell(partial(give_back, _LEFT))
        raise
    held, failure = GuardLease(), None
    try:
        yield held
        failure = held.failure
    except Exception as error:
        failure = held.failure or state.classify(error)
        raise
    except BaseException:  # cancelled, interrupted, closed: no fault of the resource
        failure = held.failure or _LEFT
        raise
    finally:
        state.portal.tell(partial(give_back, failure))


def _gate(state: RouterState, name: str, limits: GuardLimits | None, config: GateConfig) -> Gate:
    gates = state.fleet.gates
    gate = gates.get(name)
    if gate is None:
        wanted = limits or GuardLimits()
        provider = ProviderState(
            name, slots=wanted.slots, remote=False, connectivity=state.fleet.connectivity, config=config
        )
        gate = gates[name] = Gate(name, provider, limits=RateLimitTracker(wanted.rpm))
        state.words.bind(gate)
    elif gate.provider.name != name:
        raise ConfigurationError("guard", name, "a name that is not that of a target is needed")
    elif limits is not None:
        gate.provider.bulkhead.resize(limits.slots)
        gate.resize()
        state.pump(name)
    _used(state, name)
    return gate


def _used(state: RouterState, name: str) -> None:
    state.guards.pop(name, None)
    state.guards[name] = state.clock.now()
    if state.forgetting is None:
        forget_unused(state)


def forget_unused(state: RouterState) -> None:
    """Forget every name that was not used for FORGET_SECONDS, and check again when the next one is due.

    One that is in use, or that the operator isolated, counts as used now.
    """
    now, guards, gates = state.clock.now(), state.guards, state.fleet.gates
    state.forgetting, names = None, set[str]()
    for name, used_at in tuple(guards.items()):
        if now < used_at + FORGET_SECONDS - EARLY:
            break
        del guards[name]
        gate = gates.get(name)
        if gate is not None and gate.provider.name != name:
            continue  # since a reload it is a target
        if gate is not None and (gate.in_flight or gate.isolated or state.wait_queue.queued(name)):
            guards[name] = now
            continue
        gates.pop(name, None)
        state.book.forget(name)
        names.add(name)
    if names:
        state.emit(GuardsExpired(at=now, names=frozenset(names)))
    if guards and not state.closed:
        due, alive = next(iter(guards.values())) + FORGET_SECONDS, ref(state)
        due = max(due, now + _SWEEP_SECONDS)
        state.forgetting = state.clock.call_at(due, lambda: _forget_unused_of(alive))


def _forget_unused_of(alive: ref[RouterState]) -> None:
    if (state := alive()) is not None:
        forget_unused(state)


async def _ask(state: RouterState, gate: Gate, roll: float, pacing: Pacing, until: float) -> Lease | Refusal:
    while True:
        got = gate.try_admit(_ONE, state.clock.now(), roll, pacing=pacing)
        if isinstance(got, Refusal):
            return got
        state.held[got] = gate
        if await is_granted(state, gate, got, until):
            return got
        if state.closed or state.clock.now() >= until:
            return _BEHIND


async def admit_one(
    state: RouterState,
    gates: Sequence[Gate],
    until: float,
    told: Callable[[Gate, Refusal, float], object] | None = None,
) -> tuple[Gate, Lease]:
    """The first of the gates, in order, that admits a call; they are waited for until the instant. `told` of each no.

    Raises AllTargetsFailed when none does, RouterUnavailable when the router is closed.
    """
    watchdog = Watchdog(state.clock, state.ticking)
    waiter = None
    try:
        while True:
            if state.closed:
                raise RouterUnavailable("the router was closed")
            now = state.clock.now()
            refusals: dict[str, Refusal] = {}
            for pacing in _PACINGS[-len(gates) :]:  # judgement excludes a target while another one is free
                for gate in gates:
                    behind = state.wait_queue.is_behind(waiter, gate.id)
                    roll = state.dice.roll()
                    got = _BEHIND if behind else await _ask(state, gate, roll, pacing, until)
                    if isinstance(got, Lease):
                        return gate, got
                    refusals[gate.id] = got
            if told is not None:
                for gate in gates:
                    told(gate, refusals[gate.id], now)
            due = {gate: no for gate, no in refusals.items() if comes_due(no, now, until - now)}
            if now >= until or not due or (waiter is None and state.wait_queue.full):
                retry_after = least_retry_after(refusals.values(), now)
                reasons = ", ".join(f"{gate}: refused, {no.reason}" for gate, no in refusals.items())
                raise AllTargetsFailed(reasons, retry_after=retry_after)
            # Of a throttle the gate itself would say that it admits: it is waited for by time alone.
            tossed = [no.retry_at or now for no in due.values() if no.reason == "throttle"]
            waited_for = {gate: _ONE for gate, no in due.items() if no.reason != "throttle"}
            if not waited_for:
                if waiter is not None:
                    state.wait_queue.done(waiter)
                await watchdog.sleep(min(tossed))
                continue
            waiter = waiter or state.wait_queue.waiter(stream=False)
            await state.wait_queue.wait(
                waiter, waited_for, next(iter(waited_for)), min((until, *tossed)), pacing="eager"
            )
    finally:
        if waiter is not None:
            state.wait_queue.done(waiter)


def _settle(state: RouterState, gate: Gate, lease: Lease, failure: Failure | None) -> None:
    _used(state, gate.id)
    settle(state, gate, lease, failure, provider=gate.id, model=gate.id)


def settle(
    state: RouterState,
    gate: Gate,
    lease: Lease,
    failure: Failure | None,
    *,
    provider: str,
    model: str,
    reading: LimitReading = NO_READING,
    request_id: str = "",
) -> None:
    """Give back everything that a call held, with its verdict, and tell of it; once."""
    now = state.clock.now()
    settlement = lease.settle(failure, now, reading=reading, roll=state.dice.roll())
    state.held.pop(lease, None)
    state.apply(gate, settlement, now, failure, since=lease.admitted_at)
    state.observe(
        AttemptFinished(
            at=now,
            admitted_at=lease.admitted_at,
            target=gate.id,
            provider=provider,
            model=model,
            stream=False,
            seconds=now - lease.admitted_at,
            failure_class=None if failure is None else failure.failure_class,
            status=None if failure is None else failure.status,
            probe=lease.probe,
            request_id=request_id,
            reading=reading if failure is None else failure.reading,
            reason="" if failure is None else failure.reason,
        )
    )
