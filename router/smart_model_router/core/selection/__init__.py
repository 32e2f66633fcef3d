"""The order of a tier's targets: the Selector protocol, the table of strategies, one file a strategy."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from smart_model_router.core.selection.selector import Candidate, Load, Selector, View
from smart_model_router.core.selection.strategies import Cheapest, Fastest, Health, Ordered, PowerOfTwo, Weighted

STRATEGIES: Mapping[str, Selector] = MappingProxyType(
    {
        "health": Health(),
        "ordered": Ordered(),
        "cheapest": Cheapest(),
        "fastest": Fastest(),
        "power_of_two": PowerOfTwo(),
        "weighted": Weighted(),
    }
)
"""The built-in strategies by name."""

__all__ = ["STRATEGIES", "Candidate", "Load", "Selector", "View"]
