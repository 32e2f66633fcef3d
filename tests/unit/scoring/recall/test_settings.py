"""Settings: defaults that change nothing, refused nonsense, and variables whose nonsense is noted."""

from __future__ import annotations

import math
from typing import Any

import pytest

from smart_model_router_scoring.options import ConfigError, Notes
from smart_model_router_scoring.recall.memory import RecallSettings, read_settings


def test_the_defaults_are_the_specifications() -> None:
    """Off, 0.1, 180 days, linear, no cap, no gate."""
    assert RecallSettings() == RecallSettings(
        recency_bias="off",
        weight_temporal=0.1,
        recency_window_days=180,
        recency_curve="linear",
        tag_score_token_cap=0,
        relevance_gate=0,
    )


def test_every_variable_is_read() -> None:
    """Blanks and capitals in words do not matter."""
    notes = Notes()
    found = read_settings(
        {
            "RECALL_RECENCY_BIAS": " Auto ",
            "SEARCH_WEIGHT_TEMPORAL": "0.3",
            "SEARCH_RECENCY_WINDOW_DAYS": "90",
            "SEARCH_RECENCY_CURVE": "EXP",
            "SEARCH_TAG_SCORE_TOKEN_CAP": "3",
            "RECALL_RELEVANCE_GATE": "0.40",
            "UNRELATED": "x",
        },
        notes,
    )
    assert found == RecallSettings(
        recency_bias="auto",
        weight_temporal=0.3,
        recency_window_days=90.0,
        recency_curve="exp",
        tag_score_token_cap=3,
        relevance_gate=0.4,
    )
    assert notes.kept == ()


def test_nothing_said_is_the_default() -> None:
    """No variable, no note."""
    notes = Notes()
    assert read_settings({}, notes) == RecallSettings()
    assert notes.kept == ()


def test_a_negative_temporal_weight_is_0() -> None:
    """It is mended without a word, as specified."""
    notes = Notes()
    assert read_settings({"SEARCH_WEIGHT_TEMPORAL": "-0.5"}, notes).weight_temporal == 0.0
    assert notes.kept == ()


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("RECALL_RECENCY_BIAS", "sometimes"),
        ("SEARCH_WEIGHT_TEMPORAL", "much"),
        ("SEARCH_WEIGHT_TEMPORAL", "nan"),
        ("SEARCH_RECENCY_WINDOW_DAYS", "0"),
        ("SEARCH_RECENCY_WINDOW_DAYS", "-180"),
        ("SEARCH_RECENCY_CURVE", "steep"),
        ("SEARCH_TAG_SCORE_TOKEN_CAP", "-1"),
        ("SEARCH_TAG_SCORE_TOKEN_CAP", "2.5"),
        ("RECALL_RELEVANCE_GATE", "1.5"),
        ("RECALL_RELEVANCE_GATE", ""),
    ],
)
def test_a_bad_value_falls_to_its_default_with_a_note(variable: str, text: str) -> None:
    """The other settings keep what they were given."""
    notes = Notes()
    other = "SEARCH_RECENCY_CURVE" if variable != "SEARCH_RECENCY_CURVE" else "RECALL_RECENCY_BIAS"
    good = {"SEARCH_RECENCY_CURVE": "exp", "RECALL_RECENCY_BIAS": "on"}[other]
    found = read_settings({variable: text, other: good}, notes)
    assert found == read_settings({other: good}, Notes())
    assert found != RecallSettings()
    assert [(note.code, note.subject, note.detail) for note in notes.kept] == [("bad_setting", variable, text)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("recency_bias", "sometimes"),
        ("weight_temporal", -0.1),
        ("weight_temporal", 1_001),
        ("weight_temporal", math.nan),
        ("recency_window_days", 0),
        ("recency_curve", "steep"),
        ("tag_score_token_cap", -1),
        ("tag_score_token_cap", 1.5),
        ("relevance_gate", 1.1),
        ("relevance_gate", -0.1),
    ],
)
def test_nonsense_is_refused_at_once(field: str, value: Any) -> None:
    """ConfigError names the field."""
    with pytest.raises(ConfigError) as refused:
        RecallSettings(**{field: value})
    assert refused.value.field == field


def test_the_ends_of_the_ranges_are_allowed() -> None:
    """0, 1 and a thousand."""
    RecallSettings(recency_bias="on", weight_temporal=0, relevance_gate=1, recency_window_days=0.1)
    RecallSettings(recency_bias="auto", weight_temporal=1_000, recency_curve="exp")
