"""Spectral clusters of hand-made bipartite graphs, and the discovery that uses them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.tools.clusters import SpectralClusters, SpectralConfig, spectral_clusters
from smart_model_router_scoring.tools.graph import IncidenceStore
from smart_model_router_scoring.tools.suggestions import DiscoveryConfig, discover

# Two blocks of three capabilities over three tools each, complete; one capability reaches over: 20 edges.
BLOCKS = {
    **{name: ["a1", "a2", "a3"] for name in ("A1", "A2")},
    "A3": ["a1", "a2", "a3", "b1"],
    **{name: ["b1", "b2", "b3"] for name in ("B1", "B2", "B3")},
}


def test_two_blocks_with_one_edge_between_are_two_clusters() -> None:
    """The cut of one edge between halves of degree 19 costs 2/19; no block has a cheap one inside."""
    found = spectral_clusters(BLOCKS)
    assert dict(found.capabilities) == {"A1": 0, "A2": 0, "A3": 0, "B1": 1, "B2": 1, "B3": 1}
    assert dict(found.tools) == {"a1": 0, "a2": 0, "a3": 0, "b1": 1, "b2": 1, "b3": 1}


def test_a_cut_is_made_up_to_its_price_and_no_further() -> None:
    """2/19 = 0.10526..."""
    assert len(set(spectral_clusters(BLOCKS, SpectralConfig(max_cut=2 / 19)).tools.values())) == 2
    assert len(set(spectral_clusters(BLOCKS, SpectralConfig(max_cut=2 / 19 - 1e-9)).tools.values())) == 1


@pytest.mark.parametrize("seed", range(8))
def test_a_clear_cut_is_found_from_every_start(seed: int) -> None:
    """The seed is where the iteration starts, not where it ends."""
    assert spectral_clusters(BLOCKS, SpectralConfig(seed=seed)) == spectral_clusters(BLOCKS)


def test_a_long_chain_is_cut_into_pieces() -> None:
    """Capabilities that share a tool with the next one: a path of 41 nodes has cheap cuts, a piece of it has none."""
    found = spectral_clusters({f"c{at:02}": [f"t{at:02}", f"t{at + 1:02}"] for at in range(20)})
    pieces = [found.capabilities[f"c{at:02}"] for at in range(20)]
    assert pieces == sorted(pieces)
    assert 2 < len(set(pieces)) < 20


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_is_cut_in_the_very_middle(seed: int) -> None:
    """Of a path of 21 nodes only the middle cut costs 1/19 + 1/21 = 0.1003; every other one at least 0.1023.

    The names are no help: they are not in the order of the path.
    """
    names = [f"{at * 7 % 11:02}" for at in range(11)]
    chain = {f"c{names[at]}": [f"t{names[at]}", f"t{names[at + 1]}"] for at in range(10)}
    found = spectral_clusters(chain, SpectralConfig(max_cut=0.101, seed=seed))
    halves = [found.tools[f"t{name}"] for name in names]
    assert halves in ([0] * 5 + [halves[5]] + [1] * 5, [1] * 5 + [halves[5]] + [0] * 5)


def cheapest_cut(capabilities: dict[str, str]) -> tuple[float, frozenset[tuple[str, str]]]:
    """The least normalised cut of all there are, and the side of it without the last node."""
    edges = [(("capability", one), ("tool", tool)) for one, tools in capabilities.items() for tool in tools]
    nodes = sorted({node for edge in edges for node in edge})
    cuts = []
    for size in range(1, len(nodes)):
        for side in map(frozenset, itertools.combinations(nodes[:-1], size)):
            crossing = sum((one in side) != (other in side) for one, other in edges)
            inside = sum((one in side) + (other in side) for one, other in edges)
            cuts.append((crossing / inside + crossing / (2 * len(edges) - inside), side))
    return min(cuts, key=lambda cut: cut[0])


@pytest.mark.parametrize(
    "capabilities",
    [
        {"A": "4", "B": "1234", "C": "1234"},
        {"A": "345", "B": "2", "C": "135", "D": "234"},
        {"A": "3", "B": "135", "C": "12345"},
        {"A": "3", "B": "2", "C": "23", "D": "23", "E": "3", "F": "12"},
    ],
)
def test_of_all_cuts_the_cheapest_is_made(capabilities: dict[str, str]) -> None:
    """Where degrees are far from equal, too: every cut of these graphs was tried."""
    cost, side = cheapest_cut(capabilities)
    found = spectral_clusters(capabilities, SpectralConfig(max_cut=cost + 1e-9))
    halves: dict[int, set[tuple[str, str]]] = {}
    for kind, names in (("capability", found.capabilities), ("tool", found.tools)):
        for name, number in names.items():
            halves.setdefault(number, set()).add((kind, name))
    assert len(halves) == 2
    assert side in halves.values()


def test_the_seed_decides_between_cuts_of_one_price() -> None:
    """A ring of twelve has six ways to be halved: seeds find several of them, each seed always the same."""
    ring = {f"c{at}": [f"t{at}", f"t{(at + 1) % 6}"] for at in range(6)}
    found = [spectral_clusters(ring, SpectralConfig(max_cut=0.34, seed=seed)) for seed in range(8)]
    assert len({tuple(sorted(one.tools.items())) for one in found}) > 1
    assert found == [spectral_clusters(ring, SpectralConfig(max_cut=0.34, seed=seed)) for seed in range(8)]


def test_what_is_not_connected_is_apart() -> None:
    """Whatever a cut costs; and three nodes are never cut."""
    found = spectral_clusters({"x": ["1", "2"], "y": ["3"], "none": []}, SpectralConfig(max_cut=0))
    assert len(set(found.capabilities.values())) == 3
    assert found.tools["1"] == found.tools["2"] == found.capabilities["x"]
    assert found.tools["3"] == found.capabilities["y"]


def test_a_path_of_three_is_not_cut_and_one_of_four_is_in_the_middle() -> None:
    """At any price a split needs a tool and a capability on either side; the middle of four costs 2/3."""
    dear = SpectralConfig(max_cut=2)
    assert set(spectral_clusters({"x": ["1", "2"]}, dear).tools.values()) == {0}
    found = spectral_clusters({"x": ["1", "2"], "y": ["2"]}, dear)
    assert found.capabilities["x"] == found.tools["1"]
    assert found.capabilities["y"] == found.tools["2"] != found.tools["1"]
    assert len(set(spectral_clusters({"x": ["1", "2"], "y": ["2"]}, SpectralConfig(max_cut=0.66)).tools.values())) == 1


def test_a_tool_and_a_capability_may_share_a_name_and_a_tool_be_named_twice() -> None:
    """They are two nodes and one edge."""
    found = spectral_clusters({"same": ["same", "same"]})
    assert found == SpectralClusters({"same": 0}, {"same": 0})


def test_nothing_has_no_clusters() -> None:
    """An empty graph is no error."""
    assert spectral_clusters({}) == SpectralClusters({}, {})


def test_names_may_be_broken() -> None:
    """A lone surrogate can come out of JSON."""
    assert len(spectral_clusters({"\ud800": ["a", "b", "c"], "x": ["a"]}).tools) == 3


def store() -> IncidenceStore:
    """The blocks."""
    made = IncidenceStore()
    for name, tools in BLOCKS.items():
        made.define(name, tools)
    return made


def test_the_same_cluster_lifts_the_overlap_by_half() -> None:
    """With b1 in use: each B has a third of its tools and is near; A3 has a quarter and is not."""
    found = discover(["b1"], store(), spectral_clusters(BLOCKS))
    assert [hit.id for hit in found.hits] == ["B1", "B2", "B3", "A3"]
    assert [hit.raw for hit in found.hits] == pytest.approx([0.5, 0.5, 0.5, 0.25], abs=1e-12)


def test_the_boost_may_decide_the_order() -> None:
    """Half of its tools and near, 0.75, is before two thirds and far, 0.667."""
    made = IncidenceStore()
    made.define("far", ["a", "b", "x"])
    made.define("near", ["a", "y"])
    found = discover(["a", "b"], made, SpectralClusters({"near": 0, "far": 1}, {"a": 0}))
    assert [(hit.id, hit.raw) for hit in found.hits] == [("near", 0.75), ("far", pytest.approx(2 / 3, abs=1e-12))]


def test_a_full_overlap_is_1_5_to_rank_and_1_to_report() -> None:
    """The bonus may lift it above 1."""
    [first, *_] = discover(["a1", "a2", "a3"], store(), spectral_clusters(BLOCKS)).hits
    assert (first.id, first.raw, first.score) == ("A1", 1.5, 1.0)


def test_what_the_clusters_do_not_know_has_no_boost() -> None:
    """Clusters may be older than the store; without any, nothing is near."""
    found = discover(["b1", "stranger"], store(), SpectralClusters({}, {}), limit=1)
    [hit] = found.hits
    assert hit.id == "B1"
    assert hit.raw == pytest.approx(1 / 3, abs=1e-12)


def test_the_boost_is_the_configurations() -> None:
    """None at all, or twice as much again."""
    clusters = spectral_clusters(BLOCKS)
    assert discover(["b1"], store(), clusters, DiscoveryConfig(boost=0)).hits[0].raw == pytest.approx(1 / 3)
    assert discover(["b1"], store(), clusters, DiscoveryConfig(boost=2)).hits[0].raw == pytest.approx(1.0)


def test_a_capability_without_tools_is_noted() -> None:
    """And not suggested."""
    made = IncidenceStore()
    made.define("empty", [])
    found = discover(["a"], made, SpectralClusters({}, {}))
    assert found.hits == ()
    assert [(note.code, note.subject) for note in found.notes.kept] == [("capability_without_tools", "empty")]


def test_the_explanation_shows_overlap_and_boost() -> None:
    """overlap x (1 + boost)."""
    hits = {hit.id: hit.explanation for hit in discover(["b1"], store(), spectral_clusters(BLOCKS)).hits}
    near = hits["B1"].find("boost")
    far = hits["A3"].find("boost")
    assert near is not None
    assert far is not None
    assert (near.value, far.value) == (0.5, 0.0)
    assert [part.name for part in hits["B1"].parts] == ["overlap", "factor"]
    assert [part.name for part in hits["B1"].parts[1].parts] == ["one", "boost"]
    assert hits["B1"].name == "discovery"
    assert hits["B1"].recompose() == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("boost", [-0.1, 10.1, math.nan])
def test_a_boost_out_of_range_is_refused(boost: float) -> None:
    """ConfigError names it."""
    with pytest.raises(ConfigError) as refused:
        DiscoveryConfig(boost=boost)
    assert refused.value.field == "boost"


@pytest.mark.parametrize(("field", "value"), [("max_cut", -0.1), ("max_cut", 2.1), ("seed", -1), ("seed", 0.5)])
def test_nonsense_is_refused_at_once(field: str, value: Any) -> None:
    """ConfigError names the field."""
    with pytest.raises(ConfigError) as refused:
        SpectralConfig(**{field: value})
    assert refused.value.field == field
