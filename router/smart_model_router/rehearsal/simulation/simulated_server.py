"""A server of shared state in virtual time, the network to it, and machines that can be stopped."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from smart_model_router.domain.shared_state import ClockReading, KeptOpen, SharedStateError
from smart_model_router.rehearsal.simulation.workload import WorldLoop
from smart_model_router_stats import transactions
from smart_model_router_stats.memory import MemoryTables

if TYPE_CHECKING:
    from smart_model_router.domain.shared_state import (
        BreakerRow,
        BucketAsk,
        BucketGrant,
        BudgetAsk,
        Changes,
        Claim,
        MakerRow,
        Restored,
        SharedView,
        SlotAsk,
        SlotGrant,
    )

T = TypeVar("T")

_WALL = 1_700_000_000.0
_GIVE_UP = 1.0
"""Seconds after which a client takes a question for lost."""
SNAPSHOT_SECONDS = 0.25
_SNAPSHOTS = 20


@dataclass(eq=False)
class Machine:
    """A machine: its clock is `offset` seconds ahead, and nothing of it runs while it is `stopped`."""

    name: str
    offset: float = 0.0
    delay: float = 0.0
    """Seconds of each way to the server, and of the way back."""
    loss: float = 0.0
    deaf: bool = False
    """Answers do not arrive."""
    mute: bool = False
    """Questions do not arrive."""
    stopped: bool = False
    parked: list[Callable[[], object]] = field(default_factory=list)
    locks: set[str] = field(default_factory=set)
    """The providers whose lock a process has."""
    left: dict[str, dict[str, tuple[float, int]]] = field(default_factory=dict)
    """Until when breakers are open by what was left with each lock, and their steps."""

    def go_on(self) -> None:
        """Continue after a stop: whatever was due meanwhile happens now, in order."""
        self.stopped = False
        parked, self.parked = self.parked, []
        for step in parked:
            step()


RUNS_ON: ContextVar[Machine | None] = ContextVar("RUNS_ON", default=None)
"""The machine that the current task runs on."""


class MachinesLoop(WorldLoop):
    """The loop in virtual time of several machines: callbacks of a stopped one wait until it goes on."""

    def call_soon(  # type: ignore[override]  # only asyncio's stubs tie the arguments to the callback
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """As of any loop."""
        context = copy_context() if context is None else context
        machine = context.get(RUNS_ON)
        if machine is None:
            return super().call_soon(callback, *args, context=context)
        step = _Step(self, machine, callback, args, context)
        step.handle = super().call_soon(step, context=context)
        return step.handle

    def call_at(  # type: ignore[override]  # as above
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As of any loop."""
        context = copy_context() if context is None else context
        machine = context.get(RUNS_ON)
        if machine is None:
            return super().call_at(when, callback, *args, context=context)
        step = _Step(self, machine, callback, args, context)
        timer = super().call_at(when, step, context=context)
        step.handle = timer
        return timer


class _Step:
    """A callback of a machine."""

    __slots__ = ("args", "callback", "context", "handle", "loop", "machine")

    def __init__(
        self, loop: MachinesLoop, machine: Machine, callback: Callable[..., object], args: Any, context: Context
    ) -> None:
        self.loop = loop
        self.machine = machine
        self.callback = callback
        self.args = args
        self.context = context
        self.handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        """Run it, unless the machine is stopped."""
        if self.machine.stopped:
            self.machine.parked.append(self.go_on)
        else:
            self.callback(*self.args)

    def go_on(self) -> None:
        """Run it after all, unless it was cancelled meanwhile."""
        if self.handle is None or not self.handle.cancelled():
            self.loop.call_soon(self.callback, *self.args, context=self.context)


class SimulatedServer:
    """The rows, and the server's clock: an epoch and a boot time, which are other ones after a fail-over.

    `stale` counts writes that a process made with an older generation than the newest.
    """

    def __init__(self, dice: Random) -> None:
        self.tables = MemoryTables()
        self.dice = dice
        self.epoch = "epoch-0"
        self.stale: list[str] = []
        self.changed_at = -1e9
        """When rows were last lost."""
        self._shift = 5_000.0
        self._snapshots: list[dict[str, Any]] = []

    def now(self) -> float:
        """Seconds on the server's monotonic clock."""
        return asyncio.get_running_loop().time() + self._shift

    def wall(self) -> float:
        """Seconds since the epoch, on the server's clock."""
        return asyncio.get_running_loop().time() + _WALL

    def keep_snapshot(self) -> None:
        """Replicate the rows as they are now."""
        self._snapshots = [*self._snapshots[1 - _SNAPSHOTS :], _copied(vars(self.tables))]

    def flush(self) -> None:
        """Lose every row."""
        version = self.tables.version
        vars(self.tables).update(vars(MemoryTables()), version=version + 1)
        self.begin_epoch()
        self._lost()

    def fail_over(self, lag: float, shift: float) -> None:
        """Go on from the rows of `lag` seconds ago, on another server, whose clock is `shift` seconds ahead."""
        version = self.tables.version
        steps = min(len(self._snapshots), 1 + round(lag / SNAPSHOT_SECONDS))
        if steps:
            vars(self.tables).update(_copied(self._snapshots[-steps]), version=version + 1)
        self._shift += shift
        self.begin_epoch()
        self._lost()

    def begin_epoch(self) -> None:
        """Name the clock anew: instants of before mean nothing on it."""
        self.epoch = f"epoch-{int(self.epoch.partition('-')[2]) + 1}"

    def _lost(self) -> None:
        self.changed_at = asyncio.get_running_loop().time()
        self._snapshots = []


