"""The waiting room: who cannot be admitted now waits here, oldest first per gate, woken by events or by time."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from smart_model_router.core.ratelimit import Cost
from smart_model_router.ports import Clock, TimerHandle


@dataclass(eq=False, slots=True)
class Ticket:
    """A request's place in the queues. It keeps its number however often it has to wait.

    `rank` orders before arrival (used by the last resort's queue: criticality). `gates` are those it waits for now;
    `place` is the one whose bucket it will most likely take from.
    """

    number: int
    cost: Cost
    stream: bool
    rank: int = 0
    ignore_advice: bool = False
    last_resort: bool = False
    gates: tuple[str, ...] = ()
    place: str | None = None
    woken: asyncio.Future[str] | None = field(default=None, repr=False)

    def __lt__(self, other: Ticket) -> bool:
        return (self.rank, self.number) < (other.rank, other.number)


Look = Callable[[str, Ticket, float], float | None]
"""When the gate would admit the ticket: now (or earlier), a later instant, or None: an event will tell."""


class WaitingRoom:
    """One per router. `look` asks a gate on behalf of a ticket; the room decides whose turn it is.

    One waiter per gate is woken at a time; when it has taken its turn (or left), the next one is looked at.
    """

    def __init__(self, clock: Clock, capacity: int, look: Look) -> None:
        self._clock = clock
        self._capacity = capacity
        self._look = look
        self._queues: dict[str, list[Ticket]] = {}
        self._timers: dict[str, TimerHandle] = {}
        self._next_number = 0
        self.waiting = 0

    def ticket(self, cost: Cost, stream: bool) -> Ticket:
        """A new place at the end."""
        self._next_number += 1
        return Ticket(self._next_number, cost, stream)

    @property
    def full(self) -> bool:
        """Whether nobody more may wait."""
        return self.waiting >= self._capacity

    def queued(self, gate: str) -> int:
        """How many wait for a gate."""
        return len(self._queues.get(gate, ()))

    def is_behind(self, ticket: Ticket | None, gate: str) -> bool:
        """Whether somebody older waits for the gate: a newcomer (no ticket yet) does not overtake."""
        queue = self._queues.get(gate)
        if not queue:
            return False
        return ticket is None or (queue[0] is not ticket and queue[0] < ticket)

    def ahead(self, ticket: Ticket | None, gate: str) -> tuple[int, int]:
        """The requests and tokens that older waiters will take from the gate's buckets first."""
        older = [t for t in self._queues.get(gate, ()) if t.place == gate and (ticket is None or t < ticket)]
        return len(older), sum(t.cost.total for t in older)

    async def wait(self, ticket: Ticket, gates: Iterable[str], place: str | None, until: float) -> str | None:
        """Wait for a turn at one of `gates`, at most until the instant; the gate's id, or None when time ran out.

        The ticket stays at the head of its queues until `done`: nobody overtakes while it takes its turn.
        """
        ticket.woken = asyncio.get_running_loop().create_future()
        self._enter(ticket, gates, place)
        timer = self._clock.call_at(until, lambda: _wake(ticket, None))
        try:
            gate: str | None = await ticket.woken
            return gate or None
        except asyncio.CancelledError:
            self.done(ticket)
            raise
        finally:
            timer.cancel()
            ticket.woken = None

    def done(self, ticket: Ticket) -> None:
        """The ticket took its turn or gave up: the next ones of its gates may look."""
        if not ticket.gates:
            return
        gates, ticket.gates, ticket.place = ticket.gates, (), None
        self.waiting -= 1
        for gate in gates:
            queue = self._queues[gate]
            queue.remove(ticket)
            if not queue:
                del self._queues[gate]
        for gate in gates:
            self.pump(gate)

    def pump(self, gate: str) -> None:
        """Something changed at the gate: wake the head of its queue if it would be admitted, else set its alarm."""
        timer = self._timers.pop(gate, None)
        if timer is not None:
            timer.cancel()
        queue = self._queues.get(gate)
        if not queue or queue[0].woken is None or queue[0].woken.done():
            return  # nobody, or the head is just taking its turn
        now = self._clock.now()
        due = self._look(gate, queue[0], now)
        if due is None:
            return
        if due <= now:
            _wake(queue[0], gate)
        else:
            self._timers[gate] = self._clock.call_at(due, lambda: self.pump(gate))

    def close(self) -> None:
        """Stop every alarm."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _enter(self, ticket: Ticket, gates: Iterable[str], place: str | None) -> None:
        left = ticket.gates
        ticket.gates, ticket.place = tuple(gates), place
        self.waiting += not left
        for gate in left:
            if gate not in ticket.gates:
                self._queues[gate].remove(ticket)
                if not self._queues[gate]:
                    del self._queues[gate]
        for gate in ticket.gates:
            if gate not in left:
                insort(self._queues.setdefault(gate, []), ticket)
        for gate in {*left, *ticket.gates}:
            self.pump(gate)


def _wake(ticket: Ticket, gate: str | None) -> None:
    if ticket.woken is not None and not ticket.woken.done():
        ticket.woken.set_result(gate or "")
