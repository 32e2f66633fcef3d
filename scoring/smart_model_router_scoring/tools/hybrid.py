"""Hybrid search for a tool: by its description, and by the tools of the current context it is used with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router_scoring.clamp import unit
from smart_model_router_scoring.errors import ConfigError
from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.notes import Notes
from smart_model_router_scoring.options import check_number, check_positive
from smart_model_router_scoring.tools.suggestion import Suggestions, ranked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smart_model_router_scoring.tools.graph import ToolGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridConfig:
    """How far the graph is trusted. Alphas and densities are shares of [0, 1]."""

    alpha_cold: float = 1.0
    """The weight of the semantic score while the graph is (almost) empty."""
    alpha_mature: float = 0.5
    """The same once the graph is well filled."""
    density_cold: float = 0.01
    density_mature: float = 0.25
    adamic_adar_full: float = 2.0
    """The Adamic-Adar sum that counts as much as a direct edge."""

    def __post_init__(self) -> None:
        check_number("alpha_cold", self.alpha_cold, 0, 1)
        check_number("alpha_mature", self.alpha_mature, 0, 1)
        check_number("density_cold", self.density_cold, 0, 1)
        check_number("density_mature", self.density_mature, 0, 1)
        check_positive("adamic_adar_full", self.adamic_adar_full)
        if self.density_cold >= self.density_mature:
            raise ConfigError(
                "density_mature", self.density_mature, f"a number above density_cold, {self.density_cold},"
            )


DEFAULT = HybridConfig()


def alpha(density: float, config: HybridConfig = DEFAULT) -> float:
    """The share of the semantic score at a graph density: cold, mature, or on the line between the two."""
    if density <= config.density_cold:
        return config.alpha_cold
    if density >= config.density_mature:
        return config.alpha_mature
    way = (density - config.density_cold) / (config.density_mature - config.density_cold)
    return config.alpha_cold + (config.alpha_mature - config.alpha_cold) * way


def graph_score(tool: str, context: Iterable[str], graph: ToolGraph, config: HybridConfig = DEFAULT) -> float:
    """How close `tool` is to the context, 0 to 1: 1 beside any of its tools, else by the best Adamic-Adar sum."""
    others = [other for other in context if other != tool]
    if not graph.neighbours(tool).isdisjoint(others):
        return 1.0
    best = max((graph.adamic_adar(tool, other) for other in others), default=0.0)
    return min(best / config.adamic_adar_full, 1.0)


def hybrid_search(
    semantic: Mapping[str, float],
    context: Iterable[str],
    graph: ToolGraph,
    config: HybridConfig = DEFAULT,
    *,
    limit: int | None = None,
) -> Suggestions:
    """Rank tools by alpha x semantic + (1 - alpha) x graph.

    `semantic` is the similarity of each candidate to what was asked for, 0 to 1; what is outside is noted and moved
    to the nearer end. A context without a tool that the graph knows is an empty one: only the semantic score counts.
    """
    notes = Notes()
    near = sorted(set(context))
    for tool in near:
        if tool not in graph:
            notes.add("unknown_tool", tool)
    near = [tool for tool in near if tool in graph]
    share = alpha(graph.density, config) if near else 1.0
    meaning = {tool: unit(value, tool, notes) for tool, value in semantic.items()}
    scores = {
        tool: math.fsum((share * value, (1.0 - share) * graph_score(tool, near, graph, config)))
        for tool, value in meaning.items()
    }

    def explain(tool: str) -> Term:
        said = combined("semantic part", "product", [given("alpha", share), given("semantic", meaning[tool])])
        company = _graph_term(tool, near, graph, config)
        seen = combined("graph part", "product", [given("1 - alpha", 1.0 - share), company])
        return combined("hybrid", "sum", [said, seen], density=graph.density)

    return ranked(scores, limit, explain, notes)


def _graph_term(tool: str, context: list[str], graph: ToolGraph, config: HybridConfig) -> Term:
    direct = sorted(graph.neighbours(tool).intersection(context))
    if direct:
        return given("graph", 1.0, direct_edge=direct[0])
    sums = [graph.adamic_adar_term(tool, other) for other in context if other != tool]
    best = max(sums, key=lambda term: term.value, default=given("adamic_adar", 0.0))
    share = combined("share", "ratio", [best, given("full", config.adamic_adar_full)])
    return combined("graph", "min", [share, given("most", 1.0)])
