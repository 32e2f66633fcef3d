"""Keyword, tag and recency scores, and the relevance gate, with values computed by hand."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from smart_model_router_scoring.options import ConfigError, Notes
from smart_model_router_scoring.recall.memory import (
    Hit,
    Memory,
    RecallSettings,
    keyword_score,
    recency_score,
    tag_score,
    words,
)
from smart_model_router_scoring.recall.prompt import ComponentWeights, relevance_hit

NOW = datetime(2026, 6, 11, tzinfo=UTC)
MEMORY = Memory(id="m")


@pytest.mark.parametrize(
    ("points", "keywords", "phrase", "expected"),
    [
        (9.0, 2, True, 1.0),
        (4.5, 2, True, 0.5),
        (3.0, 2, False, 0.5),
        (2.0, 0, True, 2 / 3),
        (3.0, 0, True, 1.0),
        (11.0, 1, True, 1.0),
        (-1.0, 1, True, 0.0),
        (1.0, 0, False, 0.0),
        (1.0, -3, True, 1 / 3),
        (math.nan, 2, True, 0.0),
        (math.inf, 2, True, 0.0),
    ],
)
def test_keyword_points_become_a_share_of_the_most_there_could_be(
    points: float, keywords: int, phrase: bool, expected: float
) -> None:
    """3 K + 3 with the phrase, 3 for the phrase alone; never outside of 0 to 1."""
    assert keyword_score(points, keywords, phrase=phrase) == pytest.approx(expected, abs=1e-12)


def test_a_query_has_a_phrase_unless_it_is_said_that_it_has_not() -> None:
    """The founding formula: raw / (3 K + 3)."""
    assert keyword_score(6.0, 3) == 0.5


@pytest.mark.parametrize(
    ("query", "tags", "cap", "expected"),
    [
        ("flint water budget", ["flint"], 0, 1 / 3),
        ("flint water budget", ["flint", "Water-budget"], 0, 1.0),
        ("flint water budget plan", ["flint"], 2, 0.5),
        ("flint water budget plan", ["flint", "water", "plan"], 2, 1.0),
        ("flint", ["flint"], 3, 1.0),
        ("flint", ["steel"], 1, 0.0),
        ("flint flint", ["flint"], 0, 1.0),
        ("\uff26\uff2c\uff29\uff2e\uff34", ["flint"], 0, 1.0),
        ("", ["flint"], 0, 0.0),
        ("", ["flint"], 2, 0.0),
        ("flint", [], 0, 0.0),
    ],
)
def test_tags_are_matched_word_by_word(query: str, tags: list[str], cap: int, expected: float) -> None:
    """A share of the query's distinct words, of at most `cap` of them."""
    assert tag_score(query, tags, RecallSettings(tag_score_token_cap=cap)) == pytest.approx(expected, abs=1e-12)


def test_without_settings_there_is_no_cap() -> None:
    """Off by default."""
    assert tag_score("flint water budget plan", ["flint"]) == 0.25


def test_words_are_free_of_case_and_form() -> None:
    """Compatibility forms and capitals are the same word."""
    assert words("Straße STRASSE ﬁne, fine!") == {"strasse", "fine"}


@pytest.mark.parametrize(
    ("days", "linear", "exp"),
    [(0, 1.0, 1.0), (-5, 1.0, 1.0), (90, 0.5, 0.7071067811865476), (180, 0.0, 0.5), (360, 0.0, 0.25)],
)
def test_recency_falls_along_its_curve(days: float, linear: float, exp: float) -> None:
    """Linear is 0 at the window; exp halves with each."""
    time = NOW - timedelta(days=days)
    assert recency_score(time, NOW, Notes()) == pytest.approx(linear, abs=1e-12)
    curve = RecallSettings(recency_curve="exp")
    assert recency_score(time, NOW, Notes(), curve) == pytest.approx(exp, abs=1e-12)


def test_the_window_is_the_settings() -> None:
    """Ten of forty days."""
    settings = RecallSettings(recency_window_days=40)
    assert recency_score(NOW - timedelta(days=10), NOW, Notes(), settings) == pytest.approx(0.75, abs=1e-12)


def test_what_is_no_time_has_no_recency() -> None:
    """It is noted."""
    notes = Notes()
    assert recency_score("soon", NOW, notes) == 0.0
    assert [(note.code, note.detail) for note in notes.kept] == [("bad_time", "soon")]


@pytest.mark.parametrize("window", [1e-300, 1e300])
def test_extreme_windows_overflow_nothing(window: float) -> None:
    """0 or 1, and no exception."""
    for curve in ("linear", "exp"):
        settings = RecallSettings(recency_window_days=window, recency_curve=curve)
        assert recency_score("1999-01-01", NOW, Notes(), settings) in {0.0, 1.0}


def scored(components: dict[str, float], gate: float = 0.0, **options: Any) -> Hit:
    """The hit of these components."""
    return relevance_hit(MEMORY, components, Notes(), RecallSettings(relevance_gate=gate), **options)


