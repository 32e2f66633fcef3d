"""Typed text becomes words, and words become an FTS5 expression in which nothing is syntax."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

MOST_TERMS = 32
"""Words of a question that are searched for; the first ones. A pasted page is not a question."""
FUNCTION_WORDS = frozenset(
    "a about after all also an and any are as at be because been but by can could did do does for from had has have"
    " he her his how i if in into is it its may more most no not of on one or other our out over she should so some"
    " such than that the their them then there these they this those to under up was we were what when where which"
    " while who why will with would you your".split()
)
"""English words that say nothing of a subject. In other languages nothing is left out."""

_WORD = re.compile(r"[^\W_]+")


def normal(text: str) -> str:
    """The text as it is compared: compatibility forms unified (NFKC), case folded."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def words_of(text: str) -> list[str]:
    """The words of a text, folded, in order. FTS5's own tokenizer cuts at the same characters."""
    return _WORD.findall(normal(text))


def telling(words: Iterable[str]) -> list[str]:
    """The words that say something of a subject; all of them when none does."""
    given = list(words)
    return [word for word in given if word not in FUNCTION_WORDS] or given


def terms_of(text: str) -> list[str]:
    """The distinct telling words of a question, in order, MOST_TERMS at most."""
    return telling(dict.fromkeys(words_of(text)))[:MOST_TERMS]


def quoted(term: str) -> str:
    """A word as an FTS5 string: in quotes nothing is an operator."""
    return '"' + term.replace('"', '""') + '"'


def any_of(terms: Sequence[str]) -> str:
    """An expression that one of these words satisfies."""
    return "(" + " OR ".join(map(quoted, terms)) + ")"
