"""The watchdog: an await ends at an instant, one timer serves many awaits, and cancellation stays what it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from smart_model_router.domain.ports import TimerHandle
from smart_model_router.flow.clock import Expired, Watchdog
from smart_model_router.testing import LoopClock
from tests.world import now, timers, virtual


class CountingClock(LoopClock):
    """Counts the timers that were set."""

    def __init__(self) -> None:
        self.timers = 0

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        self.timers += 1
        return super().call_at(when, callback)


def cancelling() -> int:
    """How many cancellations the running task has been asked for and not taken back."""
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


@virtual
async def test_what_comes_in_time_is_returned() -> None:
    """A result before the instant is the result; its timer goes with it, unless another await goes on."""
    ticking = set[Watchdog]()
    watchdog = Watchdog(LoopClock(), ticking)
    assert await watchdog.within(asyncio.sleep(1.0, "here"), now() + 2.0) == "here"
    assert not ticking
    assert not timers()
    assert await watchdog.within(asyncio.sleep(1.0, "here"), now() + 2.0, goes_on=True) == "here"
    assert ticking == {watchdog}
    assert len(timers()) == 1
    watchdog.close()
    assert not ticking
    assert not timers()
    assert cancelling() == 0


@virtual
async def test_what_does_not_come_expires_at_the_instant() -> None:
    """Expired, to the millisecond, and the task is no longer being cancelled."""
    watchdog, began = Watchdog(LoopClock()), now()
    with pytest.raises(Expired):
        await watchdog.within(asyncio.sleep(9.0), began + 2.0)
    assert now() - began == pytest.approx(2.0, abs=1e-6)
    assert cancelling() == 0


@virtual
async def test_an_instant_in_the_past_expires_at_once() -> None:
    """Too late is too late."""
    watchdog, began = Watchdog(LoopClock()), now()
    with pytest.raises(Expired):
        await watchdog.within(asyncio.sleep(9.0), began - 1.0)
    assert now() == began


@virtual
async def test_a_later_deadline_moves_the_timer_and_sets_no_new_one() -> None:
    """A hundred events of a stream, each with its own deadline, cost two timers and not a hundred."""
    clock = CountingClock()
    watchdog = Watchdog(clock)
    for _ in range(100):
        await watchdog.within(asyncio.sleep(0.1), now() + 8.0, goes_on=True)
    assert clock.timers == 2
    with pytest.raises(Expired):
        await watchdog.within(asyncio.sleep(60.0), now() + 8.0)


@virtual
async def test_an_earlier_deadline_is_kept() -> None:
    """The timer of a long await does not delay the end of a short one."""
    watchdog = Watchdog(LoopClock())
    await watchdog.within(asyncio.sleep(0.1), now() + 100.0, goes_on=True)
    began = now()
    with pytest.raises(Expired):
        await watchdog.within(asyncio.sleep(60.0), began + 1.0)
    assert now() - began == pytest.approx(1.0)


@virtual
async def test_the_timer_between_two_awaits_hits_nobody() -> None:
    """An instant that passes while nothing is awaited ends nothing."""
    watchdog = Watchdog(LoopClock())
    await watchdog.within(asyncio.sleep(0.1), now() + 1.0, goes_on=True)
    await asyncio.sleep(5.0)
    assert await watchdog.within(asyncio.sleep(0.1, "fine"), now() + 1.0) == "fine"


@virtual
async def test_a_cancellation_from_outside_stays_one() -> None:
    """Whoever cancels the task sees CancelledError, not Expired."""
    watchdog = Watchdog(LoopClock())
    task = asyncio.ensure_future(watchdog.within(asyncio.sleep(60.0), now() + 10.0))
    await asyncio.sleep(1.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@virtual
async def test_a_cancellation_at_the_very_instant_wins() -> None:
    """Cancelled and expired in the same moment: cancelled."""
    watchdog = Watchdog(LoopClock())
    task = asyncio.ensure_future(watchdog.within(asyncio.sleep(60.0), now() + 10.0))
    asyncio.get_running_loop().call_at(now() + 10.0, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task


@virtual
async def test_an_awaited_thing_that_turns_its_end_into_an_error_has_expired() -> None:
    """A library that raises its own exception when it is cancelled: Expired, and nothing stays cancelled."""

    async def stubborn() -> None:
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            raise OSError("closed") from None

    watchdog = Watchdog(LoopClock())
    with pytest.raises(Expired):
        await watchdog.within(stubborn(), now() + 1.0)
    assert cancelling() == 0


@virtual
async def test_an_error_in_time_is_the_error() -> None:
    """What the awaited thing raises by itself passes."""

    async def broken() -> None:
        raise OSError("closed")

    with pytest.raises(OSError, match="closed"):
        await Watchdog(LoopClock()).within(broken(), now() + 1.0)


@virtual
async def test_an_awaited_thing_that_answers_at_the_last_moment_is_heard() -> None:
    """A library that swallows its cancellation and returns: the result counts, and nothing stays cancelled."""

    async def stubborn() -> str:
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            return "late"
        return "never"

    watchdog = Watchdog(LoopClock())
    assert await watchdog.within(stubborn(), now() + 1.0) == "late"
    assert cancelling() == 0
