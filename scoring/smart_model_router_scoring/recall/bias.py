"""Recency bias: among the hits at hand the newer gain, so that the newest version of a fact can come first."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.recall.memory import Hit
from smart_model_router_scoring.times import age_days

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


def relative_recency(hits: Sequence[Hit], now: datetime) -> list[float | None]:
    """For each hit 0 (the oldest) to 1 (the newest), None for one without a time; a time to come is now.

    When all times are the same, or there are fewer than two, nothing is newer than anything: None for all.
    """
    ages = [age_days(hit.memory.timestamp, now) for hit in hits]
    known = {age for age in ages if age is not None}
    if len(known) < 2:
        return [None] * len(hits)
    oldest, newest = max(known), min(known)
    return [None if age is None else (oldest - age) / (oldest - newest) for age in ages]


def with_recency(hits: Sequence[Hit], now: datetime, weight: float) -> list[Hit]:
    """The hits, in the same order, each with `weight` x its relative recency added as the component `temporal`."""
    return [
        hit if share is None else _lifted(hit, weight, share)
        for hit, share in zip(hits, relative_recency(hits, now), strict=True)
    ]


def _lifted(hit: Hit, weight: float, share: float) -> Hit:
    return Hit(hit.memory, math.fsum((hit.score, weight * share)), hit.replaces, partial(_why, hit, weight, share))


def _why(hit: Hit, weight: float, share: float) -> Term:
    temporal = combined("temporal", "product", [given("weight", weight), given("relative recency", share)])
    return combined("score", "sum", [hit.explanation, temporal])
