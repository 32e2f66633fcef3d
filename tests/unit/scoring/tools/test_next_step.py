"""Next step: three weighted facts, strict recency, a bounded set of candidates that loses nobody."""

from __future__ import annotations

import math
from typing import Any

import pytest

from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.tools.clusters import Communities, louvain
from smart_model_router_scoring.tools.graph import ToolGraph
from smart_model_router_scoring.tools.suggestions import NextStepConfig, Uses, next_steps

DAY = 86_400.0
NOW = 10 * DAY
GRAPH = ToolGraph([("read", "write", 0.5), ("write", "read", 1.0), ("mail", "send", 1.0), ("read", "mail", 0.1)])
GROUPS = louvain(GRAPH)


def test_the_communities_of_the_example() -> None:
    """What the tests below lean on."""
    assert GROUPS.members == (("mail", "send"), ("read", "write"))


def test_the_score_adds_the_three_facts() -> None:
    """write: 0.6 x 0.5 + 0.3 + 0.1; mail: 0.6 x 0.1; send: recent, 0.1."""
    found = next_steps("read", GRAPH, GROUPS, Uses({"write": NOW - 5, "send": NOW - 5}), NOW)
    assert [hit.id for hit in found.hits] == ["write", "send", "mail"]
    assert [hit.score for hit in found.hits] == pytest.approx([0.7, 0.1, 0.06], abs=1e-12)


def test_the_same_community_alone_is_enough() -> None:
    """No step from mail's side to send is needed in the other direction."""
    found = next_steps("send", GRAPH, GROUPS, Uses(), NOW)
    assert [(hit.id, hit.score) for hit in found.hits] == [("mail", 0.3)]


def test_recency_is_strict() -> None:
    """Exactly a day ago is not recent, a second later is, and so is the future."""
    for used, expected in ((NOW - DAY, []), (NOW - DAY + 1, ["x"]), (NOW + 5, ["x"])):
        found = next_steps("nobody", GRAPH, GROUPS, Uses({"x": used}), NOW)
        assert [hit.id for hit in found.hits] == expected


def test_the_current_tool_is_never_the_next() -> None:
    """However recent it is."""
    found = next_steps("read", GRAPH, GROUPS, Uses({"read": NOW}), NOW)
    assert "read" not in {hit.id for hit in found.hits}


def test_an_unknown_tool_has_no_next_step() -> None:
    """Nothing followed it, it belongs nowhere; two that are unknown do not belong together."""
    found = next_steps("nobody", GRAPH, GROUPS, Uses({"stranger": 0.0}), NOW)
    assert (found.hits, dict(found.notes.counts)) == ((), {})


def test_equal_scores_come_in_the_order_of_ids() -> None:
    """Of seven that are recent and no more, the first ids are suggested."""
    uses = Uses(dict.fromkeys("gfedcba", NOW))
    assert [hit.id for hit in next_steps("q", GRAPH, GROUPS, uses, NOW, limit=3).hits] == ["a", "b", "c"]
    assert len(next_steps("q", GRAPH, GROUPS, uses, NOW).hits) == 5


def test_recent_ones_with_the_smaller_id_beat_equal_followers() -> None:
    """A follower with exactly the weight of recency is no reason not to look at the recent ones."""
    graph = ToolGraph([("q", "x", 0.5), ("q", "y", 0.5)])
    config = NextStepConfig(cooccurrence=0.2, community=0.0, recency=0.1)
    found = next_steps("q", graph, louvain(graph), Uses({"a": NOW}), NOW, config, limit=2)
    assert [hit.id for hit in found.hits] == ["a", "x"]


def test_what_is_merely_recent_has_no_place_among_stronger_ones() -> None:
    """Where so many that follow weigh more than recency, who is only recent is not among the best."""
    graph = ToolGraph([("q", "x", 0.5), ("q", "y", 0.5)])
    found = next_steps("q", graph, louvain(graph), Uses({"a": NOW}), NOW, limit=2)
    assert [hit.id for hit in found.hits] == ["x", "y"]


def test_weights_and_window_are_the_configurations() -> None:
    """An hour, and weights of one's own."""
    config = NextStepConfig(cooccurrence=1.0, community=0.0, recency=0.25, recency_seconds=3600.0)
    found = next_steps("read", GRAPH, GROUPS, Uses({"write": NOW - 3599, "mail": NOW - 3600}), NOW, config)
    assert {hit.id: hit.score for hit in found.hits} == {"write": 0.75, "mail": pytest.approx(0.1)}


def test_the_explanation_has_weight_and_value_of_each_fact() -> None:
    """A person can see why."""
    [first, *_] = next_steps("read", GRAPH, GROUPS, Uses({"write": NOW}), NOW).hits
    told = {part.name: tuple(leaf.value for leaf in part.parts) for part in first.explanation.parts}
    assert told == {"cooccurrence": (0.6, 0.5), "community": (0.3, 1.0), "recency": (0.1, 1.0)}
    assert first.explanation.facts["after"] == "read"
    assert first.explanation.name == "next_step"
    assert [leaf.name for leaf in first.explanation.parts[0].parts] == ["weight", "value"]
    assert first.explanation.recompose() == first.raw


def test_uses_keep_the_latest_and_note_what_is_no_time() -> None:
    """An older use changes nothing; a bad time is noted, when built and later."""
    uses = Uses({"a": 5.0, "bad": math.nan})
    uses.use("a", 3.0)
    assert list(uses.after(4.0)) == ["a"]
    uses.use("a", 9.0)
    uses.use("b", 7)
    uses.use("b", math.inf)
    assert list(uses.after(4.0)) == ["b", "a"]
    assert list(uses.after(7.0)) == ["a"]
    assert uses.is_after("b", 6.9)
    assert not uses.is_after("b", 7.0)
    assert not uses.is_after("bad", -1e300)
    assert [(note.code, note.subject, note.detail) for note in uses.notes.kept] == [
        ("bad_time", "bad", "nan"),
        ("bad_time", "b", "inf"),
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cooccurrence", 1.1),
        ("cooccurrence", -0.1),
        ("community", 1.1),
        ("recency", -0.1),
        ("recency_seconds", 0),
        ("recency_seconds", math.nan),
    ],
)
def test_nonsense_is_refused_at_once(field: str, value: Any) -> None:
    """ConfigError names the field."""
    with pytest.raises(ConfigError) as refused:
        NextStepConfig(**{field: value})
    assert refused.value.field == field


def test_the_ends_of_the_ranges_are_allowed() -> None:
    """A weight may be 0, or all there is."""
    NextStepConfig(cooccurrence=1, community=0, recency=0, recency_seconds=0.001)


def test_a_limit_below_1_is_refused() -> None:
    """ConfigError names it."""
    with pytest.raises(ConfigError) as refused:
        next_steps("read", GRAPH, GROUPS, Uses(), NOW, limit=0)
    assert refused.value.field == "limit"


def test_the_last_of_a_group_is_found_when_it_is_recent() -> None:
    """y and z weigh 0.3 + 0.1, the four before them 0.3: of three places they have two, and the first id the third."""
    group = Communities((tuple("abcdqyz"),), dict.fromkeys("abcdqyz", 0), 0.0)
    found = next_steps("q", ToolGraph([]), group, Uses({"z": NOW, "y": NOW}), NOW, limit=3)
    assert [(hit.id, hit.score) for hit in found.hits] == [("y", 0.4), ("z", 0.4), ("a", 0.3)]
