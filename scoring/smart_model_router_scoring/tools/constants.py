"""Every constant of the tool and capability formulas: its role, what the founding record says of it, its value now."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.tools.clusters import SpectralConfig
from smart_model_router_scoring.tools.learning import LearningConfig, ThresholdConfig
from smart_model_router_scoring.tools.suggestions import (
    DiscoveryConfig,
    HybridConfig,
    NextStepConfig,
    ReliabilityConfig,
)

Status = Literal["validated", "to validate", "stated", "ours"]
"""The founding record calls a number validated or to validate, states it without a word on that, or leaves it to us."""

_Config = (
    HybridConfig
    | NextStepConfig
    | ReliabilityConfig
    | DiscoveryConfig
    | SpectralConfig
    | ThresholdConfig
    | LearningConfig
)
_ALGORITHMS: dict[type[_Config], str] = {
    HybridConfig: "hybrid search",
    NextStepConfig: "next step",
    ReliabilityConfig: "capability match",
    DiscoveryConfig: "strategic discovery",
    SpectralConfig: "spectral clusters",
    ThresholdConfig: "adaptive threshold",
    LearningConfig: "online weights",
}
_ROLES: dict[tuple[type[_Config], str], tuple[str, Status]] = {
    (HybridConfig, "alpha_cold"): ("share of the semantic score while the graph is empty", "stated"),
    (HybridConfig, "alpha_mature"): ("floor of the semantic score's share", "validated"),
    (HybridConfig, "density_cold"): ("density up to which the graph is not trusted", "stated"),
    (HybridConfig, "density_mature"): ("density from which it is trusted fully", "stated"),
    (HybridConfig, "adamic_adar_full"): ("Adamic-Adar sum that counts as a direct edge", "ours"),
    (NextStepConfig, "cooccurrence"): ("weight of what followed before", "validated"),
    (NextStepConfig, "community"): ("weight of the same community", "validated"),
    (NextStepConfig, "recency"): ("weight of recent use in the project", "stated"),
    (NextStepConfig, "recency_seconds"): ("how long a use is recent, in seconds", "stated"),
    (ReliabilityConfig, "low"): ("success rate below which a capability is penalised", "to validate"),
    (ReliabilityConfig, "low_factor"): ("factor of the penalty", "stated"),
    (ReliabilityConfig, "high"): ("success rate above which there is a bonus", "stated"),
    (ReliabilityConfig, "high_factor"): ("factor of the bonus", "to validate"),
    (ReliabilityConfig, "min_runs"): ("runs before a success rate counts", "ours"),
    (DiscoveryConfig, "boost"): ("bonus of the same spectral cluster", "stated"),
    (SpectralConfig, "max_cut"): ("normalised cut up to which a cluster is split", "ours"),
    (SpectralConfig, "seed"): ("start of the power iteration", "ours"),
    (ThresholdConfig, "start"): ("threshold before anything is known", "ours"),
    (ThresholdConfig, "low"): ("lowest threshold", "ours"),
    (ThresholdConfig, "high"): ("highest threshold", "ours"),
    (ThresholdConfig, "step"): ("how far a threshold moves at once", "ours"),
    (ThresholdConfig, "window"): ("latest records that count", "ours"),
    (ThresholdConfig, "min_records"): ("records before a threshold moves", "ours"),
    (ThresholdConfig, "every"): ("records from one move to the next", "ours"),
    (ThresholdConfig, "max_false_positives"): ("share of bad suggestions that raises it", "ours"),
    (ThresholdConfig, "max_false_negatives"): ("share of missed suggestions that lowers it", "ours"),
    (ThresholdConfig, "max_contexts"): ("contexts remembered", "ours"),
    (LearningConfig, "learning_rate"): ("AdaGrad's step", "ours"),
    (LearningConfig, "prior_strength"): ("pull of the static weights", "ours"),
    (LearningConfig, "window"): ("latest samples that are compared", "ours"),
    (LearningConfig, "min_samples"): ("samples before a promotion", "ours"),
    (LearningConfig, "margin"): ("improvement a promotion needs, in nats", "ours"),
}


@dataclass(frozen=True, slots=True)
class MagicNumber:
    """One constant, as it is now."""

    algorithm: str
    name: str
    role: str
    status: Status
    value: float


def magic_numbers(*configs: _Config) -> tuple[MagicNumber, ...]:
    """All of them, with the values of `configs`, and of the default for each algorithm that has none there.

    ConfigError for two configurations of one algorithm, or one of another kind.
    """
    given: dict[type[Any], _Config] = {}
    for config in configs:
        if type(config) not in _ALGORITHMS or type(config) in given:
            raise ConfigError("configs", config, "at most one configuration of each algorithm")
        given[type(config)] = config
    found = []
    for kind, algorithm in _ALGORITHMS.items():
        present = given[kind] if kind in given else kind()
        for field in fields(kind):
            role, status = _ROLES[kind, field.name]
            found.append(MagicNumber(algorithm, field.name, role, status, getattr(present, field.name)))
    return tuple(found)
