"""A provider whose answers break: cut, stalled, spoilt, without an end."""

from __future__ import annotations

import time

from smart_model_router.rehearsal.chaos.client_calls import ClientCall, Ending
from smart_model_router.rehearsal.chaos.scenario_context import ScenarioContext
from smart_model_router.rehearsal.chaos.verdict import Verdict
from smart_model_router_providers.fault import Fault


async def cut_mid_stream(arena: ScenarioContext) -> None:
    """The first choice cuts every stream after three words: who had them is told, and it is avoided."""
    arena.strike(Fault.cut(after=3))
    began = time.monotonic()
    answers = await arena.in_turn(12, stream=True)
    arena.find_spared(began)
    _find_avoided(arena, answers)


async def stall_mid_stream(arena: ScenarioContext) -> None:
    """The first choice falls silent after three words: who had them is told in time, and it is avoided."""
    arena.strike(Fault.stall(after=3))
    first = await arena.at_once(3, stream=True)
    bound = arena.rules.timeouts.idle + arena.rules.timeouts.first_content + arena.slack
    slowest = max(asked.seconds for asked in first)
    arena.find("a stalled stream is ended in time", slowest <= bound, f"{slowest:.2f} s, at most {bound:.2f} s")
    _find_avoided(arena, await arena.in_turn(6, stream=True))


async def one_bad_event(arena: ScenarioContext) -> None:
    """One event of a stream is not JSON: it may have carried text, so it is counted, and the stream is cut."""
    arena.strike(Fault.bad_json(after=2, times=1))
    answers = await arena.in_turn(16, stream=True)
    counted = sum(asked.report.malformed_events for asked in answers if asked.report is not None)
    arena.find("the spoilt event is counted", counted == 1, f"{counted} counted")


async def no_terminator(arena: ScenarioContext) -> None:
    """The first choice ends every stream without a finish reason: none of them passes for a whole answer."""
    arena.strike(Fault.no_terminator())
    began = time.monotonic()
    answers = await arena.in_turn(12, stream=True)
    arena.find_spared(began)
    _find_avoided(arena, answers)


def _find_avoided(arena: ScenarioContext, answers: list[ClientCall]) -> None:
    """The later half of the streams arrives whole."""
    later = answers[len(answers) // 2 :]
    whole = sum(asked.ending is Ending.WHOLE for asked in later)
    measured = f"{whole} of the later {len(later)}"
    arena.find("soon streams are whole again", whole == len(later), measured, Verdict.SAFE)
