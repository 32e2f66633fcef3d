"""The one order of hits, key by key, and what is noted on the way."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from smart_model_router_scoring.options import Notes
from smart_model_router_scoring.recall.memory import Hit, Memory, age_rank, note_faults, sort_hits, sort_key


def hit(name: str, score: float = 0.5, **facts: Any) -> Hit:
    """A hit with these facts."""
    return Hit(Memory(id=name, **facts), score)


def order(*hits: Hit) -> list[str]:
    """Their ids, sorted in every order they can come in: there must be one answer."""
    answers = {tuple(found.memory.id for found in sort_hits(some)) for some in itertools.permutations(hits)}
    assert len(answers) == 1
    return list(answers.pop())


def test_each_key_decides_where_those_before_are_equal() -> None:
    """Score, source rank, original score, importance, time, id: each beats all that follow."""
    last: dict[str, Any] = {"source_rank": 1, "original_score": 0.1, "importance": 0.1, "timestamp": "2024-01-01"}
    best: dict[str, Any] = {"source_rank": 0, "original_score": 0.9, "importance": 0.9, "timestamp": "2025-01-01"}
    assert order(hit("z", 0.6, **last), hit("a", 0.5, **best)) == ["z", "a"]
    for at, field in enumerate(best):
        before = dict(list(last.items())[:at])
        after = dict(list(best.items())[at + 1 :])
        better = hit("z", **{**last, field: best[field]})
        worse = hit("a", **{**before, field: last[field], **after})
        assert order(better, worse) == ["z", "a"], field
    assert order(hit("b", **best), hit("a", **best)) == ["a", "b"]


def test_times_of_all_kinds_are_compared() -> None:
    """Text with and without an offset, a datetime, seconds; naive ones are UTC."""
    assert order(
        hit("noon utc", timestamp="2025-01-01T12:00:00Z"),
        hit("eleven utc", timestamp="2025-01-01T13:00:00+02:00"),
        hit("ten utc", timestamp=datetime(2025, 1, 1, 10)),  # noqa: DTZ001 - naive on purpose
        hit("nine utc", timestamp=datetime(2025, 1, 1, 9, tzinfo=UTC).timestamp()),
    ) == ["noon utc", "eleven utc", "ten utc", "nine utc"]


@pytest.mark.parametrize("timestamp", [None, "yesterday", "", "2025-13-01", math.nan, True, object()])
def test_what_is_no_time_sorts_as_the_oldest(timestamp: Any) -> None:
    """Before 1970, too, there was time."""
    assert order(hit("a", timestamp=timestamp), hit("z", timestamp="1700-01-01")) == ["z", "a"]
    assert age_rank(timestamp) == -math.inf


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None, "0.9"])
def test_what_is_no_number_sorts_last(bad: Any) -> None:
    """In the score and in each fact, whatever else speaks for it."""
    assert order(hit("a", bad), hit("z", -5.0)) == ["z", "a"]
    assert order(hit("a", original_score=bad), hit("z", original_score=-5.0)) == ["z", "a"]
    assert order(hit("a", importance=bad), hit("z", importance=-5.0)) == ["z", "a"]
    assert order(hit("a", source_rank=bad), hit("z", source_rank=99)) == ["z", "a"]


def test_ids_of_any_alphabet_have_an_order() -> None:
    """That of code points."""
    assert order(hit("é"), hit("e"), hit("\u65e5"), hit("Z")) == ["Z", "e", "é", "\u65e5"]


def test_what_is_equal_in_every_key_stays_in_the_order_it_came_in() -> None:
    """One memory found twice with one score."""
    hits = [hit("a", timestamp="2025-01-01") for _ in range(3)]
    assert all(one is other for one, other in zip(sort_hits(hits), hits, strict=True))


def test_the_key_is_the_order() -> None:
    """Who sorts by himself gets the same."""
    hits = [hit("b"), hit("a", 0.7), hit("c", timestamp="2025-01-01")]
    assert sorted(hits, key=sort_key) == sort_hits(hits)


def test_the_input_is_left_as_it_was() -> None:
    """A new list."""
    hits = [hit("b"), hit("a")]
    sort_hits(hits)
    assert [found.memory.id for found in hits] == ["b", "a"]


def test_each_fault_is_noted_by_name() -> None:
    """A missing time is another matter than a bad one."""
    notes = Notes()
    bad: Any = math.nan
    note_faults(Memory(id="m", source_rank=bad, original_score=bad, importance=bad, timestamp="soon"), notes)
    note_faults(Memory(id="n"), notes)
    note_faults(Memory(id="o", timestamp="2025-01-01"), notes)
    assert [(note.code, note.subject, note.detail) for note in notes.kept] == [
        ("bad_source_rank", "m", "nan"),
        ("bad_original_score", "m", "nan"),
        ("bad_importance", "m", "nan"),
        ("bad_time", "m", "soon"),
        ("no_time", "n", ""),
    ]


def test_a_given_score_explains_itself() -> None:
    """It is where the computation starts."""
    assert [*hit("a", 0.25).explanation.lines()] == ["score = 0.25"]
