"""The adaptive floor: where the scores fall off a cliff, what lies below is not shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router_scoring.options import check_count, check_number, is_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_model_router_scoring.recall.memory import Hit


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorConfig:
    """How wide a gap has to be, and how many hits stay whatever the gaps."""

    min_gap: float = 0.25
    """The widest gap cuts when it is at least this share, above 0 to 1, of the best score."""
    keep: int = 1

    def __post_init__(self) -> None:
        check_number("min_gap", self.min_gap, 0.01, 1)
        check_count("keep", self.keep, 1)


def adaptive_floor(hits: Sequence[Hit], config: FloorConfig) -> float | None:
    """The lowest score above the widest gap of `hits` (best first); None when no gap is wide enough.

    Gaps above the first `keep` hits do not count, and of equal gaps the first one does.
    """
    scores = [hit.score for hit in hits if is_number(hit.score)]
    gaps = [(scores[at - 1] - scores[at], -at) for at in range(config.keep, len(scores))]
    widest, at = max(gaps, default=(0.0, 0))
    return scores[-at - 1] if widest > 0 and widest >= config.min_gap * abs(scores[0]) else None