def _copied(tables: dict[str, Any]) -> dict[str, Any]:
    """A copy of all tables; the rows themselves are frozen."""
    found = {name: copy.copy(table) for name, table in tables.items()}
    found["_calls"] = {target: copy.copy(calls) for target, calls in tables["_calls"].items()}
    return found


class SimulatedLocks:
    """One process's way to the locks of its machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def take(self, provider: str) -> bool:
        """Take its lock; False when another process has it."""
        free = provider not in self._machine.locks
        self._machine.locks.add(provider)
        return free

    def left(self, provider: str) -> dict[str, KeptOpen]:
        """The open times that are not over yet."""
        now, left = asyncio.get_running_loop().time(), self._machine.left.get(provider, {})
        return {name: KeptOpen(until - now, step) for name, (until, step) in left.items() if until > now}

    def let_go(self, provider: str, left: Mapping[str, KeptOpen]) -> None:
        """Give its lock back, and leave these open times with it."""
        now = asyncio.get_running_loop().time()
        self._machine.left[provider] = {name: (now + told.seconds, told.step) for name, told in left.items()}
        self._machine.locks.discard(provider)

    def forget(self) -> None:
        """Nothing forks here."""


class SimulatedState:
    """One process's way to the server, over the network of its machine."""

    def __init__(self, server: SimulatedServer, machine: Machine) -> None:
        self._server = server
        self._machine = machine
        self._seen: tuple[str, int] | None = None
        self._epoch = ""
        self._offset = 0.0
        self.round_trip: float | None = None
        self.conflicts = 0

    def here(self) -> ClockReading:
        """Now, on the server's clock as this process knows it."""
        local = asyncio.get_running_loop().time() + self._machine.offset
        if not self._epoch:
            return ClockReading(f"boot of {self._machine.name}", local, local + _WALL)
        return ClockReading(self._epoch, local + self._offset, self._server.wall())

    def restore(self) -> Restored:
        """Return the whole state."""
        self._reachable()
        return transactions.restore(self._server.tables, self._heard())

    def publish_now(self, changes: Changes) -> SharedView:
        """Write what may be written."""
        self._reachable()
        return self._publish(changes, self._heard())

    async def poll(self) -> SharedView | None:
        """Everything, when something changed."""
        self._seen, view = await self._ask(self._poll)  # what did not arrive was not seen
        return view

    async def claim(self, rows: Sequence[BreakerRow]) -> Claim:
        """Take the probes of all these breakers, or of none."""
        return await self._ask(lambda here: transactions.claim(self._server.tables, rows, here))

    async def renew(self, rows: Sequence[BreakerRow]) -> tuple[BreakerRow, ...]:
        """Extend leases."""
        return await self._ask(lambda _: transactions.renew(self._server.tables, rows))

    async def publish(self, changes: Changes) -> SharedView:
        """Write what may be written."""
        return await self._ask(lambda here: self._publish(changes, here))

    async def makers(self, things: Sequence[bytes]) -> tuple[MakerRow, ...]:
        """The makers of these things, as far as they are known."""
        return await self._ask(lambda _: tuple(self._server.tables.makers(things)))

    async def lease_slots(self, asks: Sequence[SlotAsk]) -> tuple[SlotGrant, ...]:
        """Lease slots."""
        return await self._ask(lambda here: transactions.slots(self._server.tables, asks, here))

    async def lease(self, asks: Sequence[BucketAsk | BudgetAsk]) -> tuple[BucketGrant, ...]:
        """Lease tokens, and reserve in budgets."""
        return await self._ask(lambda here: transactions.lease(self._server.tables, asks, here))

    async def aclose(self) -> None:
        """Nothing to let go of."""

    def _poll(self, _: ClockReading) -> tuple[tuple[str, int], SharedView | None]:
        seen = self._server.epoch, self._server.tables.version
        return seen, None if seen == self._seen else transactions.view(self._server.tables)

    def _publish(self, changes: Changes, here: ClockReading) -> SharedView:
        tables = self._server.tables
        before = {row.key: tables.breaker(row.key) for row in changes.breakers}
        view = transactions.publish(tables, changes, here)
        for row in changes.breakers:
            known = before[row.key]
            writer, there = (row.gen, row.until.boot), (0 if known is None else known.gen, self._server.epoch)
            if known is not None and writer != there and tables.breaker(row.key) != known:
                self._server.stale.append(f"{row.owner}: a write of {writer} replaced {there}")
        return view

    async def _ask(self, rule: Callable[[ClockReading], T]) -> T:
        """Run the rule where the rows are, once the question is there; return the answer when it is back."""
        loop, machine, dice = asyncio.get_running_loop(), self._machine, self._server.dice
        answer: asyncio.Future[T] = loop.create_future()
        sent = loop.time()

        def arrive() -> None:
            result = rule(self._heard())
            if not machine.deaf and dice.random() >= machine.loss:
                loop.call_later(machine.delay, deliver, result, context=Context())

        def deliver(result: T) -> None:
            if not answer.done():
                answer.set_result(result)

        if not machine.mute and dice.random() >= machine.loss:
            loop.call_later(machine.delay, arrive, context=Context())
        try:
            async with asyncio.timeout(_GIVE_UP):
                result = await answer
        except TimeoutError:
            raise SharedStateError("no answer") from None
        self.round_trip = loop.time() - sent
        return result

    def _heard(self) -> ClockReading:
        """Learn the server's time, with an error of half of the way."""
        server = self._server
        local = asyncio.get_running_loop().time() + self._machine.offset
        self._epoch, self._offset = server.epoch, server.now() - local
        return self.here()

    def _reachable(self) -> None:
        if self._machine.mute or self._machine.deaf:
            raise SharedStateError("no answer")
