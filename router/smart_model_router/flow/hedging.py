"""A call and its hedge: when a second target is called, which budgets pay for it, and which head wins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from smart_model_router.domain.outcome import Failure
from smart_model_router.domain.ports import Clock
from smart_model_router.flow.admission import AdmissionController
from smart_model_router.flow.attempt import AttemptRunner
from smart_model_router.flow.clock import ended_by
from smart_model_router.flow.request_context import AdmittedTarget, RequestContext

T = TypeVar("T")
Perform = Callable[[AdmittedTarget], Awaitable[T | Failure]]


@runtime_checkable
class Discardable(Protocol):
    """A function that makes calls, and can give back the result of one that is not used."""

    def drop(self, served: Any) -> Coroutine[Any, Any, None]:
        """Give back at once the resources of an unused head; await the end of its connection."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgeRace(Generic[T]):
    """A call and its hedge. The loser's resources are given back before the winner is returned.

    `second` admits the hedge, or None. `failed` takes a failure while the other call goes on, and returns True when
    that ends the race. `settle` gives back the lease of a loser without a head, `drop` (see Discardable) that of one
    with its head. `keep` holds on to the tasks in which connections are closed.
    """

    clock: Clock
    perform: Perform[T]
    second: Callable[[], AdmittedTarget | None]
    failed: Callable[[AdmittedTarget, Failure], bool]
    settle: Callable[[AdmittedTarget], object]
    drop: Callable[[T], Coroutine[Any, Any, None]]
    keep: Callable[[asyncio.Task[None]], object]

    async def run(self, first: AdmittedTarget, late_at: float) -> tuple[AdmittedTarget, T | Failure]:
        """Call `first`, then a hedge from `late_at`; return the target that answered or failed last, and the result."""
        begun = self._begin(first)
        runners = {begun: first}
        try:
            await ended_by(self.clock, begun, late_at)
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
            for runner, admitted in runners.items():
                self._dismiss(runner, admitted)

    async def _decided(
        self, runners: dict[asyncio.Task[T | Failure], AdmittedTarget]
    ) -> tuple[AdmittedTarget, T | Failure]:
        """The first good head, in the order of the calls; else the last failure, or one that ends the race."""
        while True:
            await asyncio.wait(runners, return_when=asyncio.FIRST_COMPLETED)
            for runner in [runner for runner in runners if runner.done()]:
                admitted, served = runners.pop(runner), runner.result()
                if not isinstance(served, Failure) or not runners or self.failed(admitted, served):
                    return admitted, served

    def _dismiss(self, runner: asyncio.Task[T | Failure], admitted: AdmittedTarget) -> None:
        """Settle the losing attempt now; close its connection in the background."""
        loop = asyncio.get_running_loop()
        if not runner.done():
            self.settle(admitted)
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

    def _begin(self, admitted: AdmittedTarget) -> asyncio.Task[T | Failure]:
        async def performed() -> T | Failure:
            return await self.perform(admitted)

        return asyncio.get_running_loop().create_task(performed())


@dataclass(slots=True)
class Hedging:
    """The second calls of one request beside a late first one.

    A hedge (off by default) is paid from both budgets: that of hedges alone, and that of all retries. Only streams are
    hedged: the duration of a whole answer depends on its length. A target with too few known answers is not cut off
    when it is silent for patience, as it may be slow and not dead: the next free one is called beside it. Neither is
    done where the stream has to fit the text its caller has, or is delayed by a policy of recovery: a recovery can join
    one stream to another, not two at once.
    """

    context: RequestContext
    attempts: AttemptRunner
    admission: AdmissionController

    async def call(
        self, admitted: AdmittedTarget, late_at: float, perform: Perform[T]
    ) -> tuple[AdmittedTarget, T | Failure]:
        """Make the call, and a second one beside it from `late_at` on. Returns as `HedgeRace.run`."""
        spare = cast("object", perform)
        drop = spare.drop if isinstance(spare, Discardable) else _nothing_to_drop
        race = HedgeRace(
            clock=self.context.state.clock,
            perform=perform,
            second=lambda: self._second(admitted),
            failed=self._failed,
            settle=self.attempts.outrun,
            drop=drop,
            keep=self.context.state.keep,
        )
        return await race.run(admitted, late_at)

    def _second(self, late: AdmittedTarget) -> AdmittedTarget | None:
        """The second call, where a target admits it at once and the budgets can pay for it."""
        if self.context.history.left < 2:
            return None
        snapshot = self.context.state.book.snapshot(late.facts.id, late.lease.admitted_at)
        if self.context.waits_beside(late, snapshot):
            return self.admission.beside(late, anywhere=True)
        if self.context.state.hedges is None or not (
            self.context.state.budget.affordable and self.context.state.hedges.affordable
        ):
            return None
        hedge = self.admission.beside(late)
        if hedge is not None:
            self.context.state.budget.try_spend()
            self.context.state.hedges.try_spend()
        return hedge

    def _failed(self, admitted: AdmittedTarget, failure: Failure) -> bool:
        """Note that one of two calls failed; True when the other need not go on, as the request itself is refused."""
        if admitted.watchdog is None and self.attempts.final_rejection(admitted, failure) is not None:
            return True
        self.context.note(admitted, failure)
        return False


async def _nothing_to_drop(served: object) -> None:
    """Do nothing: a whole answer holds no resources."""
