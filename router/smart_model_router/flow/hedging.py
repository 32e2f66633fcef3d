"""Whether a call is hedged, and what its hedge is paid from; the race itself is hedge_race.py."""

from __future__ import annotations

from typing import TypeVar, cast

from smart_model_router.core.budget import RetryBudget, hedge_after
from smart_model_router.domain.outcome import Failure
from smart_model_router.domain.recovery_policy import Recovery
from smart_model_router.flow.admission import AdmissionController
from smart_model_router.flow.attempt import AdmittedTarget, AttemptRunner
from smart_model_router.flow.hedge_race import Discardable, HedgeRace, Perform

T = TypeVar("T")


class Hedging:
    """The second calls of one request beside a late first one.

    A hedge (off by default) is paid from both purses: that of hedges alone, and that of all retries. Only streams are
    hedged: how long a whole answer takes is a matter of its length. A target of which too little is known is not cut
    off when it is silent for patience, as nobody knows slow from dead: the next free one is asked beside it. Neither is
    done where the stream has to fit what its caller has, or is delayed by a policy of recovery: it can join one stream
    to another, not two at once.
    """

    def __init__(
        self,
        caller: AttemptRunner,
        admitter: AdmissionController,
        recovery: Recovery,
        retries: RetryBudget,
        hedges: RetryBudget | None,
    ) -> None:
        self._caller = caller
        self._admitter = admitter
        self._delayed = recovery.mode in ("buffered", "hold_back")
        self._retries = retries
        self._hedges = hedges

    def late_at(self, step: AdmittedTarget) -> float | None:
        """From when on a second target is asked beside the call; None where none is."""
        caller, lease = self._caller, step.lease
        if step.last_resort or (lease.stream and (self._delayed or caller.continues)):
            return None
        if lease.probe or lease.paced:
            return None  # it is made for its verdict: losing a race is none
        if self._waits_beside(step):  # first: that call is free, and must not be made sooner than at patience
            return lease.admitted_at + caller.patience(step.facts, lease.admitted_at)
        if self._hedges is not None and lease.stream:
            after = hedge_after(caller.state.book.snapshot(step.facts.id, caller.state.clock.now()))
            if after is not None:
                return lease.admitted_at + after
        return None

    async def call(
        self, step: AdmittedTarget, late_at: float, perform: Perform[T]
    ) -> tuple[AdmittedTarget, T | Failure]:
        """Make the call, and a second one beside it from `late_at` on. Who answered, or failed last, and what."""
        spare = cast("object", perform)
        drop = spare.drop if isinstance(spare, Discardable) else _nothing_to_drop
        race = HedgeRace(
            clock=self._caller.state.clock,
            perform=perform,
            second=lambda: self._second(step),
            failed=self._failed,
            settle=self._caller.outrun,
            drop=drop,
            keep=self._caller.state.keep,
        )
        last, served = await race.run(step, late_at)
        if last.watchdog is not None and isinstance(served, Failure):
            last.watchdog.close()
        return last, served

    def _waits_beside(self, step: AdmittedTarget) -> bool:
        """Whether silence of this call is to be answered by a second target, not by cutting it off."""
        caller = self._caller
        if caller.request.state_ids:
            return False
        return not caller.is_known(step.facts, step.lease.admitted_at) and caller.another_left(step.facts)

    def _second(self, late: AdmittedTarget) -> AdmittedTarget | None:
        """The second call, where somebody takes it at once, and a hedge can be paid for."""
        if self._caller.progress.left < 2:
            return None
        if self._waits_beside(late):
            return self._admitter.beside(late, anywhere=True)
        if self._hedges is None or not (self._retries.affordable and self._hedges.affordable):
            return None
        hedge = self._admitter.beside(late)
        if hedge is not None:
            self._retries.try_spend()
            self._hedges.try_spend()
        return hedge

    def _failed(self, step: AdmittedTarget, failure: Failure) -> bool:
        """One of two calls came to nothing; whether the other need not go on, as the request itself is refused."""
        caller = self._caller
        if step.watchdog is not None:
            step.watchdog.close()
        elif caller.final_rejection(step, failure) is not None:
            return True
        caller.note(step, failure)
        return False


async def _nothing_to_drop(served: object) -> None:
    """Give back what nobody wants."""
