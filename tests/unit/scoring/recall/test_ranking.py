"""A whole recall: the order of its stages, what is on and off, what is noted, what it costs the store."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from smart_model_router_scoring.options import ConfigError, Note
from smart_model_router_scoring.recall.memory import Hit, Memory, RecallSettings, Replaced
from smart_model_router_scoring.recall.ranking import FloorConfig, Recall, TemporalLexicon, recall
from tests.unit.scoring.recall.chains import Chains, day

NOW = datetime(2026, 6, 11, tzinfo=UTC)
OLD = Hit(Memory(id="old", timestamp="2025-01-01"), 0.55)
NEW = Hit(Memory(id="new", timestamp="2026-01-01"), 0.50)


def ids(found: Recall) -> list[str]:
    """What is shown, best first."""
    return [hit.memory.id for hit in found.hits]


def test_by_default_the_scores_decide() -> None:
    """No bias, no floor, no store."""
    found = recall([NEW, OLD], "what is the latest?", NOW)
    assert ids(found) == ["old", "new"]
    assert (found.recency_bias, found.floor, found.store_queries) == (None, None, 0)


def test_with_the_bias_on_the_newer_version_comes_first() -> None:
    """0.50 + 0.1 against 0.55, with the default weight, whatever was asked."""
    found = recall([OLD, NEW], "where do I live?", NOW, RecallSettings(recency_bias="on"))
    assert ids(found) == ["new", "old"]
    assert found.hits[0].score == pytest.approx(0.6, abs=1e-12)
    assert found.recency_bias == "on"


@pytest.mark.parametrize(
    ("question", "first", "echo"),
    [
        ("where do I live now?", "new", "on"),
        ("where do I live?", "old", None),
        ("what was the latest in 2025?", "old", None),
    ],
)
def test_auto_depends_on_the_question(question: str, first: str, echo: str | None) -> None:
    """It has to ask for the present."""
    found = recall([OLD, NEW], question, NOW, RecallSettings(recency_bias="auto"))
    assert (ids(found)[0], found.recency_bias) == (first, echo)


def test_this_year_is_the_present() -> None:
    """`now` says which one it is."""
    found = recall([OLD, NEW], "the latest in 2026?", NOW, recency_bias="auto")
    assert found.recency_bias == "on"


def test_a_question_can_override_the_setting() -> None:
    """In both directions."""
    assert ids(recall([OLD, NEW], "x", NOW, recency_bias="on")) == ["new", "old"]
    settings = RecallSettings(recency_bias="on")
    assert ids(recall([OLD, NEW], "x", NOW, settings, recency_bias="off")) == ["old", "new"]


def test_the_weight_is_the_settings() -> None:
    """A small one does not turn the order, and is echoed all the same."""
    found = recall([OLD, NEW], "x", NOW, RecallSettings(recency_bias="on", weight_temporal=0.01))
    assert ids(found) == ["old", "new"]
    assert found.recency_bias == "on"


def test_the_bias_is_echoed_when_it_had_nothing_to_work_with() -> None:
    """Active is not the same as effective."""
    assert recall([NEW], "x", NOW, recency_bias="on").recency_bias == "on"
    assert recall([], "x", NOW, recency_bias="on").recency_bias == "on"


def test_another_language_brings_its_own_lexicon() -> None:
    """German for `today`."""
    lexicon = TemporalLexicon(present=("heute",), past=())
    assert recall([], "Was ist heute?", NOW, recency_bias="auto", lexicon=lexicon).recency_bias == "on"
    assert recall([], "What is on today?", NOW, recency_bias="auto", lexicon=lexicon).recency_bias is None


def test_of_one_id_the_best_is_kept() -> None:
    """Wherever it stands."""
    twice = [Hit(NEW.memory, 0.2), Hit(NEW.memory, 0.7), Hit(NEW.memory, 0.4)]
    for hits in (twice, twice[::-1]):
        assert [hit.score for hit in recall(hits, "x", NOW).hits] == [0.7]


def test_expansion_sees_the_distinct_hits_and_adds_to_them() -> None:
    """Best first; what it finds again counts once, at its best."""
    seen: list[list[str]] = []

    def expand(hits: Sequence[Hit]) -> Iterable[Hit]:
        seen.append([hit.memory.id for hit in hits])
        return [Hit(OLD.memory, 0.9), Hit(Memory(id="more"), 0.7), Hit(NEW.memory, 0.1)]

    found = recall([NEW, NEW, OLD], "x", NOW, expand=expand)
    assert seen == [["old", "new"]]
    assert [(hit.memory.id, hit.score) for hit in found.hits] == [("old", 0.9), ("more", 0.7), ("new", 0.5)]
    broken = recall([NEW], "x", NOW, expand=lambda _: [Hit(OLD.memory, math.nan)])
    assert dict(broken.notes.counts) == {"bad_score": 1}


def test_what_expansion_finds_is_resolved_too() -> None:
    """The state filter comes after it."""
    chains = Chains(day("a", 1), day("b", 2)).link("a", "b")
    found = recall([], "x", NOW, store=chains, expand=lambda _: [chains.hit("a")])
    assert ids(found) == ["b"]
    assert found.hits[0].replaces == (Replaced("a", "EVOLVED_INTO"),)


def test_current_resolves_chains_and_leaves_archived_memories_out() -> None:
    """History shows everything, and asks the store nothing."""
    chains = Chains(day("a", 1), day("b", 2), day("c", 3, archived=True)).link("a", "b")
    hits = [chains.hit("a", 0.9), chains.hit("c", 0.8)]
    current = recall(hits, "x", NOW, store=chains)
    assert (ids(current), current.store_queries) == (["b"], 2)
    history = recall(hits, "x", NOW, store=chains, state_mode="history")
    assert (ids(history), history.store_queries) == (["a", "c"], 0)
    assert ids(recall(hits, "x", NOW)) == ["a"]


def test_no_hits_cost_no_query() -> None:
    """There is nothing to ask about."""
    chains = Chains()
    assert recall([], "x", NOW, store=chains).store_queries == 0
    assert chains.asked == []


def test_the_bias_works_on_what_is_current() -> None:
    """The head is new; with the replaced one still there it would have gained half only."""
    chains = Chains(day("a", 1), day("b", 11), day("c", 6)).link("a", "b")
    found = recall([chains.hit("a"), chains.hit("c")], "x", NOW, store=chains, recency_bias="on")
    assert [(hit.memory.id, hit.score) for hit in found.hits] == [("b", 0.6), ("c", 0.5)]


def test_the_floor_cuts_after_the_bias() -> None:
    """Without it the gap is not wide enough."""
    hits = [Hit(Memory(id="a", timestamp="2026-01-01"), 0.6), Hit(Memory(id="b", timestamp="2025-01-01"), 0.5)]
    assert recall(hits, "x", NOW, floor=FloorConfig()).floor is None
    found = recall(hits, "x", NOW, floor=FloorConfig(), recency_bias="on")
    assert ids(found) == ["a"]
    assert found.floor == found.hits[0].score


def test_what_is_equal_to_the_floor_stays() -> None:
    """All above the gap do."""
    hits = [Hit(Memory(id=name), score) for name, score in (("a", 0.9), ("b", 0.8), ("c", 0.8), ("d", 0.1))]
    found = recall(hits, "x", NOW, floor=FloorConfig())
    assert (ids(found), found.floor) == (["a", "b", "c"], 0.8)


def test_the_floor_looks_at_all_hits_and_the_limit_cuts_last() -> None:
    """A gap beyond the limit is seen."""
    hits = [Hit(Memory(id=str(number)), score) for number, score in enumerate([0.9, 0.8, 0.1])]
    found = recall(hits, "x", NOW, floor=FloorConfig(), limit=1)
    assert (ids(found), found.floor) == (["0"], 0.8)


def test_five_are_shown() -> None:
    """Unless another limit is given; a smaller one shows the same beginning."""
    hits = [Hit(Memory(id=str(number)), number / 10) for number in range(9)]
    assert ids(recall(hits, "x", NOW)) == ["8", "7", "6", "5", "4"]
    assert ids(recall(hits, "x", NOW, limit=2)) == ["8", "7"]


@pytest.mark.parametrize("bad", [math.nan, math.inf, None, "0.9"])
def test_a_bad_score_counts_as_0_and_is_noted(bad: Any) -> None:
    """It neither raises nor spoils the others."""
    chains = Chains(day("a", 1), day("b", 2)).link("a", "b")
    found = recall(
        [Hit(chains.memories["a"], bad), NEW], "x", NOW, store=chains, recency_bias="on", floor=FloorConfig()
    )
    assert dict(found.notes.counts)["bad_score"] == 1
    assert found.notes.kept[0] == Note("bad_score", "a", str(bad))
    kept = Hit(NEW.memory, bad, (Replaced("x", "EVOLVED_INTO"),))
    [alone] = recall([kept], "x", NOW).hits
    assert (alone.score, alone.replaces, alone.memory) == (0.0, kept.replaces, NEW.memory)


def test_faults_in_facts_are_noted() -> None:
    """Those of every distinct hit, once."""
    bad = Memory(id="m", timestamp="soon", importance=math.nan)
    notes = recall([Hit(bad, 0.5), Hit(bad, 0.4)], "x", NOW).notes
    assert [(note.code, note.subject) for note in notes.kept] == [("bad_importance", "m"), ("bad_time", "m")]


@pytest.mark.parametrize(
    ("field", "value"), [("limit", 0), ("limit", 2.5), ("state_mode", "future"), ("recency_bias", "sometimes")]
)
def test_nonsense_is_refused_at_once(field: str, value: Any) -> None:
    """ConfigError names the field, before any work."""
    chains = Chains(day("a", 1))
    options: dict[str, Any] = {field: value}
    with pytest.raises(ConfigError) as refused:
        recall([chains.hit("a")], "x", NOW, store=chains, **options)
    assert refused.value.field == field
    assert chains.asked == []
