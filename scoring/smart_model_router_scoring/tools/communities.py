"""Communities of tools: Louvain's modularity search over the undirected graph, the same for one seed everywhere.

It visits the tools in an order that the seed and their names decide, and breaks ties towards the first community, so
neither the order of the edges nor the process changes the result. Compute it off the request path: it takes seconds
on ten thousand tools.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING
from zlib import crc32

from smart_model_router_scoring.options import check_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_model_router_scoring.tools.graph import ToolGraph

_LEAST_GAIN = 1e-10
"""A move has to be worth more than rounding, or two communities could hand a tool to and fro for ever."""

_Weights = list[dict[int, float]]


@dataclass(frozen=True, slots=True)
class Communities:
    """The tools in groups: each group sorted, the groups in the order of their first tools."""

    members: tuple[tuple[str, ...], ...]
    of: Mapping[str, int]
    """The group of each tool, as an index of `members`."""
    modularity: float
    """-0.5 to 1: the share of the edge weight inside groups, less what chance would put there."""

    def around(self, tool: str) -> tuple[str, ...]:
        """The group of a tool, itself included; empty for a tool that is unknown."""
        group = self.of.get(tool)
        return () if group is None else self.members[group]


def louvain(graph: ToolGraph, seed: int = 0) -> Communities:
    """The communities that moving single tools, then whole communities, ends at. `seed` is any whole number >= 0."""
    check_count("seed", seed, 0)
    tools = graph.tools
    place = {tool: index for index, tool in enumerate(tools)}
    # weights[i][j]: confidence of the edges between i and j, both directions together.
    weights: _Weights = [{} for _ in tools]
    for tool in tools:
        for other, confidence in graph.successors(tool).items():
            one, two = place[tool], place[other]
            weights[one][two] = weights[one].get(two, 0.0) + confidence
            weights[two][one] = weights[two].get(one, 0.0) + confidence
    inner = [0.0] * len(tools)
    groups = [[index] for index in range(len(tools))]
    names: Sequence[str] = tools
    while True:
        home = _move(weights, inner, names, seed)
        if len(set(home)) == len(home):
            break
        groups, weights, inner = _merge(groups, weights, inner, home)
        names = [tools[group[0]] for group in groups]
    members = tuple(tuple(tools[index] for index in group) for group in groups)
    of = {tool: index for index, group in enumerate(members) for tool in group}
    return Communities(members, MappingProxyType(of), _modularity(weights, inner))


def _move(weights: _Weights, inner: list[float], names: Sequence[str], seed: int) -> list[int]:
    """The community of each node once no single move is worth making."""
    degree = [math.fsum(row.values()) + 2.0 * own for row, own in zip(weights, inner, strict=True)]
    total = math.fsum(degree)
    home = list(range(len(names)))
    held = list(degree)
    order = sorted(home, key=lambda node: (crc32(f"{seed}:{names[node]}".encode("utf-8", "surrogatepass")), node))
    moved = total > 0
    while moved:
        moved = False
        for node in order:
            old = home[node]
            held[old] -= degree[node]
            towards: dict[int, float] = {old: 0.0}
            for other, weight in weights[node].items():
                towards[home[other]] = towards.get(home[other], 0.0) + weight
            expected = degree[node] / total
            best, most = old, towards[old] - held[old] * expected
            for group in sorted(towards):
                gain = towards[group] - held[group] * expected
                if gain > most + _LEAST_GAIN:
                    best, most = group, gain
            held[best] += degree[node]
            home[node] = best
            moved = moved or best != old
    return home


def _merge(
    groups: list[list[int]], weights: _Weights, inner: list[float], home: list[int]
) -> tuple[list[list[int]], _Weights, list[float]]:
    """Each community as one node, in the order of their first tools."""
    together: dict[int, list[int]] = {}
    for node, group in enumerate(home):
        together.setdefault(group, []).append(node)
    merged = sorted((sorted(index for node in nodes for index in groups[node]), nodes) for nodes in together.values())
    new = {node: index for index, (_, nodes) in enumerate(merged) for node in nodes}
    rows: _Weights = [{} for _ in merged]
    within = [0.0] * len(merged)
    for node, row in enumerate(weights):
        within[new[node]] += inner[node]
        for other, weight in row.items():
            if new[node] != new[other]:
                rows[new[node]][new[other]] = rows[new[node]].get(new[other], 0.0) + weight
            elif node < other:
                within[new[node]] += weight
    return [members for members, _ in merged], rows, within


def _modularity(weights: _Weights, inner: list[float]) -> float:
    """Of nodes that are communities: inside weight less the square of the degree's share."""
    degree = [math.fsum(row.values()) + 2.0 * own for row, own in zip(weights, inner, strict=True)]
    total = math.fsum(degree)
    if not total:
        return 0.0
    return math.fsum(2.0 * own / total - (held / total) ** 2 for own, held in zip(inner, degree, strict=True))
