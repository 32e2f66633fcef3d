"""A question which of two it is is answered by what compares both in what is asked."""

from __future__ import annotations

import pytest

from smart_model_router_research.deep.asked_choices import choice_of, compares, is_choice

FASTER = "Is a string search or a pattern search faster?"


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        ("Testing or unstable: which of the two breaks less often?", {"test"}, {"unstabl"}),
        ("Which is more accurate, PPS or NTP?", {"pp"}, {"ntp"}),
        ("copy vs copytree: with which one are links kept?", {"copi"}, {"copytre"}),
        (FASTER, {"string", "search"}, {"pattern"}),
    ],
)
def test_both_things_are_read_from_a_question(question: str, one: set[str], other: set[str]) -> None:
    """Before a colon, behind a comma, or on both sides of "or"."""
    choice = choice_of(question)
    assert choice is not None
    assert (set(choice[0]), set(choice[1])) == (one, other)


@pytest.mark.parametrize("question", ["Which port does it use?", "Where is Lake Como?", "PPS or PPS: which is better?"])
def test_other_questions_let_choose_from_nothing(question: str) -> None:
    """One thing, or the same twice, is no choice."""
    assert choice_of(question) is None
    assert not is_choice(question)
    assert not compares(question, "PPS is better than NTP.")


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("A pattern search is slower than a string search.", True),
        ("A string search is faster, while a pattern search can do more.", True),
        ("A string search is faster than a tree search.", False),
        ("A string search is fast. So is a pattern search.", False),
        ("A pattern search is older than a string search.", False),
        ("Nobody knows whether a pattern search is faster than a string search.", False),
        ("A string search is faster than a tree search, while a pattern search is rare.", False),
    ],
)
def test_a_sentence_answers_that_compares_both_in_what_is_asked(text: str, answers: bool) -> None:
    """The opposite of what is asked says it, too; another thing, no comparison and another measure do not."""
    assert compares(FASTER, text) is answers