def test_the_score_is_the_weighted_sum() -> None:
    """0.35 x 0.8 + 0.35 x 0.4 + 0.1 x 0.9 + 0.1 x 0.5 = 0.56."""
    found = scored({"vector": 0.8, "keyword": 0.4, "importance": 0.9, "recency": 0.5})
    assert found.score == pytest.approx(0.56, abs=1e-12)
    assert found.memory is MEMORY


@pytest.mark.parametrize(
    ("component", "weight"),
    [
        ("vector", 0.35),
        ("keyword", 0.35),
        ("metadata", 0.35),
        ("relation", 0.25),
        ("tag", 0.20),
        ("exact", 0.20),
        ("recency", 0.10),
        ("importance", 0.10),
        ("confidence", 0.05),
        ("relevance", 0.0),
    ],
)
def test_each_component_has_its_weight(component: str, weight: float) -> None:
    """The founding project's figures."""
    assert scored({component: 1.0}).score == weight


@pytest.mark.parametrize("component", ["tag", "recency", "importance", "confidence", "relevance"])
def test_below_the_gate_what_does_not_depend_on_the_query_is_scaled(component: str) -> None:
    """Evidence 0.1 of 0.4: a quarter is left; the evidence itself counts in full."""
    weights = ComponentWeights(relevance=0.3)
    open_gate = scored({"vector": 0.1, component: 0.8}, weights=weights).score - 0.035
    closed = scored({"vector": 0.1, component: 0.8}, 0.4, weights=weights).score - 0.035
    assert closed == pytest.approx(open_gate / 4, abs=1e-12)
    assert open_gate > 0


def test_relation_is_neither_evidence_nor_scaled() -> None:
    """A relation found by the query's neighbours stands for itself."""
    assert scored({"relation": 1.0, "importance": 1.0}, 0.4).score == pytest.approx(0.25, abs=1e-12)


@pytest.mark.parametrize("component", ["vector", "keyword", "metadata", "exact"])
def test_the_best_evidence_opens_the_gate(component: str) -> None:
    """At the gate nothing is scaled; it is the best that counts."""
    found = {"vector": 0.0, "keyword": 0.0, "metadata": 0.0, "exact": 0.0, component: 0.4, "importance": 1.0}
    assert scored(found, 0.4).score == scored(found).score
    less = {**found, component: 0.39}
    assert scored(less, 0.4).score < scored(less).score


def test_without_evidence_nothing_is_left() -> None:
    """An important memory about something else scores 0."""
    assert scored({"importance": 1.0, "recency": 1.0}, 0.4).score == 0.0


def test_without_a_query_there_is_no_gate() -> None:
    """Nothing was asked, so nothing can be off topic."""
    assert scored({"importance": 1.0}, 0.4, has_query=False).score == 0.1


def test_the_explanation_shows_evidence_and_damping() -> None:
    """Where the gate was closed, and where it was open."""
    closed = scored({"vector": 0.1, "importance": 0.8}, 0.4).explanation
    opened = scored({"vector": 0.5, "importance": 0.8}, 0.4).explanation
    damping = closed.find("damping")
    assert damping is not None
    assert damping.value == 0.25
    assert closed.name == "relevance"
    assert [part.name for part in damping.parts] == ["evidence", "gate"]
    assert dict(closed.facts) == {"evidence": 0.1, "gated": True}
    assert dict(opened.facts) == {"evidence": 0.5, "gated": False}
    assert opened.find("damping") is None
    assert [part.name for part in opened.parts] == ["vector", "importance"]
    assert [leaf.name for leaf in opened.parts[1].parts] == ["weight", "importance"]
    assert [leaf.name for leaf in closed.parts[0].parts] == ["weight", "vector"]
    assert [leaf.name for leaf in closed.parts[1].parts] == ["weight", "importance", "damping"]
    assert closed.recompose() == pytest.approx(0.035 + 0.08 / 4, abs=1e-12)


def test_faults_are_noted_with_memory_and_component() -> None:
    """NaN is 0, 11.0 is 1, and what has no weight is left out."""
    notes = Notes()
    found = relevance_hit(MEMORY, {"vector": math.nan, "keyword": 11.0, "luck": 1.0}, notes)
    assert found.score == 0.35
    assert [(note.code, note.subject) for note in notes.kept] == [
        ("not_a_number", "m.vector"),
        ("outside_0_to_1", "m.keyword"),
        ("unknown_component", "m.luck"),
    ]


def test_no_components_are_a_score_of_0() -> None:
    """And an explanation without parts."""
    assert scored({}).score == 0.0
    assert scored({}).explanation.recompose() == 0.0


@pytest.mark.parametrize("value", [-0.1, 1_001.0, math.nan])
@pytest.mark.parametrize("field", ["vector", "relevance"])
def test_a_weight_out_of_range_is_refused(field: str, value: float) -> None:
    """ConfigError names the field."""
    with pytest.raises(ConfigError) as refused:
        ComponentWeights(**{field: value})
    assert refused.value.field == field


def test_the_ends_of_the_range_are_weights() -> None:
    """0 and a thousand."""
    assert scored({"vector": 1.0}, weights=ComponentWeights(vector=1_000, tag=0)).score == 1_000
