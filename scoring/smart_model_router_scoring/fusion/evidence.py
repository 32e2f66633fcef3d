"""The evidence gate: a rank says which hit is best, not whether any is about the question; a relevance does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from smart_model_router_scoring.options import check_choice, check_number, is_number

Id = TypeVar("Id", str, int)
ACTIONS = ("scale", "drop")


@dataclass(frozen=True, kw_only=True)
class EvidenceGate:
    """The treatment of a hit whose best relevance (a cosine, say) is below `threshold` (0..1; 0, the default, is off).

    `scale` multiplies its score by relevance / threshold; `drop` leaves it out. A hit of which no relevance is known
    passes: a link to it says nothing about its text.
    """

    threshold: float = 0.0
    action: str = "scale"

    def __post_init__(self) -> None:
        check_number("evidence_gate.threshold", self.threshold, 0, 1)
        check_choice("evidence_gate.action", self.action, ACTIONS)

    def factor(self, relevance: float | None) -> float | None:
        """Return the factor of a score: 1 at or above the gate, less below it; None leaves the hit out."""
        if relevance is None or not self.threshold or relevance >= self.threshold:
            return 1.0
        return max(relevance, 0.0) / self.threshold if self.action == "scale" else None


def best_evidence(relevance: Mapping[str, Mapping[Id, float]]) -> dict[Id, float]:
    """The best relevance of each id over all strategies (strategy -> id -> relevance). What is no number is skipped."""
    best: dict[Id, float] = {}
    for found in relevance.values():
        for key, value in found.items():
            if is_number(value):
                best[key] = max(value, best.get(key, value))
    return best
