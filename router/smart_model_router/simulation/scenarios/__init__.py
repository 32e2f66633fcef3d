"""Every scenario by name. Add one: a function that turns dice into a setting, and a row here."""

from __future__ import annotations

from smart_model_router.simulation.scenarios import callers, clocks, operator, outages, overload, swarm, switches, tails
from smart_model_router.simulation.setting import Scenario

SCENARIOS: dict[str, Scenario] = {
    make.__name__: Scenario(name=make.__name__, about=(make.__doc__ or "").strip(), make=make)
    for make in (
        outages.outage,
        outages.total_outage,
        outages.herd,
        outages.domain_outage,
        outages.dead_provider,
        outages.flapping,
        outages.walls,
        outages.offline,
        outages.too_few,
        overload.brown_out,
        overload.rate_limit_storm,
        overload.headers,
        overload.narrow,
        overload.fifty_agents,
        callers.impatient,
        callers.black_hole,
        callers.shield,
        callers.slow_loris,
        tails.late_heads,
        clocks.clock_steps,
        operator.operated,
        switches.jumps,
        switches.hints,
        switches.probes,
        switches.slots,
        switches.degradation,
        swarm.skirmish,
        swarm.swarm,
        swarm.hour,
    )
}
SWITCHES: dict[str, str] = {
    "monotonic_clock": "jumps",
    "rate_limit_awareness": "hints",
    "serialized_probes": "probes",
    "cascade_prevention": "slots",
    "tiered_degradation": "degradation",
}
"""For each measure the scenario that fails when it is off, and only then."""
