"""`make agents` has Node's schemas judge translated answers; here its verdict is held against what they said."""

from __future__ import annotations

from tests.agents.schemas import CUSTOM, judged
from tests.unit.wires.spoken_answers import translated

WELL = [{"name": "a", "how": "whole", "kinds": ["text"]}, {"name": "a", "how": "stream", "kinds": ["text-delta"]}]


def test_an_answer_that_was_read_twice_is_right() -> None:
    """Whole and as a stream."""
    assert judged(WELL, ["a"]) == []


def test_what_a_schema_refused_is_wrong() -> None:
    """With the answer's name, and what the schema said."""
    assert judged([WELL[0], {"name": "a", "how": "stream", "error": "expected array"}], ["a"]) == [
        "a, stream: expected array"
    ]


def test_an_answer_that_was_not_read_is_no_right_one() -> None:
    """A program that ends early has judged nothing."""
    assert judged(WELL[:1], ["a"]) == ["a, stream: not read"]


def test_the_answer_that_is_left_out_exists() -> None:
    """The name in the lane is one of the answers'."""
    assert CUSTOM in {answer.name for answer in translated()}
