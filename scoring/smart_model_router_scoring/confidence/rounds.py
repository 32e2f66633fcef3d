"""Which round of several is delivered, and when another one is a waste."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from smart_model_router_scoring.confidence.parsing import as_flag, as_number
from smart_model_router_scoring.options import check_count

PATIENCE = 2
MATRIX_PATIENCE = 1
"""Regressions in a row that end the rounds: of the policy `two_tier`, and of `matrix`."""


def coalesce_best_round(rounds: Sequence[object]) -> Mapping[str, Any] | None:
    """The best round, as given: a passed gate first, then the higher `ci_score`, then the earlier round (ADR-009).

    An index that is missing or no number comes last among rounds of the same gate. What is no mapping is skipped; None
    when nothing is left.
    """
    known = [found for found in rounds if isinstance(found, Mapping)]
    # max() keeps the first of equals.
    return max(known, key=_key) if known else None


def _key(found: Mapping[str, Any]) -> tuple[bool, float]:
    ci = as_number(found.get("ci_score"))
    return as_flag(found.get("gate_passed")) is True, -math.inf if ci is None else ci


@dataclass(frozen=True, slots=True)
class Regression:
    """Rounds in a row that were worse than the one before each, and whether that is enough to stop."""

    count: int
    stop: bool


def regression(ci_scores: Sequence[object], *, patience: int = PATIENCE) -> Regression:
    """Counts rounds below the previous one, from the last improvement on; stops at `patience` (>= 1) of them.

    An equal round neither counts nor resets. An index that is missing or no number is below every other. Once reached,
    a stop stays: the rounds after it would not have been.
    """
    check_count("patience", patience, 1)
    indices = [-math.inf if (ci := as_number(score)) is None else ci for score in ci_scores]
    count = 0
    for before, after in pairwise(indices):
        if after > before:
            count = 0
        elif after < before:
            count += 1
        if count >= patience:
            return Regression(count, stop=True)
    return Regression(count, stop=False)
