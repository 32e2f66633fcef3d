"""The levels of the Confidence Index and of a metric (ADR-003, ADR-007)."""

from __future__ import annotations

TARGET_CI = 0.80
MODERATE_CI = 0.65
LOW_CI = 0.50
ELITE, HIGH, MEDIUM = 0.90, 0.75, 0.50
_ROUNDING = 1e-12


def reaches(ci: float, level: float) -> bool:
    """True when a computed index is at a level or above, up to the rounding of its sum. NaN reaches no level."""
    return ci >= level - _ROUNDING
