"""Whatever the data: order changes no bit, more never counts for less, every number explains itself."""

from __future__ import annotations

import copy
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_scoring.tools.clusters import Communities, louvain, spectral_clusters
from smart_model_router_scoring.tools.graph import IncidenceStore, ToolGraph
from smart_model_router_scoring.tools.learning import AdaptiveThresholdManager
from smart_model_router_scoring.tools.suggestions import (
    NextStepConfig,
    Record,
    Suggestions,
    Uses,
    alpha,
    discover,
    hybrid_search,
    match_capabilities,
    next_steps,
)

Shuffle = Callable[[list[tuple[str, str, float]]], None]

TOOLS = st.sampled_from([f"t{at}" for at in range(9)] + ["é", "\u65e5\u672c"])
SHARES = st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 0.7, 0.9999, 1.0])
EDGES = st.lists(st.tuples(TOOLS, TOOLS, SHARES), max_size=40)
SIMILARITY = st.dictionaries(TOOLS, SHARES, max_size=8)
CAPABILITIES = st.dictionaries(
    st.sampled_from([f"c{at}" for at in range(7)]), st.sets(TOOLS, max_size=5).map(sorted), max_size=7
)


def bits(found: Suggestions) -> list[tuple[str, str]]:
    """Ids and scores, exactly."""
    return [(hit.id, hit.raw.hex()) for hit in found.hits]


