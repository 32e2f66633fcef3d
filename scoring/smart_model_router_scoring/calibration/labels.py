"""A score in a word (aggregate-scoring-system 3.1.1)."""

from __future__ import annotations

WORDS = ((0.9, "excellent"), (0.7, "good"), (0.5, "moderate"), (0.3, "weak"))
"""(at least, word), best first."""


def interpret(score: float) -> str:
    """excellent, good, moderate, weak, or noise: below 0.3, and what is no number."""
    return next((word for least, word in WORDS if score >= least), "noise")
