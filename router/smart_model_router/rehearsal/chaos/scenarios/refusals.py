"""A provider that says no: once or for ever, with a reason or without."""

from __future__ import annotations

import time

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.chaos.scenario_context import ScenarioContext
from smart_model_router.rehearsal.chaos.verdict import Verdict
from smart_model_router_providers.fault import Fault, RecordedRequest

_RETRY_AFTER = 2.0
"""Seconds. A provider's word is never shortened."""


async def rate_limited_once(arena: ScenarioContext) -> None:
    """The first choice says 429 once, with Retry-After: it rests exactly so long and is asked again."""
    await arena.in_turn(2)
    arena.strike(Fault.status(429, headers={"retry-after": f"{_RETRY_AFTER:g}"}, times=1))
    await arena.ask()
    await arena.load(_RETRY_AFTER + arena.slack + 1.0, per_second=5)
    refused = next((call for call in arena.server.requests if call.status == 429), None)
    if refused is None:
        return  # the card says that the fault was not met
    again = [call.at for call in arena.server.requests if call.at > refused.at and _same(call, refused)]
    gaps = [at - refused.at for at in again]
    waited = f"asked again after {gaps[0]:.2f} s" if gaps else "never asked again"
    kept = bool(gaps) and _RETRY_AFTER - 0.05 <= gaps[0] <= _RETRY_AFTER + arena.slack
    arena.find(f"its Retry-After of {_RETRY_AFTER:g} s is kept exactly", kept, waited, Verdict.FAIL)
    arena.find_unblamed(FailureClass.RATE_LIMITED)


def _same(call: RecordedRequest, refused: RecordedRequest) -> bool:
    """True for a call to the refused model with the refused key."""
    return (call.key, call.model) == (refused.key, refused.model)


async def rate_limited_for_ever(arena: ScenarioContext) -> None:
    """The first choice says 429 to everything, a second's rest each time: the others serve, no breaker opens."""
    arena.strike(Fault.status(429, headers={"retry-after": "1"}))
    began = time.monotonic()
    await arena.in_turn(20, pause=0.15)
    if arena.has_others:
        calls, keys = arena.server.calls(), len(arena.targets)
        bound = round((2 + time.monotonic() - began) * keys)
        arena.find("it is asked once a second", calls <= bound, f"{calls} calls, at most {bound}")
    arena.find_unblamed(FailureClass.RATE_LIMITED)


async def one_500(arena: ScenarioContext) -> None:
    """The first choice fails once with 500: nobody notices, and it is not blamed for it."""
    arena.strike(Fault.status(500, times=1))
    await arena.in_turn(16)
    arena.find_unblamed(FailureClass.SERVER_ERROR)


async def unavailable_for_ever(arena: ScenarioContext) -> None:
    """The first choice says 503 to everything: the others serve, and it is left alone."""
    arena.strike(Fault.status(503))
    began = time.monotonic()
    await arena.in_turn(20)
    arena.find_spared(began)
