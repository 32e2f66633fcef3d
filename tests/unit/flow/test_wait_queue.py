"""The waiting room: oldest first per gate, woken by events or at exact instants, nobody overtakes, nobody is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from smart_model_router.core.ratelimit import Cost
from smart_model_router.flow.wait_queue import FULL, Due, Waiter, WaitQueue
from smart_model_router.testing import LoopClock
from tests.world import now, timers, virtual

FREE = Cost(0, 0)


class Doors:
    """Gates that are open, shut until an instant, or shut until further notice."""

    def __init__(self, **due: float | None) -> None:
        self.due = dict(due)
        self.looks = 0
        self.no_streams: float | None = None
        """Until when every gate refuses streams, and nothing else."""
        self.full = False
        """Whether no gate has a slot."""

    def look(self, gate: str, waiter: Waiter, at: float) -> Due:
        self.looks += 1
        if waiter.stream and self.no_streams is not None and at < self.no_streams:
            return Due(self.no_streams, lane_alone=True)
        return FULL if self.full else Due(self.due[gate])


class Visitors:
    """People in a room, each in a task of their own; `log` says who had a turn, where and when."""

    def __init__(self, doors: Doors, capacity: int = 100) -> None:
        self.doors = doors
        self.wait_queue = WaitQueue(LoopClock(), capacity, doors.look)
        self.log: list[tuple[str, str | None, float]] = []
        self.began = now()

    def enter(
        self,
        name: str,
        *gates: str,
        until: float = 1000.0,
        rank: int = 0,
        resort: bool = False,
        stream: bool = False,
    ) -> asyncio.Task[None]:
        waiter = self.wait_queue.waiter(stream=stream, rank=rank)
        resorts = frozenset(gates) if resort else frozenset[str]()
        return asyncio.ensure_future(self._stay(name, waiter, gates, until, resorts))

    async def _stay(
        self, name: str, waiter: Waiter, gates: tuple[str, ...], until: float, resorts: frozenset[str]
    ) -> None:
        woken = await self.wait_queue.wait(waiter, dict.fromkeys(gates, FREE), None, self.began + until, resorts)
        self.log.append((name, woken, round(now() - self.began, 6)))
        self.wait_queue.done(waiter)


async def settled(*tasks: Coroutine[Any, Any, Any] | asyncio.Task[Any]) -> None:
    """Everybody has left."""
    await asyncio.gather(*tasks)


@virtual
async def test_the_oldest_goes_first() -> None:
    """Three wait for one gate: when it opens they take their turns in the order of arrival."""
    doors = Doors(a=None)
    visitors = Visitors(doors)
    tasks = [visitors.enter(name, "a") for name in "xyz"]
    await asyncio.sleep(5.0)
    doors.due["a"] = 0.0
    visitors.wait_queue.pump("a")
    await settled(*tasks)
    assert visitors.log == [("x", "a", 5.0), ("y", "a", 5.0), ("z", "a", 5.0)]


@virtual
async def test_whoever_is_refused_for_what_it_is_holds_up_its_like_alone() -> None:
    """A gate that refuses streams until an instant: whole answers do not stand behind them, and none is forgotten."""
    doors = Doors(a=None)
    doors.no_streams = now() + 7.0
    visitors = Visitors(doors)
    tasks = [visitors.enter(name, "a", stream=name < "x") for name in "uvxy"]
    await asyncio.sleep(0.0)
    assert not visitors.wait_queue.is_behind(visitors.wait_queue.waiter(stream=True), "b")
    assert visitors.wait_queue.is_behind(None, "a")  # x lacks what a newcomer would take
    await asyncio.sleep(5.0)
    doors.due["a"] = 0.0
    visitors.wait_queue.pump("a")
    await settled(*tasks[2:])
    assert not visitors.wait_queue.is_behind(None, "a")
    await settled(*tasks)
    assert visitors.log == [("x", "a", 5.0), ("y", "a", 5.0), ("u", "a", 7.0), ("v", "a", 7.0)]


@pytest.mark.parametrize("first", ["stream", "whole"])
@virtual
async def test_what_is_lacking_is_waited_for_in_one_queue(first: str) -> None:
    """No slot is free: streams and whole answers have theirs in the order of their arrival."""
    doors = Doors(a=None)
    visitors = Visitors(doors)
    order = ["stream", "whole"] if first == "stream" else ["whole", "stream"]
    tasks = [visitors.enter(name, "a", stream=name == "stream") for name in order]
    await asyncio.sleep(5.0)
    doors.due["a"] = 0.0
    visitors.wait_queue.pump("a")
    await settled(*tasks)
    assert [name for name, _, _ in visitors.log] == order


@virtual
async def test_a_wait_with_an_instant_ends_at_it() -> None:
    """An alarm, not polling: one look when it is set, one when it rings."""
    doors = Doors(a=now() + 1.234)
    visitors = Visitors(doors)
    await visitors.enter("x", "a")
    assert visitors.log == [("x", "a", 1.234)]
    assert doors.looks == 2


@virtual
async def test_without_an_instant_nobody_looks_until_something_happens() -> None:
    """A shut gate is not polled: one look at the beginning, one for the event."""
    doors = Doors(a=None)
    visitors = Visitors(doors)
    task = visitors.enter("x", "a")
    await asyncio.sleep(600.0)
    assert doors.looks == 1
    doors.due["a"] = 0.0
    visitors.wait_queue.pump("a")
    await task
    assert doors.looks == 2


@virtual
async def test_a_full_gate_is_looked_at_once_however_many_come_and_go() -> None:
    """Until something happens there: with a thousand gates and a thousand waiters all else would be a million looks."""
    doors = Doors(a=None, b=None)
    doors.full = True
    visitors = Visitors(doors)
    tasks = [visitors.enter(name, "a", "b", until=float(at)) for at, name in enumerate("uvwxyz", start=1)]
    await settled(*tasks[:3])
    assert doors.looks == 2
    doors.full, doors.due["b"] = False, 0.0
    visitors.wait_queue.pump("b")
    await settled(*tasks)
    assert [(name, woken) for name, woken, _ in visitors.log[3:]] == [("x", "b"), ("y", "b"), ("z", "b")]


@virtual
async def test_time_that_runs_out_ends_the_wait() -> None:
    """No gate opened: woken by nobody, at the instant given."""
    visitors = Visitors(Doors(a=None))
    await visitors.enter("x", "a", until=3.0)
    assert visitors.log == [("x", None, 3.0)]
    assert visitors.wait_queue.waiting == 0


@virtual
async def test_one_gate_does_not_block_another() -> None:
    """An older waiter of a shut gate is no obstacle to a younger one of an open gate."""
    doors = Doors(a=None, b=now() + 1.0)
    visitors = Visitors(doors)
    old = visitors.enter("old", "a", until=9.0)
    await visitors.enter("young", "b")
    assert visitors.log == [("young", "b", 1.0)]
    await old


@virtual
async def test_whoever_waits_for_two_gates_takes_the_first_that_opens() -> None:
    """And leaves the other's queue to those behind."""
    doors = Doors(a=now() + 9.0, b=now() + 1.0)
    visitors = Visitors(doors)
    both = visitors.enter("both", "a", "b")
    behind = visitors.enter("behind", "a")
    await settled(both, behind)
    assert visitors.log == [("both", "b", 1.0), ("behind", "a", 9.0)]


