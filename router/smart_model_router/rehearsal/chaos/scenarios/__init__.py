"""The catalogue. Add a scenario: a function that takes an arena, and a row here; its docstring is what it is about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from smart_model_router.rehearsal.chaos.client_calls import Ending
from smart_model_router.rehearsal.chaos.scenario_context import ScenarioContext
from smart_model_router.rehearsal.chaos.scenarios import (
    answers,
    clock_jumps,
    load,
    provider_outages,
    refusals,
    requests,
    silence,
)

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
        _row(refusals.rate_limited_once),
        _row(refusals.rate_limited_for_ever),
        _row(refusals.one_500),
        _row(refusals.unavailable_for_ever),
        _row(silence.reset_before_headers),
        _row(silence.never_answered),
        _row(silence.headers_then_nothing),
        _row(answers.cut_mid_stream, _TOLD),
        _row(answers.stall_mid_stream, _TOLD),
        _row(answers.one_bad_event, _TOLD),
        _row(answers.no_terminator, _TOLD),
        _row(requests.context_too_long, _SERVED | {Ending.REJECTED}),
        _row(requests.content_filter, _SERVED | {Ending.REJECTED}),
        _row(requests.prefill_rejected, _SERVED | {Ending.REJECTED}),
        _row(provider_outages.outage_and_recovery, _TOLD),
        _row(provider_outages.correlated_failure, _TOLD),
        _row(load.brown_out),
        _row(load.thundering_herd),
        _row(load.slow_loris),
        _row(clock_jumps.clock_step, _TOLD),
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
