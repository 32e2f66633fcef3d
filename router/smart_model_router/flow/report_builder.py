"""The report of one request: refusals told once, the target that served, what ruled out better ones, one event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial

from smart_model_router.domain.events import NAME_LIMIT, ContentSeen, RequestFinished, RequestOutcome, TargetRefused
from smart_model_router.domain.forwarded_headers import lost_at
from smart_model_router.domain.outcome import Refusal
from smart_model_router.domain.report import ReportedRefusal
from smart_model_router.flow.request_context import AdmittedTarget, RequestContext
from smart_model_router.flow.request_translation import TranslatedRequest


@dataclass(slots=True)
class ReportBuilder:
    """Write the report of one request and tell the sinks."""

    context: RequestContext
    _told: defaultdict[str, set[str]] = field(default_factory=partial(defaultdict, set), init=False)
    """The targets whose refusals were told, by reason."""
    _closed: bool = field(default=False, init=False)

    def tell(self, target: str, refusal: Refusal, now: float) -> None:
        """Report a refusal once per target and reason: waiting asks again and again."""
        self.tell_all((target,), refusal, now)

    def tell_all(self, targets: Iterable[str], refusal: Refusal, now: float) -> None:
        """Report one refusal of several targets, as `tell` does."""
        reason, told = refusal.reason, self._told[refusal.reason]
        retry_after = None if refusal.retry_at is None else max(0.0, refusal.retry_at - now)
        request_id, untold = self.context.report.request_id, [target for target in targets if target not in told]
        told.update(untold)
        if retry_after is None:
            self.context.report.refusals += [_without_time(target, reason) for target in untold]
        else:
            free_at = self.context.state.wall() + retry_after
            self.context.report.refusals += [ReportedRefusal(target, reason, retry_after, free_at) for target in untold]
        self.context.state.emit_all(
            [
                TargetRefused(at=now, request_id=request_id, target=target, reason=reason, retry_after=retry_after)
                for target in untold
            ]
        )

    def served_by(self, admitted: AdmittedTarget, sent: TranslatedRequest) -> None:
        """Report the target that answered, the losses of its call, and what ruled out the better targets."""
        report, provider = self.context.report, admitted.facts.target.provider
        report.target, report.actual_tier = admitted.facts.id, admitted.tier
        losses, dropped = sent.losses, self.context.state.dropped.get(provider)
        if dropped:
            lost = sorted(dropped & sent.request.body.keys())
            losses = (*losses, *(f"{field}: dropped, {provider} does not take it" for field in lost))
        if self.context.request.headers:
            to, asked = self.context.state.destination(admitted.facts.target), self.context.request.dialect
            losses = (*losses, *lost_at(to, asked, sent.request.dialect, self.context.request.headers))
        if losses:
            report.losses += [loss for loss in losses if loss not in report.losses]  # two may have served one stream
        report.last_resort = admitted.last_resort
        report.escalated = admitted.tier in self.context.plan.escalations
        report.degraded = admitted.last_resort or (admitted.tier != self.context.plan.asked and not report.escalated)
        if admitted.facts.id == self.context.plan.first:
            report.fallback = False
            return
        report.fallback = self.context.plan.is_fallback(admitted.facts.id, self.context.route.strategy)
        told = {refusal.target: refusal.reason for refusal in report.refusals}
        told |= {a.target: a.failure_class.value for a in report.attempts if a.failure_class is not None}
        report.choice = 1
        for tier in self.context.plan.tiers:
            for facts in tier.targets:
                if facts.id == admitted.facts.id:
                    return
                report.choice += 1
                if (reason := told.get(facts.id)) is not None:
                    report.ruled_out[facts.id] = reason

    def finish_served(self, answer: Callable[[], str]) -> None:
        """Finish the report of an answered request; `answer` is called only where content is captured."""
        report = self.context.report
        if report.degraded:
            self.finish("degraded", answer=answer)
        elif report.target == self.context.plan.first and (len(report.attempts) == 1 or self._only_hedged):
            self.finish("ok", answer=answer)
        else:
            self.finish("fallback", answer=answer)

    @property
    def _only_hedged(self) -> bool:
        """True when all calls but one were hedges."""
        return sum(not attempt.hedge for attempt in self.context.report.attempts) <= 1

    def finish(self, outcome: RequestOutcome, error: str = "", answer: Callable[[], str] = str) -> None:
        """Finish the report, once. `answer` returns the text that arrived."""
        if self._closed:
            return
        self._closed = True
        context, state = self.context, self.context.state
        now, report = state.clock.now(), context.report
        report.seconds = now - context.started
        state.log.finished(report, outcome, error)
        content = state.content
        if content is not None and not content.over:
            state.emit(
                ContentSeen(
                    at=now,
                    request_id=report.request_id,
                    mode=content.mode,
                    prompt=content.told(context.request.payload(context.request.model).decode("utf-8", "replace")),
                    answer=content.told(answer()),
                )
            )
        state.emit(
            RequestFinished(
                at=now,
                request_id=report.request_id,
                dialect=context.request.dialect,
                model=report.model[:NAME_LIMIT],
                outcome=outcome,
                target=report.target,
                requested_tier=report.requested_tier,
                actual_tier=report.actual_tier,
                degraded=report.degraded,
                last_resort=report.last_resort,
                attempts=len(report.attempts),
                refusals=len(report.refusals),
                seconds=report.seconds,
                waited_seconds=report.waited_seconds,
                ttft_seconds=report.ttft_seconds,
                error=error,
                configured_model=context.route.model,
                complete=report.complete,
                notes=tuple(report.notes),
            )
        )


@lru_cache(maxsize=16_384)
def _without_time(target: str, reason: str) -> ReportedRefusal:
    """One object for all reports: else a thousand requests that wait for a thousand full targets hold a million."""
    return ReportedRefusal(target, reason)
