"""The world of a simulation: seeded requests and their deadlines, a loop that notices livelocks, a wall clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.domain.ports import TimerHandle
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import Criticality, RequestOptions
from smart_model_router.router import SmartModelRouter
from smart_model_router.testing import LoopClock, VirtualTimeLoop

T = TypeVar("T")
_MOST_ROUNDS = 200_000
"""Rounds of the loop within one virtual second. The busiest scenario needs a hundredth of it."""
_LATE = 1e-6
_EPOCH = 1_700_000_000.0


class Livelock(RuntimeError):
    """The program is busy and time stands still."""


class WorldLoop(VirtualTimeLoop):
    """The loop in virtual time; it raises Livelock when it turns too often within a virtual second."""

    def __init__(self, *, limit: float) -> None:
        super().__init__(limit=limit)
        self._since = self.time()
        self._rounds = 0

    def select(self, timeout: float | None) -> Sequence[Any]:
        """Count the round, then jump."""
        self._rounds += 1
        if self.time() - self._since > 1.0:
            self._since, self._rounds = self.time(), 0
        elif self._rounds > _MOST_ROUNDS:
            raise Livelock(f"{self._rounds} rounds within a second at {self.time():.3f}")
        return super().select(timeout)


def run_world(main: Coroutine[Any, Any, T], *, limit: float) -> T:
    """Run `main` in virtual time. Raises Deadlock, OutOfTime after `limit` seconds, or Livelock."""
    with asyncio.Runner(loop_factory=lambda: WorldLoop(limit=limit)) as runner:
        return runner.run(main)


class Wall:
    """The wall clock of the world: `steps` are (seconds from the beginning, jump in seconds)."""

    def __init__(self, steps: Sequence[tuple[float, float]]) -> None:
        self._steps = tuple(steps)
        self._began: float | None = None

    def offset(self) -> float:
        """All jumps so far."""
        now = asyncio.get_running_loop().time()
        self._began = now if self._began is None else self._began
        return sum(jump for at, jump in self._steps if now - self._began >= at)

    def now(self) -> float:
        """Seconds since the epoch."""
        return _EPOCH + asyncio.get_running_loop().time() + self.offset()


class StepClock(LoopClock):
    """A clock that follows the wall: what a router has whose `monotonic_clock` measure is off.

    Its instants are sums, and off by a rounding: a timer comes a microsecond late rather than too early for ever, as
    real time goes on while a program runs and ours does not.
    """

    def __init__(self, wall: Wall) -> None:
        self._wall = wall

    def now(self) -> float:
        """The loop's time and every jump of the wall."""
        return super().now() + self._wall.offset()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` and the microsecond."""
        await super().sleep(seconds + _LATE)

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        """A timer that counts down from what the wall says now, like a real one."""
        return asyncio.get_running_loop().call_later(max(0.0, when - self.now()) + _LATE, callback)


BODY: Mapping[str, Any] = {"model": "smart", "messages": [{"role": "user", "content": "hello"}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests from `start` to `end` (seconds from the beginning), `per_second` on average, or `at_once` at `start`.

    Shares are in [0, 1]: `streams` are streamed, `impatient` callers leave after up to `leaves_after` seconds,
    `sheddable` requests say that they can wait for another day. `timeout` is each request's own, in seconds,
    `recovery` what becomes of its cut streams.
    """

    start: float = 0.0
    end: float = 0.0
    per_second: float = 0.0
    at_once: int = 0
    streams: float = 0.0
    impatient: float = 0.0
    leaves_after: float = 2.0
    sheddable: float = 0.0
    timeout: float | None = None
    max_tokens: int | None = 100
    recovery: str | None = None

    def arrivals(self, dice: Random) -> Iterator[WorkloadRequest]:
        """Each request to come, in order of arrival."""
        for _ in range(self.at_once):
            yield self._asked(self.start, dice)
        elapsed = self.start + (dice.expovariate(self.per_second) if self.per_second else self.end)
        while elapsed < self.end:
            yield self._asked(elapsed, dice)
            elapsed += dice.expovariate(self.per_second)

    def _asked(self, at: float, dice: Random) -> WorkloadRequest:
        leaves = dice.uniform(0.0, self.leaves_after) if dice.random() < self.impatient else None
        return WorkloadRequest(
            at=at,
            stream=dice.random() < self.streams,
            leaves_after=leaves,
            walks_away=dice.random() < 0.5,
            criticality="sheddable" if dice.random() < self.sheddable else "critical",
            timeout=self.timeout,
            max_tokens=self.max_tokens,
            recovery=self.recovery,
        )


@dataclass(eq=False, slots=True, kw_only=True)
class WorkloadRequest:
    """One request and its end. `at` is seconds from the beginning; the instants below are the loop's.

    A caller that leaves is cancelled, or, reading a stream, `walks_away` between two pieces.
    """

    at: float
    stream: bool
    leaves_after: float | None
    walks_away: bool
    criticality: Criticality
    timeout: float | None
    max_tokens: int | None
    recovery: str | None
    began: float = 0.0
    first_content: float | None = None
    ended: float | None = None
    report: RouteReport | None = None
    error: SmartRouterError | None = None
    left: bool = False

    @property
    def served_by(self) -> str | None:
        """The target whose answer was delivered whole; None when there was none (or the caller left)."""
        return None if self.report is None or self.error is not None or self.left else self.report.target

    async def ask(self, router: SmartModelRouter) -> None:
        """Send it and see it end. Raises only what would be a bug of the router."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        self.began = loop.time()
        alarm = None
        if task is not None and self.leaves_after is not None:
            alarm = loop.call_later(self.leaves_after, task.cancel)
        try:
            await (self._read(router) if self.stream else self._get(router))
        except SmartRouterError as error:
            self.error, self.report = error, error.report
        except asyncio.CancelledError:
            self.left = True
        finally:
            self.ended = loop.time()
            if alarm is not None:
                alarm.cancel()

    async def _get(self, router: SmartModelRouter) -> None:
        reply = await router.chat(self._body(), **self._options())
        self.first_content = asyncio.get_running_loop().time()
        self.report = reply.report

    async def _read(self, router: SmartModelRouter) -> None:
        loop = asyncio.get_running_loop()
        async with router.stream_chat(self._body(), **self._options()) as chunks:
            try:
                async for _ in chunks:
                    if self.first_content is None:
                        self.first_content = loop.time()
                    self.report = chunks.report
                    if self.leaves_after is not None and self.walks_away:
                        self.left = True
                        break
            except asyncio.CancelledError:  # before anything came: which request it was is known all the same
                self.report = chunks.report
                raise

    def _body(self) -> Mapping[str, Any]:
        return BODY if self.max_tokens is None else {**BODY, "max_tokens": self.max_tokens}

    def _options(self) -> RequestOptions:
        return {"timeout": self.timeout, "criticality": self.criticality, "recovery": self.recovery}
