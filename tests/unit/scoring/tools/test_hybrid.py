"""Hybrid search: alpha by density, the graph score, the ranking and its explanation."""

from __future__ import annotations

import math
from typing import Any

import pytest

from smart_model_router_scoring.explain import given
from smart_model_router_scoring.options import ConfigError, Note
from smart_model_router_scoring.tools.graph import ToolGraph
from smart_model_router_scoring.tools.suggestions import HybridConfig, alpha, graph_score, hybrid_search

HALF = 0.7213475204444817  # (1 / ln 2) / 2
# a - w - b: a and b share w. c beside a. Six of 5 x 4 = 20 edges: density 0.3, alpha 0.5.
GRAPH = ToolGraph([("a", "w", 1), ("w", "b", 1), ("w", "a", 1), ("b", "w", 1), ("a", "c", 1), ("c", "a", 1)], ["z"])


@pytest.mark.parametrize(
    ("density", "expected"),
    [(0.0, 1.0), (0.01, 1.0), (0.07, 0.875), (0.13, 0.75), (0.19, 0.625), (0.25, 0.5), (0.9, 0.5)],
)
def test_alpha_falls_on_a_line_from_cold_to_mature(density: float, expected: float) -> None:
    """1.0 up to 0.01, 0.5 from 0.25, linear in between."""
    assert alpha(density) == pytest.approx(expected, abs=1e-12)


def test_the_ends_of_the_line_are_exact() -> None:
    """Both bounds belong to the constant parts."""
    assert alpha(0.01) == 1.0
    assert alpha(0.25) == 0.5
    config = HybridConfig(alpha_cold=0.9, alpha_mature=0.3, density_cold=0.2, density_mature=0.4)
    assert (alpha(0.2, config), alpha(0.4, config)) == (0.9, 0.3)
    assert alpha(0.3, config) == pytest.approx(0.6, abs=1e-12)


def test_a_direct_edge_to_any_context_tool_is_1() -> None:
    """In either direction."""
    graph = ToolGraph([("a", "b", 0.1), ("c", "d", 0.1)])
    assert graph_score("b", ["a"], graph) == 1.0
    assert graph_score("a", ["x", "b"], graph) == 1.0
    assert graph_score("a", ["c", "d"], graph) == 0.0


def test_without_one_the_best_adamic_adar_counts_by_half() -> None:
    """One shared neighbour of two: (1 / ln 2) / 2."""
    assert graph_score("b", ["a"], GRAPH) == pytest.approx(HALF, abs=1e-12)
    assert graph_score("b", ["z", "a"], GRAPH) == pytest.approx(HALF, abs=1e-12)
    assert graph_score("b", ["a"], GRAPH, HybridConfig(adamic_adar_full=4.0)) == pytest.approx(HALF / 2, abs=1e-12)


def test_the_graph_score_is_at_most_1() -> None:
    """Two shared neighbours of two would be 1.44."""
    graph = ToolGraph([("a", "v", 1), ("v", "b", 1), ("a", "w", 1), ("w", "b", 1)])
    assert graph_score("b", ["a"], graph) == 1.0


def test_a_tool_is_no_company_for_itself() -> None:
    """What it shares with itself is not counted."""
    assert graph_score("a", ["a"], GRAPH) == 0.0
    assert graph_score("a", [], GRAPH) == 0.0


def test_the_score_is_the_weighted_sum() -> None:
    """At density 0.3 half and half."""
    found = hybrid_search({"b": 0.6, "c": 0.1, "z": 0.9}, ["a"], GRAPH)
    scores = {hit.id: hit.score for hit in found.hits}
    assert scores["b"] == pytest.approx(0.3 + HALF / 2, abs=1e-12)
    assert scores["c"] == pytest.approx(0.55, abs=1e-12)
    assert scores["z"] == pytest.approx(0.45, abs=1e-12)
    assert [hit.id for hit in found.hits] == ["b", "c", "z"]


def test_alpha_is_that_of_the_density() -> None:
    """Three edges of twenty are 0.15: alpha 0.708333."""
    graph = ToolGraph([("a", "b", 1), ("b", "c", 1), ("c", "d", 1)], ["e"])
    [hit] = hybrid_search({"b": 0.5}, ["a"], graph).hits
    share = 1 - 0.5 * (0.14 / 0.24)
    assert hit.score == pytest.approx(share * 0.5 + (1 - share), abs=1e-12)


@pytest.mark.parametrize("context", [[], ["nobody"]])
def test_without_a_known_context_only_the_semantic_score_counts(context: list[str]) -> None:
    """Alpha is 1, however full the graph is."""
    found = hybrid_search({"b": 0.6}, context, GRAPH)
    assert found.hits[0].score == 0.6
    assert found.notes.kept == tuple(Note("unknown_tool", tool) for tool in context)


