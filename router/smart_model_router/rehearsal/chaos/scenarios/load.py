"""More than one question at a time: at a provider that fails now and then, that returns, that is slow."""

from __future__ import annotations

import time

from smart_model_router.rehearsal.chaos.scenario_context import ScenarioContext
from smart_model_router.rehearsal.chaos.verdict import Verdict
from smart_model_router_providers.fault import Fault

_HERD = 50
_PROBE_SECONDS = 0.5


async def brown_out(arena: ScenarioContext) -> None:
    """The first choice fails three calls in ten: everybody is served, and retries stay within their budget."""
    arena.strike(Fault.brownout(0.3))
    answers = await arena.load(4.0, per_second=15)
    reports = [asked.report for asked in answers if asked.report is not None]
    again = sum(len(report.attempts) - len({attempt.target for attempt in report.attempts}) for report in reports)
    bound = round(0.1 * len(answers) + 10)
    arena.find("retries stay within their budget", again <= bound, f"{again} retries, at most {bound}", Verdict.FAIL)


async def thundering_herd(arena: ScenarioContext) -> None:
    """Fifty ask at the instant the first choice may be asked again: one goes, the others are served elsewhere."""
    arena.strike(Fault.status(500))
    await arena.until_out()
    arena.strike(Fault.delay(first=_PROBE_SECONDS))
    await arena.until_due()
    came = time.monotonic()
    await arena.at_once(_HERD)
    calls = [call for call in arena.server.requests if call.at >= came]
    first_end = min((call.ended_at or time.monotonic() for call in calls), default=0.0)
    probes = sum(call.at < first_end for call in calls)
    arena.find("one at a time goes to see", probes <= 1, f"{probes} calls before the first was answered", Verdict.FAIL)


async def slow_loris(arena: ScenarioContext) -> None:
    """The first choice trickles its words, and more ask than it has slots: it holds no more, the others are served."""
    slots = max(status.slots for status in arena.targets)
    arena.strike(Fault.delay(each=0.1))
    await arena.at_once(slots + 10, stream=True)
    most = arena.server.max_in_flight()
    arena.find("it never holds more than its slots", most <= slots, f"{most} at once, {slots} slots", Verdict.FAIL)
