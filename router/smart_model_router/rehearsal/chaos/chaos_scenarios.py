"""The catalogue. Add a scenario: a function that takes a context, and a row; its docstring is what it is about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from smart_model_router.config.known_models import KnownTarget
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.chaos.scenario_context import ClientCall, Ending, ScenarioContext, Verdict
from smart_model_router_providers.catalog import failure_domain
from smart_model_router_providers.fault import Fault, RecordedRequest

# A provider that says no: once or for ever, with a reason or without.
_RETRY_AFTER = 2.0
"""Seconds. A provider's word is never shortened."""


async def rate_limited_once(context: ScenarioContext) -> None:
    """The first choice says 429 once, with Retry-After: it rests exactly so long and is asked again."""
    await context.in_turn(2)
    context.strike(Fault.status(429, headers={"retry-after": f"{_RETRY_AFTER:g}"}, times=1))
    await context.ask()
    await context.load(_RETRY_AFTER + context.slack + 1.0, per_second=5)
    refused = next((call for call in context.server.requests if call.status == 429), None)
    if refused is None:
        return  # the card says that the fault was not met
    again = [call.at for call in context.server.requests if call.at > refused.at and _same(call, refused)]
    gaps = [at - refused.at for at in again]
    waited = f"asked again after {gaps[0]:.2f} s" if gaps else "never asked again"
    kept = bool(gaps) and _RETRY_AFTER - 0.05 <= gaps[0] <= _RETRY_AFTER + context.slack
    context.find(f"its Retry-After of {_RETRY_AFTER:g} s is kept exactly", kept, waited, Verdict.FAIL)
    context.find_unblamed(FailureClass.RATE_LIMITED)


def _same(call: RecordedRequest, refused: RecordedRequest) -> bool:
    """True for a call to the refused model with the refused key."""
    return (call.key, call.model) == (refused.key, refused.model)


async def rate_limited_for_ever(context: ScenarioContext) -> None:
    """The first choice says 429 to everything, a second's rest each time: the others serve, no breaker opens."""
    context.strike(Fault.status(429, headers={"retry-after": "1"}))
    began = time.monotonic()
    await context.in_turn(20, pause=0.15)
    if context.has_others:
        calls, keys = context.server.calls(), len(context.targets)
        bound = round((2 + time.monotonic() - began) * keys)
        context.find("it is asked once a second", calls <= bound, f"{calls} calls, at most {bound}")
    context.find_unblamed(FailureClass.RATE_LIMITED)


async def one_500(context: ScenarioContext) -> None:
    """The first choice fails once with 500: no caller notices, and it is not blamed for it."""
    context.strike(Fault.status(500, times=1))
    await context.in_turn(16)
    context.find_unblamed(FailureClass.SERVER_ERROR)


async def unavailable_for_ever(context: ScenarioContext) -> None:
    """The first choice says 503 to everything: the others serve, and it is left alone."""
    context.strike(Fault.status(503))
    began = time.monotonic()
    await context.in_turn(20)
    context.find_spared(began)


# A provider that does not answer: the connection dies, or lives and says nothing.


async def reset_before_headers(context: ScenarioContext) -> None:
    """The first choice resets every connection before its headers: the others serve, and it is left alone."""
    context.strike(Fault.reset())
    began = time.monotonic()
    await context.in_turn(20)
    context.find_spared(began)


async def never_answered(context: ScenarioContext) -> None:
    """The first choice takes every question and never answers: within the timeout another does."""
    await _silent(context, Fault.hang())


async def headers_then_nothing(context: ScenarioContext) -> None:
    """The first choice sends good headers and then nothing: within the timeout another answers."""
    await _silent(context, Fault.headers_only())


