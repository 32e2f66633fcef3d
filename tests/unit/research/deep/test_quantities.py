"""Numbers are read in the notations that people use, and rounded only where that says nothing else."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations

import pytest

from smart_model_router_research.deep.clause_forms import (
    AUXILIARIES,
    BE,
    CONJUNCTIONS,
    DETERMINERS,
    FOCUS,
    PREPOSITIONS,
)
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.quantities import Quantity, is_same, read_number
from smart_model_router_research.deep.synonyms import canonical, synonym_rows
from smart_model_router_research.deep.words import is_english, read_items


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1529", "1529"),
        ("1,529", "1529"),
        ("1.529,5", "1529.5"),
        ("1.529.000", "1529000"),
        ("1,5", "1.5"),
        ("1.529", "1.529"),
        ("1 529,5", "1529.5"),
        ("1'529", "1529"),
        ("1_529", "1529"),
        ("12,34,567", "1234567"),
        ("3e5", "300000"),
        (".5", "0.5"),
        ("twelve", "12"),
        ("四", "4"),
        ("十二", "12"),
        ("四百零二", "402"),
    ],
)
def test_notations_are_read(text: str, value: str) -> None:
    """English, continental, Swiss, Indian, Chinese, exponents and words."""
    number = read_number(text)

    assert number is not None
    assert number.value == Decimal(value)


@pytest.mark.parametrize("text", ["", "1.2.3", "1,52,9", "x1", "1" * 41, "四x", "四五", "one", "1e5555"])
def test_what_is_no_number_is_none(text: str) -> None:
    """Versions, identifiers and numbers too long to mean something."""
    assert read_number(text) is None


def quantity(text: str) -> Quantity:
    """Return the one quantity of a text."""
    (found,) = (item.key for item in read_items(text) if isinstance(item.key, Quantity))
    return found


@pytest.mark.parametrize(
    ("claimed", "source", "same"),
    [
        ("1529", "1,529", True),
        ("84.0 million", "84,012,284", True),
        ("84 million", "84,012,284", True),
        ("85 million", "84,012,284", False),
        ("84,000,000", "84,012,284", True),
        ("80,000,000", "84,012,284", False),
        ("84,012,000", "84,012,284", True),
        ("447 km", "447.4 km", True),
        ("448 km", "447.5 km", True),
        ("447 km", "447.5 km", False),
        ("4 km", "4.4 km", False),
        ("447.0 km", "447 km", True),
        ("447.4 km", "447 km", False),
        ("3.1", "3.10", False),
        ("3.1", "3.1", True),
        ("3.1", "3.11", False),
        ("2015", "2016", False),
        ("-5 km", "5 km", False),
        ("5,000 m", "5 km", True),
        ("2 km", "1.9 miles", False),
        ("60 s", "1 minute", True),
        ("5 kB", "5 KiB", False),
        ("5 Mb", "5 MB", False),
        ("5", "5 km", False),
        ("12 %", "12 percent", True),
        ("12 per cent", "12%", True),
        ("$ 5 billion", "$5,000,000,000", True),
        ("5 USD", "US$ 5", True),
        ("5 USD", "$5", False),
        ("20 sq km", "20 square km", True),
        ("20 sq km", "20 km", False),
        ("0 km", "0.4 km", False),
        ("200 g", "1e40 g", False),
    ],
)
def test_numbers_are_equal_or_rounded(claimed: str, source: str, same: bool) -> None:
    """Quantities may be rounded half up to the digits of the claim; versions and years may not."""
    assert is_same(quantity(claimed), quantity(source)) is same


def test_about_allows_for_zeros() -> None:
    """A number with "about" before it may be rounded to one digit."""
    assert is_same(quantity("84,000,000"), quantity("84,012,284"), about=True)
    assert not is_same(quantity("85,000,000"), quantity("84,012,284"), about=True)
    assert is_same(quantity("4 km"), quantity("4.4 km"), about=True)


def test_no_word_of_a_clause_stands_for_another() -> None:
    """Words that code tells clauses by are compared by their keys: a synonym may not give them another one."""
    kinds = (CONJUNCTIONS, PREPOSITIONS, FOCUS, DETERMINERS, AUXILIARIES, BE)

    assert [word for words in kinds for word in words if canonical(word) not in words] == []


def test_two_words_of_a_number_are_tens_and_ones() -> None:
    """Twenty-one is a number, fifty-fifty none."""
    assert is_same(quantity("twenty-one"), quantity("21"))
    assert [read_number(text) for text in ("fifty-fifty", "twenty-ten", "twenty-zero", "two-one")] == [None] * 4


def test_no_word_has_two_synonyms() -> None:
    """Each form stands in one row of the table, so that every pair holds both ways; there are 300 pairs."""
    rows = [row for row in synonym_rows() if row[0] not in ("phrase", "passive")]
    forms = [{form for entry in row[1:] for form in entry.split("/")} for row in rows]

    assert [one & other for one, other in combinations(forms, 2) if one & other] == []
    assert sum(len(list(combinations(row[1:], 2))) for row in rows) >= 300


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("utilised", "used", True),
        ("utilises", "uses", True),
        ("utilises", "use", False),
        ("folders", "directories", True),
        ("using", "used", False),
        ("caches", "cache", False),
        ("boxes", "box", False),
        ("entries", "entry", False),
        ("https", "http", False),
        ("class", "clas", False),
        ("prior to it", "before it", False),
        ("can't", "can not", True),
        ("5 May 2020", "May 5, 2020", True),
        ("2020-05-05", "5 May 2020", True),
        ("May 2020", "June 2020", False),
        ("5th May", "May 5", True),
        ("may 5", "May 5", False),
        ("ValueError", "valueerror", False),
        ('"print"', "print", False),
        ("`print`", "print", True),
        ("*args", "args", False),
        ("_private", "private", False),
        ("10²", "102", False),
        ("5-day", "5 day", True),
    ],
)
def test_words_of_one_meaning_are_equal(one: str, other: str, same: bool) -> None:
    """Synonyms in the same form and number, contractions and dates; names keep their letters."""
    mine, its = read_items(fold(one)), read_items(fold(other))

    assert (len(mine) == len(its) and all(a.same(b) for a, b in zip(mine, its, strict=True))) is same


@pytest.mark.parametrize(
    ("sentence", "english"),
    [("The server is down.", True), ("Der Server ist nicht da.", False), ("Bonjour", False), ("It fails.", True)],
)
def test_light_words_come_and_go_in_english_alone(sentence: str, english: bool) -> None:
    """Which words are light is known of English."""
    assert is_english(read_items(sentence)) is english
