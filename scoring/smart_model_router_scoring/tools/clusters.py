"""Clusters of tools: communities by Louvain's modularity search, spectral clusters of tools and capabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import mul, sub
from types import MappingProxyType
from typing import TYPE_CHECKING
from zlib import crc32

from smart_model_router_scoring.options import check_count, check_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from smart_model_router_scoring.tools.graph import ToolGraph

# Communities of tools: Louvain's modularity search over the undirected graph, the same for one seed everywhere.
#
# It visits the tools in an order that the seed and their names decide, and breaks ties towards the first community, so
# neither the order of the edges nor the process changes the result. Compute it off the request path: it takes seconds
# on ten thousand tools.
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


# Spectral clusters of tools and capabilities together: the bipartite graph, cut where few edges cross.
#
# A cluster is split along the second eigenvector of its normalised adjacency (Shi and Malik, Normalized Cuts, 2000;
# Dhillon's co-clustering, 2001, is the bipartite case) for as long as the best cut is a cheap one, so none has to say
# how many clusters there are. The start of the power iteration comes from the seed and the names, sums are exact: one
# seed gives one result in every process. Compute it off the request path.
_ITERATIONS = 300
_STILL = 1e-7
"""The iteration ends when no entry moves further than this, or after so many; the sweep over all cuts forgives it."""
_SMALLEST = 4
"""Nodes that a split needs: a tool and a capability on either side."""

_Node = tuple[str, str]
_Near = dict[_Node, list[_Node]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectralConfig:
    """The greatest normalised cut that is made (0 to 2: the crossing edges as a share of either side, added)."""

    max_cut: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("max_cut", self.max_cut, 0, 2)
        check_count("seed", self.seed, 0)


DEFAULT = SpectralConfig()


@dataclass(frozen=True, slots=True)
class SpectralClusters:
    """The cluster of each capability, and of each tool that is part of one. Clusters are numbered by first member."""

    capabilities: Mapping[str, int]
    tools: Mapping[str, int]


def spectral_clusters(capabilities: Mapping[str, Iterable[str]], config: SpectralConfig = DEFAULT) -> SpectralClusters:
    """The clusters of a bipartite graph given as the tools of each capability (`IncidenceStore.capabilities`)."""
    near: _Near = {}
    for capability, tools in capabilities.items():
        mine = near.setdefault(("capability", capability), [])
        for tool in set(tools):
            mine.append(("tool", tool))
            near.setdefault(("tool", tool), []).append(("capability", capability))
    done: list[list[_Node]] = []
    waiting = [sorted(near)]
    while waiting:
        nodes = waiting.pop()
        inside = _within(nodes, near)
        parts = _components(nodes, inside)
        if len(parts) == 1:
            parts = _bisect(nodes, inside, config)
        if len(parts) == 1:
            done.append(nodes)
        else:
            waiting += parts
    of = {node: number for number, nodes in enumerate(sorted(done)) for node in nodes}
    return SpectralClusters(_those("capability", of), _those("tool", of))


def _those(kind: str, of: dict[_Node, int]) -> Mapping[str, int]:
    return MappingProxyType({name: number for (what, name), number in of.items() if what == kind})


def _within(nodes: list[_Node], near: _Near) -> _Near:
    """The part of the graph that is among `nodes`; neighbours sorted."""
    chosen = set(nodes)
    return {node: sorted(chosen.intersection(near[node])) for node in nodes}


def _components(nodes: list[_Node], near: _Near) -> list[list[_Node]]:
    """The connected parts, each sorted. Without nodes there is one, and it is empty."""
    parts: list[list[_Node]] = []
    seen: set[_Node] = set()
    for start in nodes:
        if start in seen:
            continue
        part = [start]
        seen.add(start)
        for node in part:  # it grows while it is walked
            fresh = [other for other in near[node] if other not in seen]
            seen.update(fresh)
            part += fresh
        parts.append(sorted(part))
    return parts or [nodes]


def _bisect(nodes: list[_Node], near: _Near, config: SpectralConfig) -> list[list[_Node]]:
    """The two sides of the cheapest cut along the second eigenvector, or the nodes as they are."""
    if len(nodes) < _SMALLEST:
        return [nodes]
    height = _second_eigenvector(nodes, near, config.seed)
    order = sorted(nodes, key=lambda node: (height[node], node))
    whole = sum(map(len, near.values()))
    below: set[_Node] = set()
    volume = crossing = 0
    cheapest, cut_at = math.inf, 0
    for count, node in enumerate(order[:-1], start=1):
        inward = len(below.intersection(near[node]))
        below.add(node)
        volume += len(near[node])
        crossing += len(near[node]) - 2 * inward
        cost = crossing / volume + crossing / (whole - volume)
        if cost < cheapest:
            cheapest, cut_at = cost, count
    if cheapest > config.max_cut:
        return [nodes]
    return [sorted(order[:cut_at]), sorted(order[cut_at:])]


def _second_eigenvector(nodes: list[_Node], near: _Near, seed: int) -> dict[_Node, float]:
    """By power iteration on (1 + D^-1/2 A D^-1/2) / 2, with the first eigenvector taken out; divided by D^1/2."""
    place = {node: index for index, node in enumerate(nodes)}
    rows = [[place[other] for other in near[node]] for node in nodes]
    root = [math.sqrt(len(row)) for row in rows]
    first = _unit(root)
    vector = _without(first, [_start(node, seed) for node in nodes])
    for _ in range(_ITERATIONS):
        scaled = [value / by for value, by in zip(vector, root, strict=True)]
        turned = [
            value + math.fsum([scaled[other] for other in row]) / by
            for value, by, row in zip(vector, root, rows, strict=True)
        ]
        before, vector = vector, _without(first, turned)
        if max(map(abs, map(sub, vector, before))) < _STILL:
            break
    return {node: value / by for node, value, by in zip(nodes, vector, root, strict=True)}


def _without(first: list[float], vector: list[float]) -> list[float]:
    """`vector` made orthogonal to `first`, with length 1."""
    along = math.fsum(map(mul, first, vector))
    return _unit([value - along * part for part, value in zip(first, vector, strict=True)])


def _unit(vector: list[float]) -> list[float]:
    length = math.sqrt(math.fsum(map(mul, vector, vector)))
    return [value / length for value in vector]


def _start(node: _Node, seed: int) -> float:
    """A number of (0, 1] from the seed and the name."""
    return (1 + crc32(f"{seed}:{node[0]}:{node[1]}".encode("utf-8", "surrogatepass"))) / 2**32