async def _silent(context: ScenarioContext, fault: Fault) -> None:
    context.strike(fault)
    began = time.monotonic()
    timeouts = context.rules.timeouts
    *streamed, whole = await asyncio.gather(context.ask(stream=True), context.ask(stream=True), context.ask())
    providers = context.fleet.config.providers
    mentions = (mention for tier in context.fleet.model.tiers for mention in tier.targets)
    thinks = any(KnownTarget(mention, providers[mention.provider].kind).reasoning.value for mention in mentions)
    head = timeouts.first_content_reasoning if thinks else timeouts.first_content
    _find_left(context, "stream", max(asked.seconds for asked in streamed), head)
    # A request that no other target can answer waits as long as it may take.
    answer = timeouts.attempt_reasoning if thinks else timeouts.attempt
    _find_left(context, "answer", whole.seconds, answer if context.has_others else timeouts.total)
    if context.has_others:
        await context.in_turn(10)
    context.find_spared(began)


def _find_left(context: ScenarioContext, what: str, seconds: float, timeout: float) -> None:
    bound = timeout * len(context.targets) + context.slack
    context.find(f"a silent {what} is left in time", seconds <= bound, f"{seconds:.2f} s, at most {bound:.2f} s")


# A provider whose answers break: cut, stalled, spoilt, without an end.


async def cut_mid_stream(context: ScenarioContext) -> None:
    """The first choice cuts every stream after three words: the caller is told, and it is avoided."""
    context.strike(Fault.cut(after=3))
    began = time.monotonic()
    answers = await context.in_turn(12, stream=True)
    context.find_spared(began)
    _find_avoided(context, answers)


async def stall_mid_stream(context: ScenarioContext) -> None:
    """The first choice falls silent after three words: the caller is told in time, and it is avoided."""
    context.strike(Fault.stall(after=3))
    first = await context.at_once(3, stream=True)
    bound = context.rules.timeouts.idle + context.rules.timeouts.first_content + context.slack
    slowest = max(asked.seconds for asked in first)
    context.find("a stalled stream is ended in time", slowest <= bound, f"{slowest:.2f} s, at most {bound:.2f} s")
    _find_avoided(context, await context.in_turn(6, stream=True))


async def one_bad_event(context: ScenarioContext) -> None:
    """One event of a stream is not JSON: it may have carried text, so it is counted, and the stream is cut."""
    context.strike(Fault.bad_json(after=2, times=1))
    answers = await context.in_turn(16, stream=True)
    counted = sum(asked.report.malformed_events for asked in answers if asked.report is not None)
    context.find("the spoilt event is counted", counted == 1, f"{counted} counted")


async def no_terminator(context: ScenarioContext) -> None:
    """The first choice ends every stream without a finish reason: none of them passes for a whole answer."""
    context.strike(Fault.no_terminator())
    began = time.monotonic()
    answers = await context.in_turn(12, stream=True)
    context.find_spared(began)
    _find_avoided(context, answers)


