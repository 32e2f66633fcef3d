"""Random histories of a failing fleet: whatever happens, the invariants of routing.md section 0 hold at every step."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from smart_model_router.domain.events import AttemptFinished, BreakerChanged, Event, RequestFinished
from smart_model_router.domain.outcome import Failure, FailureClass, Wait
from smart_model_router.testing import FakeReply, run_virtual
from tests.world import BODY, World, now, served_by, world

TIMEOUT = 40.0
LADDER = (["a/1", "b/1", "c/1"], ["d/2", "a/2"])
KINDS: dict[str, dict[str, Any]] = {
    "a": {"bulkhead": 4, "rpm": 120},
    "b": {"bulkhead": 2, "tpm": 40_000, "api_key": ["k1", "k2"]},
    "c": {"bulkhead": 6},
    "l": {"kind": "scripted", "bulkhead": 1},
}


def _failure(dice: random.Random) -> Failure:
    failure_class = dice.choice(list(FailureClass))
    wait = dice.choice([None, None, Wait(dice.choice([0.05, 1.0, 3.0, 30.0])), Wait(0.0, "concurrency")])
    return Failure(failure_class, failure_class.value, wait=wait)


def _reply(dice: random.Random) -> FakeReply:
    """Mostly healthy; else slow, failing, silent, stalling, cutting or buggy."""
    makes: tuple[Callable[[], FakeReply], ...] = (
        lambda: FakeReply(seconds=dice.choice([0.0, 0.2, 2.0, 12.0]), gap=dice.choice([0.0, 0.5])),
        lambda: FakeReply(seconds=dice.choice([0.0, 1.0]), failure=_failure(dice)),
        lambda: FakeReply(seconds=float("inf")),
        lambda: FakeReply(stalls=True),
        lambda: FakeReply(cut=Failure(FailureClass.TRUNCATED), gap=0.3),
        lambda: FakeReply(bug=ZeroDivisionError("bug")),
        lambda: FakeReply(pieces=()),
    )
    return dice.choices(makes, [10, 4, 1, 1, 1, 1, 1])[0]()


class Checker:
    """Looks at the router at every event and at the end. A sink's own errors are isolated: it keeps what it sees."""

    def __init__(self, w: World) -> None:
        self.world = w
        self.violations: list[str] = []

    def emit(self, event: Event) -> None:
        """Whatever happened: no gate holds more than it has, and none has two calls on probation that nobody paced."""
        trials = [trial for lease in self.world.state.held if not lease.paced for trial in lease.snapshot().trials]
        for gate in self.world.state.fleet.gates.values():
            bulkhead = gate.provider.bulkhead
            if not 0 <= gate.in_flight <= bulkhead.in_flight <= bulkhead.slots:
                self.violations.append(f"{gate.id}: {gate.in_flight} of {bulkhead.in_flight} in flight at {event}")
            if trials.count(gate.cooldown) > 1 or trials.count(gate.credential) > 1:
                self.violations.append(f"{gate.id}: two on probation at {event}")
            if isinstance(event, BreakerChanged) and event.open_until is not None and event.open_until <= event.at:
                self.violations.append(f"{gate.id}: opened into the past at {event}")

    def at_rest(self) -> None:
        """Everything was given back, every request was accounted for once, one trip is one event."""
        self.world.assert_idle()
        assert not self.violations
        assert not self.world.state.sink_errors
        finished = self.world.sink.of(RequestFinished)
        _, _, following = next(self.world.state.request_ids).rpartition("-")
        assert len(finished) == len({event.request_id for event in finished}) == int(following) - 1
        assert max(event.seconds for event in finished) <= TIMEOUT + 120.0  # streams may go on after their head
        opened = [(event.owner, event.kind, event.at) for event in self.world.sink.of(BreakerChanged)]
        assert len(opened) == len(set(opened))


async def _history(seed: int) -> None:
    dice = random.Random(seed)
    w = world(*LADDER, last_resort=["l/x"], kinds=KINDS, seed=seed)
    checker = Checker(w)
    w.state.sinks = (*w.state.sinks, checker)

    def answers(_: object) -> FakeReply:
        return _reply(dice)

    for name in "abcd":
        w.providers[name].set(answers)
    tasks = asyncio.all_tasks()
    asks = []
    for _ in range(150):
        options = {"timeout": TIMEOUT, "criticality": dice.choice(["critical_plus", "critical", "sheddable"])}
        ask = asyncio.ensure_future(served_by(w, stream=dice.random() < 0.5, **options))
        asks.append(ask)
        if dice.random() < 0.15:
            asyncio.get_running_loop().call_later(dice.choice([0.0, 0.1, 1.0, 6.0, 33.0]), ask.cancel)
        await asyncio.sleep(dice.choice([0.0, 0.0, 0.05, 0.5, 3.0]))
    await asyncio.gather(*asks, return_exceptions=True)
    await w.verdicts()
    await asyncio.sleep(1.0)
    assert asyncio.all_tasks() == tasks
    checker.at_rest()
    for name in "abcd":
        w.providers[name].set(FakeReply())
        w.router.close(f"{name}/1" if name != "d" else "d/2")
    assert await served_by(w) is not None


@pytest.mark.parametrize("seed", range(25))
def test_a_random_history_keeps_every_invariant(seed: int) -> None:
    """One seed is one history: no leak, no second probe, no lost request, no hang, and the router works after it."""
    run_virtual(_history(seed), limit=7200.0)


def test_the_same_seed_is_the_same_history() -> None:
    """A failing seed is a bug report: it fails again."""

    async def told(seed: int) -> list[object]:
        dice = random.Random(seed)
        w = world(*LADDER, last_resort=["l/x"], kinds=KINDS, seed=seed)
        for name in "abcd":
            w.providers[name].set(lambda _: _reply(dice))
        began = now()
        for _ in range(30):
            await served_by(w, timeout=TIMEOUT)
        return [(type(event).__name__, round(event.at - began, 9)) for event in w.sink.events]

    assert run_virtual(told(7)) == run_virtual(told(7))


@pytest.mark.parametrize("seed", range(5))
def test_while_one_target_is_healthy_nobody_fails(seed: int) -> None:
    """All others fail at random; critical requests with time are all served (but for the caller's own faults)."""

    async def scenario() -> None:
        dice = random.Random(seed)
        w = world(["a/1", "b/1", "d/1"], ["c/2"])
        callers = {"INVALID_REQUEST", "CONTENT_FILTERED", "CONTEXT_LENGTH", "TOO_LARGE", "CANCELLED"}

        def fails(_: object) -> FakeReply:
            failure = _failure(dice)
            while failure.failure_class.value in callers:
                failure = _failure(dice)
            return FakeReply(seconds=dice.choice([0.0, 0.5, 3.0]), failure=failure)

        for name in "abd":
            w.providers[name].set(fails)
        w.providers["c"].set(FakeReply(seconds=1.0))
        asks = []
        for _ in range(200):
            asks.append(asyncio.ensure_future(w.router.chat(BODY)))
            await asyncio.sleep(0.5)
        for ask in asks:
            assert (await ask).report.target == "c/2"
        failed = [event for event in w.sink.of(AttemptFinished) if event.failure_class is not None]
        assert len(failed) < 150
        w.assert_idle()

    run_virtual(scenario())
