"""Calls that run on for their verdict when their caller leaves (routing.md section 0a, D5a).

Callers in a hurry must neither shield a black hole nor keep a recovered target out: a probe or a paced call has its
verdict whoever waits for it, and so has one call at a time to a target of which too little is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.report import Attempt
from smart_model_router.flow.clock import EARLY

if TYPE_CHECKING:
    from smart_model_router.flow.attempt import AdmittedTarget, AttemptRunner

T = TypeVar("T")


class DetachedCalls:
    """The calls of one request that are made for their verdict. No caller keeps it: that would be a cycle."""

    __slots__ = ("_caller",)

    def __init__(self, caller: AttemptRunner) -> None:
        self._caller = caller

    def wanted(self, step: AdmittedTarget) -> bool:
        """Whether the call has to come to its verdict, whether or not its caller stays."""
        lease, caller = step.lease, self._caller
        if step.last_resort or step.watchdog is not None or not caller.answers:
            return False
        if lease.probe or lease.paced:
            return True
        if caller.is_known(step.facts, lease.admitted_at):
            return False
        return step.facts.id not in caller.state.detached.values()

    async def performed(
        self,
        step: AdmittedTarget,
        limit: float,
        perform: Callable[[AdmittedTarget, float, bool], Awaitable[T | Failure]],
        drop: Callable[[T, AdmittedTarget], Awaitable[None]] | None = None,
    ) -> T | Failure:
        """What the call comes to until the instant `limit`; it goes on until patience has passed.

        `drop` gives back what a call brought when nobody is there to take it.
        """
        caller, lease = self._caller, step.lease
        state = caller.state
        patience = caller.patience(step.facts, lease.admitted_at)
        patient_until = lease.admitted_at + patience
        verdict_at = max(limit, patient_until)
        watchdog = state.watchdog()
        alone = replace(step, watchdog=watchdog)
        loop = asyncio.get_running_loop()
        gone = False

        async def performing() -> T | Failure:
            try:
                served = await perform(alone, verdict_at, True)
            except BaseException:
                watchdog.close()
                raise
            if isinstance(served, Failure) or drop is None:
                watchdog.close()
            elif gone:
                await drop(served, alone)
            return served

        async def leave(why: str) -> None:
            """The caller goes: the call runs on, or ends now and gives back what it has brought."""
            nonlocal gone
            gone = True
            if not task.done() and self._runs_on(step, patience):
                self._leave(step, task, why)
                if verdict_at > patient_until:  # the caller left before its limit: `perform` would go on until that
                    end = state.clock.call_at(patient_until + EARLY, task.cancel)
                    task.add_done_callback(lambda _: end.cancel())
                return
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            elif drop is not None and not isinstance(served := task.result(), Failure):
                await drop(served, alone)

        task = loop.create_task(performing())
        late: asyncio.Future[None] = loop.create_future()
        timer = state.clock.call_at(limit, late.cancel)
        awaited = (task, late) if limit < verdict_at else (task,)
        try:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await leave("the caller left")
            raise
        finally:
            timer.cancel()
            late.cancel()
        if task.done():
            return task.result()
        why = f"left after {state.clock.now() - lease.admitted_at:.1f} s"
        await leave(why)
        return Failure(FailureClass.CANCELLED, why)

    def _runs_on(self, step: AdmittedTarget, patience: float) -> bool:
        """Whether a call under way runs on without its caller: one at a time to a target of unknown pace."""
        lease, state = step.lease, self._caller.state
        if lease.settled or state.closed or state.clock.now() - lease.admitted_at >= patience:
            return False
        return lease.probe or lease.paced or step.facts.id not in state.detached.values()

    def _leave(self, step: AdmittedTarget, task: asyncio.Task[T | Failure], why: str) -> None:
        """The call runs on without its caller."""
        caller = self._caller
        caller.left.add(step.lease)
        caller.state.detach(task, step.facts.id)
        caller.report.attempts.append(
            Attempt(
                target=step.facts.id,
                seconds=caller.state.clock.now() - step.lease.admitted_at,
                failure_class=FailureClass.CANCELLED,
                message=f"{why}; the call runs on for its verdict",
                probe=step.lease.probe,
            )
        )
