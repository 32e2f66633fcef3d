"""One router under real threads and real loops at once: the breaker's promises hold whoever asks from wherever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from smart_model_router import SmartModelRouter
from smart_model_router.domain.events import AttemptFinished, BreakerChanged, ProbeStarted, RequestFinished
from smart_model_router.domain.outcome import Failure, FailureClass, Outcome
from smart_model_router.domain.ports import ProviderCall, TimerHandle
from smart_model_router.flow.clock import SystemClock
from smart_model_router.testing import FakeProvider, FakeReply, RecordingSink
from tests.world import BODY, DOWN, tiers

THREADS, LOOPS, ROUNDS = 32, 8, 100


class Leap(SystemClock):
    """Real time that a test may put forward while nobody waits."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        return asyncio.get_running_loop().call_later(max(0.0, when - self.now()), callback)


class Slow(FakeProvider):
    """Fails each call, not before `let_go` of them is set: all others ask while the probe is in flight."""

    def __init__(self) -> None:
        super().__init__(DOWN)
        self.let_go = asyncio.Event()

    async def call(self, call: ProviderCall) -> Outcome:
        self._arrive(call)
        await self.let_go.wait()
        self.in_flight -= 1
        return Failure(FailureClass.SERVER_ERROR, "500", status=500)


def test_32_threads_and_8_loops_race_an_expired_breaker() -> None:
    """A hundred expiries, forty callers at each: one probe each time, everybody else served elsewhere, one history."""
    clock, sink = Leap(), RecordingSink()
    dead, well = Slow(), FakeProvider(FakeReply())
    config = {
        "version": 1,
        "providers": {
            name: {"kind": "openai_compatible", "base_url": "http://fake.invalid/v1", "bulkhead": 100}
            for name in ("dead", "well")
        },
        "models": {"smart": {**tiers(["dead/big", "well/big"]), "strategy": "ordered"}},
        "resilience": {"breaker": {"consecutive_failures": 1, "odds": 2, "odds_per_call": 1}},
    }
    router = SmartModelRouter.from_config(
        config, clock=clock, providers={"dead": dead, "well": well}, sinks=[sink], seed=1
    )
    state = router._state
    breaker = state.fleet.gates["dead/big"].breakers["whole"]
    start, end = threading.Barrier(THREADS + LOOPS + 1), threading.Barrier(THREADS + LOOPS + 1)
    answered = threading.Semaphore(0)

    def in_a_thread() -> None:
        for _ in range(ROUNDS):
            start.wait(30)
            assert router.portal.run(lambda: router.chat(BODY)).report.target == "well/big"
            answered.release()
            end.wait(30)

    async def on_a_loop() -> None:
        for _ in range(ROUNDS):
            start.wait(30)
            assert (await router.chat(BODY)).report.target == "well/big"
            answered.release()
            end.wait(30)

    def race() -> None:
        for _ in range(ROUNDS):
            assert breaker.open_until is not None
            clock.ahead += max(0.0, breaker.open_until - clock.now()) + 0.001
            dead.let_go.clear()
            start.wait(30)
            for _ in range(THREADS + LOOPS - 1):
                assert answered.acquire(timeout=30)
            assert dead.in_flight == 1
            router.portal.call(dead.let_go.set)
            assert answered.acquire(timeout=30)
            end.wait(30)

    dead.let_go.set()
    router.portal.run(lambda: router.chat(BODY))  # trips it
    with ThreadPoolExecutor(THREADS + LOOPS) as pool:
        asked = [pool.submit(in_a_thread) for _ in range(THREADS)]
        asked += [pool.submit(asyncio.run, on_a_loop()) for _ in range(LOOPS)]
        race()
    for each in asked:
        each.result()
    router.portal.run(router.aclose)

    assert (len(dead.calls), dead.max_in_flight) == (1 + ROUNDS, 1)
    assert len(sink.of(ProbeStarted)) == ROUNDS
    moves = [event for event in sink.of(BreakerChanged) if event.owner == "dead/big"]
    told = [(move.from_state, move.to_state) for move in moves]
    assert told == [("closed", "open")] + [("half_open", "open")] * ROUNDS
    ends = [event.at for event in sink.of(AttemptFinished)]
    assert ends == sorted(ends)
    assert len({event.request_id for event in sink.of(RequestFinished)}) == 1 + ROUNDS * (THREADS + LOOPS)
    assert not state.held
