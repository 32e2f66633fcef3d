"""The section `evaluation`: the age up to which a source is recent (ADR-009), under its founding names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from smart_model_router.core.checked_options import Count


@dataclass(frozen=True, kw_only=True)
class DeepResearchConfig:
    """Days in which a source of a domain is recent. They go over the built-in ones; a new domain is added."""

    recency_windows: Mapping[str, Count] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """The evaluation of answers."""

    deep_research: DeepResearchConfig = field(default_factory=DeepResearchConfig)

    def recency_windows(self) -> Mapping[str, int]:
        """The days of every domain, the built-in ones included, read-only."""
        # Imported when asked: a router that judges nothing need not load it.
        from smart_model_router_scoring.decay import load_recency_windows  # noqa: PLC0415

        windows = dict(self.deep_research.recency_windows)
        return load_recency_windows({"evaluation": {"deep_research": {"recency_windows": windows}}})
