"""A scenario and the setting that a seed makes of it: the fleet, the weather, the requests, and the promises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any, Literal

from smart_model_router.core.flow_config import Measures
from smart_model_router.flow.state import RouterState
from smart_model_router.rehearsal.simulation.history import History
from smart_model_router.rehearsal.simulation.provider_behaviour import Condition, Healthy, Spell
from smart_model_router.rehearsal.simulation.workload import Traffic
from smart_model_router.router import SmartModelRouter

Expectation = Callable[[History], Iterable[str]]
"""A look at the whole run: a sentence for each thing that is not as promised."""
Order = Callable[[SmartModelRouter, RouterState], object]
"""An operator's action on the router, or on a part of it."""
Fallback = Literal["healthy", "partly ill", "none"]
"""The best provider left at the worst moment, apart from the most ill one and the last resort.

It is well (`healthy`), loses or refuses a part of its calls (`partly ill`), or is down or does not exist (`none`).
"""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The definition of a simulation. Durations and instants are seconds, instants counted from the beginning.

    `tiers` are targets best first, `usual` how providers behave between their spells, `wall_steps` when the wall clock
    jumps and by how much, `orders` what an operator does and when. `expect` are whole-run promises by name.
    """

    tiers: Sequence[Sequence[str]]
    traffic: Sequence[Traffic]
    last_resort: Sequence[str] = ()
    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    routing: Mapping[str, Any] = field(default_factory=dict)
    resilience: Mapping[str, Any] = field(default_factory=dict)
    usual: Mapping[str, Condition] = field(default_factory=dict)
    spells: Sequence[Spell] = ()
    wall_steps: Sequence[tuple[float, float]] = ()
    orders: Sequence[tuple[float, Order]] = ()
    expect: Mapping[str, Expectation] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The providers, in order of appearance."""
        mentioned = [target for tier in (*self.tiers, self.last_resort) for target in tier]
        return tuple(dict.fromkeys(target.partition("/")[0] for target in mentioned))

    def usually(self, provider: str) -> Condition:
        """How a provider behaves when no spell says otherwise."""
        return self.usual.get(provider, Healthy())

    def config(self, measures: Measures) -> dict[str, Any]:
        """The configuration of the router."""
        # A last resort is near: it must not count among the remotes whose silence means that we are offline.
        only_near = {t.partition("/")[0] for t in self.last_resort} - {
            t.partition("/")[0] for tier in self.tiers for t in tier
        }
        kinds = {name: "scripted" if name in only_near else "openai_compatible" for name in self.names}
        bases = {name: {"kind": kind} for name, kind in kinds.items()}
        urls = {name: {"base_url": "http://simulated.invalid/v1"} for name in self.names if name not in only_near}
        return {
            "version": 1,
            "providers": {
                name: {**bases[name], **urls.get(name, {}), **self.providers.get(name, {})} for name in self.names
            },
            "models": {
                "smart": {
                    "tiers": [{"targets": list(tier)} for tier in self.tiers],
                    "last_resort": list(self.last_resort),
                }
            },
            "routing": dict(self.routing),
            "resilience": {**self.resilience, "measures": asdict(measures)},
        }


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A named situation. `make` turns the seed's dice into a setting; `fallback` is the worst that it draws."""

    name: str
    about: str
    fallback: Fallback
    make: Callable[[Random], Setting]
