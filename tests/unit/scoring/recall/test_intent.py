"""Temporal intent: phrases of the present between word boundaries, less the past and the homonyms."""

from __future__ import annotations

import pytest

from smart_model_router_scoring.recall.ranking import ENGLISH, LANGUAGES, TemporalLexicon


@pytest.mark.parametrize(
    "question",
    [
        "What is the latest version?",
        "my MOST   recent address",
        "Who is the current maintainer?",
        "where do I currently live",
        "Which editor do I use now",
        "how do people pay nowadays",
        "What is on today?",
        "what changed in the plan",
        "Has the policy been updated?",
        "When was the last time we met",
        "the last\n\ttime",
        "the newest build",
        "what do I eat these days",
        "Don't I run anymore?",
        "any recent news",
        "what did I buy recently",
        "as of when is it valid",
        "what am I reading at the moment",
        "do I still work there",
        "what is the latest on electric currents",
        "what has changed since 2019",
        "\uff4c\uff41\uff54\uff45\uff53\uff54 news",
        "Is it still before the deadline",
    ],
)
def test_a_question_about_the_present(question: str) -> None:
    """Each phrase of the specification, whatever case, form and white space."""
    assert ENGLISH.asks_for_the_present(question) is True


@pytest.mark.parametrize(
    "question",
    [
        "",
        "Where did I put the keys",
        "which currency do they use",
        "it is nowhere to be found",
        "do you know the unchanged part",
        "recentness is no word, instill is",
        "What was the latest version in 2019?",
        "which release was current during 1999",
        "the newest one as of 2020",
        "what had changed by March 2018",
        "what was still true until 2021",
        "what was recent before 2001",
        "the most recent till 2011",
        "Where did I use to live when I still used to smoke",
        "how did the logo look before it changed",
        "what was the price before the plan was updated",
        "the address before we had changed it, and back then",
        "what is an electric current",
        "alternating currents for beginners",
        "which bank has my current account",
        "a still life in oil",
        "a still  life in oil",
        "what was the newest phone back then",
        "for the last electric current time",
    ],
)
def test_a_question_about_something_else(question: str) -> None:
    """No phrase, one inside a word, one of the past, one that means another thing."""
    assert ENGLISH.asks_for_the_present(question) is False


def test_a_year_that_is_not_over_is_not_past() -> None:
    """With the present year known only years before it speak of the past."""
    question = "the latest release in 2026"
    assert ENGLISH.asks_for_the_present(question, 2026)
    assert ENGLISH.asks_for_the_present(question, 2025)
    assert not ENGLISH.asks_for_the_present(question, 2027)
    assert not ENGLISH.asks_for_the_present(question)


def test_every_year_that_is_named_counts() -> None:
    """One that is over is enough, and so is a phrase of the past without a year."""
    assert not ENGLISH.asks_for_the_present("the latest in 2026 and in 2019", 2026)
    assert not ENGLISH.asks_for_the_present("the latest in 2026 that used to work", 2026)


def test_a_language_is_a_lexicon() -> None:
    """Its phrases are its own; it may do without a past and without homonyms."""
    german = TemporalLexicon(present=("aktuell(?:e[rnms]?)?", "heute"), past=())
    assert german.asks_for_the_present("Wer ist der AKTUELLE Betreuer?")
    assert not german.asks_for_the_present("the latest")
    assert LANGUAGES["en"] is ENGLISH


def test_a_lexicon_without_phrases_asks_for_nothing() -> None:
    """Whatever the question, and wherever its white space is."""
    assert not TemporalLexicon(present=(), past=()).asks_for_the_present(" What is it now?  ")