@given(EDGES, SIMILARITY, st.lists(TOOLS, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_edges_candidates_and_context_changes_no_bit(
    edges: list[tuple[str, str, float]], semantic: dict[str, float], context: list[str], chance: object
) -> None:
    """Hybrid search, communities and their modularity."""
    shuffle: Shuffle = chance.shuffle  # type: ignore[attr-defined]  # hypothesis's random
    other = list(edges)
    shuffle(other)
    one, two = ToolGraph(edges), ToolGraph(other)
    turned = dict(reversed(semantic.items()))
    assert bits(hybrid_search(semantic, context, one)) == bits(hybrid_search(turned, context[::-1] * 2, two))
    assert louvain(one) == louvain(two)


@given(EDGES, SIMILARITY, st.lists(TOOLS, max_size=4))
def test_hybrid_scores_are_shares_and_recompose(
    edges: list[tuple[str, str, float]], semantic: dict[str, float], context: list[str]
) -> None:
    """From the leaves of its explanation each score comes again, and the input is as it was."""
    before = copy.deepcopy((semantic, context))
    found = hybrid_search(semantic, context, ToolGraph(edges))
    assert all(0.0 <= hit.score <= 1.0 for hit in found.hits)
    assert all(abs(hit.explanation.recompose() - hit.raw) <= 1e-12 for hit in found.hits)
    assert (semantic, context) == before


@given(EDGES, TOOLS, SHARES, SHARES)
def test_a_better_fit_never_scores_lower(
    edges: list[tuple[str, str, float]], tool: str, one: float, other: float
) -> None:
    """Of the same tool in the same context."""
    graph = ToolGraph(edges)
    low, high = (hybrid_search({tool: fit}, ["t0", "t1"], graph).hits[0].raw for fit in sorted([one, other]))
    assert low <= high


@given(st.floats(0, 1), st.floats(0, 1))
def test_alpha_never_rises_with_density(one: float, other: float) -> None:
    """And stays between its ends."""
    low, high = sorted([one, other])
    assert 0.5 <= alpha(high) <= alpha(low) <= 1.0


@given(EDGES)
def test_communities_are_a_partition_and_better_than_nothing(edges: list[tuple[str, str, float]]) -> None:
    """Every tool is in one group; modularity is at least that of one group for all, which is 0."""
    graph = ToolGraph(edges)
    found = louvain(graph)
    assert sorted(tool for group in found.members for tool in group) == sorted(graph.tools)
    assert all(found.around(tool) == found.members[found.of[tool]] for tool in graph.tools)
    assert -1e-9 <= found.modularity <= 1.0


@given(EDGES)
def test_the_modularity_is_that_of_the_definition(edges: list[tuple[str, str, float]]) -> None:
    """Computed pair by pair from the graph: the sum of (A - kk/2m) / 2m over pairs of one group."""
    graph = ToolGraph(edges)
    found = louvain(graph)
    weight = {
        (one, other): graph.successors(one).get(other, 0.0) + graph.successors(other).get(one, 0.0)
        for one in graph.tools
        for other in graph.tools
    }
    degree = {one: sum(weight[one, other] for other in graph.tools) for one in graph.tools}
    whole = sum(degree.values()) or 1.0
    pairs = [(one, other) for group in found.members for one in group for other in group]
    expected = sum(weight[pair] - degree[pair[0]] * degree[pair[1]] / whole for pair in pairs) / whole
    assert abs(found.modularity - expected) < 1e-9


def every_next_step(
    current: str, graph: ToolGraph, groups: Communities, used: dict[str, float], now: float, config: NextStepConfig
) -> list[tuple[str, float]]:
    """The slow way: each tool there is, by the formula."""
    found = []
    for tool in {*graph.tools, *used} - {current}:
        together = current in groups.of and groups.of.get(tool) == groups.of[current]
        recent = tool in used and now - used[tool] < config.recency_seconds
        score = config.cooccurrence * graph.successors(current).get(tool, 0.0)
        score += config.community * together + config.recency * recent
        if score > 0:
            found.append((tool, score))
    return sorted(found, key=lambda pair: (-round(pair[1], 12), pair[0]))


CONFIGS = st.sampled_from(
    [
        NextStepConfig(),
        NextStepConfig(cooccurrence=0.1, community=0.0, recency=1.0),
        NextStepConfig(cooccurrence=0.5, community=0.5, recency=0.5),
        NextStepConfig(recency=0.0),
    ]
)


@given(
    EDGES,
    TOOLS,
    st.dictionaries(TOOLS, st.sampled_from([0.0, 1.0, 2.0, 86_401.0]), max_size=9),
    CONFIGS,
    st.integers(1, 6),
)
def test_the_bounded_search_finds_what_looking_at_every_tool_finds(
    edges: list[tuple[str, str, float]], current: str, used: dict[str, float], config: NextStepConfig, limit: int
) -> None:
    """The few candidates of each kind are enough for any limit."""
    graph = ToolGraph(edges)
    groups = louvain(graph)
    found = next_steps(current, graph, groups, Uses(used), 86_401.0, config, limit=limit)
    slow = every_next_step(current, graph, groups, used, 86_401.0, config)[:limit]
    assert [(hit.id, round(hit.raw, 9)) for hit in found.hits] == [(tool, round(score, 9)) for tool, score in slow]
    assert all(abs(hit.explanation.recompose() - hit.raw) <= 1e-12 for hit in found.hits)


@given(st.lists(st.tuples(TOOLS, st.sampled_from([0.0, 1.0, 2.0, 3.0])), max_size=20))
def test_uses_told_one_by_one_are_the_uses_told_at_once(told: list[tuple[str, float]]) -> None:
    """In any order, with any repetition."""
    one = Uses()
    for tool, at in told:
        one.use(tool, at)
    last = {tool: max(at for name, at in told if name == tool) for tool, _ in told}
    for instant in (-1.0, 0.0, 1.5, 2.0, 3.0):
        assert list(one.after(instant)) == list(Uses(last).after(instant))
        assert set(one.after(instant)) == {tool for tool in last if one.is_after(tool, instant)}


@given(SIMILARITY, st.dictionaries(TOOLS, st.builds(Record, st.integers(-1, 12), st.integers(-1, 12))))
def test_a_match_recomposes_and_is_at_most_1_2_times_its_similarity(
    similarity: dict[str, float], records: dict[str, Record]
) -> None:
    """Impossible records included."""
    for hit in match_capabilities(similarity, records).hits:
        assert 0.0 <= hit.raw <= 1.2 * similarity[hit.id] + 1e-12
        assert hit.score == min(hit.raw, 1.0)
        assert abs(hit.explanation.recompose() - hit.raw) <= 1e-12


@given(CAPABILITIES, st.integers(0, 3))
def test_clusters_cover_every_node_and_do_not_depend_on_order(capabilities: dict[str, list[str]], seed: int) -> None:
    """Each capability, and each tool of one."""
    found = spectral_clusters(capabilities)
    assert set(found.capabilities) == set(capabilities)
    assert set(found.tools) == {tool for tools in capabilities.values() for tool in tools}
    assert found == spectral_clusters({name: tools[::-1] for name, tools in reversed(capabilities.items())})


@given(CAPABILITIES, st.lists(TOOLS, max_size=4), TOOLS)
def test_one_tool_more_in_the_context_never_lowers_a_discovery(
    capabilities: dict[str, list[str]], context: list[str], more: str
) -> None:
    """Neither its overlap nor its boost."""
    store = IncidenceStore()
    for name, tools in capabilities.items():
        store.define(name, tools)
    clusters = spectral_clusters(store.capabilities)
    before = {hit.id: hit.raw for hit in discover(context, store, clusters).hits}
    after = {hit.id: hit.raw for hit in discover([*context, more], store, clusters).hits}
    assert all(after[name] >= score for name, score in before.items())
    assert all(0 < score <= 1.5 for score in after.values())


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=120))
def test_a_threshold_never_leaves_its_bounds_and_moves_by_whole_steps(records: list[tuple[bool, bool]]) -> None:
    """From 0.40 to 0.90, a multiple of 0.05, whatever happened."""
    manager = AdaptiveThresholdManager()
    for accepted, good in records:
        before = manager.get_threshold()
        manager.record(accepted=accepted, good=good)
        assert round(abs(manager.get_threshold() - before), 9) in {0.0, 0.05}
        assert 0.40 <= manager.get_threshold() <= 0.90
        assert abs(manager.get_threshold() * 20 - round(manager.get_threshold() * 20)) < 1e-9
