"""What this process tells the others of its host, and what it hears from them; the state that survives a restart.

Every change of a breaker or a rest is written, every change of others is taken over, by one task that looks every
quarter of a second. A request meets the shared state only when it is about to probe, and then for 20 ms at most.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from smart_model_router.core.breaker import BreakerState, CircuitBreaker, Transition
from smart_model_router.core.cooldown import Cooldown, RestRecord
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease, Moved, Settlement
from smart_model_router.core.meter import Meter
from smart_model_router.core.stock import Stock
from smart_model_router.events import AttemptFinished, StoreChanged
from smart_model_router.outcome import FailureClass, Usage
from smart_model_router.ports import SharedState
from smart_model_router.shared import (
    LEASE_SECONDS,
    BreakerRow,
    CallRow,
    Changes,
    Deadline,
    Here,
    RestRow,
    SharedStateError,
    SharedView,
    age,
    remaining,
)

if TYPE_CHECKING:
    from smart_model_router.runtime.state import RouterState

POLL_SECONDS = 0.25
PROBE_SECONDS = 0.02
"""How long a request waits to hear whether the probe is its own."""
SLOW_SECONDS = 0.5
"""A store that has not answered by then is as good as none."""
_TICK = 0.05
"""How often one looks meanwhile: a process that is not given the processor must not blame the store."""
_RENEW_SECONDS = LEASE_SECONDS / 3
_RETRY_SECONDS = 1.0
_LEAST_PAUSE = 0.005
_CALLS_KEPT = 50
_MEMORY = 3600.0
"""Seconds. Nothing that is older has a say in a decision (routing.md sections 1 and 2)."""
_SAME = 0.001

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Owners:
    """How a target, its credential and its limits are named among processes: no key, 8 hex digits of its SHA-256."""

    target: str
    credential: str
    limits: str


_NOBODY = Owners("", "", "")


@dataclass(slots=True)
class _Breaker:
    breaker: CircuitBreaker
    provider: str
    gate: Gate
    known: BreakerRow | None = None
    until: float = 0.0
    """The instant, on our clock, that `known` speaks of."""
    held: BreakerRow | None = None
    """Our lease on its probe."""
    renew_at: float = 0.0
    reason: str = ""
    """What moved it last."""


@dataclass(slots=True)
class _Rests:
    cooldown: Cooldown
    gate: Gate
    known: dict[str, tuple[RestRow, float]] = field(default_factory=dict)


class Sharing:
    """One router's part in the shared state. `owners` has the targets that take part, `holder` names this router.

    Not thread-safe: it belongs to the router's loop. `here` reads the clocks that all processes have in common.
    """

    def __init__(
        self,
        state: RouterState,
        shared: SharedState,
        owners: Mapping[str, Owners],
        *,
        here: Callable[[], Here],
        holder: Callable[[], str],
    ) -> None:
        self._state = state
        self._shared = shared
        self._owners = owners
        self._here = here
        self._new_holder = holder
        self._breakers: dict[Key, _Breaker] = {}
        self._rests: dict[str, _Rests] = {}
        self._calls: dict[str, deque[AttemptFinished]] = {}
        self._anew: set[str] = set()
        self._reason = ""
        self._closed = False
        self._begin()
        self._register()
        self._restore()

    def _begin(self) -> None:
        """At the start, and in a forked process."""
        self._pid = os.getpid()
        self._holder = self._new_holder()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._alarm = asyncio.Event()
        self._claims: dict[str, asyncio.Task[None]] = {}
        self._changed = False
        self._poll_at = 0.0
        self._retry_at = 0.0
        self._lease_at = 0.0
        self._overdue = False

    # For the router -----------------------------------------------------------------------------------------

    @property
    def reason(self) -> str:
        """Why the shared state is out of reach, "" while it is not: every process decides alone meanwhile."""
        return self._reason

    def touch(self) -> None:
        """A request is here: see that somebody listens to the others on this loop."""
        loop = asyncio.get_running_loop()
        if os.getpid() != self._pid:
            self._forked()
        if loop is not self._loop:
            self._loop, self._task = loop, None
            self._alarm = asyncio.Event()
            self._claims.clear()
        if not self._closed and (self._task is None or self._task.done()):
            self._task = loop.create_task(self._run(loop), name="smart-model-router shared state")

    def changed(self) -> None:
        """A call was settled, or the operator spoke: whatever is different now is told."""
        self._changed = True
        self._alarm.set()

    def settled(self, gate: Gate, settlement: Settlement) -> None:
        """A call ended (or the operator spoke): whatever is different now is told."""
        for moved in settlement.moved:
            owner = gate.provider.name if moved.kind == "transport" else self._owners.get(gate.id, _NOBODY).target
            entry = self._breakers.get((owner, moved.kind))
            if entry is not None:
                entry.reason = moved.transition.reason
        if settlement.moved or settlement.rest or settlement.recovered or self._probing:
            self.changed()

    def asked(self, gate: Gate) -> None:
        """A call was admitted, or refused: lease more of its limits when little is left."""
        if gate.limits.short:
            self._alarm.set()

    def observe(self, event: AttemptFinished) -> None:
        """Keep what the next process should know of this target's recent calls."""
        if event.target in self._owners and event.failure_class is not FailureClass.CANCELLED:
            self._calls.setdefault(event.target, deque(maxlen=_CALLS_KEPT)).append(event)

    def begins_anew(self, target: str) -> None:
        """The target's window was emptied: what was before says nothing any more, to later processes neither."""
        self._calls.pop(target, None)
        self._anew.add(target)

    async def may_probe(self, gate: Gate, lease: Lease) -> bool:
        """Whether the probe that this lease is for is ours, and not another process's.

        Waits 20 ms at most. A question that is not answered by then goes on without the request, which is not to
        probe: when the probe is granted after all, the next request has it. When the store cannot answer, each
        process decides alone.
        """
        entries = self._probed(gate, lease)
        if not entries or self._alone():
            return True
        now = self._state.clock.now()
        if all(self._holds(entry, now) for entry in entries):
            return True
        provider = gate.provider.name
        claim = self._claims.get(provider)
        if claim is None or claim.done():
            claim = asyncio.get_running_loop().create_task(self._claim(entries))
            self._claims[provider] = claim
        await asyncio.wait({claim}, timeout=PROBE_SECONDS)
        now = self._state.clock.now()
        if self._alone() or all(self._holds(entry, now) for entry in entries):
            return True
        for entry in entries:
            if not entry.breaker.is_closed:
                entry.breaker.probed_elsewhere(max(entry.breaker.elsewhere_until, now + POLL_SECONDS))
        return False

    async def aclose(self) -> None:
        """Tell what is left to tell, give back what is leased, and let go. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        if self._task is not None and self._loop is asyncio.get_running_loop():
            self._alarm.set()
            await asyncio.wait({self._task, *self._claims.values()}, timeout=_RETRY_SECONDS)
            self._task.cancel()
            with suppress(SharedStateError, TimeoutError):
                await asyncio.wait_for(self._last_words(), _RETRY_SECONDS)
        await self._shared.aclose()

    async def _last_words(self) -> None:
        await self._publish(ending=True)
        await self._lease_tokens(ending=True)

    @property
    def _probing(self) -> bool:
        return any(entry.held is not None for entry in self._breakers.values())

    # Probes -------------------------------------------------------------------------------------------------

    def _probed(self, gate: Gate, lease: Lease) -> list[_Breaker]:
        if gate.id not in self._owners or not gate.config.measures.serialized_probes:
            return []
        owner = self._owners[gate.id].target
        keys = ((owner, "stream" if lease.stream else "whole"), (gate.provider.name, "transport"))
        return [entry for key in keys if (entry := self._breakers[key]).breaker.probe_in_flight]

    def _alone(self) -> bool:
        return bool(self._reason)

    def _holds(self, entry: _Breaker, now: float) -> bool:
        held = entry.held
        return held is not None and now < entry.until

    async def _claim(self, entries: list[_Breaker]) -> None:
        """Ask for the probes; what comes of it is in `held`, or known of those who have them."""
        here = self._here()
        until = Deadline.after(LEASE_SECONDS, here)
        rows = [self._row(entry, "half_open", until, self._holder) for entry in entries]
        watch = _Patience(self._too_slow)
        try:
            claim = await self._shared.claim(rows)
        except SharedStateError as error:
            self._out_of_reach(error.reason)
            return
        finally:
            watch.cancel()
        now = self._state.clock.now()
        for row in claim.granted:
            entry = self._breakers[row.key]
            entry.known = entry.held = row
            entry.until = now + LEASE_SECONDS
            entry.renew_at = now + _RENEW_SECONDS
            entry.breaker.probed_elsewhere(0.0)
        if claim.granted:
            self._state.pump(entries[0].gate.provider.name)
        else:
            self._take(claim.view)

    def _row(self, entry: _Breaker, state: Any, until: Deadline, holder: str = "") -> BreakerRow:
        owner, kind = self._key_of(entry)
        return BreakerRow(
            owner=owner,
            kind=kind,
            provider=entry.provider,
            state=state,
            until=until,
            step=entry.breaker.backoff_index,
            reason=entry.reason,
            holder=holder,
            gen=0 if entry.known is None else entry.known.gen,
        )

    def _key_of(self, entry: _Breaker) -> tuple[str, Any]:
        if entry.breaker is entry.gate.provider.transport:
            return entry.gate.provider.name, "transport"
        kind = "whole" if entry.breaker is entry.gate.breakers["whole"] else "stream"
        return self._owners[entry.gate.id].target, kind

    # The task -----------------------------------------------------------------------------------------------

    async def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._closed:
            now = self._state.clock.now()
            due = self._retry_at if self._reason else min(self._poll_at, self._lease_at or self._poll_at)
            timer = loop.call_later(min(POLL_SECONDS, max(_LEAST_PAUSE, due - now)), self._alarm.set)
            try:
                await self._alarm.wait()
            finally:
                timer.cancel()
            self._alarm.clear()
            if self._state.clock.now() >= self._retry_at:
                await self._turn()

    async def _turn(self) -> None:
        """Tell, lease, listen, as far as each is due."""
        self._overdue = False
        watch = _Patience(self._too_slow)
        try:
            await self._publish()
            await self._renew()
            await self._lease_tokens()
            if self._state.clock.now() >= self._poll_at:
                self._poll_at = self._state.clock.now() + POLL_SECONDS
                view = await self._shared.poll()
                if view is not None:
                    self._register()
                    self._take(view, everything=True)
        except SharedStateError as error:
            self._out_of_reach(error.reason)
        except Exception as bug:  # noqa: BLE001 - whatever a store does, this task goes on and says so
            self._out_of_reach(f"{type(bug).__name__}: {bug}")
        else:
            if not self._overdue and not any(not claim.done() for claim in self._claims.values()):
                self._tell("")
        finally:
            watch.cancel()

    def _too_slow(self) -> None:
        self._overdue = True
        self._out_of_reach("it takes too long to answer")

    def _out_of_reach(self, reason: str) -> None:
        self._retry_at = self._state.clock.now() + _RETRY_SECONDS
        self._tell(reason)

    def _tell(self, reason: str) -> None:
        if reason == self._reason:
            return
        self._reason = reason
        self._suspend(suspended=bool(reason))
        now = self._state.clock.now()
        if reason:
            for entry in self._breakers.values():
                entry.breaker.probed_elsewhere(0.0)
        self._state.emit(StoreChanged(at=now, store="state", degraded=bool(reason), reason=reason))
        self._state.pump(None)

    def _forked(self) -> None:
        """This is a copy of the process: leases and what is left to tell are the parent's."""
        self._begin()
        self._calls.clear()
        for entry in self._breakers.values():
            entry.held = None
        self._suspend(suspended=True)
        self._suspend(suspended=bool(self._reason))

    # Telling ------------------------------------------------------------------------------------------------

    async def _publish(self, *, ending: bool = False) -> None:
        here, now = self._here(), self._state.clock.now()
        breakers, rests = self._differences(now, here, ending=ending) if self._changed or ending else ([], [])
        taken, anew = self._take_calls() if ending or now >= self._poll_at else ({}, set())
        calls = self._call_rows(taken, anew, now, here)
        if not (breakers or rests or calls):
            self._changed = False
            return
        self._changed = False
        try:
            view = await self._shared.publish(Changes(tuple(breakers), tuple(rests), calls))
        except SharedStateError:
            self._changed = True
            self._keep_calls(taken, anew)
            raise
        written = {row.key: row for row in breakers}
        for now_there in view.breakers:
            entry, ours = self._breakers[now_there.key], written[now_there.key]
            if now_there == replace(ours, gen=now_there.gen):
                entry.known, entry.held = now_there, None
                entry.until = now + now_there.until.duration
        self._take(view)

    def _differences(self, now: float, here: Here, *, ending: bool) -> tuple[list[BreakerRow], list[RestRow]]:
        """What is different from what the others know."""
        breakers = [
            row for entry in self._breakers.values() if (row := self._different(entry, now, here, ending)) is not None
        ]
        rests: list[RestRow] = []
        for owner, kept in self._rests.items():
            records = {record.reason: record for record in kept.cooldown.records()}
            rests += [new for record in records.values() if (new := _different_rest(owner, kept, record, now, here))]
            rests += [
                replace(old, over=True)
                for reason, (old, _) in kept.known.items()
                if not old.over and reason not in records
            ]
        return breakers, rests

    def _different(self, entry: _Breaker, now: float, here: Here, ending: bool) -> BreakerRow | None:
        breaker, known = entry.breaker, entry.known
        under_way = breaker.probe_in_flight and not ending
        if breaker.isolated or under_way:
            return None
        if breaker.is_closed:
            over = Deadline.after(0.0, here)
            return None if known is None or known.state == "closed" else self._row(entry, "closed", over)
        until = breaker.open_until or now
        same = known is not None and known.state == "open" and abs(entry.until - until) < _SAME
        if same or (known is not None and known.state == "half_open" and entry.held is None):
            return None
        return self._row(entry, "open", Deadline.after(max(0.0, until - now), here))

    def _take_calls(self) -> tuple[dict[str, deque[AttemptFinished]], set[str]]:
        """The calls that nobody was told of, and the targets that began anew before theirs."""
        calls, self._calls = self._calls, {}
        anew = self._anew & calls.keys()
        self._anew -= anew
        return calls, anew

    def _keep_calls(self, calls: Mapping[str, Iterable[AttemptFinished]], anew: set[str]) -> None:
        """They could not be told: with those that ended meanwhile, later."""
        for target in calls.keys() - self._anew:  # who began anew since has nothing before
            self._calls[target] = deque([*calls[target], *self._calls.get(target, ())], maxlen=_CALLS_KEPT)
        self._anew |= anew

    def _call_rows(
        self, calls: Mapping[str, Iterable[AttemptFinished]], anew: set[str], now: float, here: Here
    ) -> tuple[CallRow, ...]:
        return tuple(
            CallRow(
                target=self._owners[target].target,
                at=_ago(here, now - event.at),
                failure=event.failure_class,
                stream=event.stream,
                seconds=event.seconds,
                ttft_seconds=event.ttft_seconds,
                completion_tokens=None if event.usage is None else event.usage.completion_tokens,
                anew=number == 0 and target in anew,
            )
            for target, events in calls.items()
            for number, event in enumerate(events)
        )

    async def _renew(self) -> None:
        now = self._state.clock.now()
        due = [entry for entry in self._breakers.values() if entry.held is not None and now >= entry.renew_at]
        used = [entry for entry in due if entry.breaker.probe_in_flight]
        for entry in due:
            entry.renew_at = now + _RENEW_SECONDS
            if not entry.breaker.probe_in_flight:  # nobody used it: let it go
                self._changed = True
                self._alarm.set()
        if not used:
            return
        until = Deadline.after(LEASE_SECONDS, self._here())
        rows = [replace(entry.held, until=until) for entry in used if entry.held is not None]
        still = {row.key: row for row in await self._shared.renew(rows)}
        for entry in used:
            row = still.get(self._key_of(entry))
            if row is not None:
                entry.known = entry.held = row
                entry.until = now + LEASE_SECONDS

    # Limits -------------------------------------------------------------------------------------------------

    def _stocks(self) -> Iterable[tuple[str, Meter, Stock]]:
        seen = set()
        for target, owners in self._owners.items():
            gate = self._state.fleet.gates.get(target)
            if gate is None or owners.limits in seen:
                continue
            seen.add(owners.limits)
            for name, meter, stock in gate.limits.stocks:
                yield f"{owners.limits} {name}", meter, stock

    def _suspend(self, *, suspended: bool) -> None:
        for target in self._owners:
            gate = self._state.fleet.gates.get(target)
            if gate is not None:
                gate.limits.suspend(suspended=suspended)

    async def _lease_tokens(self, *, ending: bool = False) -> None:
        """Settle the accounts of every limit that was used lately."""
        now = self._state.clock.now()
        accounts = {key: (meter, stock) for key, meter, stock in self._stocks()}
        asks = [meter.ask(key, stock, now) for key, (meter, stock) in accounts.items()]
        if ending:
            asks = [replace(ask, want=0.0, least=0.0, back=max(0.0, accounts[ask.key][1].level)) for ask in asks]
        asks = [ask for ask in asks if ask.debt or ask.back or ask.want]
        self._lease_at = 0.0
        if not asks:
            return
        grants = await self._shared.lease(asks)
        for ask, grant in zip(asks, grants, strict=True):
            due = now + grant.due_in
            stock = accounts[ask.key][1]
            stock.settled(ask.debt, ask.back, grant.granted, grant.left, due)
            if not grant.granted and ask.want:
                self._lease_at = min(self._lease_at or due, due)
        if any(grant.granted for grant in grants):
            self._state.pump(None)

    # Listening ----------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        try:
            found = self._shared.restore()
        except SharedStateError as error:
            self._tell(error.reason)
            return
        now, here = self._state.clock.now(), self._here()
        targets = {owners.target: target for target, owners in self._owners.items()}
        for call in found.calls:
            target = targets.get(call.target)
            gate = None if target is None else self._state.fleet.gates.get(target)
            if gate is not None:
                if call.anew:
                    self._state.book.reset_window(gate.id, now)
                self._state.book.restore(_event(call, gate, now - age(call.at, here, _MEMORY)))
        self._take(found.view)

    def _register(self) -> None:
        """Know the parts of every target that takes part."""
        for target, owners in self._owners.items():
            gate = self._state.fleet.gates.get(target)
            if gate is None:
                continue
            provider = gate.provider
            parts = [((owners.target, kind), breaker) for kind, breaker in gate.breakers.items()]
            for key, breaker in (*parts, ((provider.name, "transport"), provider.transport)):
                entry = self._breakers.get(key)
                if entry is None or entry.breaker is not breaker:
                    self._breakers[key] = _Breaker(breaker, provider.name, gate)
            for owner, cooldown in ((owners.target, gate.cooldown), (owners.credential, gate.credential)):
                kept = self._rests.get(owner)
                if kept is None or kept.cooldown is not cooldown:
                    self._rests[owner] = _Rests(cooldown, gate)
            gate.limits.share_out()

    def _take(self, view: SharedView, *, everything: bool = False) -> None:
        """Take over what others have changed. With `everything`, what is not in the view is not there any more."""
        now, here = self._state.clock.now(), self._here()
        if everything:
            self._miss(view)
        for row in view.breakers:
            entry = self._breakers.get(row.key)
            if entry is not None:
                self._take_breaker(entry, row, now, here)
        for rest in view.rests:
            kept = self._rests.get(rest.owner)
            if kept is not None:
                self._take_rest(kept, rest, now, here)
        self._take_probes(now, here)

    def _miss(self, view: SharedView) -> None:
        """Somebody removed the file: this process tells again what it knows."""
        there: set[Key] = {row.key for row in view.breakers}
        for key, entry in self._breakers.items():
            if entry.known is not None and key not in there:
                entry.known = entry.held = None
                self.changed()
        rests: set[Key] = {row.key for row in view.rests}
        for owner, kept in self._rests.items():
            for reason in [reason for reason in kept.known if (owner, reason) not in rests]:
                del kept.known[reason]
                self.changed()

    def _take_breaker(self, entry: _Breaker, row: BreakerRow, now: float, here: Here) -> None:
        known, breaker = entry.known, entry.breaker
        if known is not None and row.gen == known.gen:
            entry.known = row
            return
        entry.known, entry.held = row, None
        left = remaining(row.until, here, breaker.config.open_cap)
        entry.until = now + left
        if row.state == "closed":
            transition = None if breaker.isolated else breaker.close(now, "shared")
        else:
            until = now + left if row.state == "open" else now
            transition = breaker.adopt(until, row.step, now, reason="shared")
        if transition is not None:
            self._moved(entry, transition, now)

    def _moved(self, entry: _Breaker, transition: Transition, now: float) -> None:
        gate, provider = entry.gate, entry.gate.provider
        _, kind = self._key_of(entry)
        closed = transition.to_state is BreakerState.CLOSED
        if kind == "transport":
            provider.connectivity.moved(provider.name, not closed, now)
            provider.slow_start_at = now if closed else None
        elif closed:
            gate.begin_slow_start(now)
        else:
            gate.cooldown.breaker_tripped()
        if closed:
            provider.throttle.reset()
        self._state.apply(gate, Settlement((Moved(kind, transition),), recovered=closed), now, None)

    def _take_rest(self, kept: _Rests, row: RestRow, now: float, here: Here) -> None:
        known = kept.known.get(row.reason)
        if known is not None and known[0].gen == row.gen:
            return
        config = kept.gate.config.cooldown
        caps = {"cooldown": config.cap, "wait": max(config.hint_cap, config.cap)}
        until = now + remaining(row.until, here, caps.get(row.reason, row.until.duration))
        ours = next((r for r in kept.cooldown.records() if r.reason == row.reason), None)
        kept.known[row.reason] = (row, until)
        if row.over:
            if kept.cooldown.end(row.reason):
                self._state.apply(kept.gate, Settlement(recovered=True), now, None)
            return
        if ours is not None and ours.hinted == row.hinted and abs(ours.until - until) < _SAME:
            return
        if kept.cooldown.adopt(RestRecord(row.reason, until, row.hinted, row.cause, row.step), now):
            self._state.apply(kept.gate, Settlement(), now, None)
        else:  # what we know goes further
            self.changed()

    def _take_probes(self, now: float, here: Here) -> None:
        """While another process probes at a provider, none of its breakers is probed here."""
        leases: dict[str, float] = {}
        for entry in self._breakers.values():
            known = entry.known
            if known is not None and known.state == "half_open" and entry.held is None:
                until = now + remaining(known.until, here, LEASE_SECONDS)
                leases[entry.provider] = max(leases.get(entry.provider, 0.0), until)
        for entry in self._breakers.values():
            if not entry.breaker.is_closed and entry.held is None:
                entry.breaker.probed_elsewhere(leases.get(entry.provider, 0.0))
        for provider in leases:
            self._state.pump(provider)


