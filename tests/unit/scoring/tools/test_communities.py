"""Louvain: the communities of small graphs known by hand, modularity, determinism."""

from __future__ import annotations

import itertools

import pytest

from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.tools.clusters import louvain
from smart_model_router_scoring.tools.graph import ToolGraph


def clique(names: str) -> list[tuple[str, str, float]]:
    """Every pair once."""
    return [(one, other, 1.0) for one, other in itertools.combinations(names, 2)]


def test_two_cliques_with_a_bridge_are_two_communities() -> None:
    """13 edges: 6 inside each, one between. Q = 2 x (6/13 - (13/26)^2) = 11/26."""
    found = louvain(ToolGraph([*clique("abcd"), *clique("wxyz"), ("d", "w", 1.0)]))
    assert found.members == (("a", "b", "c", "d"), ("w", "x", "y", "z"))
    assert found.modularity == pytest.approx(11 / 26, abs=1e-12)
    assert found.of["d"] == 0
    assert found.of["w"] == 1
    assert found.around("y") == ("w", "x", "y", "z")


def test_a_triangle_is_one_community() -> None:
    """Its modularity is 0: chance would put everything inside as well."""
    found = louvain(ToolGraph(clique("abc")))
    assert found.members == (("a", "b", "c"),)
    assert found.modularity == pytest.approx(0.0, abs=1e-12)


def test_weights_decide() -> None:
    """In a square of strong and weak edges the strong pairs stay together: Q = 2 x (0.9/2 - 0.25) = 0.4."""
    found = louvain(ToolGraph([("a", "b", 0.9), ("b", "c", 0.1), ("c", "d", 0.9), ("d", "a", 0.1)]))
    assert found.members == (("a", "b"), ("c", "d"))
    assert found.modularity == pytest.approx(0.4, abs=1e-12)


def test_weak_edges_bring_tools_together_too() -> None:
    """Modularity knows no scale: two pairs at a hundredth are two communities, and Q = 2 x (1/2 - 1/4)."""
    found = louvain(ToolGraph([("a", "b", 0.01), ("c", "d", 0.01)]))
    assert found.members == (("a", "b"), ("c", "d"))
    assert found.modularity == pytest.approx(0.5, abs=1e-12)


def test_both_directions_of_an_edge_add_up() -> None:
    """b <-> c weighs 0.6 and holds them against a - c with 0.9: Q = 1.6/2.5 - (2.9/5)^2 - (2.1/5)^2."""
    found = louvain(ToolGraph([("a", "c", 0.9), ("a", "d", 1.0), ("b", "c", 0.3), ("c", "b", 0.3)]))
    assert found.members == (("a", "d"), ("b", "c"))
    assert found.modularity == pytest.approx(0.1272, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_tool_between_two_equal_communities_goes_to_the_first(seed: int) -> None:
    """The middle of a path of five, whichever tool is visited first: nothing is handed to and fro."""
    path = ToolGraph([(one, other, 1.0) for one, other in itertools.pairwise("abcde")])
    assert louvain(path, seed).members == (("a", "b", "c"), ("d", "e"))


def test_whole_communities_merge_where_single_moves_cannot() -> None:
    """The ring of 30 cliques of 5 (Fortunato and Barthelemy 2007): pairs of cliques have the higher modularity.

    330 edges. In pairs: 15 groups with 21 edges inside and a degree of 44 of 660: Q = 15 x (21/330 - (44/660)^2).
    """
    names = [[f"{ring:02}{one}" for one in "abcde"] for ring in range(30)]
    edges = [(one, other, 1.0) for group in names for one, other in itertools.combinations(group, 2)]
    edges += [(names[at][4], names[(at + 1) % 30][0], 1.0) for at in range(30)]
    found = louvain(ToolGraph(edges))
    assert all(set(group) <= set(found.around(group[0])) for group in names)
    assert len(found.members) < 30
    assert 0.85 < found.modularity <= 15 * (21 / 330 - (44 / 660) ** 2) + 1e-12


def test_what_a_tool_leaves_behind_counts() -> None:
    """The path a = b = c - d: apart Q = 1.5/2.5 - (3/5)^2 - (2/5)^2 = 0.08, together 0."""
    found = louvain(ToolGraph([("a", "b", 1.0), ("b", "c", 1.0), ("c", "d", 0.5)]))
    assert found.members == (("a", "b"), ("c", "d"))
    assert found.modularity == pytest.approx(0.08, abs=1e-12)


def test_tools_are_visited_until_nobody_moves() -> None:
    """One round would end at 0.0714; Q = 2.5/3.5 - (2/7)^2 - (5/7)^2 = 0.1224 takes a second one."""
    edges = [("a", "b", 0.5), ("a", "e", 0.5), ("b", "c", 1.0), ("c", "d", 1.0), ("c", "e", 0.5)]
    found = louvain(ToolGraph(edges))
    assert found.members == (("a", "e"), ("b", "c", "d"))
    assert found.modularity == pytest.approx(2.5 / 3.5 - 29 / 49, abs=1e-12)


def test_the_seed_is_0_unless_given() -> None:
    """A ring of eleven, where 0 and 1 end differently."""
    ring = ToolGraph([(str(at), str((at + 1) % 11), 1.0) for at in range(11)])
    assert louvain(ring) == louvain(ring, 0) != louvain(ring, 1)


def test_tools_without_edges_are_alone() -> None:
    """No edges at all: everybody is a community, and modularity is 0."""
    found = louvain(ToolGraph([], ["b", "a"]))
    assert found.members == (("a",), ("b",))
    assert found.modularity == 0.0
    assert louvain(ToolGraph([])).members == ()


def test_an_unknown_tool_is_in_no_community() -> None:
    """Nobody is around it."""
    assert louvain(ToolGraph([("a", "b", 1.0)])).around("x") == ()


def test_names_of_any_alphabet_and_broken_ones_are_fine() -> None:
    """A lone surrogate can come out of JSON."""
    found = louvain(ToolGraph([("\ud800", "ключ", 1.0)]))
    assert found.members == (("ключ", "\ud800"),)


@pytest.mark.parametrize("seed", range(5))
def test_a_seed_changes_the_order_of_visits_and_not_clear_communities(seed: int) -> None:
    """Where the structure is plain every seed finds it."""
    found = louvain(ToolGraph([*clique("abcd"), *clique("wxyz"), ("d", "w", 1.0)]), seed)
    assert found.members == (("a", "b", "c", "d"), ("w", "x", "y", "z"))


def test_the_seed_decides_between_equals() -> None:
    """A ring of six has several best partitions: seeds find more than one of them, each seed always the same."""
    ring = ToolGraph([(str(at), str((at + 1) % 6), 1.0) for at in range(6)])
    found = [louvain(ring, seed).members for seed in range(20)]
    assert len(set(found)) > 1
    assert found == [louvain(ring, seed).members for seed in range(20)]


@pytest.mark.parametrize("seed", [-1, 0.5, True])
def test_a_seed_is_a_whole_number(seed: int) -> None:
    """ConfigError names it."""
    with pytest.raises(ConfigError) as refused:
        louvain(ToolGraph([]), seed)
    assert refused.value.field == "seed"
