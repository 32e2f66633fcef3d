"""Suggestions of tools and capabilities: by search, by the next step, by match, by discovery. Each explains itself."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.options import (
    ConfigError,
    Notes,
    check_count,
    check_number,
    check_positive,
    is_number,
    unit,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from smart_model_router_scoring.tools.clusters import Communities, SpectralClusters
    from smart_model_router_scoring.tools.graph import IncidenceStore, ToolGraph


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A tool or capability and how its score came about."""

    id: str
    explanation: Term

    @property
    def raw(self) -> float:
        """The number that ranks; a bonus may lift it above 1."""
        return self.explanation.value

    @property
    def score(self) -> float:
        """The number to report and to hold against a threshold: `raw`, at most 1."""
        return min(self.raw, 1.0)


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Best first; equal scores in the order of their ids. `notes` are the faults found in the data."""

    hits: tuple[Suggestion, ...]
    notes: Notes


def ranked(scores: Mapping[str, float], limit: int | None, explain: Callable[[str], Term], notes: Notes) -> Suggestions:
    """The best `limit` of `scores` (None: all of them). Only what is returned is explained: that is the costly part."""
    if limit is not None:
        check_count("limit", limit, 1)
    best = nsmallest(len(scores) if limit is None else limit, scores, key=lambda name: (-scores[name], name))
    return Suggestions(tuple(Suggestion(name, explain(name)) for name in best), notes)


# Capability match: how well it fits what was asked for, times how far its record can be relied upon.


@dataclass(frozen=True, slots=True)
class Record:
    """The number of runs of a capability, and of those that ended well."""

    runs: int
    successes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityConfig:
    """The value of a success rate: below `low` almost nothing, above `high` a little extra, else the rate itself."""

    low: float = 0.5
    low_factor: float = 0.1
    high: float = 0.9
    high_factor: float = 1.2
    min_runs: int = 5
    """With fewer runs nothing is known yet, and the factor is 1."""

    def __post_init__(self) -> None:
        check_number("low", self.low, 0, 1)
        check_number("low_factor", self.low_factor, 0, 1)
        check_number("high", self.high, 0, 1)
        check_number("high_factor", self.high_factor, 1, 10)
        check_count("min_runs", self.min_runs, 1)
        if self.low > self.high:
            raise ConfigError("high", self.high, f"a number of at least low, {self.low},")


_RELIABILITY = ReliabilityConfig()
UNKNOWN = Record(0, 0)


def reliability(record: Record, config: ReliabilityConfig = _RELIABILITY) -> float:
    """The factor of a record. One that cannot be (more successes than runs) is worth as much as none: 1."""
    if record.runs < config.min_runs or not 0 <= record.successes <= record.runs:
        return 1.0
    rate = record.successes / record.runs
    if rate < config.low:
        return config.low_factor
    return config.high_factor if rate > config.high else 1.0


def match_capabilities(
    similarity: Mapping[str, float],
    records: Mapping[str, Record],
    config: ReliabilityConfig = _RELIABILITY,
    *,
    limit: int | None = None,
) -> Suggestions:
    """Rank capabilities by similarity x reliability; `raw` ranks, `score` is at most 1.

    `similarity` is that of what was asked for with each description, 0 to 1; what is outside is noted and moved to
    the nearer end.
    """
    notes = Notes()
    fit = {name: unit(value, name, notes) for name, value in similarity.items()}
    for name in fit:
        record = records.get(name, UNKNOWN)
        if not 0 <= record.successes <= record.runs:
            notes.add("impossible_record", name, record)
    scores = {name: value * reliability(records.get(name, UNKNOWN), config) for name, value in fit.items()}

    def explain(name: str) -> Term:
        record = records.get(name, UNKNOWN)
        factor = given("reliability", reliability(record, config), runs=record.runs, successes=record.successes)
        return combined("match", "product", [given("similarity", fit[name]), factor])

    return ranked(scores, limit, explain, notes)


# Strategic discovery: capabilities whose tools are in use already, and more so those of the same neighbourhood.


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryConfig:
    """The addition for the same spectral cluster, as a share of the overlap: 0.5 is half as much again."""

    boost: float = 0.5

    def __post_init__(self) -> None:
        check_number("boost", self.boost, 0, 10)


_DISCOVERY = DiscoveryConfig()


def discover(
    context: Iterable[str],
    store: IncidenceStore,
    clusters: SpectralClusters,
    config: DiscoveryConfig = _DISCOVERY,
    *,
    limit: int | None = None,
) -> Suggestions:
    """Rank capabilities by overlap x (1 + boost); `raw` ranks, `score` is at most 1.

    The overlap is the share of the capability's tools that the context has; the boost counts when the capability is
    in a cluster that a tool of the context is in, so one tool more in the context never lowers a score. Capabilities
    without overlap are not suggested. `clusters` may be older than the store: what they do not know has no boost.
    """
    notes = Notes()
    used = set(context)
    active = {clusters.tools[tool] for tool in used if tool in clusters.tools}
    overlaps = {name: store.overlap(name, used) for name in store.capabilities}
    for name, tools in store.capabilities.items():
        if not tools:
            notes.add("capability_without_tools", name)

    def boost(name: str) -> float:
        return config.boost if clusters.capabilities.get(name) in active else 0.0

    def explain(name: str) -> Term:
        factor = combined("factor", "sum", [given("one", 1.0), given("boost", boost(name))])
        return combined("discovery", "product", [given("overlap", overlaps[name]), factor])

    scores = {name: overlap * (1.0 + boost(name)) for name, overlap in overlaps.items() if overlap > 0}
    return ranked(scores, limit, explain, notes)


# Hybrid search for a tool: by its description, and by the tools of the current context it is used with.


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridConfig:
    """The weight of the graph. Alphas and densities are shares of [0, 1]."""

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


_HYBRID = HybridConfig()


def alpha(density: float, config: HybridConfig = _HYBRID) -> float:
    """The share of the semantic score at a graph density: cold, mature, or on the line between the two."""
    if density <= config.density_cold:
        return config.alpha_cold
    if density >= config.density_mature:
        return config.alpha_mature
    way = (density - config.density_cold) / (config.density_mature - config.density_cold)
    return config.alpha_cold + (config.alpha_mature - config.alpha_cold) * way


def graph_score(tool: str, context: Iterable[str], graph: ToolGraph, config: HybridConfig = _HYBRID) -> float:
    """The closeness of `tool` to the context, 0 to 1: 1 beside any of its tools, else by the best Adamic-Adar sum."""
    others = [other for other in context if other != tool]
    if not graph.neighbours(tool).isdisjoint(others):
        return 1.0
    best = max((graph.adamic_adar(tool, other) for other in others), default=0.0)
    return min(best / config.adamic_adar_full, 1.0)


def hybrid_search(
    semantic: Mapping[str, float],
    context: Iterable[str],
    graph: ToolGraph,
    config: HybridConfig = _HYBRID,
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


# The tool that probably comes next: what followed before, what belongs together, what was in use today.


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStepConfig:
    """The three weights, each of [0, 1], and for how many seconds a use is a recent one."""

    cooccurrence: float = 0.6
    community: float = 0.3
    recency: float = 0.1
    recency_seconds: float = 86_400.0

    def __post_init__(self) -> None:
        for field in ("cooccurrence", "community", "recency"):
            check_number(field, getattr(self, field), 0, 1)
        check_positive("recency_seconds", self.recency_seconds)


_NEXT_STEP = NextStepConfig()


class Uses:
    """The last use of each tool of a project, in seconds of one clock. Not thread-safe.

    Kept in the order of time, so that asking for the recent ones looks at no others.
    """

    def __init__(self, last_used: Mapping[str, float] = MappingProxyType({})) -> None:
        self.notes = Notes()
        self._at: dict[str, float] = {}
        for tool, at in last_used.items():
            if is_number(at):
                self._at[tool] = float(at)
            else:
                self.notes.add("bad_time", tool, at)
        self._order = sorted((at, tool) for tool, at in self._at.items())

    def use(self, tool: str, at: float) -> None:
        """Take down a use; one that is older than the last is none. A time that is no finite number is noted."""
        if not is_number(at):
            self.notes.add("bad_time", tool, at)
            return
        last = self._at.get(tool, -math.inf)
        if at > last:
            if tool in self._at:
                del self._order[bisect_left(self._order, (last, tool))]
            self._at[tool] = float(at)
            insort(self._order, (float(at), tool))

    def after(self, instant: float) -> Iterator[str]:
        """The tools that were last used strictly after `instant`, the oldest use first."""
        return (tool for _, tool in self._order[bisect_right(self._order, instant, key=itemgetter(0)) :])

    def is_after(self, tool: str, instant: float) -> bool:
        """True when the last use of `tool` was strictly after `instant`."""
        return self._at.get(tool, -math.inf) > instant


def next_steps(
    current: str,
    graph: ToolGraph,
    communities: Communities,
    uses: Uses,
    now: float,
    config: NextStepConfig = _NEXT_STEP,
    *,
    limit: int = 5,
) -> Suggestions:
    """The `limit` most probable tools after `current`, never `current` itself.

    A use less than `recency_seconds` before `now` is recent, one exactly so long ago is not, one in the future is. A
    tool that has nothing for it is not suggested.
    """
    check_count("limit", limit, 1)
    followers = graph.successors(current)
    since = now - config.recency_seconds
    group = communities.of.get(current)
    weigh = (config.cooccurrence, config.community, config.recency)

    def facts(tool: str) -> tuple[float, float, float]:
        together = group is not None and communities.of.get(tool) == group
        return followers.get(tool, 0.0), float(together), float(uses.is_after(tool, since))

    def score(tool: str) -> float:
        return math.fsum([weight * fact for weight, fact in zip(weigh, facts(tool), strict=True)])

    # Tools of the group that never followed score alike but for recency, which no weight makes worse: only the first
    # few ids of the recent ones, and the first few of all, can be among the best.
    known = set(followers) | {current}
    others = [tool for tool in communities.around(current) if tool not in known]
    known.update(islice((tool for tool in others if uses.is_after(tool, since)), limit))
    known.update(others[:limit])
    scores = {tool: score(tool) for tool in known - {current}}
    if sum(value > config.recency for value in scores.values()) < limit:
        for tool in nsmallest(limit, (tool for tool in uses.after(since) if tool not in known)):
            scores[tool] = score(tool)

    def explain(tool: str) -> Term:
        names = ("cooccurrence", "community", "recency")
        parts = [
            combined(name, "product", [given("weight", weight), given("value", value)])
            for name, weight, value in zip(names, weigh, facts(tool), strict=True)
        ]
        return combined("next_step", "sum", parts, after=current)

    return ranked({tool: score for tool, score in scores.items() if score > 0}, limit, explain, Notes())
