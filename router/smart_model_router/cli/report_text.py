"""A route report in words a person understands."""

from __future__ import annotations

from collections.abc import Iterator

from smart_model_router.domain.report import Attempt, RouteReport


def told(report: RouteReport) -> Iterator[str]:
    """Yield the report of one request, line by line: the target that answered, those called, those refused and why."""
    yield _ending(report)
    for attempt in report.attempts:
        yield f"  asked    {_attempt(attempt)}"
    for refusal in report.refusals:
        later = "" if refusal.retry_after is None else f", free again in {refusal.retry_after:.2f} s"
        yield f"  not yet  {refusal.target}: {refusal.reason}{later}"
    for target, reason in report.ruled_out.items():
        yield f"  instead of {target}: {reason}"
    if report.waited_seconds:
        yield f"  waited {report.waited_seconds:.2f} s for a target to come due"
    for loss in report.losses:
        yield f"  lost in translation: {loss}"
    if report.usage is not None:
        cost = "unknown" if report.cost_usd is None else f"{report.cost_usd:.6f} USD"
        usage = report.usage
        cached = f" ({usage.cached_prompt_tokens} of them cached)" if usage.cached_prompt_tokens else ""
        yield f"  tokens {usage.prompt_tokens} in{cached}, {usage.completion_tokens} out; cost {cost}"


def told_briefly(report: RouteReport) -> str:
    """The same on one line: the target that answered, and the reasons why others did not."""
    why = [f"{a.target} {a.failure_class}" for a in report.attempts if a.failure_class is not None]
    why += [f"{r.target} {r.reason}" for r in report.refusals if not any(a.target == r.target for a in report.attempts)]
    marks = ", last resort" * report.last_resort + ", degraded" * report.degraded
    waited = f", {report.waited_seconds:.2f} s of it waiting" if report.waited_seconds else ""
    because = f"; {', '.join(dict.fromkeys(why))}" if why else ""
    return f"{report.target}{marks} in {report.seconds:.2f} s{waited}{because}"


def _ending(report: RouteReport) -> str:
    if report.target is None:
        return f"{report.request_id}: no target answered, after {report.seconds:.2f} s"
    tier = f"tier {report.actual_tier}"
    if report.last_resort:
        tier = f"the last resort, {report.requested_tier} was asked for"
    elif report.actual_tier != report.requested_tier:
        tier += f", {report.requested_tier} was asked for"
    marks = "".join([", degraded" * report.degraded, ", escalated" * report.escalated])
    cut = "" if report.complete else ", incomplete"
    return f"{report.request_id}: answered by {report.target} ({tier}{marks}{cut}) in {report.seconds:.2f} s"


def _attempt(attempt: Attempt) -> str:
    what = "answered" if attempt.failure_class is None else attempt.failure_class.value
    status = "" if attempt.status is None else f" (HTTP {attempt.status})"
    first = "" if attempt.ttft_seconds is None else f", first words after {attempt.ttft_seconds:.2f} s"
    why = f": {attempt.message}" if attempt.message else ""
    probe = (", as a probe" if attempt.probe else "") + (", as a hedge" if attempt.hedge else "")
    return f"{attempt.target}: {what}{status} after {attempt.seconds:.2f} s{first}{probe}{why}"
