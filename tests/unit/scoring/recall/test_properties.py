"""Recall whatever the data: one order, nothing changes while opt-ins are off, walks end at live heads."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_scoring.options import Notes
from smart_model_router_scoring.recall.memory import Hit, Memory, RecallSettings
from smart_model_router_scoring.recall.prompt import NAMES, relevance_hit
from smart_model_router_scoring.recall.ranking import FloorConfig, Recall, latest, recall
from tests.unit.scoring.recall.chains import Chains

NOW = datetime(2026, 6, 11, tzinfo=UTC)
SCORES: st.SearchStrategy[Any] = st.sampled_from([0.0, 0.1, 0.5, 0.5, 0.7, 1.0, float("nan"), float("inf"), -1.0])
TIMES: st.SearchStrategy[Any] = st.sampled_from(
    [None, "soon", "2025-01-01", "2025-01-01T00:00:00Z", "2026-06-10T23:00:00-05:00", "2030-01-01", 0.0, 1e300, NOW]
)
NAMED = [f"m{number}" for number in range(8)] + ["é"]


@st.composite
def memories(draw: st.DrawFn) -> list[Memory]:
    """Distinct memories with anything in them."""
    return [
        Memory(
            id=name,
            timestamp=draw(TIMES),
            importance=draw(SCORES),
            source_rank=draw(st.integers(0, 1)),
            original_score=draw(SCORES),
            archived=draw(st.booleans()),
        )
        for name in draw(st.lists(st.sampled_from(NAMED), unique=True, max_size=9))
    ]


@st.composite
def chains(draw: st.DrawFn) -> Chains:
    """Memories with any edges between them: branches, cycles, self-loops."""
    made = Chains(*draw(memories()))
    names = sorted(made.memories)
    if names:
        one = st.sampled_from(names)
        for old, new in draw(st.lists(st.tuples(one, one), max_size=14)):
            made.link(old, new, draw(st.sampled_from(["EVOLVED_INTO", "INVALIDATED_BY"])))
    return made


def bits(found: Recall) -> list[tuple[str, str, object]]:
    """Everything that is shown, exactly."""
    return [(hit.memory.id, hit.score.hex(), hit.replaces) for hit in found.hits]


@given(chains(), st.data())
def test_the_order_of_candidates_changes_no_bit(store: Chains, data: st.DataObject) -> None:
    """With every opt-in on; and each score that is shown comes again from its explanation."""
    hits = [Hit(memory, data.draw(SCORES)) for memory in store.memories.values()]
    other = data.draw(st.permutations(hits))
    settings = RecallSettings(recency_bias="on")
    before = copy.deepcopy(hits)
    one = recall(hits, "the latest?", NOW, settings, store=store, floor=FloorConfig(), limit=9)
    two = recall(other, "the latest?", NOW, settings, store=store, floor=FloorConfig(), limit=9)
    assert bits(one) == bits(two)
    assert all(abs(hit.explanation.recompose() - hit.score) <= 1e-12 for hit in one.hits)
    assert all(not hit.memory.archived for hit in one.hits)
    assert repr(hits) == repr(before)


@given(chains(), st.data(), st.integers(1, 8))
def test_a_smaller_limit_shows_the_beginning_of_a_larger_one(store: Chains, data: st.DataObject, limit: int) -> None:
    """The prefix property."""
    hits = [Hit(memory, data.draw(SCORES)) for memory in store.memories.values()]
    small = recall(hits, "x", NOW, store=store, limit=limit)
    large = recall(hits, "x", NOW, store=store, limit=9)
    assert bits(small) == bits(large)[:limit]


@given(chains())
def test_a_walk_ends_at_a_live_memory_it_can_reach(store: Chains) -> None:
    """Cycles, branches and all; in at most one query and one a hop; and whoever is left out was archived."""
    for memory in store.memories.values():
        store.asked.clear()
        found, queries = latest([Hit(memory, 0.5)], store, Notes())
        reachable, frontier = {memory.id}, [memory.id]
        while frontier:
            frontier = [
                step.memory.id
                for name in frontier
                for step in store.edges.get(name, ())
                if step.memory.id not in reachable
            ]
            reachable.update(frontier)
        assert 1 <= queries <= 6
        assert queries == len(store.asked)
        assert len(found) == 1 or memory.archived
        assert all(hit.memory.id in reachable and not hit.memory.archived for hit in found)
        assert all(hit.score == 0.5 for hit in found)


@given(st.dictionaries(st.sampled_from([*sorted(NAMES), "luck"]), SCORES), st.sampled_from([0.0, 0.2, 0.4, 1.0]))
def test_a_gated_score_recomposes_and_is_never_above_the_open_one(components: dict[str, Any], gate: float) -> None:
    """Whatever the components are."""
    memory = Memory(id="m")
    opened = relevance_hit(memory, components, Notes())
    gated = relevance_hit(memory, components, Notes(), RecallSettings(relevance_gate=gate))
    assert gated.score <= opened.score + 1e-12
    assert abs(gated.explanation.recompose() - gated.score) <= 1e-12
    turned = relevance_hit(memory, dict(reversed(components.items())), Notes(), RecallSettings(relevance_gate=gate))
    assert turned.score.hex() == gated.score.hex()


@given(st.sampled_from([0.0, 0.1, 0.39, 0.4, 0.8]), st.sampled_from([0.0, 0.1, 0.39, 0.4, 0.8]))
def test_more_evidence_never_scores_lower(one: float, other: float) -> None:
    """Nor does the ramp jump at the gate."""
    settings = RecallSettings(relevance_gate=0.4)
    low, high = (
        relevance_hit(Memory(id="m"), {"vector": evidence, "importance": 1.0}, Notes(), settings).score
        for evidence in sorted([one, other])
    )
    assert low <= high


PROBES = [
    "what is the latest plan",
    "who is the current owner",
    "where do I live now",
    "what changed in the policy",
    "what was updated last week",
    "what is my newest phone",
    "what am I doing these days",
    "do I still smoke",
    "what did I eat today",
    "any recent trips",
    "the most recent invoice",
    "last time we met",
    "not a vegetarian anymore",
    "as of when is it valid",
    "at the moment of writing",
    "what did I use to drive",
    "how was it before it changed",
    "who won in 2019",
    "what is an electric current",
    "",
    "Wo wohne ich?",
    "quarterly budget of the flint project",
    "now",
    "currency of nowhere",
]


@pytest.mark.parametrize("question", PROBES)
def test_with_every_opt_in_off_the_scores_are_as_given(question: str) -> None:
    """Zero delta: two dozen questions, most of them about time, and nothing but the order of scores."""
    hits = [
        Hit(
            Memory(
                id=f"m{number}",
                content=question,
                timestamp=f"2026-{1 + number % 6:02}-{1 + number:02}",
                importance=number % 3 / 2,
            ),
            score=(number * 7 % 11) / 11,
        )
        for number in range(20)
    ]
    found = recall(hits, question, NOW, store=Chains(*(hit.memory for hit in hits)), limit=20)
    given_by_id = {hit.memory.id: hit for hit in hits}
    assert all(hit is given_by_id[hit.memory.id] for hit in found.hits)
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in hits), reverse=True)
    assert (found.recency_bias, found.floor, found.store_queries, found.notes.kept) == (None, None, 1, ())
    components = {"vector": 0.1, "importance": 0.9, "recency": 0.8, "tag": 0.5}
    weighed = relevance_hit(hits[0].memory, components, Notes())
    assert weighed.score == pytest.approx(0.35 * 0.1 + 0.1 * 0.9 + 0.1 * 0.8 + 0.2 * 0.5, abs=1e-12)
