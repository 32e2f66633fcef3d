"""One incidence store: tools, the capabilities made of them, and the runs that used them, for every ranking here."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router_scoring.tools.graph import ToolGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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
