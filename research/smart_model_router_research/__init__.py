"""Workflows of many model calls, the engines that run them, and deep research. Names are imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.domain.lazy_names import lazy_names

if TYPE_CHECKING:
    from smart_model_router_research.pipeline.deep_research import DeepResearch, ResearchResult
    from smart_model_router_research.pipeline.research_events import ResearchEvent, ResearchEventKind
    from smart_model_router_research.pipeline.run_inputs import ResearchBudget, RunInputs

__all__ = [
    "DeepResearch",
    "ResearchBudget",
    "ResearchEvent",
    "ResearchEventKind",
    "ResearchResult",
    "RunInputs",
]

_HOMES = {
    "smart_model_router_research.pipeline.deep_research": ("DeepResearch", "ResearchResult"),
    "smart_model_router_research.pipeline.research_events": ("ResearchEvent", "ResearchEventKind"),
    "smart_model_router_research.pipeline.run_inputs": ("ResearchBudget", "RunInputs"),
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
