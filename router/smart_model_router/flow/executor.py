"""One request on its way: plan, admit, call, settle, retry, fall back, wait - until a target has answered.

`RequestExecutor.answer` serves whole answers, `RequestExecutor.serve` opens streams as well; both take the same steps.
Each step is decided without an await between asking a gate and holding its lease. admission.py chooses the target,
wait_policy.py the wait, hedging.py the moment of a hedge.
"""

from __future__ import annotations

import asyncio
import math
from typing import TypeVar

from smart_model_router.core.fallback import full_jitter, least_retry_after
from smart_model_router.core.final_error import final_error
from smart_model_router.core.gate import Pacing
from smart_model_router.core.ratelimit import Cost
from smart_model_router.core.stream import effective
from smart_model_router.domain.body_encoding import LARGE_BYTES
from smart_model_router.domain.errors import Overloaded, RouterUnavailable, SmartRouterError
from smart_model_router.domain.events import RequestShed
from smart_model_router.domain.outcome import Failure, FailureClass, Refusal, Success
from smart_model_router.domain.recovery_policy import NO_RECOVERY
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.report_text import again_text
from smart_model_router.domain.request import CRITICALITIES, WAITING_CRITICALITIES, RouteRequest
from smart_model_router.flow.admission import AdmissionController
from smart_model_router.flow.attempt import AttemptRunner
from smart_model_router.flow.clock import EARLY
from smart_model_router.flow.hedging import Hedging, Perform
from smart_model_router.flow.off_loop import off_loop
from smart_model_router.flow.reference_resolution import ResolvedRequest, resolve
from smart_model_router.flow.report_builder import ReportBuilder
from smart_model_router.flow.request_context import AdmittedTarget, RequestContext
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
        self.report = RouteReport(next(state.request_ids), request.model, "", advice=state.advice)
        self._started = state.clock.now()
        self._begin(request, None)
        if not request.state_ids:
            self._tell_left_out()

    def _begin(self, request: RouteRequest, asked: ResolvedRequest | None) -> None:
        """Plan the request, which `asked` has come to, and make the parts that serve it."""
        self.request = request
        context = self.context = RequestContext.begin(self.state, request, self.report, self._started, asked)
        self.report_builder = ReportBuilder(context)
        self.attempts = AttemptRunner(context, self.state, request)
        waits, rank = request.criticality in WAITING_CRITICALITIES, CRITICALITIES.index(request.criticality)
        self._wait_policy = WaitPolicy(context, self.state.clock.now(), waits, rank)
        self._admission = AdmissionController(context, self.state, self.report_builder, self._wait_policy)
        self._turn: tuple[str, Pacing] | None = None
        """The target whose turn for the request has come, and how it is asked."""
        self.recovery = effective(request, context.route.recovery) if request.stream else NO_RECOVERY
        self.delayed = self.recovery.mode in ("buffered", "hold_back")
        """True when a policy of recovery delays the beginning of the stream."""

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
            self.report_builder.finish("cancelled")
            raise
        self._tell_left_out()

    def _tell_left_out(self) -> None:
        for target, refusal in self.context.plan.left_out:
            self.report_builder.tell(target, refusal, self._started)

    async def answer(self) -> Success:
        """The whole answer."""
        await self.prepare()
        success = await self.serve(self.attempts.whole)
        self.report.complete = not success.mended
        if success.mended:
            self.report.notes.append(NOT_UTF8.message)
        self.report_builder.finish_served(lambda: success.raw.decode("utf-8", "replace"))
        return success

    # The walk ---------------------------------------------------------------------------------------------

    async def serve(self, perform: Perform[T]) -> T:
        """Try targets until `perform` returns something other than a Failure, else raise a SmartRouterError."""
        self.state.budget.deposit()
        if self.state.hedges is not None:
            self.state.hedges.deposit()
        try:
            if self.request.prompt_bytes > LARGE_BYTES:
                await off_loop(self._admission.prepare, self.request.prompt_bytes)
            return await self._walk(perform)
        except SmartRouterError as error:
            self._told(error)
            raise
        except asyncio.CancelledError:
            self.report_builder.finish("cancelled")
            raise

    def _told(self, error: SmartRouterError) -> None:
        error.report = self.report
        self.report_builder.finish(
            "rejected_local" if isinstance(error, Overloaded) else "failed", type(error).__name__
        )

    async def resume(self, broken: AdmittedTarget, failure: Failure, perform: Perform[T]) -> T:
        """Walk on after the stream of `broken`, once delivered, came to `failure`; its report stays open.

        Another target is asked, or, where none is left, the same one: at once out of the retry budget, then after its
        back-off. Raises SmartRouterError when none can.
        """
        now = self.state.clock.now()
        self._wait_policy.begin_anew()
        self.context.history.resume()
        self.context.note(broken, failure)
        again = None
        if not broken.last_resort and not self._admission.somebody_else(broken.facts, now):
            again = await self._quick_retry(broken, failure, now)
        if again is not None:
            served = await self._tried(again, perform)
            if not isinstance(served, Failure):
                return served
        return await self._walk(perform)

    async def _walk(self, perform: Perform[T]) -> T:
        coordinator = self.state.coordinator
        if coordinator is not None and not coordinator.touch():
            await coordinator.first_look()
        try:
            while True:
                step = self._next_step()
                if isinstance(step, PlannedWait):
                    self._admission.refused.clear()  # a thousand that wait for a thousand targets would hold a million
                    woken = await self._wait_policy.take(step)
                    self._turn = None if woken is None or woken in step.resorts else (woken, step.pacing)
                    continue
                if (step.lease.probe or self.state.coordinator is not None) and not await self._admission.stands(step):
                    continue
                if self._wait_policy.waiter is not None:
                    self._wait_policy.leave_queue()
                served = await self._tried(step, perform)
                if not isinstance(served, Failure):
                    return served
        finally:
            if self._wait_policy.waiter is not None:
                self._wait_policy.leave_queue()

    def _next_step(self) -> AdmittedTarget | PlannedWait:
        """Routing.md section 8, "Order": each line is one of its steps."""
        now, admission, wait_policy = self.state.clock.now(), self._admission, self._wait_policy
        admission.refused.clear()
        if self.state.closed:
            raise RouterUnavailable("the router was closed")
        if self._expired(now):
            raise self._final_error(now)
        if self._is_shed(now):
            return self._for_the_shed(now)
        if (step := self._real_target(now)) is not None:
            return step
        if (step := self._last_resort(now)) is not None:
            return step
        if self.context.history.exhausted:
            raise self._final_error(now)
        if (pause := wait_policy.to_the_end(admission.refused, now, self._pacing)) is not None:
            return pause
        raise self._final_error(now)

    def _real_target(self, now: float) -> AdmittedTarget | PlannedWait | None:
        """The one whose turn has come, else the best that is free, else the best that is asked all the same."""
        if self.context.history.exhausted or self._only_last_resort():
            return None
        admission, wait_policy = self._admission, self._wait_policy
        turn, self._turn = self._turn, None
        step: AdmittedTarget | PlannedWait | None
        if turn is not None and (step := admission.in_turn(*turn, now)) is not None:
            return step
        for number, tier in enumerate(self.context.plan.tiers):
            if (step := admission.in_tier(tier, now)) is not None:
                return step
            if number == 0 and (step := wait_policy.in_asked_tier(admission.refused, now)) is not None:
                return step
        return admission.anyway(now, self._pacing) or wait_policy.before_last_resort(admission.refused, now)

    @property
    def _pacing(self) -> Pacing:
        """The pacing of calls when no target is free: OPEN ones by back-off only where no last resort can answer."""
        return "on" if self.context.last_resort_left and not self._shed_without_last_resort() else "eager"

    def _last_resort(self, now: float) -> AdmittedTarget | PlannedWait | None:
        if not self.context.history.last_resort_allowed() or self._shed_without_last_resort():
            return None
        found = self._admission.last_resort(now)
        return (
            found
            if isinstance(found, AdmittedTarget)
            else self._wait_policy.in_queue(found, self._admission.refused, now)
        )

    async def _tried(self, admitted: AdmittedTarget, perform: Perform[T]) -> T | Failure:
        """Call one target, and once more quickly where that is worth it: what it served, or the last failure."""
        while True:
            late_at = self.context.late_at(admitted, delayed=self.delayed)
            if late_at is None:
                served = await perform(admitted)
            else:
                hedging = Hedging(self.context, self.attempts, self._admission)
                admitted, served = await hedging.call(admitted, late_at, perform)
            if not isinstance(served, Failure):
                self.report_builder.served_by(admitted, self.context.translations.sent(admitted.facts))
                return served
            now = self.state.clock.now()
            self.context.note(admitted, served)
            if (final := self.attempts.final_rejection(admitted, served)) is not None:
                raise final
            if admitted.last_resort:
                return served
            if self._prefill_refused(admitted, served):
                again = self._admission.ask(admitted.facts, admitted.tier, now)
            else:
                again = await self._quick_retry(admitted, served, now)
            if again is None:
                return served
            admitted = again

    def _prefill_refused(self, admitted: AdmittedTarget, failure: Failure) -> bool:
        """Return whether the target refused the way in which it was asked to continue, and is asked in words next."""
        if failure.failure_class is not FailureClass.REJECTED_BY_FALLBACK or failure.status not in _REFUSED:
            return False
        if not self.context.translations.prefill_refused(admitted.facts):
            return False
        self.context.history.forgive_rejection()
        return True

    async def _quick_retry(self, admitted: AdmittedTarget, failure: Failure, now: float) -> AdmittedTarget | None:
        state, gate = self.state, admitted.gate
        if not self.context.history.may_retry_same(admitted.facts, failure) or gate.refusal(
            _FREE, now, stream=admitted.lease.stream
        ):
            return None
        pause = full_jitter(state.backoff, 0, state.dice.roll())
        if now + pause >= self.context.deadline:
            return None
        paid = self.context.another_is_free(admitted.facts, now)
        if paid and not state.budget.try_spend():
            return None
        self.context.history.retrying(admitted.facts)
        await self.context.watchdog.sleep(now + pause)
        if state.closed:
            return None
        now = state.clock.now()
        if not paid and self.context.another_is_free(admitted.facts, now) and not state.budget.try_spend():
            return None  # meanwhile another one is free
        again = self._admission.ask(admitted.facts, admitted.tier, now)
        if again is None or await self._admission.stands(again):
            return again
        return None

    # Ending badly -----------------------------------------------------------------------------------------

    def _expired(self, now: float) -> bool:
        """Return whether the deadline is there, or so near that a timer which was to fire at it has fired."""
        return now >= self.context.deadline - EARLY

    def _is_shed(self, now: float) -> bool:
        """Return whether the request is turned away now, and the last resort is not for such requests."""
        state = self.state
        if self._wait_policy.waits or not state.shedding.active:
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
            if (admitted := self._admission.finding_out(now)) is not None:
                return admitted
            due = self._admission.due_to_find_out(now)
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
        for tier in self.context.plan.tiers:
            for facts in tier.targets:
                self.report_builder.tell(facts.id, Refusal("shed"), now)
        raise Overloaded(
            f"shedding: more than half of the providers are open and the request is {request.criticality}"
            f"{again_text(retry_after)}",
            retry_after=retry_after,
        )

    def _another_serves(self, now: float) -> bool:
        """Return whether a target of the plan is free and has just answered a request."""
        context, snapshot = self.context, self.state.book.snapshot
        return any(
            (snapshot(facts.id, now).last_success_at or -math.inf) >= now - _JUST and context.is_free(facts, now)
            for tier in self.context.plan.tiers
            for facts in tier.targets
        )

    def _sheds(self) -> bool:
        return self.state.shedding.active and self.state.shedding.sheds(self.request.criticality)

    def _only_last_resort(self) -> bool:
        return self._sheds() and self.state.routing.shed_to_last_resort

    def _shed_without_last_resort(self) -> bool:
        return self._sheds() and not self.state.routing.shed_to_last_resort

    def _final_error(self, now: float) -> SmartRouterError:
        late, retry_after = now - self._started if self._expired(now) else None, self._retry_after(now)
        return final_error(
            self.context.plan,
            self.context.history,
            self.report,
            late_after=late,
            retry_after=retry_after,
            operation=self.request.operation,
        )

    def _retry_after(self, now: float) -> float | None:
        """Seconds, above 0, until the first target of the plan is worth asking again; None when none ever is."""
        gates, stream, pacing = self.state.fleet.gates, self.request.stream, self._pacing
        able = self.context.translations.refusal
        everyone = [facts for tier in self.context.plan.tiers for facts in tier.targets if able(facts) is None]
        costs = ((gates[facts.id], self.context.cost(facts, now)) for facts in everyone)
        return least_retry_after((gate.refusal(cost, now, stream=stream, pacing=pacing) for gate, cost in costs), now)