@virtual
async def test_who_leaves_lets_the_next_one_look() -> None:
    """The head of the queue is cancelled while the gate is open to it: the turn passes on."""
    doors = Doors(a=None)
    visitors = Visitors(doors)
    first, second = visitors.enter("first", "a"), visitors.enter("second", "a")
    await asyncio.sleep(1.0)
    doors.due["a"] = 0.0
    visitors.wait_queue.pump("a")
    first.cancel()
    await second
    assert visitors.log == [("second", "a", 1.0)]
    assert visitors.wait_queue.waiting == 0


@virtual
async def test_a_newcomer_stands_behind_those_who_wait() -> None:
    """A request that does not wait yet is behind every waiter of the gate, and of no other gate."""
    visitors = Visitors(Doors(a=None, b=None))
    task = visitors.enter("x", "a", until=1.0)
    await asyncio.sleep(0)
    room = visitors.wait_queue
    assert room.is_behind(None, "a")
    assert not room.is_behind(None, "b")
    assert room.is_behind(room.waiter(stream=False), "a")
    assert room.queued("a") == 1
    await task
    assert not room.is_behind(None, "a")


@pytest.mark.parametrize(
    ("later", "order"),
    [(4.9, ["next", "first"]), (5.1, ["first", "next"])],
)
@pytest.mark.parametrize("rank", [1, 2, 3])
@virtual
async def test_who_is_older_by_five_seconds_counts_as_the_next_higher_rank(
    rank: int, later: float, order: list[str]
) -> None:
    """A higher rank overtakes those who have waited for less than 5 s, and no one else."""
    doors = Doors(a=None)
    visitors = Visitors(doors)
    tasks = [visitors.enter("first", "a", rank=rank)]
    await asyncio.sleep(later)
    tasks.append(visitors.enter("next", "a", rank=rank - 1))
    await asyncio.sleep(60.0)
    doors.due["a"] = 0.0
    visitors.wait_queue.pump("a")
    await settled(*tasks)
    assert [name for name, _, _ in visitors.log] == order


@pytest.mark.parametrize(("after", "rank", "behind"), [(4.9, 0, False), (5.1, 0, True), (0.1, 1, True), (0.1, 2, True)])
@virtual
async def test_a_newcomer_stands_behind_who_would_go_first(after: float, rank: int, behind: bool) -> None:
    """Before it waits: its rank and the time of its arrival decide, as they would in the queue."""
    visitors = Visitors(Doors(a=None))
    task = visitors.enter("first", "a", until=30.0, rank=1)
    await asyncio.sleep(after)
    assert visitors.wait_queue.is_behind(None, "a", rank) is behind
    await task


