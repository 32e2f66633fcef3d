"""Every scenario by name. Add one: a function that turns dice into a setting, and a row here with its fallback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from smart_model_router.rehearsal.simulation.scenario import Fallback, Scenario, Setting
from smart_model_router.rehearsal.simulation.scenarios import outages, overload, swarm, switches

_FALLBACKS: Mapping[Callable[[Random], Setting], Fallback] = {
    outages.outage: "healthy",
    outages.total_outage: "none",
    outages.herd: "none",
    outages.domain_outage: "healthy",
    outages.dead_provider: "healthy",
    outages.flapping: "healthy",
    outages.walls: "healthy",
    outages.offline: "none",
    outages.too_few: "healthy",
    overload.brown_out: "healthy",
    overload.losses: "partly ill",
    overload.rate_limit_storm: "healthy",
    overload.headers: "healthy",
    overload.narrow: "healthy",
    overload.fifty_agents: "healthy",
    overload.impatient: "healthy",
    overload.black_hole: "healthy",
    overload.shield: "healthy",
    overload.slow_loris: "healthy",
    overload.late_heads: "partly ill",
    outages.clock_steps: "healthy",
    switches.operated: "healthy",
    switches.jumps: "healthy",
    switches.hints: "healthy",
    switches.probes: "healthy",
    switches.slots: "healthy",
    switches.degradation: "healthy",
    swarm.skirmish: "none",
    swarm.swarm: "none",
    swarm.hour: "healthy",
}
SCENARIOS: dict[str, Scenario] = {
    make.__name__: Scenario(
        name=make.__name__, about=(make.__doc__ or "").partition("\n")[0], make=make, fallback=fallback
    )
    for make, fallback in _FALLBACKS.items()
}
SWITCHES: dict[str, str] = {
    "monotonic_clock": "jumps",
    "rate_limit_awareness": "hints",
    "serialized_probes": "probes",
    "cascade_prevention": "slots",
    "tiered_degradation": "degradation",
}
"""For each measure the scenario that fails when it is off, and only then."""
