"""A sentence with one edit by an attacker is not supported by itself, but for the few edits that are licensed."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from smart_model_router_research.deep.checking import SupportStatus, check_claim

ROWS = Path(__file__).parents[3] / "fixtures" / "claims" / "rows.jsonl"
INSERTED = (
    "the a an that which also then so there of its only not all some most many few every each both may might can could "
    "must should will would always never often usually mainly nearly first last former other new main such in on at by "
    "to for with from and or was is has been"
).split()
CHANGED = {
    one: other
    for one, _, other in (
        pair.partition("=")
        for pair in "the=a a=the an=the is=was are=were was=is were=are has=had had=has can=may may=can must=should "
        "will=would and=or or=and some=all all=some in=at of=for to=from its=their this=that before=after".split()
    )
}


@cache
def sentences() -> list[str]:
    """Return fifty plain sentences of the fixtures, drawn; each supports itself."""
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()]
    prose = sorted({row["quote"] for row in rows if row["kind"] not in ("label", "label_is", "table", "other_cell")})
    random.Random(22).shuffle(prose)
    plain = (
        each
        for each in prose
        if each.endswith(".") and " ," not in each and "[" not in each and 6 <= len(each.split()) <= 24
    )
    return [each for _, each in zip(range(60), plain, strict=False) if accepted(each, each)]


def accepted(claim: str, source: str) -> bool:
    """Return whether a sentence supports a claim."""
    return check_claim(claim, source, source).status is SupportStatus.SUPPORTED


def without_words(words: list[str], width: int) -> Iterator[tuple[str, str]]:
    """Yield what is left out, and the sentence without it."""
    for at in range(len(words) - width + 1):
        left = " ".join(words[:at] + words[at + width :]).rstrip(".,")
        yield " ".join(words[at : at + width]), f"{left[:1].upper()}{left[1:]}."


def test_enough_sentences_are_attacked() -> None:
    """Fifty and more support themselves."""
    assert len(sentences()) > 50


def test_no_single_word_may_be_left_out_but_those_that_tell_nothing() -> None:
    """Of some 900 deletions only "also", "that" behind a verb of saying and abbreviations are accepted."""
    left = {word for s in sentences() for word, claim in without_words(s.split(), 1) if accepted(claim, s)}

    assert {word for word in left if not re.fullmatch(r"also|that|\([A-Z]+\)[,.]?", word)} == set()


@pytest.mark.parametrize("width", [2, 3, 5])
def test_no_words_in_a_row_may_be_left_out_but_asides(width: int) -> None:
    """Only a whole parenthesis, a whole clause of "which" or "and", and "in order" before "to" may go."""
    left = {words for s in sentences() for words, claim in without_words(s.split(), width) if accepted(claim, s)}

    assert {words for words in left if not re.match(r"\(.*\)[,.]?$|which |and |in order$", words)} == set()


def test_no_word_may_be_put_in() -> None:
    """Articles, quantifiers, modals, adverbs and prepositions: none but "of" behind "all"; each has its turn."""
    found = set()
    for number, source in enumerate(sentences()):
        words = source.split()
        for word in INSERTED[number % 9 :: 9]:
            claims = (" ".join([*words[:at], word, *words[at:]]) for at in range(1, len(words)))
            found |= {(word, claim) for claim in claims if accepted(claim, source) and "all of the" not in claim}

    assert found == set()


def test_no_word_may_be_inflected_replaced_or_moved() -> None:
    """Another number, tense, article, preposition, conjunction or order of two words is another statement.

    A possessive may lose its ending.
    """
    found = set()
    for source in sentences():
        words = source.split()
        for at, word in enumerate(words):
            others = {CHANGED.get(word), f"{word}s" if word.isalpha() else None, word[:-1] if word[-1] == "s" else None}
            claims = [[*words[:at], other, *words[at + 1 :]] for other in others if other]
            claims += [[*words[:at], *words[at : at + 2][::-1], *words[at + 2 :]]]
            found |= {
                (word, " ".join(claim))
                for claim in claims
                if claim != words and accepted(" ".join(claim), source) and not word.endswith("\u2019s")
            }

    assert found == set()
