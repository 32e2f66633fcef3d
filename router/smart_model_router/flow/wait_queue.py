"""The queue of requests that cannot be admitted now, oldest first per gate, woken by events or by time.

Streams and whole answers have breakers of their own, and each plan paces in its own way. So waiters of a gate stand in
lanes: one that our own judgement refuses holds up its lane alone, one that lacks a slot or tokens all lanes.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from smart_model_router.core.gate import Pacing
from smart_model_router.core.ratelimit import Cost
from smart_model_router.domain.ports import Clock, TimerHandle

_RANK_SECONDS = 5.0


@dataclass(eq=False, slots=True)
class Waiter:
    """A request's place in the queues. It keeps its number however often it has to wait.

    `gates` are those it waits for now, with its cost at each; `place` is the one whose bucket it will most likely take
    from; `pacing` is the pacing of its calls there. A lower `rank` goes first, but a waiter that is older by 5 s counts
    as one of the next higher rank; at `resorts`, where it waits as for a last resort, rank alone goes before arrival.
    """

    number: int
    stream: bool
    rank: int = 0
    since: float = 0.0
    pacing: Pacing = "off"
    gates: Mapping[str, Cost] = field(default_factory=dict)
    resorts: frozenset[str] = frozenset()
    place: str | None = None
    woken: asyncio.Future[str] | None = field(default=None, repr=False)
    queues: list[_Queue] = field(default_factory=list, repr=False)
    """The queues of `gates`, in the same order."""

    @property
    def lane(self) -> _Lane:
        """Its lane in each of its queues."""
        return self.stream, self.pacing

    @property
    def places(self) -> tuple[_Place, _Place]:
        """Its place in the queues of most gates, and in those of `resorts`."""
        rising = _seniority(self.since, self.rank), self.number, self
        return rising, (self.rank, self.number, self)

    def order(self, gate: str) -> tuple[float, int]:
        """Its place in the queue of a gate, the least first."""
        return (self.rank if gate in self.resorts else _seniority(self.since, self.rank), self.number)


_Lane = tuple[bool, Pacing]
"""True for waiters that want streams, and the pacing of their calls."""
_Place = tuple[float, int, Waiter]
"""A waiter behind the two keys of its order."""


@dataclass(slots=True)
class _Queue:
    """The waiters of one gate, by lane; there are no empty lanes. `name` is its name among the queues that share.

    `placed` are those that will most likely take from the gate's buckets. `full`: the gate had no slot at the last
    check, which is valid until something happens there.
    """

    name: str
    lanes: dict[_Lane, deque[_Place]] = field(default_factory=dict)
    waiters: int = 0
    placed: dict[Waiter, None] = field(default_factory=dict)
    alarm: TimerHandle | None = None
    full: bool = False

    @property
    def heads(self) -> list[_Place]:
        """The first of each lane, the first of them first."""
        heads = [lane[0] for lane in self.lanes.values()]
        return heads if len(heads) == 1 else sorted(heads)

    def enter(self, place: _Place, lane: _Lane) -> None:
        places = self.lanes.get(lane)
        if places is None:
            self.lanes[lane] = deque((place,))
        elif places[-1] > place:
            insort(places, place)
        else:
            places.append(place)
        self.waiters += 1

    def leave(self, place: _Place, lane: _Lane) -> bool:
        """Remove a waiter; True when it was the first of its lane."""
        places = self.lanes[lane]
        at = 0 if places[0][2] is place[2] else bisect_left(places, place)
        if at == 0:
            places.popleft()
        else:
            del places[at]
        if not places:
            del self.lanes[lane]
        self.waiters -= 1
        return at == 0

    def stop(self) -> None:
        """Cancel the alarm."""
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None


@dataclass(slots=True)
class _Shared:
    """The common state of the wait queues of a router and of those that it replaces."""

    queues: dict[str, _Queue] = field(default_factory=dict)
    """By gate; empty ones are left out."""
    made: int = 0
    """The number of waiters that were made."""
    waiting: int = 0
    wait_queues: int = 0
    """The number of wait queues that are not closed."""
    opened: int = 0


@dataclass(frozen=True, slots=True)
class WaitQueueSnapshot:
    """The queues of all gates at one instant, each in its order; empty ones are left out."""

    waiting: int
    queues: Mapping[str, tuple[Waiter, ...]]


class Due(NamedTuple):
    """The instant at which a gate would admit a waiter: now (or earlier), later, or None: an event will wake it.

    `lane_alone`: the refusal concerns its whole lane, and it alone, as it is not for lack of a slot or tokens. `full`:
    no waiter would be admitted, as there is no slot.
    """

    at: float | None
    lane_alone: bool = False
    full: bool = False


FULL = Due(None, full=True)

ExplorationCall = Callable[[str, Waiter, float], Due]


class WaitQueue:
    """The wait queue of one router. `look` asks a gate on behalf of a waiter; the queue decides whose turn it is.

    One waiter per gate is woken at a time; when it has taken its turn (or left), the next one is checked.
    """

    def __init__(self, clock: Clock, capacity: int, look: ExplorationCall) -> None:
        self._clock = clock
        self._capacity = capacity
        self._look = look
        self._share(_Shared())
        self._here: dict[Waiter, None] = {}
        """The waiters of this queue's router, in the order in which they began to wait."""
        self._names: dict[str, str] = {}
        self._mark = ""
        self._closed = False

    def continue_from(self, before: WaitQueue, same: Iterable[str]) -> None:
        """Share the wait queue of the replaced router: its capacity, and the queues of `same` gates.

        Those are one gate in both, and its waiters one queue, in the order of their arrival. No request waits here yet.
        """
        self._names = {gate: before._queue_of(gate) for gate in same}
        self._share(before.shared)
        self._mark = f"\0{self.shared.opened}"

    @property
    def waiting(self) -> int:
        """The number of waiters."""
        return self.shared.waiting

    def waiter(self, *, stream: bool, rank: int = 0) -> Waiter:
        """Make a waiter at the end of its rank."""
        self.shared.made += 1
        return Waiter(self.shared.made, stream, rank, self._clock.now())

    @property
    def full(self) -> bool:
        """True when no more requests may wait."""
        return self.waiting >= self._capacity

    def snapshot(self) -> WaitQueueSnapshot:
        """All waiters, for checkers."""
        queues = {gate: sorted(chain(*queue.lanes.values())) for gate, queue in self._queues.items()}
        return WaitQueueSnapshot(
            self.waiting, {gate: tuple(place[2] for place in queue) for gate, queue in queues.items()}
        )

    def queued(self, gate: str) -> int:
        """The number of waiters of a gate."""
        queue = self._queue(gate)
        return 0 if queue is None else queue.waiters

    def is_behind(self, waiter: Waiter | None, gate: str, rank: int = 0) -> bool:
        """True when a waiter of an earlier place waits for the gate; None is a newcomer of this `rank`.

        Waiters whose lane alone is refused do not count: the gate itself refuses those behind them there. At a full
        gate every request is behind.
        """
        queue = self._queue(gate)
        if queue is None or queue.full:
            return queue is not None
        now = self._clock.now()
        for since, number, head in queue.heads:
            if waiter is not None:
                first = (since, number) < waiter.order(gate)
            else:
                first = since <= (rank if gate in head.resorts else _seniority(now, rank))
            if first and not self._look(gate, head, now).lane_alone:
                return True
        return False

    def ahead(self, waiter: Waiter | None, gate: str) -> tuple[int, int]:
        """The requests and tokens that older waiters will take from the gate's buckets first."""
        queue = self._queue(gate)
        here = () if queue is None else queue.placed
        older = [t for t in here if waiter is None or t.order(gate) < waiter.order(gate)]
        return len(older), sum(t.gates[gate].total for t in older)

    async def wait(
        self,
        waiter: Waiter,
        gates: Mapping[str, Cost],
        place: str | None,
        until: float,
        resorts: frozenset[str] = frozenset(),
        pacing: Pacing = "off",
    ) -> str | None:
        """Wait for a turn at one of `gates`, at most until the instant; the gate's id, or None when time ran out.

        `gates` has the cost of a call at each; `resorts` are those of them it waits for as a last resort, and `pacing`
        is the pacing of the others. The waiter stays at the head of its queues until `done`: no other overtakes it
        while it takes its turn.
        """
        waiter.woken = asyncio.get_running_loop().create_future()
        self._here[waiter] = None
        self._enter(waiter, gates, place, resorts, pacing)
        timer = self._clock.call_at(until, lambda: _wake(waiter, None))
        try:
            gate = await waiter.woken
        except asyncio.CancelledError:
            self.done(waiter)
            raise
        finally:
            timer.cancel()
            waiter.woken = None
            self._here.pop(waiter, None)
        return gate or None

    def done(self, waiter: Waiter) -> None:
        """Remove a waiter that took its turn or gave up: the next ones of its gates may have theirs."""
        if not waiter.gates:
            return
        self.shared.waiting -= 1
        self._look_again(self._leave(waiter))

    def pump(self, gate: str) -> None:
        """After a change at the gate, wake the first waiter that would be admitted, else set its alarm."""
        queue = self._queue(gate)
        if queue is not None:
            self._pump(gate, queue)

    def _pump(self, gate: str, queue: _Queue) -> None:
        queue.stop()
        queue.full = False
        now = self._clock.now()
        instants: list[float] = []
        for *_, head in queue.heads:
            if head.woken is None or head.woken.done():
                return  # it is just taking its turn
            due = self._look(gate, head, now)
            if due.at is not None and due.at <= now:
                _wake(head, gate)
                return
            if due.at is not None:
                instants.append(due.at)
            if not due.lane_alone:
                queue.full = due.full
                break
        if instants:
            queue.alarm = self._clock.call_at(min(instants), lambda: self.pump(gate))

    def wake(self, least_rank: int) -> None:
        """Wake every waiter of this rank or a lower one, oldest first: it will not be served."""
        for waiter in sorted(self._everyone(), key=lambda one: one.number):
            if waiter.rank >= least_rank:
                _wake(waiter, None)

    def close(self) -> None:
        """Wake all waiters of this router, oldest first, and stop every alarm that no other router shares."""
        self.shared.wait_queues -= not self._closed
        self._closed = True
        for waiter in sorted(self._here, key=lambda one: one.number):
            _wake(waiter, None)
        if not self.shared.wait_queues:
            self._stop_alarms()

    def forget(self) -> None:
        """Drop all waiters without waking them: the loop they wait on is gone."""
        self._stop_alarms()
        for waiter in self._everyone():
            waiter.gates, waiter.place, waiter.queues = {}, None, []
        self._queues.clear()
        self._here.clear()
        self.shared.waiting = 0

    def _stop_alarms(self) -> None:
        for queue in self._queues.values():
            queue.stop()

    def _share(self, shared: _Shared) -> None:
        shared.wait_queues += 1
        shared.opened += 1
        self.shared, self._queues = shared, shared.queues

    def _queue_of(self, gate: str) -> str:
        """The name of a gate's queue among the wait queues that share."""
        return self._names.get(gate) or gate + self._mark

    def _queue(self, gate: str) -> _Queue | None:
        return self._queues.get(self._names.get(gate) or gate + self._mark)  # as `_queue_of`: often asked

    def _everyone(self) -> set[Waiter]:
        return {place[2] for queue in self._queues.values() for lane in queue.lanes.values() for place in lane}

    def _enter(
        self, waiter: Waiter, gates: Mapping[str, Cost], place: str | None, resorts: frozenset[str], pacing: Pacing
    ) -> None:
        self.shared.waiting += not waiter.gates
        moved = self._leave(waiter)
        waiter.gates, waiter.place, waiter.resorts, waiter.pacing = gates, place, resorts, pacing
        lane, (rising, ranked) = waiter.lane, waiter.places
        names, mark, known = self._names, self._mark, self._queues.get
        for gate in gates:
            queue = known(names.get(gate) or gate + mark)  # as `_queue`: here for each of a thousand gates
            if queue is None:
                name = self._queue_of(gate)
                queue = self._queues[name] = _Queue(name)
            queue.enter(ranked if gate in resorts else rising, lane)
            waiter.queues.append(queue)
            if gate == place:
                queue.placed[waiter] = None
            if not queue.full:
                moved[gate] = queue
        self._look_again(moved)

    def _leave(self, waiter: Waiter) -> dict[str, _Queue]:
        """Take a waiter out of every queue; return the queues where another is the first of its lane now, by gate."""
        moved: dict[str, _Queue] = {}
        lane, (rising, ranked) = waiter.lane, waiter.places
        for gate, queue in zip(waiter.gates, waiter.queues, strict=True):
            if queue.leave(ranked if gate in waiter.resorts else rising, lane) and not queue.full:
                moved[gate] = queue
            if gate == waiter.place:
                del queue.placed[waiter]
            if not queue.lanes:
                queue.stop()
                del self._queues[queue.name]
        waiter.gates, waiter.place, waiter.queues = {}, None, []
        return moved

    def _look_again(self, queues: Mapping[str, _Queue]) -> None:
        """Pump the queues in which other waiters are the first."""
        for gate, queue in queues.items():
            if queue.lanes and not queue.full:
                self._pump(gate, queue)


def _seniority(since: float, rank: int) -> float:
    """Arrival, later by 5 s for each rank: so a waiter rises in time, and no order ever changes."""
    return since + _RANK_SECONDS * rank


def _wake(waiter: Waiter, gate: str | None) -> None:
    if waiter.woken is not None and not waiter.woken.done():
        waiter.woken.set_result(gate or "")
