"""What one request waits for, and for how long: its pauses, and its place in the waiting room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from smart_model_router.core.fallback import comes_due
from smart_model_router.core.gate import Gate
from smart_model_router.core.tiers import TargetFacts
from smart_model_router.events import WaitFinished
from smart_model_router.outcome import Refusal
from smart_model_router.request import CRITICALITIES, WAITING_CRITICALITIES
from smart_model_router.runtime.calling import Caller
from smart_model_router.runtime.waiting import Ticket

_WAIT_IN_TIER = 2.0
"""Seconds at most before a lower tier is taken, however long `degrade_after` is."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Nobody can be asked now: wait for one of `gates` (none: only for time), at most until `until`.

    `place` is the gate whose bucket the request will most likely take from. `resorts` are those of the gates that are
    waited for as a last resort.
    """

    gates: tuple[str, ...]
    place: str | None
    until: float
    in_asked_tier: bool = False
    resorts: frozenset[str] = frozenset()


class Pauses:
    """The pauses of one request. Each method that offers one gives None where waiting cannot help, or nobody may wait.

    `refused` is always what the targets just asked said no with, by target.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._state = caller.state
        self._report = caller.report
        self.allowed = caller.request.criticality in WAITING_CRITICALITIES
        """Whether requests like this one wait at all."""
        self.ticket: Ticket | None = None
        """Its place in the waiting room, from its first pause on."""
        self._sat_out: set[str] = set()
        """Targets whose throttle said no and was waited for: again and again would be no throttle."""
        self._waited_in_asked = 0.0
        self._last_resort_at: float | None = None

    def begin_anew(self) -> None:
        """The request goes on after an answer that broke off: its patience before the last resort is new."""
        self._last_resort_at = None

    def in_asked_tier(self, refused: Mapping[str, Refusal], now: float) -> Pause | None:
        """Before a lower tier is taken."""
        within = min(self._state.routing.degrade_after, _WAIT_IN_TIER) - self._waited_in_asked
        asked = {facts.id for facts in self._caller.plan.tiers[0].targets}
        worth = {target: refusal for target, refusal in _worth_a_wait(refused).items() if target in asked}
        return self._pause(worth, now, within, in_asked_tier=True)

    def before_last_resort(self, refused: Mapping[str, Refusal], now: float) -> Pause | None:
        """Before the last resort is taken."""
        caller = self._caller
        if not any(facts.id not in caller.progress.last_resort_tried for facts in caller.plan.last_resort):
            return None
        if self._last_resort_at is None:
            reserve = (caller.deadline - now) * self._state.timeouts.margin
            self._last_resort_at = min(now + self._state.routing.last_resort_after, caller.deadline - reserve)
        return self._pause(_worth_a_wait(refused), now, self._last_resort_at - now)

    def to_the_end(self, refused: Mapping[str, Refusal], now: float) -> Pause | None:
        """When nobody else is left."""
        return self._pause(refused, now, self._state.routing.max_wait)

    def in_queue(self, resorts: tuple[str, ...], refused: Mapping[str, Refusal], now: float) -> Pause | None:
        """A wait for a slot of the last resort, and for whoever comes due before it is free."""
        if not resorts or not self.allowed:
            return None
        left = self._state.routing.max_wait - self._report.waited_seconds
        until = min(now + left, self._caller.deadline)
        if until <= now:
            return None
        better = self._pause(refused, now, until - now) or Pause((), None, until)
        return replace(better, gates=(*better.gates, *resorts), resorts=frozenset(resorts))

    def may_queue(self, target: str, gate: Gate) -> bool:
        """Whether there is a place for this request in the queue of a target of the last resort."""
        room, limit = self._state.room, gate.provider.queue
        mine = self.ticket is not None and target in self.ticket.gates
        return mine or (not room.full and (limit is None or room.queued(target) < limit))

    async def take(self, pause: Pause) -> None:
        """Wait; the report and the sinks hear of it."""
        state, began = self._state, self._state.clock.now()
        self._caller.progress.waited()
        woken: str | None = None
        if pause.gates:
            if self.ticket is None:
                rank = CRITICALITIES.index(self._caller.request.criticality)
                self.ticket = state.room.ticket(stream=self._caller.request.stream, rank=rank)
            costs = {target: self._caller.cost(self._facts(target), began) for target in pause.gates}
            woken = await state.room.wait(self.ticket, costs, pause.place, pause.until, pause.resorts)
        else:
            self.leave_room()  # it waits for no gate: who does is not to stand behind it
            await state.clock.sleep(pause.until - began)
        waited = state.clock.now() - began
        self._report.waited_seconds += waited
        if pause.in_asked_tier:
            self._waited_in_asked += waited
        state.emit(WaitFinished(at=began + waited, request_id=self._report.request_id, seconds=waited, woken_by=woken))

    def leave_room(self) -> None:
        """The request took its turn or gave up: whoever stands behind it may look."""
        if self.ticket is not None:
            self._state.room.done(self.ticket)

    def _pause(
        self, refused: Mapping[str, Refusal], now: float, within: float, *, in_asked_tier: bool = False
    ) -> Pause | None:
        """A wait for those of `refused` that may come due within so many seconds.

        The sum of a request's waits and its deadline bound it in any case.
        """
        state, caller = self._state, self._caller
        within = min(within, state.routing.max_wait - self._report.waited_seconds, caller.deadline - now)
        until = now + within  # what is left of a sum of waits may be too little for any instant after `now`
        if until <= now or not self.allowed or (state.room.full and self.ticket is None):
            return None
        due = {t: r for t, r in refused.items() if comes_due(r, now, within) and not self._was_sat_out(t, r)}
        if not due:
            return None
        instants = [(refusal.retry_at, target) for target, refusal in due.items() if refusal.retry_at is not None]
        gates = []
        for target, refusal in due.items():
            if refusal.reason == "throttle":
                self._sat_out.add(target)
                until = min(until, refusal.retry_at or until)
            elif caller.progress.tried(target) and caller.progress.refusal(self._facts(target), now) is not None:
                until = min(until, refusal.retry_at or until)  # our own pause: the gate itself would say yes
            else:
                gates.append(target)
        place = min(instants)[1] if instants else None
        return Pause(tuple(gates), place if place in gates else None, until, in_asked_tier=in_asked_tier)

    def _was_sat_out(self, target: str, refusal: Refusal) -> bool:
        """Whether the throttle said no before; what else the target says now is waited for."""
        return refusal.reason == "throttle" and target in self._sat_out

    def _facts(self, target: str) -> TargetFacts:
        plan = self._caller.plan
        everywhere = [facts for tier in plan.tiers for facts in tier.targets] + list(plan.last_resort)
        return next(facts for facts in everywhere if facts.id == target)


def _worth_a_wait(refused: Mapping[str, Refusal]) -> dict[str, Refusal]:
    """Refusals to wait for while somebody else could answer: being offline ends when it ends, not each second."""
    return {target: refusal for target, refusal in refused.items() if refusal.reason != "offline"}
