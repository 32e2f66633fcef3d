"""The tool graph: which tool followed which, which share neighbours; and the runs in which tools were used."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.options import Notes, is_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NOBODY: frozenset[str] = frozenset()
_NOTHING: Mapping[str, float] = MappingProxyType({})


class ToolGraph:
    """A simple directed graph, unchangeable: an edge is (tool, the tool after it, confidence in (0, 1]).

    Of two edges between the same tools in the same direction the surer one stays, so their order is nothing. An
    edge from a tool to itself, or with a confidence that is no number above 0, is noted and left out; a confidence
    above 1 is noted and counts as 1. `tools` names those that may have no edge yet.
    """

    def __init__(self, edges: Iterable[tuple[str, str, float]], tools: Iterable[str] = ()) -> None:
        self.notes = Notes()
        successors: dict[str, dict[str, float]] = {tool: {} for tool in tools}
        for source, target, confidence in edges:
            followers = successors.setdefault(source, {})
            successors.setdefault(target, {})
            weight = self._checked(source, target, confidence)
            if weight > followers.get(target, 0.0):
                followers[target] = weight
        # Sorted, so that every walk has one order, whatever the order of the data.
        self._successors = {
            tool: MappingProxyType(dict(sorted(successors[tool].items()))) for tool in sorted(successors)
        }
        around: dict[str, set[str]] = {tool: set() for tool in self._successors}
        for source, followers in successors.items():
            for target in followers:
                around[source].add(target)
                around[target].add(source)
        self._neighbours = {tool: frozenset(near) for tool, near in around.items()}
        self.edge_count = sum(map(len, self._successors.values()))

    def _checked(self, source: str, target: str, confidence: float) -> float:
        """The weight of an edge, 0 for one that cannot be."""
        fault = f"{source} -> {target}"
        if source == target:
            self.notes.add("self_loop", fault)
            return 0.0
        if not is_number(confidence) or confidence <= 0:
            self.notes.add("bad_confidence", fault, confidence)
            return 0.0
        if confidence > 1:
            self.notes.add("confidence_above_1", fault, confidence)
        return min(float(confidence), 1.0)

    def __contains__(self, tool: object) -> bool:
        return tool in self._successors

    @property
    def tools(self) -> tuple[str, ...]:
        """Every tool, sorted."""
        return tuple(self._successors)

    @property
    def density(self) -> float:
        """Edges that are there of the n x (n - 1) that could be; 0 with fewer than two tools."""
        possible = len(self._successors) * (len(self._successors) - 1)
        return self.edge_count / possible if possible else 0.0

    def successors(self, tool: str) -> Mapping[str, float]:
        """The tools that followed `tool`, sorted, with the confidence of each; empty for a tool unknown here."""
        return self._successors.get(tool, _NOTHING)

    def neighbours(self, tool: str) -> frozenset[str]:
        """The distinct tools with an edge to or from `tool`."""
        return self._neighbours.get(tool, _NOBODY)

    def shared(self, one: str, other: str) -> list[str]:
        """The neighbours of both that have at least two neighbours (a logarithm of 1 would divide by 0), sorted."""
        both = self.neighbours(one) & self.neighbours(other)
        return sorted(tool for tool in both if len(self._neighbours[tool]) >= 2)

    def adamic_adar(self, one: str, other: str) -> float:
        """The sum of 1 / ln(number of neighbours) over their shared neighbours: rare company says more."""
        return math.fsum(self._rarity(tool) for tool in self.shared(one, other))

    def adamic_adar_term(self, one: str, other: str) -> Term:
        """The same number, with what each shared neighbour adds to it."""
        parts = [
            given(tool, self._rarity(tool), neighbours=len(self._neighbours[tool])) for tool in self.shared(one, other)
        ]
        return combined("adamic_adar", "sum", parts, shared_with=other)

    def _rarity(self, tool: str) -> float:
        return 1.0 / math.log(len(self._neighbours[tool]))


class IncidenceStore:
    """A hypergraph: each capability is an edge over its tools, each step of a run a directed one between two.

    It serves the tool graph (`graph`), the overlap of a capability with a context, and what spectral clusters are
    computed from (`capabilities`). Not thread-safe; what it hands out is a copy and stays as it was.
    """

    def __init__(self) -> None:
        self._capabilities: dict[str, frozenset[str]] = {}
        self._steps: dict[str, dict[str, int]] = {}
        self._tools: set[str] = set()

    def define(self, capability: str, tools: Iterable[str]) -> None:
        """Say of which tools a capability consists; said again, it replaces what was said."""
        self._capabilities[capability] = frozenset(tools)

    def forget(self, capability: str) -> None:
        """Drop a capability; one that is not there is not missed."""
        self._capabilities.pop(capability, None)

    def observe(self, run: Iterable[str]) -> None:
        """Count the steps of one run, its tools in the order of their use. The same tool twice in a row is no step."""
        previous: str | None = None
        for tool in run:
            self._tools.add(tool)
            if previous is not None and tool != previous:
                after = self._steps.setdefault(previous, {})
                after[tool] = after.get(tool, 0) + 1
            previous = tool

    @property
    def capabilities(self) -> Mapping[str, frozenset[str]]:
        """The tools of each capability, in the order of their names."""
        return MappingProxyType(dict(sorted(self._capabilities.items())))

    def overlap(self, capability: str, context: Iterable[str]) -> float:
        """The share of the capability's tools that the context has, 0 to 1; 0 without tools, or when unknown."""
        tools = self._capabilities.get(capability)
        return len(tools.intersection(context)) / len(tools) if tools else 0.0

    def graph(self) -> ToolGraph:
        """The tool graph of the runs: an edge's confidence is the share of this step among all steps from its tool."""
        edges = []
        for source, after in self._steps.items():
            total = sum(after.values())
            edges += [(source, target, count / total) for target, count in after.items()]
        tools = self._tools.union(*self._capabilities.values())
        return ToolGraph(edges, tools)
