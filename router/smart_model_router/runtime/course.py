"""One request on its way: plan, admit, call, settle, retry, fall back, wait - until somebody answered.

`Course.answer` serves whole answers, `Course.open` streams; both walk the same steps. Each step is decided in one
breath (no await between asking a gate and holding its lease).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from smart_model_router.core.backoff import full_jitter
from smart_model_router.core.ending import final_error, final_rejection
from smart_model_router.core.fallback import Progress, comes_due, least_retry_after
from smart_model_router.core.gate import Gate
from smart_model_router.core.hedging import hedge_after
from smart_model_router.core.lease import Kind, Lease
from smart_model_router.core.ratelimit import Cost
from smart_model_router.core.recovery import effective
from smart_model_router.core.selection import STRATEGIES
from smart_model_router.core.selection.correlated import elsewhere_first
from smart_model_router.core.selection.draw import redistribute
from smart_model_router.core.selection.scoring import scores
from smart_model_router.core.tiers import TargetFacts, Tier, plan
from smart_model_router.errors import Overloaded, SmartRouterError
from smart_model_router.events import (
    ProbeStarted,
    RequestShed,
    WaitFinished,
)
from smart_model_router.outcome import Failure, Refusal, Success
from smart_model_router.request import (
    CRITICALITIES,
    WAITING_CRITICALITIES,
    RouteReport,
    RouteRequest,
)
from smart_model_router.runtime.account import Account
from smart_model_router.runtime.calling import Admission, Caller
from smart_model_router.runtime.hedge import Perform, Race, Spare
from smart_model_router.runtime.state import RouterState
from smart_model_router.runtime.translations import PREFILL
from smart_model_router.runtime.waiting import Ticket
from smart_model_router.runtime.watchdog import Watchdog

T = TypeVar("T")
_FREE = Cost(0, 0)
_WAIT_IN_TIER = 2.0
"""Seconds at most before a lower tier is taken, however long `degrade_after` is."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Nobody can be asked now: wait for one of `gates` (none: only for time), at most until `until`.

    `resorts` are those of the gates that are waited for as a last resort.
    """

    gates: tuple[str, ...]
    place: str | None
    until: float
    in_asked_tier: bool = False
    resorts: frozenset[str] = frozenset()


class Course:
    """One request's walk. `report` is live all the way."""

    def __init__(self, state: RouterState, request: RouteRequest) -> None:
        self.state = state
        self.request = request
        self.started = state.clock.now()
        total = state.timeouts.total
        deadline = self.started + (min(request.timeout, total) if request.timeout is not None else total)
        self.ladder = state.ladder(request.model)
        if request.avoid:
            state.check_avoided(request)
        self.plan = plan(
            request,
            self.ladder,
            estimate_usd=state.estimate_usd,
            made_by=state.made_by.get,
            allow_escalation=state.routing.allow_escalation,
            degrade=state.degrade,
        )
        self.selector = STRATEGIES[self.ladder.strategy]
        self.recovery = effective(request, self.ladder.recovery)
        self.progress = Progress(state.routing, self.plan)
        self.report = RouteReport(state.next_request_id(), request.model, self.plan.asked)
        self.account = Account(state, request, self.plan, self.report, self.started)
        self.caller = Caller(
            state=state,
            request=request,
            plan=self.plan,
            progress=self.progress,
            report=self.report,
            deadline=deadline,
        )
        self._waits = request.criticality in WAITING_CRITICALITIES
        self._ticket: Ticket | None = None
        self._refused: dict[str, Refusal] = {}
        self._tossed: dict[str, Refusal] = {}
        """What a throttle said to this request, by target: it is not tossed again before that is over."""
        self._tossed_out: set[str] = set()
        self._waited_in_asked = 0.0
        self._last_resort_at: float | None = None
        self._probe_taken = False
        for target, refusal in self.plan.left_out:
            self.account.tell(target, refusal, self.started)

    # The walk ---------------------------------------------------------------------------------------------

    async def serve(self, perform: Perform[T]) -> T:
        """Walk until `perform` brings something that is not a Failure. Raises SmartRouterError when nobody can."""
        self.state.budget.deposit()
        if self.state.hedges is not None:
            self.state.hedges.deposit()
        try:
            self._shed()
            return await self._walk(perform)
        except SmartRouterError as error:
            error.report = self.report
            self.account.finish("rejected_local" if isinstance(error, Overloaded) else "failed", type(error).__name__)
            raise
        except asyncio.CancelledError:
            self.account.finish("cancelled")
            raise

    async def resume(self, broken: Admission, failure: Failure, perform: Perform[T]) -> T:
        """Walk on after the stream of `broken`, once delivered, came to `failure`; its account stays open.

        Another target is asked, or, where nobody else is left who could, the same one once more, as ever out of the
        retry budget. Raises SmartRouterError when nobody can.
        """
        now, self._last_resort_at = self.state.clock.now(), None
        self.progress.note(broken.facts, broken.tier, failure, now, last_resort=broken.last_resort)
        again = None
        if not broken.last_resort and not self._somebody_else(broken.facts, now):
            again = await self._quick_retry(broken, failure, now)
        if again is not None:
            served = await self._tried(again, perform)
            if not isinstance(served, Failure):
                return served
        return await self._walk(perform)

    async def _walk(self, perform: Perform[T]) -> T:
        if self.state.sharing is not None:
            self.state.sharing.touch()
        try:
            while True:
                step = self._next_step()
                if isinstance(step, Pause):
                    await self._pause(step)
                    continue
                if step.lease.probe and not await self._may_probe(step):
                    continue
                if self._ticket is not None:
                    self._leave_room()
                served = await self._tried(step, perform)
                if not isinstance(served, Failure):
                    return served
        finally:
            self._leave_room()

    async def answer(self) -> Success:
        """The whole answer."""
        try:
            success = await self.serve(self.caller.whole)
        finally:
            self.caller.watchdog.close()
        self.report.complete = True
        self.account.finish_served(lambda: success.raw.decode("utf-8", "replace"))
        return success

    # Deciding ---------------------------------------------------------------------------------------------

    def _next_step(self) -> Admission | Pause:
        """Routing.md section 8, "Order": each line is one of its steps."""
        now = self.state.clock.now()
        self._refused.clear()
        if now >= self.caller.deadline:
            raise self._final_error(now)
        if not self.progress.exhausted and not self._only_last_resort():
            for number, tier in enumerate(self.plan.tiers):
                if (admission := self._admit_in(tier, now)) is not None:
                    return admission
                if number == 0 and (pause := self._pause_in_asked(now)) is not None:
                    return pause
            if (admission := self._admit_cooling(now)) is not None:
                return admission
            if (pause := self._pause_before_last_resort(now)) is not None:
                return pause
        if (step := self._last_resort(now)) is not None:
            return step
        if not self.progress.exhausted and (pause := self._pause_to_the_end(now)) is not None:
            return pause
        raise self._final_error(now)

    def _admit_in(self, tier: Tier, now: float) -> Admission | None:
        order = self._order(tier, now)
        if order and self.progress.tier_is_spent(tier.name) and self._free_below(tier, now):
            return None
        for index, facts in enumerate(order):
            if (admission := self._ask(facts, tier.name, now)) is not None:
                return admission
            if index == 0 and self.selector.redistributes and len(order) > 2:
                order[1:] = self._redistributed(order[1:], now)
        return None

    def _order(self, tier: Tier, now: float) -> list[TargetFacts]:
        """The targets of a tier this request may still ask, best first; one that is due for its probe before all."""
        state = self.state
        able = {}
        for facts in tier.targets:
            refusal = self.progress.refusal(facts, now)
            if refusal is None:
                able[facts.id] = facts
            elif not refusal.reason.startswith("filtered:"):
                self._refused[facts.id] = refusal
        if len(able) < 2:
            return list(able.values())
        view = state.view(able, now, stream=self.request.stream, session=self.request.session_key)
        candidates = [facts.candidate for facts in able.values()]
        order = self.selector.order(candidates, view, now, state.dice.roll())
        if self.progress.failures:
            failed_facts, failure = self.progress.failures[-1]
            order = elsewhere_first(order, failed_facts.candidate, failure.failure_class, scores(order, view, now))
        due = self._due_for_probe(able.values(), now)
        if due is not None:
            order.sort(key=lambda c: c.id != due)
        return [able[c.id] for c in order]

    def _due_for_probe(self, able: Iterable[TargetFacts], now: float) -> str | None:
        """The target due the longest; at most one probe a request, none without time (or a place) to fall back."""
        if self._probe_taken or self.request.state_ids:
            return None
        gates, stream, left = self.state.fleet.gates, self.request.stream, self.caller.deadline - now
        dues = [
            (since, facts.candidate.position, facts.id)
            for facts in able
            if (since := gates[facts.id].due_since(now, stream=stream)) is not None
            and left >= 2 * self.caller.patience(facts, now)
        ]
        return min(dues)[2] if dues else None

    def _redistributed(self, rest: list[TargetFacts], now: float) -> list[TargetFacts]:
        state, by_id = self.state, {facts.id: facts for facts in rest}
        view = state.view(by_id, now, stream=self.request.stream)
        candidates = [facts.candidate for facts in rest]
        free = {target: state.fleet.gates[target].free_share(now) for target in by_id}
        drawn = redistribute(candidates, scores(candidates, view, now), free, state.dice.roll())
        return [by_id[c.id] for c in drawn]

    def _ask(self, facts: TargetFacts, tier: str, now: float, *, ignore_advice: bool = False) -> Admission | None:
        if self._ruled_out(facts, now):
            return None
        state, gate = self.state, self.state.fleet.gates[facts.id]
        cost = self.caller.cost(facts, now)
        if (tossed := self._tossed.get(facts.id)) is not None and now < (tossed.retry_at or now):
            self._refused[facts.id] = tossed  # whoever is woken asks everybody again: each time a toss would be none
            return None
        if state.room.waiting and state.room.is_behind(self._ticket, facts.id):
            ahead = state.room.ahead(self._ticket, facts.id)
            got: Lease | Refusal = (
                gate.refusal(cost, now, stream=self.request.stream)
                or gate.limits.refusal(cost, now, ahead)
                or Refusal("bulkhead")
            )
        else:
            got = gate.try_admit(cost, now, state.dice.roll(), stream=self.request.stream, ignore_advice=ignore_advice)
        if state.sharing is not None:
            state.sharing.asked(gate)
        if isinstance(got, Refusal):
            if got.reason == "throttle":
                self._tossed[facts.id] = got
            self._refused[facts.id] = got
            self.account.tell(facts.id, got, now)
            return None
        return self._admitted(facts, tier, gate, got)

    def _ruled_out(self, facts: TargetFacts, now: float) -> bool:
        """Whether the request would mean something else in the target's dialect."""
        why = self.caller.translations.refusal(facts)
        if why is not None:
            need = PREFILL if why.where == PREFILL else "translation"
            self.account.tell(facts.id, self.progress.rule_out(facts.id, str(why), need), now)
        return why is not None

    def _somebody_else(self, facts: TargetFacts, now: float) -> bool:
        """Whether another target of the plan may still be asked, now or soon."""
        able, refusal = self.caller.translations.refusal, self.progress.refusal
        return any(
            other.id != facts.id and refusal(other, now) is None and able(other) is None
            for tier in self.plan.tiers
            for other in tier.targets
        )

    def _admitted(self, facts: TargetFacts, tier: str, gate: Gate, lease: Lease) -> Admission:
        self.state.held[lease] = gate
        return Admission(facts, tier, gate, lease)

    async def _may_probe(self, step: Admission) -> bool:
        """Whether this admission, which is a probe, stands: it does when no other process has it."""
        lease, sharing = step.lease, self.state.sharing
        if lease.probes_breaker and sharing is not None:
            free = False
            try:
                free = await sharing.may_probe(step.gate, lease)
            finally:
                if not free:
                    self._withdraw(step)
            if not free:
                return False
        self._probe_taken = True
        kind: Kind = "stream" if self.request.stream else "whole"
        self.state.emit(ProbeStarted(at=lease.admitted_at, target=step.facts.id, kind=kind))
        return True

    def _withdraw(self, step: Admission) -> None:
        now = self.state.clock.now()
        settlement = step.lease.withdraw(now)
        self.state.held.pop(step.lease, None)
        self.state.apply(step.gate, settlement, now, None)

    def _free_below(self, tier: Tier, now: float) -> bool:
        """Whether a tier after this one has a candidate that would be admitted."""
        below = self.plan.tiers[self.plan.tiers.index(tier) + 1 :]
        return any(self.caller.is_free(facts, now) for lower in below for facts in lower.targets)

    def _admit_cooling(self, now: float) -> Admission | None:
        """Better a target that may have recovered than none: each cooling one is asked once, alone."""
        for tier in self.plan.tiers:
            for facts in tier.targets:
                refusal = self._refused.get(facts.id)
                if refusal is None or refusal.reason != "cooldown" or self.progress.tried(facts.id):
                    continue
                if (admission := self._ask(facts, tier.name, now, ignore_advice=True)) is not None:
                    return admission
        return None

    def _last_resort(self, now: float) -> Admission | Pause | None:
        if not self.progress.last_resort_allowed() or self._shed_without_last_resort():
            return None
        full = []
        for facts in self.plan.last_resort:
            if facts.id in self.progress.last_resort_tried or self.progress.refusal(facts, now) is not None:
                continue
            if self._ruled_out(facts, now):
                continue
            gate = self.state.fleet.gates[facts.id]
            behind = self.state.room.is_behind(self._ticket, facts.id)
            got = Refusal("bulkhead") if behind else gate.try_admit(_FREE, now, 0.0, last_resort=True)
            if isinstance(got, Lease):
                self.state.held[got] = gate
                return Admission(facts, self.last_resort_tier(facts), gate, got, last_resort=True)
            self.account.tell(facts.id, got, now)
            if self._may_queue(facts.id, gate):
                full.append(facts.id)
        return self._pause_in_queue(tuple(full), now) if full and self._waits else None

    def _may_queue(self, target: str, gate: Gate) -> bool:
        room, limit = self.state.room, gate.provider.queue
        mine = self._ticket is not None and target in self._ticket.gates
        return mine or (not room.full and (limit is None or room.queued(target) < limit))

    def last_resort_tier(self, facts: TargetFacts) -> str:
        """The tier a last-resort target is reported under: its own when it has one."""
        for tier in self.ladder.tiers:
            if any(f.id == facts.id for f in tier.targets):
                return tier.name
        return "last_resort"

    # Waiting ----------------------------------------------------------------------------------------------

    def _pause_in_asked(self, now: float) -> Pause | None:
        within = min(self.state.routing.degrade_after, _WAIT_IN_TIER) - self._waited_in_asked
        asked = {facts.id for facts in self.plan.tiers[0].targets}
        refused = {target: r for target, r in self._worth_a_wait().items() if target in asked}
        return self._pause_for(refused, now, within, in_asked_tier=True)

    def _pause_before_last_resort(self, now: float) -> Pause | None:
        if not any(f.id not in self.progress.last_resort_tried for f in self.plan.last_resort):
            return None
        if self._last_resort_at is None:
            reserve = (self.caller.deadline - now) * self.state.timeouts.margin
            self._last_resort_at = min(now + self.state.routing.last_resort_after, self.caller.deadline - reserve)
        return self._pause_for(self._worth_a_wait(), now, self._last_resort_at - now)

    def _worth_a_wait(self) -> dict[str, Refusal]:
        """Refusals to wait for while somebody else could answer: being offline ends when it ends, not each second."""
        return {target: refusal for target, refusal in self._refused.items() if refusal.reason != "offline"}

    def _pause_to_the_end(self, now: float) -> Pause | None:
        return self._pause_for(self._refused, now, self.state.routing.max_wait)

    def _pause_in_queue(self, resorts: tuple[str, ...], now: float) -> Pause | None:
        """A wait for the last resort's slot, and for whoever comes due before it is free."""
        until = min(now + self.state.routing.max_wait - self.report.waited_seconds, self.caller.deadline)
        if until <= now:
            return None
        better = self._pause_for(self._refused, now, until - now) or Pause((), None, until)
        return replace(better, gates=(*better.gates, *resorts), resorts=frozenset(resorts))

    def _pause_for(
        self, refused: dict[str, Refusal], now: float, within: float, *, in_asked_tier: bool = False
    ) -> Pause | None:
        """A wait for those of `refused` that may come due within so many seconds; None when waiting cannot help.

        The sum of a request's waits and its deadline bound it in any case.
        """
        within = min(within, self.state.routing.max_wait - self.report.waited_seconds, self.caller.deadline - now)
        until = now + within  # what is left of a sum of waits may be too little for any instant after `now`
        if until <= now or not self._waits or (self.state.room.full and self._ticket is None):
            return None
        due = {t: r for t, r in refused.items() if comes_due(r, now, within) and not self._tossed_again(t, r)}
        if not due:
            return None
        instants = [(r.retry_at, target) for target, r in due.items() if r.retry_at is not None]
        gates = []
        for target, refusal in due.items():
            if refusal.reason == "throttle":
                self._tossed_out.add(target)  # waited for once: tossing again and again would be no throttle
                until = min(until, refusal.retry_at or until)
            elif self.progress.tried(target) and self.progress.refusal(facts_of(self, target), now) is not None:
                until = min(until, refusal.retry_at or until)  # our own pause: the gate itself would say yes
            else:
                gates.append(target)
        place = min(instants)[1] if instants else None
        return Pause(tuple(gates), place if place in gates else None, until, in_asked_tier=in_asked_tier)

    def _tossed_again(self, target: str, refusal: Refusal) -> bool:
        """Whether the throttle said no to this request before; what else the target says now is waited for."""
        return refusal.reason == "throttle" and target in self._tossed_out

    async def _pause(self, pause: Pause) -> None:
        state, began = self.state, self.state.clock.now()
        self.progress.waited()
        woken: str | None = None
        if pause.gates:
            if self._ticket is None:
                rank = CRITICALITIES.index(self.request.criticality)
                self._ticket = state.room.ticket(stream=self.request.stream, rank=rank)
            costs = {target: self.caller.cost(facts_of(self, target), began) for target in pause.gates}
            woken = await state.room.wait(self._ticket, costs, pause.place, pause.until, pause.resorts)
        else:
            self._leave_room()  # it waits for no gate: who does is not to stand behind it
            await state.clock.sleep(pause.until - began)
        waited = state.clock.now() - began
        self.report.waited_seconds += waited
        if pause.in_asked_tier:
            self._waited_in_asked += waited
        state.emit(WaitFinished(at=began + waited, request_id=self.report.request_id, seconds=waited, woken_by=woken))

    def _leave_room(self) -> None:
        if self._ticket is not None:
            self.state.room.done(self._ticket)

    # Calling ----------------------------------------------------------------------------------------------

    async def _tried(self, step: Admission, perform: Perform[T]) -> T | Failure:
        """Call one target, and once more quickly where that is worth it: what it served, or the last failure."""
        while True:
            late_at = None if self.state.hedges is None else self._late_at(step)
            if late_at is None:
                served = await perform(step)
            else:
                step, served = await self._raced(step, late_at, perform)
            if not isinstance(served, Failure):
                self.account.served_by(step, self.caller.sent(step))
                return served
            now = self.state.clock.now()
            self.progress.note(step.facts, step.tier, served, now, last_resort=step.last_resort)
            if (final := self._final_rejection(step, served)) is not None:
                raise final
            again = None if step.last_resort else await self._quick_retry(step, served, now)
            if again is None:
                return served
            step = again

    async def _raced(self, step: Admission, late_at: float, perform: Perform[T]) -> tuple[Admission, T | Failure]:
        """Make the call, and a hedge's beside it when its head is late. Who answered, or failed last, and what."""
        if not isinstance(spare := cast("object", perform), Spare):
            return step, await perform(step)
        state = self.state
        race = Race(
            clock=state.clock,
            perform=perform,
            second=lambda: self._hedge(step),
            failed=self._failed_in_race,
            settle=self.caller.outrun,
            drop=spare.drop,
            keep=state.keep,
        )
        last, served = await race.run(step, late_at)
        if last.watchdog is not None and isinstance(served, Failure):
            last.watchdog.close()
        return last, served

    def _late_at(self, step: Admission) -> float | None:
        """From when on a head is late; None where nothing is hedged.

        Only streams are: how long a whole answer takes is a matter of its length. And only where no policy of recovery
        puts the answer together: it can join one stream to another, not two at once.
        """
        if step.last_resort or not step.lease.stream or self.recovery.mode != "none":
            return None
        after = hedge_after(self.state.book.snapshot(step.facts.id, self.state.clock.now()))
        return None if after is None else step.lease.admitted_at + after

    def _hedge(self, late: Admission) -> Admission | None:
        """A target of the same tier and another provider that takes the call at once, and is not coming back itself."""
        state, now = self.state, self.state.clock.now()
        paying = (state.budget, state.hedges)
        if self.progress.left < 2 or not all(purse is not None and purse.affordable for purse in paying):
            return None
        tier = next((tier for tier in self.plan.tiers if tier.name == late.tier), None)
        for facts in self._order(tier, now) if tier is not None else ():
            gate = state.fleet.gates[facts.id]
            elsewhere = facts.target.provider != late.facts.target.provider
            if not elsewhere or state.room.queued(facts.id) or not gate.steady(now, stream=True):
                continue
            if self.caller.translations.refusal(facts) is not None:
                continue
            got = gate.try_admit(self.caller.cost(facts, now), now, state.dice.roll(), stream=True)
            if state.sharing is not None:
                state.sharing.asked(gate)
            if isinstance(got, Lease):
                for purse in paying:
                    if purse is not None:
                        purse.try_spend()
                state.held[got] = gate
                return Admission(facts, late.tier, gate, got, beside=late.facts.id, watchdog=Watchdog(state.clock))
        return None

    def _failed_in_race(self, step: Admission, failure: Failure) -> bool:
        """One of two calls came to nothing; whether the other need not go on, as the request itself is refused."""
        if step.watchdog is not None:
            step.watchdog.close()
        elif self._final_rejection(step, failure) is not None:
            return True
        self.progress.note(step.facts, step.tier, failure, self.state.clock.now())
        return False

    def _final_rejection(self, step: Admission, failure: Failure) -> SmartRouterError | None:
        fallback = self.state.routing.content_filter_fallback
        return final_rejection(step.facts.id, failure, content_filter_fallback=fallback)

    async def _quick_retry(self, step: Admission, failure: Failure, now: float) -> Admission | None:
        state, gate = self.state, step.gate
        if not self.progress.may_retry_same(step.facts, failure) or gate.refusal(_FREE, now, stream=step.lease.stream):
            return None
        pause = full_jitter(state.backoff, 0, state.dice.roll())
        if now + pause >= self.caller.deadline or not state.budget.try_spend():
            return None
        self.progress.retrying(step.facts)
        await state.clock.sleep(pause)
        again = self._ask(step.facts, step.tier, state.clock.now())
        if again is None or not again.lease.probe or await self._may_probe(again):
            return again
        return None

    # Ending badly -----------------------------------------------------------------------------------------

    def _shed(self) -> None:
        state, request = self.state, self.request
        if self._waits or not state.shedding.active:
            return
        now = state.clock.now()
        state.update_shedding(now)
        if not self._sheds() or state.routing.shed_to_last_resort:
            return
        retry_after = state.fleet.least_remaining(now)
        state.emit(
            RequestShed(
                at=now,
                request_id=self.report.request_id,
                criticality=request.criticality,
                retry_after=retry_after,
            )
        )
        for tier in self.plan.tiers:
            for facts in tier.targets:
                self.account.tell(facts.id, Refusal("shed"), now)
        raise Overloaded(
            f"shedding: more than half of the providers are open and the request is {request.criticality}",
            retry_after=retry_after,
        )

    def _sheds(self) -> bool:
        return self.state.shedding.sheds(self.request.criticality)

    def _only_last_resort(self) -> bool:
        return self._sheds() and self.state.routing.shed_to_last_resort

    def _shed_without_last_resort(self) -> bool:
        return self._sheds() and not self.state.routing.shed_to_last_resort

    def _final_error(self, now: float) -> SmartRouterError:
        expired = now >= self.caller.deadline
        return final_error(self.plan, self.progress, self.report, expired=expired, retry_after=self._retry_after(now))

    def _retry_after(self, now: float) -> float | None:
        """Seconds until the first target of the plan is worth asking again; 0 when one would take a call now."""
        gates, stream = self.state.fleet.gates, self.request.stream
        able = self.caller.translations.refusal
        everyone = [facts for tier in self.plan.tiers for facts in tier.targets if able(facts) is None]
        refusals = [gates[f.id].refusal(self.caller.cost(f, now), now, stream=stream) for f in everyone]
        return least_retry_after([r or Refusal("", now) for r in refusals], now)


def facts_of(course: Course, target: str) -> TargetFacts:
    """The facts of a target of the plan."""
    everywhere = [facts for tier in course.plan.tiers for facts in tier.targets] + list(course.plan.last_resort)
    return next(facts for facts in everywhere if facts.id == target)
