"""How targets of a tier are ordered: the Selector protocol, the table of strategies, one file a strategy."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from smart_model_router.core.selection.base import Candidate, Load, Selector, View
from smart_model_router.core.selection.cheapest import Cheapest
from smart_model_router.core.selection.fastest import Fastest
from smart_model_router.core.selection.health import Health
from smart_model_router.core.selection.ordered import Ordered
from smart_model_router.core.selection.power_of_two import PowerOfTwo
from smart_model_router.core.selection.weighted import Weighted
from smart_model_router.errors import ConfigurationError

_TABLE: dict[str, Selector] = {
    "health": Health(),
    "ordered": Ordered(),
    "cheapest": Cheapest(),
    "fastest": Fastest(),
    "power_of_two": PowerOfTwo(),
    "weighted": Weighted(),
}
STRATEGIES: Mapping[str, Selector] = MappingProxyType(_TABLE)


def register(name: str, selector: Selector) -> None:
    """Let configurations of this process name a strategy of your own. Raises ConfigurationError for a name in use."""
    if name in _TABLE:
        raise ConfigurationError("strategy", name, "a name that no strategy has is needed")
    _TABLE[name] = selector


__all__ = ["STRATEGIES", "Candidate", "Load", "Selector", "View", "register"]
