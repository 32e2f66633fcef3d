"""The best of a set of scores, in an order that nothing but scores, configured keys and ids decides."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import TypeVar

Id = TypeVar("Id", str, int)
Keys = Callable[[Id], tuple[float, ...]]


def ordered(scores: Mapping[Id, float], top_n: int | None = None, ties: Keys[Id] | None = None) -> list[Id]:
    """Ids by score, highest first; then by `ties`, smallest first; then by id, numbers before text. `top_n` of them."""

    def rank(key: Id) -> tuple[float, tuple[float, ...], bool, Id]:
        return -scores[key], ties(key) if ties else (), isinstance(key, str), key

    if top_n is None or top_n >= len(scores):
        return sorted(scores, key=rank)
    lowest = heapq.nlargest(top_n, scores.values())[-1]
    return sorted((key for key, score in scores.items() if score >= lowest), key=rank)[:top_n]
