"""One request on its way: plan, admit, call, settle, retry, fall back, wait - until somebody answered.

`RequestExecutor.answer` serves whole answers, `RequestExecutor.serve` opens streams as well; both take the same steps.
Each step is decided without an await between asking a gate and holding its lease. admission.py chooses the target,
wait_policy.py the wait, hedging.py the moment of a hedge.
"""

from __future__ import annotations

import asyncio
import math
from typing import TypeVar

from smart_model_router.core.budget import full_jitter
from smart_model_router.core.fallback import AttemptHistory, least_retry_after
from smart_model_router.core.final_error import final_error
from smart_model_router.core.gate import Pacing
from smart_model_router.core.ratelimit import Cost
from smart_model_router.core.recoverable import effective
from smart_model_router.domain.errors import Overloaded, RouterUnavailable, SmartRouterError
from smart_model_router.domain.events import RequestShed
from smart_model_router.domain.long_json import LARGE_BYTES
from smart_model_router.domain.outcome import Failure, FailureClass, Refusal, Success
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import RouteRequest
from smart_model_router.flow.admission import AdmissionController
from smart_model_router.flow.attempt import AdmittedTarget, AttemptRunner
from smart_model_router.flow.hedge_race import Perform
from smart_model_router.flow.hedging import Hedging
from smart_model_router.flow.off_loop import off_loop
from smart_model_router.flow.reference_resolution import ResolvedRequest, resolve
from smart_model_router.flow.report_builder import ReportBuilder
from smart_model_router.flow.state import RouterState
from smart_model_router.flow.wait_policy import PlannedWait, WaitPolicy
from smart_model_router.wires.dialects import NOT_UTF8

T = TypeVar("T")
_FREE = Cost(0, 0)
_REFUSED = (400, 422)
"""Statuses of a target that takes no prefill."""
_JUST = 5.0
"""Seconds. A target that answered no longer ago serves requests; it is the longest pause between eager probes."""


