"""The settings of fusion, and how many results there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from smart_model_router_scoring.calibration.curves import Calibration, Sigmoid
from smart_model_router_scoring.fusion.evidence import EvidenceGate
from smart_model_router_scoring.fusion.ties import TIE_BREAKS
from smart_model_router_scoring.options import check_choice, check_count, check_number

RRF_K = 60
"""The constant of Cormack, Clarke and Buettcher (2009), the authors of reciprocal rank fusion."""
LARGEST = 1_000_000
"""Of `k` and of a weight: far beyond use, and far from where sums overflow."""
STRATEGIES = ("vector", "keyword", "graph")
"""Those of `retrieval`."""
TOP_N = 5
TOP_N_MAX = 100
MIN_CONFIDENCE = 0.3


@dataclass(frozen=True, kw_only=True)
class FusionConfig:
    """How lists are fused. Raises ConfigError for what cannot be.

    `k` (0..1,000,000) damps the first ranks. `weights` (0..1,000,000) are those of strategies; one that is not named
    weighs 1.0, and 0 disables one. A hit whose calibrated score is below `min_confidence` (0..1) is left out; 0 keeps
    all. `tie_breaks` names what decides between equal scores, before the id does: keys of `TIE_BREAKS`.
    """

    k: float = RRF_K
    weights: Mapping[str, float] = field(default_factory=dict)
    calibration: Calibration = field(default_factory=Sigmoid)
    min_confidence: float = MIN_CONFIDENCE
    evidence_gate: EvidenceGate = field(default_factory=EvidenceGate)
    tie_breaks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_number("k", self.k, 0, LARGEST)
        for name, weight in self.weights.items():
            check_number(f"weights.{name}", weight, 0, LARGEST)
        check_number("min_confidence", self.min_confidence, 0, 1)
        for name in self.tie_breaks:
            check_choice("tie_breaks", name, tuple(TIE_BREAKS))
        object.__setattr__(self, "weights", MappingProxyType(dict(self.weights)))

    def weight(self, strategy: str) -> float:
        """The weight of a strategy; 1.0 unless `weights` says otherwise."""
        return self.weights.get(strategy, 1.0)


def check_top_n(top_n: int) -> None:
    """Refuse (ConfigError, which is a ValueError) a number of results that is not one of 1..100."""
    check_count("top_n", top_n, 1, TOP_N_MAX)


def retrieval_depth(top_k: int, top_n: int) -> int:
    """How many results each strategy is asked for: `top_k`, and never fewer than are to be returned."""
    return max(top_k, top_n)
