"""One router's part in the shared state: the task that tells and listens, and what the router says to it.

Every change of a breaker or a rest and every word of the operator is written, every change of others is taken over, by
one task that looks every tenth of a second. A request meets the shared state when it is about to probe, is the first
one on its loop, or needs a slot of the host, and then for 20 ms, 100 ms and half a second at most.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from smart_model_router.coordination.client_leases import ClientLeases
from smart_model_router.coordination.cooldowns import SharedCooldowns
from smart_model_router.coordination.membership import Members
from smart_model_router.coordination.probe_leases import ProbeLeases
from smart_model_router.coordination.recent_calls import RecentCalls, Untold
from smart_model_router.coordination.shared_breakers import SharedBreakers
from smart_model_router.coordination.shared_commands import SharedCommands
from smart_model_router.coordination.slot_leases import LOOK_SECONDS, SlotLeases
from smart_model_router.coordination.store_health import (
    IDLE_POLL_SECONDS,
    POLL_SECONDS,
    RETRY_SECONDS,
    TELL_SECONDS,
    TOO_SLOW,
    StoreReachability,
    in_time,
)
from smart_model_router.coordination.token_leases import TokenLeases
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease, Settlement
from smart_model_router.domain.events import AttemptFinished, StoreChanged
from smart_model_router.domain.fork_hooks import in_children
from smart_model_router.domain.ports import ProbeLocks, SharedState, SupportsTraffic
from smart_model_router.domain.request import Target
from smart_model_router.domain.shared_state import Changes, MakerRow, SharedKeys, SharedStateError, SharedView

if TYPE_CHECKING:
    from smart_model_router.coordination.local_router import LocalRouter

_LEAST_PAUSE = 0.005
FIRST_LOOK_SECONDS = 0.1
"""Seconds that a request waits for the first view of the shared state on its loop."""
_NOTHING = Changes()


class Coordinator:
    """One router's part in the shared state. `owners` has the targets that take part, `holder` names this router.

    It runs on `machine`, as this `version` of the package; machines share state on a server only. There are `processes`
    on each machine at least, and as many `machines` as that, or as are counted (0). `locks` are for the
    probes of this machine's processes while they decide alone. `revive` is told the names of all targets that calls are
    known of from before: it makes those that a wildcard has.

    Not thread-safe: it belongs to the router's loop.
    """

    def __init__(
        self,
        state: LocalRouter,
        shared: SharedState,
        owners: Mapping[str, SharedKeys],
        *,
        holder: Callable[[], str],
        machine: str = "",
        version: str = "",
        processes: int = 1,
        machines: int = 0,
        locks: ProbeLocks | None = None,
        revive: Callable[[Iterable[str]], None] = lambda _: None,
    ) -> None:
        self._state = state
        self._shared = shared
        self._owners = owners
        self._revive = revive
        self._here = state.here
        self._new_holder = holder
        self._reach = StoreReachability(state.clock, self._reach_changed)
        self._breakers = SharedBreakers(state, owners)
        self._probes = ProbeLeases(
            state, shared, self._breakers, self._reach, here=state.here, heard=self._take, locks=locks
        )
        self._rests = SharedCooldowns(state)
        self._calls = RecentCalls(state, owners)
        self._tokens = TokenLeases(state, shared, owners, lambda: self.members.count)
        self._slots = SlotLeases(state, shared, self._reach, state.here, look_soon=self._look_soon)
        self.clients = ClientLeases(shared, self._reach, self.touch, state.here, lambda: self.members.count)
        self._words = SharedCommands(state)
        many = isinstance(shared, SupportsTraffic)
        self.members = Members(state.here, machine, version, processes=processes, machines=machines, many_machines=many)
        self._closed = False
        self._heard_at = -math.inf
        self._boot = state.here().boot
        self._view: SharedView | None = None
        """The newest that the others said."""
        self._begin()
        self._register()
        self._restore()
        in_children(self._forked)

    def _begin(self) -> None:
        """At the start, and in a forked process."""
        holder = self._new_holder()
        self._probes.begin(holder)
        self._slots.begin(holder)
        self.members.begin(holder)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._alarm = asyncio.Event()
        self._turned = asyncio.Event()
        self._stale = False
        self._changed = False
        self._pressed = False
        self._poll_at = 0.0
        self._used = False
        """True when a request came since the last poll."""
        self._tell_at = 0.0

    # For the router -----------------------------------------------------------------------------------------

    @property
    def reason(self) -> str:
        """The reason why the shared state is out of reach, "" while it is not. Processes decide alone meanwhile."""
        return self._reach.reason

    @property
    def alone_since(self) -> float | None:
        """The instant since which this process decides alone; None while it shares."""
        return self._reach.lost_at

    @property
    def traffic(self) -> SupportsTraffic | None:
        """The cost of the answers of a server; None for a file."""
        return self._shared if isinstance(self._shared, SupportsTraffic) else None

    def touch(self) -> bool:
        """Make sure that the polling task runs on this loop.

        Returns False while the task has not read the shared state yet: see `first_look`.
        """
        self._used = True
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._task = loop, None
            self._alarm = asyncio.Event()
            self._turned = asyncio.Event()
            self._probes.forget()
            self.clients.forget()
            self._slots.forget()
        if not self._closed and (self._task is None or self._task.done()):
            self._task = loop.create_task(self._run(loop), name="smart-model-router shared state")
            self._stale = self._state.clock.now() - self._heard_at > POLL_SECONDS
            self._poll_at = 0.0
            self.pressed()
        return not self._stale

    async def first_look(self) -> None:
        """Wait for the first answer of the others, a tenth of a second at most."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._turned.wait(), FIRST_LOOK_SECONDS)
        self._stale = False

    async def publish_word(self) -> str:
        """Wait until the others can hear what the operator said here; "" then, else why they cannot.

        Where they cannot they are told later: as soon as the shared state answers, or when this router closes.
        """
        self.touch()
        with suppress(TimeoutError):
            async with asyncio.timeout(RETRY_SECONDS):
                while self._words.differences() and not self._reach.reason:
                    await self._turned.wait()
        return self._reach.reason or (TOO_SLOW if self._words.differences() else "")

    def spoken(self) -> None:
        """The operator spoke here: tell the others, right now where no task would."""
        if self._task is not None and not self._task.done() and self._loop is not None and self._loop.is_running():
            self.changed()
            return
        rows = self._words.differences()
        try:
            view = self._shared.publish_now(Changes(words=rows))
        except SharedStateError as error:
            self._reach.lose(error.reason, again_in=0.0)
            self._changed = True
        else:
            self._words.take(view.words, self._here())

    def changed(self) -> None:
        """A call was settled, or the operator spoke: whatever is different now is told."""
        self._changed = True
        self.pressed()

    def settled(self, gate: Gate, settlement: Settlement) -> None:
        """A call ended (or the operator spoke): whatever is different now is told."""
        self._breakers.settled(gate, settlement)
        self._probes.alone.settle(self._state.clock.now())
        if settlement.moved or settlement.rest or settlement.recovered or self._breakers.held:
            self.changed()
        self._slots.settled(gate)

    def continue_from(self, before: Coordinator | None) -> None:
        """Take the place of another router of this process, whose calls under way hold slots in both."""
        self._register()
        if before is not None:
            self._slots.continue_from(before._slots)
            self.members.continue_from(before.members)

    def has_slot(self, gate: Gate) -> bool:
        """True when a call that was just admitted has its slot among those of the host without asking for it."""
        return self._slots.has_slot(gate)

    async def may_enter(self, gate: Gate, within: float) -> bool:
        """Get a slot of the host for a call that was just admitted: see `SlotLeases.may_enter`."""
        return await self._slots.may_enter(gate, within)

    def pressed(self) -> None:
        """There is something to tell at once."""
        self._pressed = True
        self._alarm.set()

    def name_of(self, target: str) -> str | None:
        """The shared key of a target of this router; None where it does not take part."""
        owners = self._owners.get(target)
        return None if owners is None else owners.target

    def target_named(self, name: str) -> Target | None:
        """The target that processes name so; where its key was replaced, the only one of the same name but for it."""
        self._revive((name,))
        named = {owners.target: target for target, owners in self._owners.items()}
        if name not in named:
            same = [found for found in named if found.partition("@")[0] == name.partition("@")[0]]
            name = same[0] if len(same) == 1 else ""
        gate = self._state.fleet.gates.get(named.get(name, ""))
        if gate is None:
            return None
        model = gate.id.partition("/")[2]
        return Target(gate.id, gate.provider.name, model, gate.number)

    async def makers(self, things: Sequence[bytes]) -> tuple[MakerRow, ...] | None:
        """The makers of things by the SHA-256 of their ids; None when they cannot be had now."""
        if self._reach.reason:
            return None
        try:
            async with in_time():
                return await self._shared.makers(things)
        except (SharedStateError, TimeoutError):
            return None

    def asked(self, gate: Gate) -> None:
        """A call was admitted, or refused: lease more of its limits when little is left."""
        if gate.limits.short:
            self.pressed()

    def observe(self, event: AttemptFinished) -> None:
        """Keep what the next process should know of this target's recent calls."""
        self._calls.observe(event)

    def begins_anew(self, target: str) -> None:
        """The target's window was emptied: what was before says nothing any more, to later processes neither."""
        self._calls.begins_anew(target)

    async def may_probe(self, gate: Gate, lease: Lease) -> bool:
        """True when the probe that this lease is for is ours, and not another process's. Waits 20 ms at most."""
        return await self._probes.may_probe(gate, lease)

    async def aclose(self) -> None:
        """Tell what is left to tell, give back what is leased, and let go. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        if self._task is not None and self._loop is asyncio.get_running_loop():
            self._alarm.set()
            await asyncio.wait({self._task, *self._probes.asked}, timeout=RETRY_SECONDS)
            self._task.cancel()
            with suppress(SharedStateError, TimeoutError):
                await asyncio.wait_for(self._last_words(), RETRY_SECONDS)
        self._probes.alone.settle(self._state.clock.now(), ending=True)
        await self._shared.aclose()

    async def _last_words(self) -> None:
        await self.clients.settle_all()
        await self._slots.settle_all()
        await self._publish(ending=True)
        await self._tokens.settle(ending=True)

    # The task -----------------------------------------------------------------------------------------------

    async def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        reach, clock = self._reach, self._state.clock
        while not self._closed:
            leases_at = self._tokens.due_at
            due = self._poll_due if leases_at is None else min(self._poll_due, leases_at)
            pause = (reach.retry_at if reach.reason else due) - clock.now()
            timer = loop.call_later(min(POLL_SECONDS, max(_LEAST_PAUSE, pause)), self._alarm.set)
            try:
                await self._alarm.wait()
            finally:
                timer.cancel()
            self._alarm.clear()
            if clock.now() >= reach.retry_at:
                await self._turn()

    def _look_soon(self) -> None:
        """The next look is due earlier than it was."""
        self._alarm.set()

    @property
    def _poll_due(self) -> float:
        """When to listen next: sooner where slots that others give back are waited for."""
        return min(self._poll_at, self._heard_at + LOOK_SECONDS) if self._slots.waiting else self._poll_at

    async def _turn(self) -> None:
        """Tell, lease, listen, as far as each is due."""
        reach = self._reach
        reach.overdue = False
        with reach.patience():
            try:
                await self._tell()
                await self._listen()
            except SharedStateError as error:
                reach.lose(error.reason)
            except Exception as bug:  # noqa: BLE001 - whatever a store does, this task goes on and says so
                reach.lose(f"{type(bug).__name__}: {bug}")
            else:
                if not reach.overdue and not self._probes.asked:
                    reach.regain()
        self._probes.alone.settle(self._state.clock.now())
        self._let_go()

    def _let_go(self) -> None:
        """Release the requests that wait for a turn of the task."""
        self._stale = False
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()

    async def _tell(self) -> None:
        now, leases_at = self._state.clock.now(), self._tokens.due_at
        due = now >= self._tell_at
        if not (due or self._pressed or (leases_at is not None and now >= leases_at)):
            return
        self._pressed = False
        if due:
            self._tell_at = now + TELL_SECONDS
            self.clients.settle()
            self._slots.settle()
        await self._publish(calls=due)
        if self._probes.unused():
            self.changed()
        await self._probes.renew()
        await self._tokens.settle()

    async def _publish(self, *, calls: bool = True, ending: bool = False) -> None:
        here, now = self._here(), self._state.clock.now()
        tells = self._changed or ending
        untold = self._calls.take() if calls else Untold()
        changes = Changes(
            self._breakers.differences(now, here, ending=ending) if tells else (),
            self._rests.differences(now, here) if tells else (),
            self._calls.rows(untold, now, here),
            self._words.differences(),
            self._state.makers.take(),
            self.members.row(now, ending=ending) if calls else (),
        )
        self._changed = False
        if changes == _NOTHING:
            return
        try:
            view = await self._shared.publish(changes)
        except SharedStateError:
            self._changed = True
            self._calls.keep(untold)
            self._state.makers.keep(changes.makers)
            raise
        finally:
            self._breakers.told(changes.breakers)
        self._breakers.written(changes.breakers, view, now)
        if changes.members:
            self.members.written(now, view.members)
            self.clients.hear(view)
        self._take(view)

    async def _listen(self) -> None:
        now = self._state.clock.now()
        if now < self._poll_due:
            return
        self._poll_at = now + (POLL_SECONDS if self._used else IDLE_POLL_SECONDS)
        self._used = False
        view = await self._shared.poll()
        self._heard_at = self._state.clock.now()
        if view is not None:
            self._register()
            self.members.take(view.members, self._here())
            if self._breakers.miss(view) | self._rests.miss(view) | self._words.miss(view):
                self.changed()
            self._take(view)
            self._slots.hear(view.slots)

    def _take(self, view: SharedView) -> None:
        """Take over what others have changed. The operator's word comes first: a breaker may have moved after it."""
        self._view = view
        now, here = self._state.clock.now(), self._here()
        if here.boot != self._boot:
            self._begin_anew(here.boot)
        if self._words.take(view.words, here):
            self.changed()
        if self._breakers.take(view.breakers, now, here) | self._rests.take(view.rests, now, here):
            self.changed()
        self._tokens.take(view.limits, now, here)
        self._breakers.yield_probes(now, here)

    def _begin_anew(self, boot: str) -> None:
        """Tell a server that began anew whatever is known here. It may have lost its last writes."""
        self._boot = boot
        self._breakers.begin_anew()
        self._rests.begin_anew()
        self._words.begin_anew()
        self.changed()

    # Beginning, and being without it ------------------------------------------------------------------------

    def _register(self) -> None:
        """Know the parts of every target that takes part."""
        for target in self._owners:
            self._register_target(target)

    def _register_target(self, target: str) -> None:
        owners, gate = self._owners[target], self._state.fleet.gates.get(target)
        if gate is not None:
            self._breakers.register(owners.target, gate)
            self._rests.register(owners.target, gate.cooldown, gate)
            self._rests.register(owners.credential, gate.credential, gate)
            gate.limits.share_out()
            if owners.slots:
                self._share_slots(gate, owners)

    def _share_slots(self, gate: Gate, owners: SharedKeys) -> None:
        """Share a bulkhead with all processes, or, on a server of many machines, with those of this one."""
        members = self.members
        if owners.slots_of_fleet or not members.many_machines:
            self._slots.register(gate, owners.slots, lambda: members.count)
        else:
            self._slots.register(gate, f"{owners.slots} {members.machine}", lambda: members.on_this_machine)

    def join(self, target: str) -> None:
        """Let a target take part that a wildcard has made, with all that the others said of it."""
        self._register_target(target)
        view, owners = self._view, self._owners[target]
        limits = self._state.fleet.gates[target].limits
        alone = sum(gate.limits is limits for gate in self._state.fleet.gates.values()) == 1
        if view is not None:
            self._take(
                replace(
                    view,
                    breakers=tuple(row for row in view.breakers if row.owner == owners.target),
                    rests=tuple(row for row in view.rests if row.owner in (owners.target, owners.credential)),
                    limits=tuple(row for row in view.limits if alone and row.key.startswith(f"{owners.limits} ")),
                )
            )
            self._view = view

    def leave(self, target: str) -> None:
        """Forget a target that no longer exists here; what the others know of it stays."""
        owners = self._owners[target]
        self._breakers.forget(owners.target)
        self._rests.forget(owners.target)

    def _restore(self) -> None:
        try:
            found = self._shared.restore()
        except SharedStateError as error:
            self._reach.lose(error.reason, again_in=0.0)
            return
        self._heard_at = self._state.clock.now()
        self._revive(dict.fromkeys(row.target for row in found.calls))
        self._register()
        self._calls.restore(found.calls, self._heard_at, self._here())
        self.clients.restore(found.view)
        self.members.take(found.view.members, self._here())
        self._take(found.view)

    def _reach_changed(self, reason: str) -> None:
        if reason:
            self._tokens.suspend()
            self.clients.suspend()
            self._slots.suspend()
            self._breakers.decide_alone()
            self._probes.alone.begin()
        else:
            self._tokens.resume()
            self.clients.resume()
            self._slots.resume()
        self._let_go()
        now = self._state.clock.now()
        self._state.emit(StoreChanged(at=now, store="state", degraded=bool(reason), reason=reason))
        self._state.pump(None)

    def _forked(self) -> None:
        """This is a copy of the process: leases and what is left to tell are the parent's."""
        self._begin()
        self._reach.retry_at = 0.0
        self._calls.clear()
        self._breakers.release()
        self._tokens.forget()
        self.clients.forked()