def _find_avoided(context: ScenarioContext, answers: list[ClientCall]) -> None:
    """The later half of the streams arrives whole."""
    later = answers[len(answers) // 2 :]
    whole = sum(asked.ending is Ending.WHOLE for asked in later)
    measured = f"{whole} of the later {len(later)}"
    context.find("soon streams are whole again", whole == len(later), measured, Verdict.SAFE)


# A question that a provider refuses: the error names the fault, and the health of no target changes.
_TOO_LONG = "This model's maximum context length is 8192 tokens. Please reduce the length of the messages."
_FILTERED = "The response was filtered due to the prompt triggering the content management policy."
_NO_PREFILL = "This model does not support assistant message prefill: the conversation must end with a user message."


async def context_too_long(context: ScenarioContext) -> None:
    """The first choice says the prompt is too long: a larger model answers, or the caller is told so."""
    context.strike(_rejection(_TOO_LONG, "context_length_exceeded"))
    await _told(context, FailureClass.CONTEXT_LENGTH, "ContextTooLong")


async def content_filter(context: ScenarioContext) -> None:
    """The first choice's content filter strikes: the caller is told; no other target is asked unless allowed."""
    context.strike(_rejection(_FILTERED, "content_filter"))
    await _told(context, FailureClass.CONTENT_FILTERED, "ContentBlocked")
    if not context.fleet.config.routing.content_filter_fallback:
        tried = [asked.report.attempts for asked in context.asked if asked.report is not None]
        met = [
            attempts for attempts in tried if any(a.failure_class is FailureClass.CONTENT_FILTERED for a in attempts)
        ]
        most = max(map(len, met), default=0)
        context.find("no other target is asked", most <= 1, f"{len(met)} met the filter, {most} calls for each")


async def prefill_rejected(context: ScenarioContext) -> None:
    """The first choice is down and the next will not go on with a begun answer: a third does, or the caller is told."""
    context.strike(Fault.status(500))
    if context.others:
        context.strike(_rejection(_NO_PREFILL, None), at=context.others[0])
    for stream in (False, True, False):
        await context.ask(stream=stream, prefill=True)
    if context.others:
        context.fleet.strike(at=context.others[0])
    healthy = await context.in_turn(4)
    served = sum(asked.ending is Ending.WHOLE for asked in healthy)
    context.find(
        "the next is not blamed for it", served == len(healthy), f"{served} of {len(healthy)} served afterwards"
    )


async def _told(context: ScenarioContext, failure_class: FailureClass, error: str) -> None:
    """Ask, compare what callers are told, and ask again when all is well."""
    answers = await context.in_turn(6)
    wrongly = sorted({asked.told for asked in answers if asked.ending is Ending.REJECTED} - {error})
    told = ", ".join(sorted({asked.told for asked in answers if asked.told})) or "all answered elsewhere"
    context.find(f"the caller is told {error}", not wrongly, told, Verdict.FAIL)
    context.heal()
    after = await context.in_turn(12)
    share = context.share(after)
    context.find("the provider is used as before", share > 0, f"it served {share:.0%} afterwards")
    context.find_unblamed(failure_class)


def _rejection(message: str, code: str | None) -> Fault:
    error = {"message": message, "type": "invalid_request_error", "param": "messages", "code": code}
    return Fault.status(400, body={"type": "error", "error": error})


# Providers that are gone for a while, one or several together, while people go on asking.
_DOWN = 2.0
_PER_SECOND = 10.0


async def outage_and_recovery(context: ScenarioContext) -> None:
    """The first choice is down for two seconds under load: no caller notices, and it gets its share again in time."""
    before = context.share(await context.load(1.5, _PER_SECOND))
    context.strike(Fault.down())
    await context.load(_DOWN, _PER_SECOND)
    context.heal()
    await find_recovery(context, before)


async def correlated_failure(context: ScenarioContext) -> None:
    """All providers of the asked tier, and those that share a failure domain with them, fail together; then recover."""
    before = context.share(await context.load(1.5, _PER_SECOND))
    asked = {mention.provider for mention in context.fleet.model.tiers[0].targets}
    providers = context.fleet.config.providers
    domains = {name: given.failure_domain or failure_domain(given.kind) for name, given in providers.items()}
    together = {name for name in context.others if domains[name] in {domains[one] for one in asked}}
    for name in sorted(asked | together):
        context.strike(Fault.status(500), at=name)
    await context.load(_DOWN, _PER_SECOND)
    context.heal()
    await find_recovery(context, before)


async def find_recovery(context: ScenarioContext, before: float) -> None:
    """From now on, when all is well, the struck provider is due again in time and carries half its share or more."""
    rules = context.rules
    longest = max(1.1 * rules.breaker.open, rules.cooldown.failure, rules.cooldown.timeout)
    bound = longest + rules.slow_start + context.slack
    recovered = time.monotonic()
    answers: list[ClientCall] = []
    while time.monotonic() - recovered < bound and context.share(answers[-10:]) < before / 2:
        answers += await context.load(0.5, _PER_SECOND)
    back = time.monotonic() - recovered
    share = context.share(await context.load(1.0, _PER_SECOND))
    measured = f"{share:.0%} after {back:.1f} s ({before:.0%} before), at most {bound:.1f} s"
    context.find("it carries its share again", share >= before / 2, measured)


# More than one question at a time: at a provider that fails now and then, that returns, that is slow.
_HERD = 50
_PROBE_SECONDS = 0.5


async def brown_out(context: ScenarioContext) -> None:
    """The first choice fails three calls in ten: every request is served, and retries stay within their budget."""
    context.strike(Fault.brownout(0.3))
    answers = await context.load(4.0, per_second=15)
    reports = [asked.report for asked in answers if asked.report is not None]
    again = sum(len(report.attempts) - len({attempt.target for attempt in report.attempts}) for report in reports)
    bound = round(0.1 * len(answers) + 10)
    context.find("retries stay within their budget", again <= bound, f"{again} retries, at most {bound}", Verdict.FAIL)


async def thundering_herd(context: ScenarioContext) -> None:
    """Fifty ask at the instant the first choice may be asked again: one goes, the others are served elsewhere."""
    context.strike(Fault.status(500))
    await context.until_out()
    context.strike(Fault.delay(first=_PROBE_SECONDS))
    await context.until_due()
    came = time.monotonic()
    await context.at_once(_HERD)
    calls = [call for call in context.server.requests if call.at >= came]
    first_end = min((call.ended_at or time.monotonic() for call in calls), default=0.0)
    probes = sum(call.at < first_end for call in calls)
    context.find(
        "one at a time goes to see", probes <= 1, f"{probes} calls before the first was answered", Verdict.FAIL
    )


async def slow_loris(context: ScenarioContext) -> None:
    """The first choice trickles its words, and more ask than it has slots: it holds no more, the others are served."""
    slots = max(status.slots for status in context.targets)
    context.strike(Fault.delay(each=0.1))
    await context.at_once(slots + 10, stream=True)
    most = context.server.max_in_flight()
    context.find("it never holds more than its slots", most <= slots, f"{most} at once, {slots} slots", Verdict.FAIL)


# A machine whose clock is set while the router runs.
_HOUR = 3600.0
_TIMEOUT = 5.0


async def clock_step(context: ScenarioContext) -> None:
    """The wall clock goes back an hour while the first choice is resting: its rest is not an hour longer for it."""
    before = context.share(await context.load(1.0, 10.0, timeout=_TIMEOUT))
    context.strike(Fault.status(500))
    await context.load(1.0, 10.0, timeout=_TIMEOUT)
    context.fleet.wall.ahead -= _HOUR
    context.heal()
    await find_recovery(context, before)


_SERVED = frozenset({Ending.WHOLE})
_TOLD = _SERVED | {Ending.CUT}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row: the events, and the ends of a question that need no answer."""

    name: str
    about: str
    run: Callable[[ScenarioContext], Awaitable[None]]
    allows: frozenset[Ending] = _SERVED


def _row(run: Callable[[ScenarioContext], Awaitable[None]], allows: frozenset[Ending] = _SERVED) -> Scenario:
    return Scenario(run.__name__, (run.__doc__ or "").strip(), run, allows)


SCENARIOS: dict[str, Scenario] = {
    row.name: row
    for row in (
        _row(rate_limited_once),
        _row(rate_limited_for_ever),
        _row(one_500),
        _row(unavailable_for_ever),
        _row(reset_before_headers),
        _row(never_answered),
        _row(headers_then_nothing),
        _row(cut_mid_stream, _TOLD),
        _row(stall_mid_stream, _TOLD),
        _row(one_bad_event, _TOLD),
        _row(no_terminator, _TOLD),
        _row(context_too_long, _SERVED | {Ending.REJECTED}),
        _row(content_filter, _SERVED | {Ending.REJECTED}),
        _row(prefill_rejected, _SERVED | {Ending.REJECTED}),
        _row(outage_and_recovery, _TOLD),
        _row(correlated_failure, _TOLD),
        _row(brown_out),
        _row(thundering_herd),
        _row(slow_loris),
        _row(clock_step, _TOLD),
    )
}
MEASURES: dict[str, str] = {
    "monotonic_clock": "clock_step",
    "rate_limit_awareness": "rate_limited_once",
    "serialized_probes": "thundering_herd",
    "cascade_prevention": "slow_loris",
    "tiered_degradation": "correlated_failure",
}
"""For each measure (`resilience.measures`) the scenario that does not pass without it."""
