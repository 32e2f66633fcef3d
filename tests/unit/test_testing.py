"""The fakes themselves: virtual time is exact, finds what would hang, and every fake fits its port."""

from __future__ import annotations

import asyncio

import pytest

from smart_model_router.domain.events import OfflineChanged, SheddingChanged
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.ports import Provider
from smart_model_router.testing import (
    START,
    Deadlock,
    FakeDice,
    FakeProvider,
    FakeReply,
    LoopClock,
    OutOfTime,
    RecordingSink,
    run_virtual,
)


def test_time_jumps_to_the_instant_of_the_next_timer() -> None:
    """A day passes at once, and `now` is exactly what was asked for."""

    async def scenario() -> list[float]:
        clock, seen = LoopClock(), [LoopClock().now()]
        clock.call_at(START + 0.1 + 0.2, lambda: seen.append(clock.now()))
        await clock.sleep(86_400.0)
        return [*seen, clock.now()]

    assert run_virtual(scenario()) == [START, START + 0.1 + 0.2, START + 86_400.0]


def test_what_would_hang_for_ever_is_a_deadlock() -> None:
    """Nothing is ready and no timer is set: said at once."""
    with pytest.raises(Deadlock):
        run_virtual(asyncio.Event().wait())


def test_what_takes_too_long_is_out_of_time() -> None:
    """The virtual limit ends what would go on and on."""
    with pytest.raises(OutOfTime, match="still running at"):
        run_virtual(asyncio.sleep(61.0), limit=60.0)


def test_a_cancelled_timer_does_not_move_time() -> None:
    """Only what really fires counts."""

    async def scenario() -> float:
        clock = LoopClock()
        clock.call_at(START + 500.0, lambda: None).cancel()
        await clock.sleep(1.0)
        return clock.now()

    assert run_virtual(scenario()) == START + 1.0


def test_dice_roll_what_they_were_told() -> None:
    """In turn, then the last for ever; 0 without a word."""
    dice = FakeDice(0.1, 0.9)
    assert [dice.roll() for _ in range(4)] == [0.1, 0.9, 0.9, 0.9]
    assert FakeDice().roll() == 0.0


def test_a_sink_keeps_events_by_kind() -> None:
    """Everything in order, and each kind apart."""
    sink = RecordingSink()
    first, second = OfflineChanged(at=1.0, offline=True), SheddingChanged(at=2.0, shedding=True, open_ratio=1.0)
    sink.emit(first)
    sink.emit(second)
    assert sink.events == [first, second]
    assert sink.of(SheddingChanged) == [second]


def test_a_fake_provider_is_a_provider() -> None:
    """It fits the port the router asks."""
    assert isinstance(FakeProvider(), Provider)


def test_a_fake_provider_answers_in_turn_and_then_as_the_last_time() -> None:
    """One reply for all, several in turn, or a function of the call."""
    down = FakeReply(failure=Failure(FailureClass.SERVER_ERROR))
    provider = FakeProvider([down, FakeReply()])
    assert [provider._reply(None) for _ in range(3)] == [down, FakeReply(), FakeReply()]  # type: ignore[arg-type]
    provider.set(lambda _: down)
    assert provider._reply(None) == down  # type: ignore[arg-type]


def test_work_for_a_thread_is_done_at_once() -> None:
    """In virtual time what is given to an executor is done in place, and what it raises arrives."""

    async def fail() -> None:
        await asyncio.to_thread(int, "x")

    assert run_virtual(asyncio.to_thread(int, "7")) == 7
    with pytest.raises(ValueError, match="invalid literal"):
        run_virtual(fail())