@virtual
async def test_waking_a_rank_wakes_the_lower_ones_too_and_no_higher_one() -> None:
    """What sheddable waiters wait for is not given to them any more: they hear of it at once."""
    visitors = Visitors(Doors(a=None))
    tasks = [visitors.enter(name, "a", until=9.0, rank=rank) for rank, name in enumerate("wxyz")]
    await asyncio.sleep(1.0)
    visitors.wait_queue.wake(2)
    await settled(*tasks)
    assert sorted(visitors.log) == [("w", None, 9.0), ("x", None, 9.0), ("y", None, 1.0), ("z", None, 1.0)]


@virtual
async def test_at_a_last_resort_a_rank_goes_before_arrival() -> None:
    """The last resort's queue is ordered by criticality first."""
    doors = Doors(a=None)
    visitors = Visitors(doors)
    tasks = [
        visitors.enter(name, "a", rank=rank, resort=True) for name, rank in (("critical", 2), ("critical_plus", 1))
    ]
    await asyncio.sleep(1.0)
    doors.due["a"] = 0.0
    visitors.wait_queue.pump("a")
    await settled(*tasks)
    assert [name for name, _, _ in visitors.log] == ["critical_plus", "critical"]


@virtual
async def test_a_ticket_keeps_its_place_when_it_has_to_wait_again() -> None:
    """Woken, refused, back in the queue: still before those who came later."""
    doors = Doors(a=None)
    visitors = Visitors(doors)
    room = visitors.wait_queue
    waiter = room.waiter(stream=False)
    first = asyncio.ensure_future(room.wait(waiter, {"a": FREE}, None, now() + 1.0))
    later = visitors.enter("later", "a")
    assert await first is None
    again = asyncio.ensure_future(room.wait(waiter, {"a": FREE}, None, now() + 9.0))
    await asyncio.sleep(1.0)
    doors.due["a"] = 0.0
    room.pump("a")
    assert await again == "a"
    assert not later.done()
    room.done(waiter)
    await later


@virtual
async def test_what_older_waiters_will_take_is_known() -> None:
    """Requests and tokens ahead count in the one bucket each waiter holds its place in."""
    room = WaitQueue(LoopClock(), 10, Doors(a=None, b=None).look)
    waiters = [room.waiter(stream=False) for _ in range(3)]
    costs = {"a": Cost(10, 5), "b": FREE}
    waits = [asyncio.ensure_future(room.wait(t, costs, "a", now() + 1.0)) for t in waiters]
    await asyncio.sleep(0)
    assert room.ahead(None, "a") == (3, 45)
    assert room.ahead(waiters[1], "a") == (1, 15)
    assert room.ahead(None, "b") == (0, 0)
    await settled(*waits)
    for waiter in waiters:
        room.done(waiter)
        room.done(waiter)
    assert room.waiting == 0


@virtual
async def test_a_full_room_says_so() -> None:
    """The capacity is how many may wait; a place that is given up is free again."""
    visitors = Visitors(Doors(a=None), capacity=2)
    tasks = [visitors.enter("x", "a", until=1.0), visitors.enter("y", "a", until=1.0)]
    await asyncio.sleep(0)
    assert visitors.wait_queue.full
    await settled(*tasks)
    assert not visitors.wait_queue.full


@virtual
async def test_a_queue_counts_those_that_wait_whoever_of_them_leaves() -> None:
    """The first, the last, and one in the middle: the others keep their order."""
    doors = Doors(a=None)
    visitors = Visitors(doors)
    tasks = {name: visitors.enter(name, "a", stream=name == "s") for name in "vswxyz"}
    await asyncio.sleep(1.0)
    assert visitors.wait_queue.queued("a") == 6
    for left, name in enumerate("xvz"):
        tasks[name].cancel()
        await asyncio.gather(tasks[name], return_exceptions=True)
        assert visitors.wait_queue.queued("a") == 5 - left
    doors.due["a"] = 0.0
    visitors.wait_queue.pump("a")
    await settled(*(tasks[name] for name in "swy"))
    assert [name for name, _, _ in visitors.log] == ["s", "w", "y"]
    assert visitors.wait_queue.queued("a") == 0


@virtual
async def test_nobody_waits_in_a_closed_room() -> None:
    """Whoever waits is woken at once, and no alarm rings later."""
    visitors = Visitors(Doors(a=now() + 5.0))
    task = visitors.enter("x", "a", until=9.0)
    await asyncio.sleep(0)
    visitors.wait_queue.close()
    await task
    assert visitors.log == [("x", None, 0.0)]
    assert not timers()


@pytest.mark.parametrize("leave", ["done", "cancelled"])
@virtual
async def test_nothing_is_left_of_who_has_gone(leave: str) -> None:
    """However a waiter leaves, its queues and alarms go with it."""
    doors = Doors(a=now() + 5.0, b=None)
    visitors = Visitors(doors)
    task = visitors.enter("x", "a", "b")
    await asyncio.sleep(1.0 if leave == "cancelled" else 6.0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert visitors.wait_queue.waiting == 0
    assert not visitors.wait_queue._queues
