"""Ranks of ids in lists, and the sum of reciprocal ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import count
from typing import TypeVar

Id = TypeVar("Id", str, int)
Ranks = Mapping[str, Mapping[Id, int]]
"""Strategy -> id -> rank. Strategies without weight or without an answer are not in it."""


def ranks_of(ids: Iterable[Id]) -> dict[Id, int]:
    """Ids with their ranks from 1. A repeated id counts once, at its best rank, and takes no rank from another."""
    return dict(zip(dict.fromkeys(ids), count(1), strict=False))


def reciprocal_sums(ranks: Ranks[Id], weights: Mapping[str, float], k: float) -> dict[Id, float]:
    """The sum of weight / (k + rank) of each id, correctly rounded: the order of strategies changes no bit."""
    terms: dict[Id, list[float]] = {}
    for strategy, ranked in ranks.items():
        weight = weights[strategy]
        for key, rank in ranked.items():
            found = terms.get(key)
            if found is None:
                terms[key] = [weight / (k + rank)]
            else:
                found.append(weight / (k + rank))
    return {key: math.fsum(parts) for key, parts in terms.items()}
