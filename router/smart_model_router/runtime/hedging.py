"""Whether a call is hedged, and what its hedge is paid from; the race itself is hedge.py."""

from __future__ import annotations

from typing import TypeVar, cast

from smart_model_router.core.budget import RetryBudget
from smart_model_router.core.hedging import hedge_after
from smart_model_router.outcome import Failure
from smart_model_router.recovery import Recovery
from smart_model_router.runtime.admitting import Admitter
from smart_model_router.runtime.calling import Admission, Caller
from smart_model_router.runtime.hedge import Perform, Race, Spare

T = TypeVar("T")


class Hedging:
    """The hedges of one request, each paid from both `purses`: that of hedges alone, and that of all retries.

    Only streams are hedged: how long a whole answer takes is a matter of its length. And only where no policy of
    recovery puts the answer together: it can join one stream to another, not two at once.
    """

    def __init__(self, caller: Caller, admitter: Admitter, recovery: Recovery, purses: tuple[RetryBudget, ...]) -> None:
        self._caller = caller
        self._admitter = admitter
        self._recovered = recovery.mode != "none"
        self._purses = purses

    async def call(self, step: Admission, perform: Perform[T]) -> tuple[Admission, T | Failure]:
        """Make the call, and a hedge's beside it when its head is late. Who answered, or failed last, and what."""
        late_at, spare = self._late_at(step), cast("object", perform)
        if late_at is None or not isinstance(spare, Spare):
            return step, await perform(step)
        race = Race(
            clock=self._caller.state.clock,
            perform=perform,
            second=lambda: self._hedge(step),
            failed=self._failed,
            settle=self._caller.outrun,
            drop=spare.drop,
            keep=self._caller.state.keep,
        )
        last, served = await race.run(step, late_at)
        if last.watchdog is not None and isinstance(served, Failure):
            last.watchdog.close()
        return last, served

    def _late_at(self, step: Admission) -> float | None:
        """From when on a head is late; None where nothing is hedged."""
        if step.last_resort or not step.lease.stream or self._recovered:
            return None
        state = self._caller.state
        after = hedge_after(state.book.snapshot(step.facts.id, state.clock.now()))
        return None if after is None else step.lease.admitted_at + after

    def _hedge(self, late: Admission) -> Admission | None:
        """The second call, where it can be paid for and somebody takes it at once."""
        if self._caller.progress.left < 2 or not all(purse.affordable for purse in self._purses):
            return None
        hedge = self._admitter.beside(late)
        if hedge is not None:
            for purse in self._purses:
                purse.try_spend()
        return hedge

    def _failed(self, step: Admission, failure: Failure) -> bool:
        """One of two calls came to nothing; whether the other need not go on, as the request itself is refused."""
        caller = self._caller
        if step.watchdog is not None:
            step.watchdog.close()
        elif caller.final_rejection(step, failure) is not None:
            return True
        caller.progress.note(step.facts, step.tier, failure, caller.state.clock.now())
        return False
