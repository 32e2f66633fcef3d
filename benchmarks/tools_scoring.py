"""Ranking tools and memories: the next of ten thousand tools, one step of learning, a hundred thousand memories.

Each figure beside what a user would write instead: looking at every tool, one weighted sum, sorting by score alone.
CPU time, the median of several runs. What is computed off the request path is told, too, without a limit that matters.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks._measure import Figure, report

from smart_model_router_scoring.recall.memory import Hit, Memory, RecallSettings
from smart_model_router_scoring.recall.ranking import recall
from smart_model_router_scoring.tools.clusters import Communities, louvain, spectral_clusters
from smart_model_router_scoring.tools.graph import ToolGraph
from smart_model_router_scoring.tools.learning import OnlineWeights
from smart_model_router_scoring.tools.suggestions import Uses, next_steps

if TYPE_CHECKING:
    from collections.abc import Callable

TOOLS = 10_000
MEMORIES = 100_000
DAY = 86_400.0
NOW = 2 * DAY
WEIGHTS = {"cooccurrence": 0.6, "community": 0.3, "recency": 0.1}
DICE = random.Random(1)  # noqa: S311 - nothing is secret here


def seconds(work: Callable[[], object], calls: int = 1, runs: int = 5) -> float:
    """The median CPU time of one call."""
    taken = []
    for _ in range(runs):
        start = time.process_time()
        for _ in range(calls):
            work()
        taken.append((time.process_time() - start) / calls)
    return statistics.median(taken)


def graph() -> ToolGraph:
    """A hundred groups of a hundred tools; four of five steps stay in the group."""
    edges = []
    for tool in range(TOOLS):
        for _ in range(5):
            inside = DICE.random() < 0.8
            other = tool // 100 * 100 + DICE.randrange(100) if inside else DICE.randrange(TOOLS)
            edges.append((f"t{tool}", f"t{other}", DICE.uniform(0.01, 1.0)))
    return ToolGraph(edges)


def every_tool(current: str, tools: ToolGraph, groups: Communities, used: dict[str, float]) -> list[str]:
    """Return the results of the simplest code: the formula for each tool there is."""

    def score(tool: str) -> float:
        together = groups.of[tool] == groups.of[current]
        return 0.6 * tools.successors(current).get(tool, 0.0) + 0.3 * together + 0.1 * (NOW - used[tool] < DAY)

    return sorted(tools.tools, key=lambda tool: (-score(tool), tool))[:5]


def next_step_figures() -> list[Figure]:
    """A usual tool, one that nothing is known of, and what is computed beforehand."""
    tools = graph()
    groups = louvain(tools)
    used = {tool: DICE.uniform(0, NOW) for tool in tools.tools}
    uses = Uses(used)
    baseline = seconds(lambda: every_tool("t5", tools, groups, used), 3) * 1e3
    usual = seconds(lambda: next_steps("t5", tools, groups, uses, NOW), 200) * 1e3
    lonely = seconds(lambda: next_steps("nobody", tools, groups, uses, NOW), 50) * 1e3
    capabilities = {f"c{at}": [f"t{at * 3 + step}" for step in range(5)] for at in range(1_000)}
    of_groups = seconds(lambda: louvain(tools), runs=1)
    of_clusters = seconds(lambda: spectral_clusters(capabilities), runs=1)
    return [
        Figure(f"tools[next step of {TOOLS:,}]", usual, "ms", baseline, "the formula for every tool", 2.0),
        Figure("tools[next step, nothing but recent tools]", lonely, "ms", baseline, "the formula for every tool", 2.0),
        Figure(f"tools[communities of {TOOLS:,}, off the path]", of_groups, "s", 0, "none", 30),
        Figure("tools[clusters of 1,000 capabilities, off the path]", of_clusters, "s", 0, "none", 30),
    ]


def learning_figure() -> Figure:
    """One update of three weights."""
    weights = OnlineWeights(WEIGHTS)
    features = [{name: DICE.random() for name in WEIGHTS} for _ in range(5_000)]
    samples = iter(features * 10)
    update = seconds(lambda: weights.update(next(samples), good=DICE.random() < 0.5), 5_000) * 1e6
    sums = iter(features * 10)
    plain = seconds(lambda: math.fsum(w * f for w, f in zip(WEIGHTS.values(), next(sums).values(), strict=True)), 5_000)
    return Figure("tools[online update]", update, "us", plain * 1e6, "the weighted sum", 20.0)


def recall_figures() -> list[Figure]:
    """A hundred thousand candidates with dates as text, the bias off and on."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    hits = [
        Hit(
            Memory(id=f"m{number}", timestamp=(now - timedelta(days=DICE.uniform(0, 500))).isoformat()),
            DICE.random(),
        )
        for number in range(MEMORIES)
    ]
    baseline = seconds(lambda: sorted(hits, key=lambda hit: (-hit.score, hit.memory.id)), runs=3)
    off = seconds(lambda: recall(hits, "x", now), runs=3)
    on = seconds(lambda: recall(hits, "x", now, RecallSettings(recency_bias="on")), runs=3)
    return [
        Figure(f"recall[{MEMORIES:,} candidates]", off, "s", baseline, "sorting by score and id", 2.0),
        Figure(f"recall[{MEMORIES:,}, recency bias]", on, "s", baseline, "sorting by score and id", 4.0),
    ]


if __name__ == "__main__":
    sys.exit(report(*next_step_figures(), learning_figure(), *recall_figures()))
