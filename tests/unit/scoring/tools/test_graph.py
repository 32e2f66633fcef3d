"""The tool graph: what counts as an edge, density, neighbours, Adamic-Adar."""

from __future__ import annotations

import math

import pytest

from smart_model_router_scoring.options import Note
from smart_model_router_scoring.tools.graph import ToolGraph

LN2 = 1.4426950408889634  # 1 / ln 2
LN3 = 0.9102392266268373  # 1 / ln 3


def test_edges_have_a_direction_and_neighbours_have_not() -> None:
    """A successor is one way, a neighbour both."""
    graph = ToolGraph([("a", "b", 0.5), ("c", "a", 0.25)])
    assert dict(graph.successors("a")) == {"b": 0.5}
    assert dict(graph.successors("b")) == {}
    assert graph.neighbours("a") == {"b", "c"}
    assert graph.tools == ("a", "b", "c")


def test_density_is_the_share_of_all_directed_edges() -> None:
    """Three edges of the 4 x 3 there could be."""
    graph = ToolGraph([("a", "b", 1.0), ("b", "a", 1.0), ("b", "c", 1.0)], tools=["d"])
    assert graph.density == pytest.approx(0.25, abs=1e-12)
    assert graph.edge_count == 3


@pytest.mark.parametrize("tools", [[], ["a"]])
def test_a_graph_without_possible_edges_has_density_0(tools: list[str]) -> None:
    """No division by zero for nobody, or for one alone."""
    assert ToolGraph([], tools).density == 0.0


def test_of_two_equal_edges_the_surer_stays_whatever_their_order() -> None:
    """Duplicates do not add up and do not overwrite."""
    edges = [("a", "b", 0.2), ("a", "b", 0.7), ("a", "b", 0.5)]
    assert ToolGraph(edges).successors("a")["b"] == 0.7
    assert ToolGraph(reversed(edges)).successors("a")["b"] == 0.7


@pytest.mark.parametrize("confidence", [0.0, -0.1, math.nan, math.inf, True, "much", None])
def test_an_edge_without_a_confidence_above_0_is_noted_and_left_out(confidence: float) -> None:
    """Bad data costs the edge, not the graph; its tools are there."""
    graph = ToolGraph([("a", "b", confidence)])
    assert graph.edge_count == 0
    assert graph.neighbours("a") == frozenset()
    assert graph.tools == ("a", "b")
    assert graph.notes.kept == (Note("bad_confidence", "a -> b", str(confidence)),)


def test_a_self_loop_is_noted_and_left_out() -> None:
    """A tool is not its own neighbour."""
    graph = ToolGraph([("a", "a", 0.5)])
    assert graph.neighbours("a") == frozenset()
    assert graph.notes.kept == (Note("self_loop", "a -> a"),)


def test_a_confidence_above_1_counts_as_1() -> None:
    """It is noted, and so is nothing else."""
    graph = ToolGraph([("a", "b", 1.5), ("b", "a", 1)])
    assert graph.successors("a")["b"] == 1.0
    assert [(note.code, note.subject, note.detail) for note in graph.notes.kept] == [
        ("confidence_above_1", "a -> b", "1.5")
    ]


def test_successors_are_sorted_and_read_only() -> None:
    """However the edges were told, the walk is one; nobody can change what was built."""
    followers = ToolGraph([("a", "z", 0.5), ("a", "b", 0.5)]).successors("a")
    assert list(followers) == ["b", "z"]
    with pytest.raises(TypeError):
        followers["c"] = 1.0  # type: ignore[index]  # the point of the test


def test_an_unknown_tool_has_nobody() -> None:
    """Asking for it is no error."""
    graph = ToolGraph([("a", "b", 1.0)])
    assert "a" in graph
    assert "x" not in graph
    assert graph.neighbours("x") == frozenset()
    assert dict(graph.successors("x")) == {}


def test_adamic_adar_is_the_sum_of_the_rarities_of_shared_neighbours() -> None:
    """w is shared by two (1 / ln 2), x has a third neighbour (1 / ln 3)."""
    graph = ToolGraph([("u", "w", 1), ("w", "v", 1), ("u", "x", 1), ("v", "x", 1), ("x", "p", 1)])
    assert graph.shared("u", "v") == ["w", "x"]
    assert graph.adamic_adar("u", "v") == pytest.approx(LN2 + LN3, abs=1e-12)
    assert graph.adamic_adar("p", "u") == pytest.approx(LN3, abs=1e-12)
    assert graph.adamic_adar("u", "w") == 0.0


def test_a_neighbour_with_one_neighbour_says_nothing() -> None:
    """With itself a tool shares its leaves, of which ln(1) would divide by zero."""
    graph = ToolGraph([("u", "leaf", 1), ("u", "w", 1), ("w", "v", 1)])
    assert graph.adamic_adar("u", "u") == pytest.approx(LN2, abs=1e-12)


def test_both_directions_of_an_edge_are_one_neighbour() -> None:
    """The projection is undirected and simple: w has two neighbours, not four."""
    graph = ToolGraph([("u", "w", 1), ("w", "u", 1), ("v", "w", 1), ("w", "v", 1)])
    assert graph.adamic_adar("u", "v") == pytest.approx(LN2, abs=1e-12)


def test_the_term_names_each_shared_neighbour() -> None:
    """The explanation has the same value, and its parts how many neighbours they have."""
    graph = ToolGraph([("u", "w", 1), ("w", "v", 1), ("u", "x", 1), ("v", "x", 1), ("x", "p", 1)])
    term = graph.adamic_adar_term("u", "v")
    assert term.value == graph.adamic_adar("u", "v")
    assert [(part.name, part.facts["neighbours"]) for part in term.parts] == [("w", 2), ("x", 3)]
    assert term.name == "adamic_adar"
    assert term.facts["shared_with"] == "v"
