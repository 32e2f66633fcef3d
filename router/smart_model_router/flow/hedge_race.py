"""A call and its hedge: when the first head is late a second target is asked, and the first good head wins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from smart_model_router.domain.outcome import Failure
from smart_model_router.domain.ports import Clock
from smart_model_router.flow.attempt import AdmittedTarget

T = TypeVar("T")
Perform = Callable[[AdmittedTarget], Awaitable[T | Failure]]


@runtime_checkable
class Discardable(Protocol):
    """Somebody who can make a call in vain."""

    def drop(self, served: Any) -> Coroutine[Any, Any, None]:
        """Give back at once what a head that nobody wants holds; await the end of its connection."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgeRace(Generic[T]):
    """How a call is made that may be hedged. What a loser holds is given back before the winner is told.

    `second` admits the hedge, or None. `failed` is told of a failure while the other call goes on, and says whether
    that ends the race. `settle` gives back what a loser without a head holds, `drop` (see Spare) one with its head.
    `keep` holds on to the tasks in which connections are closed.
    """

    clock: Clock
    perform: Perform[T]
    second: Callable[[], AdmittedTarget | None]
    failed: Callable[[AdmittedTarget, Failure], bool]
    settle: Callable[[AdmittedTarget], object]
    drop: Callable[[T], Coroutine[Any, Any, None]]
    keep: Callable[[asyncio.Task[None]], object]

    async def run(self, first: AdmittedTarget, late_at: float) -> tuple[AdmittedTarget, T | Failure]:
        """Call `first`, and from the instant `late_at` on a hedge as well; who answered (or failed last), and what."""
        begun = self._begin(first)
        runners = {begun: first}
        try:
            await self._until(begun, late_at)
            hedge = None if begun.done() else self.second()
            if hedge is not None:
                runners[self._begin(hedge)] = hedge
            return await self._decided(runners)
        except BaseException:
            for runner in runners:
                runner.cancel()
            await asyncio.gather(*runners, return_exceptions=True)  # each settles its own lease
            raise
        finally:
            for runner, step in runners.items():
                self._dismiss(runner, step)

    async def _decided(
        self, runners: dict[asyncio.Task[T | Failure], AdmittedTarget]
    ) -> tuple[AdmittedTarget, T | Failure]:
        """The first good head, in the order of asking; else the last failure, or one that ends the race."""
        while True:
            await asyncio.wait(runners, return_when=asyncio.FIRST_COMPLETED)
            for runner in [runner for runner in runners if runner.done()]:
                step, served = runners.pop(runner), runner.result()
                if not isinstance(served, Failure) or not runners or self.failed(step, served):
                    return step, served

    def _dismiss(self, runner: asyncio.Task[T | Failure], step: AdmittedTarget) -> None:
        """See a loser off: settled now, its connection closed behind everybody's back."""
        loop = asyncio.get_running_loop()
        if not runner.done():
            self.settle(step)
            runner.cancel()
            self.keep(loop.create_task(self._see_off(runner)))
        elif not runner.cancelled() and runner.exception() is None:
            late = runner.result()
            if not isinstance(late, Failure):  # both heads came at once
                self.keep(loop.create_task(self.drop(late)))

    async def _see_off(self, runner: asyncio.Task[T | Failure]) -> None:
        with suppress(asyncio.CancelledError):
            late = await runner
            if not isinstance(late, Failure):  # it would not be cancelled
                await self.drop(late)

    def _begin(self, step: AdmittedTarget) -> asyncio.Task[T | Failure]:
        async def performed() -> T | Failure:
            return await self.perform(step)

        return asyncio.get_running_loop().create_task(performed())

    async def _until(self, runner: asyncio.Task[Any], instant: float) -> None:
        """Return when the runner has ended, or at the instant."""
        late: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.clock.call_at(instant, late.cancel)
        try:
            await asyncio.wait((runner, late), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            late.cancel()
