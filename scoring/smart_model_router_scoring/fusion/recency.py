"""The recency multiplier of fused scores: what was changed lately counts a little more."""

from __future__ import annotations

from datetime import datetime

from smart_model_router_scoring.times import age_days

RECENCY_STEPS = ((7.0, 1.2), (30.0, 1.1))
"""(days, multiplier), youngest first: the multiplier of what is strictly younger (aggregate-scoring-system 2.1)."""
MOST = max(multiplier for _, multiplier in RECENCY_STEPS)


def multiplier_of_age(days: float | None) -> float:
    """1.2 below 7 days, 1.1 below 30, else 1.0, as for an unknown age."""
    if days is None:
        return 1.0
    return next((multiplier for limit, multiplier in RECENCY_STEPS if days < limit), 1.0)


def recency_multiplier(modified: object, now: datetime) -> float:
    """The multiplier of a time of modification (datetime, epoch seconds or ISO text; naive is UTC).

    A time to come counts as now; what is no time gives 1.0.
    """
    return multiplier_of_age(age_days(modified, now))
