"""Providers that are gone for a while, one or several together, while people go on asking."""

from __future__ import annotations

import time

from smart_model_router.rehearsal.chaos.client_calls import ClientCall
from smart_model_router.rehearsal.chaos.scenario_context import ScenarioContext
from smart_model_router_providers.catalog import failure_domain
from smart_model_router_providers.fault import Fault

_DOWN = 2.0
_PER_SECOND = 10.0


async def outage_and_recovery(arena: ScenarioContext) -> None:
    """The first choice is down for two seconds under load: nobody notices, and it carries its share again in time."""
    before = arena.share(await arena.load(1.5, _PER_SECOND))
    arena.strike(Fault.down())
    await arena.load(_DOWN, _PER_SECOND)
    arena.heal()
    await find_recovery(arena, before)


async def correlated_failure(arena: ScenarioContext) -> None:
    """All providers of the asked tier, and those that share a failure domain with them, fail together; then recover."""
    before = arena.share(await arena.load(1.5, _PER_SECOND))
    asked = {mention.provider for mention in arena.fleet.model.tiers[0].targets}
    providers = arena.fleet.config.providers
    domains = {name: given.failure_domain or failure_domain(given.kind) for name, given in providers.items()}
    together = {name for name in arena.others if domains[name] in {domains[one] for one in asked}}
    for name in sorted(asked | together):
        arena.strike(Fault.status(500), at=name)
    await arena.load(_DOWN, _PER_SECOND)
    arena.heal()
    await find_recovery(arena, before)


async def find_recovery(arena: ScenarioContext, before: float) -> None:
    """From now on, when all is well, the struck provider is due again in time and carries half its share or more."""
    rules = arena.rules
    longest = max(1.1 * rules.breaker.open, rules.cooldown.failure, rules.cooldown.timeout)
    bound = longest + rules.slow_start + arena.slack
    recovered = time.monotonic()
    answers: list[ClientCall] = []
    while time.monotonic() - recovered < bound and arena.share(answers[-10:]) < before / 2:
        answers += await arena.load(0.5, _PER_SECOND)
    back = time.monotonic() - recovered
    share = arena.share(await arena.load(1.0, _PER_SECOND))
    measured = f"{share:.0%} after {back:.1f} s ({before:.0%} before), at most {bound:.1f} s"
    arena.find("it carries its share again", share >= before / 2, measured)
