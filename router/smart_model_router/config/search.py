"""The section `search`: the index that questions are asked of, and how its results are scored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from smart_model_router.core.checked_options import Interval, Options, Seconds, Unit

Weight = Annotated[float, Interval(ge=0, le=1_000_000)]
Share = Annotated[float, Unit("ratio"), Interval(ge=0, le=1)]


@dataclass(frozen=True, kw_only=True)
class SearchWeightsConfig(Options):
    """The weight of each strategy's ranks; 0 switches one off."""

    vector: Weight = 1.0
    keyword: Weight = 1.0
    graph: Weight = 0.05


@dataclass(frozen=True, kw_only=True)
class SearchTimeoutsConfig(Options):
    """The seconds that each strategy may take; then the others answer without it."""

    vector: Seconds = 5.0
    keyword: Seconds = 2.0
    graph: Seconds = 1.0


@dataclass(frozen=True, kw_only=True)
class SearchConfig(Options):
    """Retrieval. Threshold and steepness default to those of a founding scale (`raw`: 0.035 and 150, as founded).

    `index` is the file that `smr index` makes; `model` writes answers from the results, `embedding_model` makes
    vectors (both are public names).
    """

    index: str | None = None
    model: str | None = None
    embedding_model: str | None = None
    rrf_k_constant: Annotated[float, Interval(ge=0, le=1_000_000)] = 60.0
    weights: SearchWeightsConfig = field(default_factory=SearchWeightsConfig)
    timeouts: SearchTimeoutsConfig = field(default_factory=SearchTimeoutsConfig)
    score_calibration_scale: Literal["evidence", "attainment", "raw"] | None = None
    score_calibration_threshold: Annotated[float, Interval(ge=0, le=1_000_000)] | None = None
    score_calibration_steepness: Annotated[float, Interval(gt=0, le=1_000_000)] | None = None
    min_confidence: Share = 0.3
    evidence_gate: Share = 0.0
    recency: bool = False

    @property
    def scale(self) -> Literal["evidence", "attainment", "raw"]:
        """The scale of scores: as configured, else `evidence`; `attainment` where a key of founding scales is set.

        So a configuration that was tuned to the former default keeps its scores.
        """
        if self.score_calibration_scale is not None:
            return self.score_calibration_scale
        tuned = (self.score_calibration_threshold, self.score_calibration_steepness) != (None, None)
        return "attainment" if tuned or self.evidence_gate else "evidence"
