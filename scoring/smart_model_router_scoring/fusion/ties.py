"""The rules that decide between equal scores before the id does."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

TIE_BREAKS: Mapping[str, Callable[[Collection[int], float | None], float]] = MappingProxyType(
    {
        "agreement": lambda ranks, _: -len(ranks),
        "best_rank": lambda ranks, _: min(ranks),
        "newest": lambda _, age: math.inf if age is None else age,
    }
)
"""Of the ranks of a hit and its age in days, a number of which the smaller comes first: more strategies agree, a better
rank, a younger item."""
