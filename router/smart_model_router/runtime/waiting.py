"""The waiting room: who cannot be admitted now waits here, oldest first per gate, woken by events or by time."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from smart_model_router.core.ratelimit import Cost
from smart_model_router.ports import Clock, TimerHandle


@dataclass(eq=False, slots=True)
class Ticket:
    """A request's place in the queues. It keeps its number however often it has to wait.

    `gates` are those it waits for now, with what it would cost at each; `place` is the one whose bucket it will most
    likely take from. At `resorts` it waits as for a last resort: there `rank` goes before arrival.
    """

    number: int
    stream: bool
    rank: int = 0
    gates: Mapping[str, Cost] = field(default_factory=dict)
    resorts: frozenset[str] = frozenset()
    place: str | None = None
    woken: asyncio.Future[str] | None = field(default=None, repr=False)

    def order(self, gate: str) -> tuple[int, int]:
        """Its place in the queue of a gate, the least first."""
        return (self.rank if gate in self.resorts else 0, self.number)


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

    def ticket(self, *, stream: bool, rank: int = 0) -> Ticket:
        """A new place at the end."""
        self._next_number += 1
        return Ticket(self._next_number, stream, rank)

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
        return ticket is None or queue[0].order(gate) < ticket.order(gate)

    def ahead(self, ticket: Ticket | None, gate: str) -> tuple[int, int]:
        """The requests and tokens that older waiters will take from the gate's buckets first."""
        here = [t for t in self._queues.get(gate, ()) if t.place == gate]
        older = [t for t in here if ticket is None or t.order(gate) < ticket.order(gate)]
        return len(older), sum(t.gates[gate].total for t in older)

    async def wait(
        self,
        ticket: Ticket,
        gates: Mapping[str, Cost],
        place: str | None,
        until: float,
        resorts: frozenset[str] = frozenset(),
    ) -> str | None:
        """Wait for a turn at one of `gates`, at most until the instant; the gate's id, or None when time ran out.

        `gates` says what a call would cost at each; `resorts` are those of them it waits for as a last resort. The
        ticket stays at the head of its queues until `done`: nobody overtakes while it takes its turn.
        """
        ticket.woken = asyncio.get_running_loop().create_future()
        self._enter(ticket, gates, place, resorts)
        timer = self._clock.call_at(until, lambda: _wake(ticket, None))
        try:
            gate = await ticket.woken
        except asyncio.CancelledError:
            self.done(ticket)
            raise
        finally:
            timer.cancel()
            ticket.woken = None
        return gate or None

    def done(self, ticket: Ticket) -> None:
        """The ticket took its turn or gave up: the next ones of its gates may look."""
        if not ticket.gates:
            return
        self.waiting -= 1
        for gate in self._leave(ticket):
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

    def forget(self) -> None:
        """Let everybody go without waking them: the loop they wait on is gone."""
        self.close()
        for ticket in {ticket for queue in self._queues.values() for ticket in queue}:
            ticket.gates, ticket.place = {}, None
        self._queues.clear()
        self.waiting = 0

    def _enter(self, ticket: Ticket, gates: Mapping[str, Cost], place: str | None, resorts: frozenset[str]) -> None:
        self.waiting += not ticket.gates
        left = self._leave(ticket)
        ticket.gates, ticket.place, ticket.resorts = gates, place, resorts
        for gate in gates:
            insort(self._queues.setdefault(gate, []), ticket, key=lambda t: t.order(gate))
        for gate in {**left, **gates}:
            self.pump(gate)

    def _leave(self, ticket: Ticket) -> Mapping[str, Cost]:
        """Take the ticket out of every queue; the gates it left."""
        left, ticket.gates, ticket.place = ticket.gates, {}, None
        for gate in left:
            queue = self._queues[gate]
            queue.remove(ticket)
            if not queue:
                del self._queues[gate]
        return left


def _wake(ticket: Ticket, gate: str | None) -> None:
    if ticket.woken is not None and not ticket.woken.done():
        ticket.woken.set_result(gate or "")
