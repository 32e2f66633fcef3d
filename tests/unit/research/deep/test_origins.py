"""Copies of one text are one source."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from smart_model_router_research.deep.claims import are_independent
from smart_model_router_research.deep.origins import similarity, with_origins
from smart_model_router_research.deep.sources import StoredDocument

WORDS = [f"word{number}" for number in range(3_000)]
TEXT = " ".join(WORDS[:104])
"""A hundred runs of five words."""


def stored(id: str, text: str, **rest: str) -> StoredDocument:  # noqa: A002
    """Return a document of this text."""
    return StoredDocument(id=id, text=text, sha256="", publisher=id, **rest)  # type: ignore[arg-type]


def origins(*texts: str) -> list[str]:
    """Return the origins of documents a, b, c, ... with these texts."""
    return [each.origin for each in with_origins(stored(chr(97 + at), text) for at, text in enumerate(texts))]


@pytest.mark.parametrize(("added", "copies"), [(0, True), (25, True), (26, False)])
def test_four_fifths_of_all_runs_are_a_copy(added: int, copies: bool) -> None:
    """100 runs of 125 are one origin, 100 of 126 are two."""
    longer = TEXT + "".join(f" more{number}" for number in range(added))

    assert similarity(TEXT, longer) == 100 / (100 + added)
    assert (origins(TEXT, longer) == ["a", "a"]) is copies


def test_typography_and_case_make_no_difference() -> None:
    """Spaces, dashes, case and soft hyphens do not make a text another one."""
    assert origins("The sea \u2013 rises and it falls each day", "THE  SEA - rises and it f\u00adalls each day") == [
        "a",
        "a",
    ]


def test_copies_of_copies_have_one_origin_in_any_order() -> None:
    """The origin is the least id of all that are tied together, whatever the order of the documents."""
    texts = [TEXT, TEXT + "".join(f" x{n}" for n in range(20)), TEXT + "".join(f" x{n}" for n in range(40))]
    documents = [stored(id, text) for id, text in zip("abc", texts, strict=True)]  # noqa: A001

    assert similarity(texts[0], texts[2]) < 0.8
    for order in (documents, documents[::-1], [documents[1], documents[2], documents[0]]):
        assert {each.origin for each in with_origins(order)} == {"a"}


def test_copies_are_not_independent() -> None:
    """Two publishers of one text are one source, two of two texts are two."""
    one, copy, other = (
        each.cited() for each in with_origins([stored("a", TEXT), stored("b", TEXT), stored("c", "Else")])
    )

    assert not are_independent(one, copy)
    assert are_independent(one, other)


def test_texts_without_words_are_copies_of_nothing() -> None:
    """Empty documents are no copies of each other; short ones of the same few words are."""
    assert origins("", "", "...", "a b", "A b!", "a") == ["a", "b", "c", "d", "d", "f"]


def test_scripts_without_spaces_are_compared() -> None:
    """A Chinese text with one sentence more is a copy, another one is not."""
    text = "".join(chr(0x4E00 + number) for number in range(200))

    assert origins(text, text + "\u8fd9\u662f\u4e00\u53e5", text[::-1]) == ["a", "a", "c"]


def test_the_pairs_are_those_of_the_definition() -> None:
    """Of random near-copies exactly the pairs of similarity .8 or more are joined."""
    random = Random(22)
    texts = []
    for _ in range(24):
        words = WORDS[:300]
        for _ in range(random.randrange(14)):
            words[random.randrange(300)] = random.choice(WORDS)
        texts.append(" ".join(words))
    group = list(range(24))
    for one, other in combinations(range(24), 2):
        if similarity(texts[one], texts[other]) >= 0.8:
            low, high = sorted((group[one], group[other]))
            group = [low if each == high else each for each in group]

    found = with_origins(stored(f"{at:02}", text) for at, text in enumerate(texts))

    assert 1 < len(set(group)) < 24
    assert [int(each.origin) for each in found] == group
