"""A question that a provider refuses: the error names the fault, and the health of no target changes."""

from __future__ import annotations

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.chaos.client_calls import Ending
from smart_model_router.rehearsal.chaos.scenario_context import ScenarioContext
from smart_model_router.rehearsal.chaos.verdict import Verdict
from smart_model_router_providers.fault import Fault

_TOO_LONG = "This model's maximum context length is 8192 tokens. Please reduce the length of the messages."
_FILTERED = "The response was filtered due to the prompt triggering the content management policy."
_NO_PREFILL = "This model does not support assistant message prefill: the conversation must end with a user message."


async def context_too_long(arena: ScenarioContext) -> None:
    """The first choice says the prompt is too long: a larger model answers, or the caller is told so."""
    arena.strike(_rejection(_TOO_LONG, "context_length_exceeded"))
    await _told(arena, FailureClass.CONTEXT_LENGTH, "ContextTooLong")


async def content_filter(arena: ScenarioContext) -> None:
    """The first choice's content filter strikes: the caller is told; nobody else is asked unless that is allowed."""
    arena.strike(_rejection(_FILTERED, "content_filter"))
    await _told(arena, FailureClass.CONTENT_FILTERED, "ContentBlocked")
    if not arena.fleet.config.routing.content_filter_fallback:
        tried = [asked.report.attempts for asked in arena.asked if asked.report is not None]
        met = [
            attempts for attempts in tried if any(a.failure_class is FailureClass.CONTENT_FILTERED for a in attempts)
        ]
        most = max(map(len, met), default=0)
        arena.find("nobody else is asked", most <= 1, f"{len(met)} met the filter, {most} calls for each")


async def prefill_rejected(arena: ScenarioContext) -> None:
    """The first choice is down and the next will not go on with a begun answer: a third does, or the caller is told."""
    arena.strike(Fault.status(500))
    if arena.others:
        arena.strike(_rejection(_NO_PREFILL, None), at=arena.others[0])
    for stream in (False, True, False):
        await arena.ask(stream=stream, prefill=True)
    if arena.others:
        arena.fleet.strike(at=arena.others[0])
    healthy = await arena.in_turn(4)
    served = sum(asked.ending is Ending.WHOLE for asked in healthy)
    arena.find("the next is not blamed for it", served == len(healthy), f"{served} of {len(healthy)} served afterwards")


async def _told(arena: ScenarioContext, failure_class: FailureClass, error: str) -> None:
    """Ask, compare what callers are told, and ask again when all is well."""
    answers = await arena.in_turn(6)
    wrongly = sorted({asked.told for asked in answers if asked.ending is Ending.REJECTED} - {error})
    told = ", ".join(sorted({asked.told for asked in answers if asked.told})) or "all answered elsewhere"
    arena.find(f"who is told is told {error}", not wrongly, told, Verdict.FAIL)
    arena.heal()
    after = await arena.in_turn(12)
    share = arena.share(after)
    arena.find("the provider is used as before", share > 0, f"it served {share:.0%} afterwards")
    arena.find_unblamed(failure_class)


def _rejection(message: str, code: str | None) -> Fault:
    error = {"message": message, "type": "invalid_request_error", "param": "messages", "code": code}
    return Fault.status(400, body={"type": "error", "error": error})
