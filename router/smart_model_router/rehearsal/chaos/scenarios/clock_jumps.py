"""A machine whose clock is set while the router runs."""

from __future__ import annotations

from smart_model_router.rehearsal.chaos.scenario_context import ScenarioContext
from smart_model_router.rehearsal.chaos.scenarios.provider_outages import find_recovery
from smart_model_router_providers.fault import Fault

_HOUR = 3600.0
_TIMEOUT = 5.0


async def clock_step(arena: ScenarioContext) -> None:
    """The wall clock goes back an hour while the first choice is resting: its rest is not an hour longer for it."""
    before = arena.share(await arena.load(1.0, 10.0, timeout=_TIMEOUT))
    arena.strike(Fault.status(500))
    await arena.load(1.0, 10.0, timeout=_TIMEOUT)
    arena.fleet.wall.ahead -= _HOUR
    arena.heal()
    await find_recovery(arena, before)