class RequestExecutor:
    """One request's walk. `report` is live all the way."""

    def __init__(self, state: RouterState, request: RouteRequest) -> None:
        self.state = state
        self.report = RouteReport(state.next_request_id(), request.model, "")
        self._started = state.clock.now()
        self._begin(request, None)
        if not request.state_ids:
            self._tell_left_out()

    def _begin(self, request: RouteRequest, asked: ResolvedRequest | None) -> None:
        """Plan the request, which `asked` has come to, and make the parts of its walk."""
        state, started = self.state, self._started
        self.request = request
        total = state.timeouts.total
        deadline = started + (min(request.timeout, total) if request.timeout is not None else total)
        ladder = self._ladder = state.ladder(request.model)  # held: the targets of a wildcard exist as long as it does
        self._plan = state.plan(request, ladder)
        self.report.requested_tier = self._plan.asked
        self.recovery = effective(request, ladder.recovery)
        self._progress = AttemptHistory(state.routing, self._plan)
        self.account = ReportBuilder(state, request, ladder, self._plan, self.report, started)
        self.caller = AttemptRunner(
            state=state,
            request=request,
            plan=self._plan,
            progress=self._progress,
            report=self.report,
            deadline=deadline,
            asked=asked,
        )
        self._pauses = WaitPolicy(self.caller)
        self._admitter = AdmissionController(self.caller, self.account, self._pauses, ladder)
        self._turn: tuple[str, Pacing] | None = None
        """The target whose turn for the request has come, and how it is asked."""
        self._hedging = Hedging(self.caller, self._admitter, self.recovery, state.budget, state.hedges)

    async def prepare(self) -> None:
        """Find what the request refers to, and plan anew with that; to be awaited before `serve`.

        Raises NotFound; RouterUnavailable while that is out of reach.
        """
        if self.request.dialect == "responses" and self.state.kept is not None:
            await self.state.kept.ready()
        if not self.request.state_ids:
            return
        try:
            asked = await resolve(self.state, self.request)
            self._begin(asked.request, asked)
        except SmartRouterError as error:
            self._told(error)
            raise
        except asyncio.CancelledError:
            self.account.finish("cancelled")
            raise
        self._tell_left_out()

    def _tell_left_out(self) -> None:
        for target, refusal in self._plan.left_out:
            self.account.tell(target, refusal, self._started)

    async def answer(self) -> Success:
        """The whole answer."""
        await self.prepare()
        try:
            success = await self.serve(self.caller.whole)
        finally:
            self.caller.watchdog.close()
        self.report.complete = not success.mended
        if success.mended:
            self.report.notes.append(NOT_UTF8.message)
        self.account.finish_served(lambda: success.raw.decode("utf-8", "replace"))
        return success

    # The walk ---------------------------------------------------------------------------------------------

    async def serve(self, perform: Perform[T]) -> T:
        """Walk until `perform` brings something that is not a Failure. Raises SmartRouterError when nobody can."""
        self.state.budget.deposit()
        if self.state.hedges is not None:
            self.state.hedges.deposit()
        try:
            if self.request.prompt_bytes > LARGE_BYTES:
                await off_loop(self._admitter.prepare, self.request.prompt_bytes)
            return await self._walk(perform)
        except SmartRouterError as error:
            self._told(error)
            raise
        except asyncio.CancelledError:
            self.account.finish("cancelled")
            raise

    def _told(self, error: SmartRouterError) -> None:
        error.report = self.report
        self.account.finish("rejected_local" if isinstance(error, Overloaded) else "failed", type(error).__name__)

    async def resume(self, broken: AdmittedTarget, failure: Failure, perform: Perform[T]) -> T:
        """Walk on after the stream of `broken`, once delivered, came to `failure`; its account stays open.

        Another target is asked, or, where none is left, the same one: at once out of the retry budget, then after its
        back-off. Raises SmartRouterError when none can.
        """
        now = self.state.clock.now()
        self._pauses.begin_anew()
        self._progress.resume()
        self.caller.note(broken, failure, delivered=True)
        again = None
        if not broken.last_resort and not self._admitter.somebody_else(broken.facts, now):
            again = await self._quick_retry(broken, failure, now)
        if again is not None:
            served = await self._tried(again, perform)
            if not isinstance(served, Failure):
                return served
        return await self._walk(perform)

    async def _walk(self, perform: Perform[T]) -> T:
        sharing = self.state.sharing
        if sharing is not None and not sharing.touch():
            await sharing.first_look()
        try:
            while True:
                step = self._next_step()
                if isinstance(step, PlannedWait):
                    woken = await self._pauses.take(step)
                    self._turn = None if woken is None or woken in step.resorts else (woken, step.pacing)
                    continue
                if not self._admitter.stands_at_once(step) and not await self._admitter.stands(step):
                    continue
                self._pauses.leave_room()
                served = await self._tried(step, perform)
                if not isinstance(served, Failure):
                    return served
        finally:
            self._pauses.leave_room()

    def _next_step(self) -> AdmittedTarget | PlannedWait:
        """Routing.md section 8, "Order": each line is one of its steps."""
        now, admitter, pauses = self.state.clock.now(), self._admitter, self._pauses
        admitter.begin()
        if self.state.closed:
            raise RouterUnavailable("the router was closed")
        if self.caller.expired(now):
            raise self._final_error(now)
        if self._is_shed(now):
            return self._for_the_shed(now)
        if (step := self._real_target(now)) is not None:
            return step
        if (step := self._last_resort(now)) is not None:
            return step
        if self._progress.exhausted:
            raise self._final_error(now)
        if (pause := pauses.to_the_end(admitter.refused, now, self._pacing)) is not None:
            return pause
        raise self._final_error(now)

    def _real_target(self, now: float) -> AdmittedTarget | PlannedWait | None:
        """The one whose turn has come, else the best that is free, else the best that is asked all the same."""
        if self._progress.exhausted or self._only_last_resort():
            return None
        admitter, pauses = self._admitter, self._pauses
        turn, self._turn = self._turn, None
        step: AdmittedTarget | PlannedWait | None
        if turn is not None and (step := admitter.in_turn(*turn, now)) is not None:
            return step
        for number, tier in enumerate(self._plan.tiers):
            if (step := admitter.in_tier(tier, now)) is not None:
                return step
            if number == 0 and (step := pauses.in_asked_tier(admitter.refused, now)) is not None:
                return step
        return admitter.anyway(now, self._pacing) or pauses.before_last_resort(admitter.refused, now)

    @property
    def _pacing(self) -> Pacing:
        """How targets are asked when none is free: OPEN ones by back-off only where no last resort can answer."""
        return "on" if self.caller.last_resort_left and not self._shed_without_last_resort() else "eager"

    def _last_resort(self, now: float) -> AdmittedTarget | PlannedWait | None:
        if not self._progress.last_resort_allowed() or self._shed_without_last_resort():
            return None
        found = self._admitter.last_resort(now)
        return found if isinstance(found, AdmittedTarget) else self._pauses.in_queue(found, self._admitter.refused, now)

    async def _tried(self, step: AdmittedTarget, perform: Perform[T]) -> T | Failure:
        """Call one target, and once more quickly where that is worth it: what it served, or the last failure."""
        while True:
            late_at = self._hedging.late_at(step)
            if late_at is None:
                served = await perform(step)
            else:
                step, served = await self._hedging.call(step, late_at, perform)
            if not isinstance(served, Failure):
                self.account.served_by(step, self.caller.sent(step))
                return served
            now = self.state.clock.now()
            self.caller.note(step, served)
            if (final := self.caller.final_rejection(step, served)) is not None:
                raise final
            if step.last_resort:
                return served
            if self._prefill_refused(step, served):
                again = self._admitter.ask(step.facts, step.tier, now)
            else:
                again = await self._quick_retry(step, served, now)
            if again is None:
                return served
            step = again

    def _prefill_refused(self, step: AdmittedTarget, failure: Failure) -> bool:
        """Return whether the target refused the way in which it was asked to continue, and is asked in words next."""
        if failure.failure_class is not FailureClass.REJECTED_BY_FALLBACK or failure.status not in _REFUSED:
            return False
        if not self.caller.translations.prefill_refused(step.facts):
            return False
        self._progress.forgive_rejection()
        return True

    async def _quick_retry(self, step: AdmittedTarget, failure: Failure, now: float) -> AdmittedTarget | None:
        state, gate = self.state, step.gate
        if not self._progress.may_retry_same(step.facts, failure) or gate.refusal(_FREE, now, stream=step.lease.stream):
            return None
        pause = full_jitter(state.backoff, 0, state.dice.roll())
        if now + pause >= self.caller.deadline:
            return None
        paid = self.caller.another_is_free(step.facts, now)
        if paid and not state.budget.try_spend():
            return None
        self._progress.retrying(step.facts)
        await self.caller.watchdog.sleep(now + pause)
        if state.closed:
            return None
        now = state.clock.now()
        if not paid and self.caller.another_is_free(step.facts, now) and not state.budget.try_spend():
            return None  # meanwhile another one is free
        again = self._admitter.ask(step.facts, step.tier, now)
        if again is None or self._admitter.stands_at_once(again) or await self._admitter.stands(again):
            return again
        return None

    # Ending badly -----------------------------------------------------------------------------------------

    def _is_shed(self, now: float) -> bool:
        """Return whether the request is turned away now, and the last resort is not for such requests."""
        state = self.state
        if self._pauses.waits or not state.shedding.active:
            return False
        state.update_shedding(now)
        return self._shed_without_last_resort()

    def _for_the_shed(self, now: float) -> AdmittedTarget:
        """Admit a request that is shed where it finds out whether a target is back. Raise Overloaded elsewhere.

        A shed request counts as waiting (D4): with no other traffic, no probe would be sent before the open time is
        over, and while the router is offline none at all. Where a target serves other requests, open times hold (D7).
        """
        state, request = self.state, self.request
        due = None
        if not self._another_serves(now):
            if (step := self._admitter.finding_out(now)) is not None:
                return step
            due = self._admitter.due_to_find_out(now)
        if due is None:
            due = state.fleet.least_remaining(now) or 0.0
        retry_after = due + state.shedding.calm
        state.emit(
            RequestShed(
                at=now,
                request_id=self.report.request_id,
                criticality=request.criticality,
                retry_after=retry_after,
            )
        )
        for tier in self._plan.tiers:
            for facts in tier.targets:
                self.account.tell(facts.id, Refusal("shed"), now)
        raise Overloaded(
            f"shedding: more than half of the providers are open and the request is {request.criticality}",
            retry_after=retry_after,
        )

    def _another_serves(self, now: float) -> bool:
        """Return whether a target of the plan is free and has just answered a request."""
        caller, snapshot = self.caller, self.state.book.snapshot
        return any(
            (snapshot(facts.id, now).last_success_at or -math.inf) >= now - _JUST and caller.is_free(facts, now)
            for tier in self._plan.tiers
            for facts in tier.targets
        )

    def _sheds(self) -> bool:
        return self.state.shedding.sheds(self.request.criticality)

    def _only_last_resort(self) -> bool:
        return self._sheds() and self.state.routing.shed_to_last_resort

    def _shed_without_last_resort(self) -> bool:
        return self._sheds() and not self.state.routing.shed_to_last_resort

    def _final_error(self, now: float) -> SmartRouterError:
        expired, retry_after = self.caller.expired(now), self._retry_after(now)
        return final_error(
            self._plan,
            self._progress,
            self.report,
            expired=expired,
            retry_after=retry_after,
            operation=self.request.operation,
        )

    def _retry_after(self, now: float) -> float | None:
        """Seconds, above 0, until the first target of the plan is worth asking again; None when none ever is."""
        gates, stream, pacing = self.state.fleet.gates, self.request.stream, self._pacing
        able = self.caller.translations.refusal
        everyone = [facts for tier in self._plan.tiers for facts in tier.targets if able(facts) is None]
        costs = ((gates[facts.id], self.caller.cost(facts, now)) for facts in everyone)
        return least_retry_after((gate.refusal(cost, now, stream=stream, pacing=pacing) for gate, cost in costs), now)
