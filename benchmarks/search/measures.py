"""The share of questions at a threshold, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router_scoring.evaluate.metrics import Interval, bootstrap


def share(scores: Sequence[float], threshold: float) -> Interval:
    """The share of these scores at `threshold` or above, with its interval."""
    return bootstrap([float(score >= threshold) for score in scores])
