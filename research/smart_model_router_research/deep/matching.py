"""Words as they are compared when an answer is looked for: by stem, and by groups of words that ask for one thing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from smart_model_router_scoring.retrieval.stems import DEFAULT_TOKENIZER

WORD = re.compile(r"[^\W_]+")


class PlacedStem(NamedTuple):
    """A stem, and the place of its word in a text."""

    stem: str
    start: int
    end: int


def stems_of(text: str) -> frozenset[str]:
    """Return the stems of the words of a text."""
    [stems] = DEFAULT_TOKENIZER.documents([text])
    return frozenset(stems)


@lru_cache(maxsize=65_536)
def stem_of(word: str) -> str:
    """Return the stem of one word."""
    [stems] = DEFAULT_TOKENIZER.documents([word])
    return stems[0] if stems else word.casefold()


def placed_stems(text: str) -> list[PlacedStem]:
    """Return the stems of a text with their places."""
    return [PlacedStem(stem_of(match[0]), *match.span()) for match in WORD.finditer(text)]


@lru_cache(maxsize=1)
def _groups() -> dict[str, frozenset[str]]:
    """Return for each stem of the shipped lexicon those that can stand for it in an answer."""
    table = files("smart_model_router_research.deep").joinpath("lexicon.txt").read_text(encoding="utf-8")
    found: dict[str, set[str]] = {}
    for line in table.splitlines():
        if not line or line.startswith("#"):
            continue
        asked, colon, answered = line.partition(":")
        words = {stem_of(word) for word in (answered if colon else asked).split()}
        for word in asked.split():
            found.setdefault(stem_of(word), set()).update(words)
    return {stem: frozenset(stems | {stem}) for stem, stems in found.items()}


def alternatives(stem: str) -> frozenset[str]:
    """Return the stems that can stand for a stem of a question, itself included."""
    return _groups().get(stem) or frozenset([stem])


def any_in(stems: Iterable[str], bag: frozenset[str]) -> bool:
    """Return whether one of the stems is in a bag."""
    return any(stem in bag for stem in stems)