@pytest.mark.parametrize(
    ("value", "counted", "code"),
    [
        (math.nan, 0.0, "not_a_number"),
        (math.inf, 0.0, "not_a_number"),
        (-0.5, 0.0, "outside_0_to_1"),
        (1.5, 1.0, "outside_0_to_1"),
    ],
)
def test_a_similarity_that_cannot_be_is_noted(value: float, counted: float, code: str) -> None:
    """It is moved to the nearer end, or to 0."""
    found = hybrid_search({"b": value}, [], GRAPH)
    assert found.hits[0].score == counted
    assert found.notes.kept == (Note(code, "b", str(value)),)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_the_ends_of_the_range_are_no_fault(value: float) -> None:
    """0 and 1 are similarities."""
    found = hybrid_search({"b": value}, [], GRAPH)
    assert found.hits[0].score == value
    assert dict(found.notes.counts) == {}


def test_equal_scores_come_in_the_order_of_ids_and_limit_cuts() -> None:
    """Ties have one order."""
    found = hybrid_search({"q": 0.5, "p": 0.5, "r": 0.7}, [], GRAPH, limit=2)
    assert [hit.id for hit in found.hits] == ["r", "p"]


def test_the_explanation_says_which_edge_and_which_neighbours() -> None:
    """A direct edge is named; without one the best of the context is."""
    found = {hit.id: hit.explanation for hit in hybrid_search({"b": 0.6, "c": 0.1}, ["a", "z"], GRAPH).hits}
    direct = found["c"].find("graph")
    assert direct is not None
    assert direct.facts["direct_edge"] == "a"
    shared = found["b"].find("adamic_adar")
    assert shared is not None
    assert (shared.facts["shared_with"], [part.name for part in shared.parts]) == ("a", ["w"])
    assert found["b"].facts["density"] == pytest.approx(0.3)


def test_a_tool_alone_in_its_context_is_explained_too() -> None:
    """There is nobody to share with, and that is a 0."""
    [hit] = hybrid_search({"z": 0.8}, ["z"], GRAPH).hits
    assert hit.score == pytest.approx(0.4, abs=1e-12)
    assert hit.explanation.recompose() == hit.raw
    assert hit.explanation.find("adamic_adar") == given("adamic_adar", 0.0)


def test_a_limit_below_1_is_refused() -> None:
    """ConfigError names the field."""
    with pytest.raises(ConfigError) as refused:
        hybrid_search({"b": 0.6}, [], GRAPH, limit=0)
    assert refused.value.field == "limit"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha_cold", 1.1),
        ("alpha_cold", -0.1),
        ("alpha_mature", 1.01),
        ("alpha_mature", math.nan),
        ("density_cold", -0.1),
        ("density_cold", 1.01),
        ("density_mature", 1.1),
        ("density_mature", 0.01),
        ("adamic_adar_full", 0),
    ],
)
def test_nonsense_is_refused_at_once(field: str, value: Any) -> None:
    """ConfigError names field, value and range."""
    with pytest.raises(ConfigError) as refused:
        HybridConfig(**{field: value})
    assert refused.value.field == field
    assert refused.value.value is value


def test_the_ends_of_each_range_are_allowed() -> None:
    """0 and 1 are shares."""
    config = HybridConfig(alpha_cold=0, alpha_mature=1, density_cold=0, density_mature=1)
    assert alpha(0.5, config) == 0.5


def test_a_refusal_names_the_other_field() -> None:
    """What the mature density may be depends on the cold one."""
    with pytest.raises(ConfigError) as refused:
        HybridConfig(density_mature=0.005)
    assert refused.value.allowed == "a number above density_cold, 0.01,"


def test_each_term_has_its_name() -> None:
    """From the sum down to what was given."""
    [hit] = hybrid_search({"b": 0.6}, ["a"], GRAPH).hits
    assert [line.split(" = ")[0].strip() for line in hit.explanation.lines()] == [
        "hybrid",
        "semantic part",
        "alpha",
        "semantic",
        "graph part",
        "1 - alpha",
        "graph",
        "share",
        "adamic_adar",
        "w",
        "full",
        "most",
    ]


def test_the_ranking_is_by_the_configuration() -> None:
    """At density 0.3 alpha is 0.6 here: z has 0.27, and b with half of its half 0.12 + 0.4 x 0.3607 = 0.2643."""
    config = HybridConfig(alpha_cold=0.9, alpha_mature=0.3, density_cold=0.2, density_mature=0.4, adamic_adar_full=4.0)
    found = hybrid_search({"b": 0.2, "z": 0.45}, ["a"], GRAPH, config)
    assert [hit.id for hit in found.hits] == ["z", "b"]
    assert [hit.score for hit in found.hits] == pytest.approx([0.27, 0.12 + 0.4 * HALF / 2], abs=1e-12)


def test_company_beyond_a_direct_edge_explains_itself_as_one() -> None:
    """Two shared neighbours of two would be 1.44: 0.5 x 0.5 + 0.5 x 1 at density 4/12."""
    graph = ToolGraph([("a", "v", 1), ("v", "b", 1), ("a", "w", 1), ("w", "b", 1)])
    [hit] = hybrid_search({"b": 0.5}, ["a"], graph).hits
    assert hit.raw == hit.explanation.recompose() == 0.75