class _Patience:
    """Calls `give_up` once SLOW_SECONDS have passed in which this loop had its turns, unless it is cancelled before."""

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up
        self._ticks = round(SLOW_SECONDS / _TICK)
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_TICK, self._tick)

    def cancel(self) -> None:
        """No-op once it gave up."""
        self._timer.cancel()

    def _tick(self) -> None:
        self._ticks -= 1
        if self._ticks:
            self._timer = self._loop.call_later(_TICK, self._tick)
        else:
            self._give_up()


def _different_rest(owner: str, kept: _Rests, record: RestRecord, now: float, here: Here) -> RestRow | None:
    known = kept.known.get(record.reason)
    if known is not None and not known[0].over:
        row, until = known
        if row.hinted == record.hinted and (abs(until - record.until) < _SAME or max(until, record.until) <= now):
            return None
    return RestRow(
        owner=owner,
        reason=record.reason,
        until=Deadline.after(max(0.0, record.until - now), here),
        cause=record.cause,
        hinted=record.hinted,
        step=record.step,
        gen=0 if known is None else known[0].gen,
    )


def _ago(here: Here, seconds: float) -> Here:
    return Here(here.boot, here.boottime - seconds, here.wall - seconds)


def _event(call: CallRow, gate: Gate, at: float) -> AttemptFinished:
    tokens = call.completion_tokens
    return AttemptFinished(
        at=at,
        admitted_at=at - call.seconds,
        target=gate.id,
        provider=gate.provider.name,
        model=gate.id.partition("/")[2],
        stream=call.stream,
        seconds=call.seconds,
        failure_class=call.failure,
        ttft_seconds=call.ttft_seconds,
        usage=None if tokens is None else Usage(0, tokens),
    )
