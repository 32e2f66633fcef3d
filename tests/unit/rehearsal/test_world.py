"""The world of a simulation: what hangs is noticed, and the wall clock jumps when it was told to."""

from __future__ import annotations

import asyncio

import pytest

from smart_model_router.rehearsal.simulation.workload import Livelock, StepClock, Wall, run_world


def test_a_program_that_turns_on_the_spot_is_noticed() -> None:
    """Busy for ever at one instant is a hang, too."""

    async def busy() -> None:
        for _ in range(1_000_000):
            await asyncio.sleep(0)

    with pytest.raises(Livelock):
        run_world(busy(), limit=10.0)


def test_what_is_due_at_once_is_not_early() -> None:
    """Who waits for an instant a fraction of a nanosecond away is woken at that instant, while others are busy, too."""

    async def wait(rounds: int) -> bool:
        loop = asyncio.get_running_loop()
        instant, woken = loop.time() + 5e-10, []
        loop.call_at(instant, lambda: woken.append(loop.time() >= instant))
        for _ in range(rounds):
            await asyncio.sleep(0)
        return woken == [True]

    assert run_world(wait(10), limit=10.0)


def test_the_wall_jumps_when_it_was_told_to() -> None:
    """The offset is the sum of the jumps so far."""

    async def look() -> list[float]:
        wall = Wall([(1.0, -3600.0), (2.0, 60.0)])
        seen = []
        for _ in range(3):
            seen.append(wall.offset())
            await asyncio.sleep(1.0)
        return seen

    assert run_world(look(), limit=10.0) == [0.0, -3600.0, -3540.0]


def test_a_clock_that_follows_the_wall_counts_its_timers_down() -> None:
    """A timer of two seconds comes after two seconds, although the wall went back an hour meanwhile."""

    async def timed() -> float:
        loop = asyncio.get_running_loop()
        began, clock = loop.time(), StepClock(Wall([(1.0, -3600.0)]))
        clock.now()
        done = loop.create_future()
        clock.call_at(clock.now() + 2.0, lambda: done.set_result(loop.time() - began))
        return float(await done)

    assert run_world(timed(), limit=10.0) == pytest.approx(2.0, abs=1e-3)
