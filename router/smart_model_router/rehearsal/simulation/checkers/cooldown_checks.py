"""Promises of rests: no failure and no hint shortens one of its own kind, and only the right success ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.rehearsal.simulation.checkers.checker import Checker

if TYPE_CHECKING:
    from smart_model_router.core.breaker import BreakerSnapshot
    from smart_model_router.core.cooldown import CooldownSnapshot, LawSnapshot
    from smart_model_router.domain.outcome import Failure
    from smart_model_router.rehearsal.simulation.trace_recorder import Settled


class Deadlines(Checker):
    """I6: advice and law are only ever prolonged; a success of a call admitted after one began ends it."""

    def settled(self, settled: Settled) -> None:
        for before, after in zip(settled.before.rests, settled.after.rests, strict=True):
            self._advice(settled, before, after)
            for reason, law in before.laws.items():
                if law.until > settled.now:
                    self._law(settled, reason, law, after.laws.get(reason))

    def _advice(self, settled: Settled, before: CooldownSnapshot, after: CooldownSnapshot) -> None:
        if before.advice_until <= settled.now or after.advice_until >= before.advice_until:
            return
        shots = (settled.before.own, settled.after.own), (settled.before.transport, settled.after.transport)
        ended = settled.failure is None and settled.held.at >= before.advice_began
        if not ended and not any(_tripped(*shot) for shot in shots):
            self.violate("I6", settled.now, f"{settled.held.gate.id}: {_cause(settled.failure)} shortened a cooldown")

    def _law(self, settled: Settled, reason: str, before: LawSnapshot, after: LawSnapshot | None) -> None:
        failure, held = settled.failure, settled.held
        if after is None:
            if failure is not None or held.at <= before.began:
                self.violate("I6", settled.now, f"{held.gate.id}: {_cause(failure)} ended a {reason}")
            return
        if after.until >= before.until:
            return
        newer = after.hinted and (not before.hinted or held.lease.sequence > before.sent_seq)
        if failure is None or failure.wait is None or not newer:
            self.violate("I6", settled.now, f"{held.gate.id}: {_cause(failure)} shortened a {reason}")


def _tripped(before: BreakerSnapshot, after: BreakerSnapshot) -> bool:
    return after.generation != before.generation and after.open_until is not None


def _cause(failure: Failure | None) -> str:
    return "a success of an earlier call" if failure is None else failure.failure_class.value
