"""Text becomes words, FTS5 expressions and vectors; vectors become the bytes that the index keeps."""

from __future__ import annotations

import math
import struct
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from typing import Protocol

from smart_model_router_scoring.options import check_count
from smart_model_router_scoring.tokens import is_unspaced, question_words

MOST_TERMS = 32
"""Words of a question that are searched for; the first ones. A pasted page is not a question."""
FUNCTION_WORDS = frozenset(
    "a about after all also am an and any anybody anyone are as at be because been but by can could did do does for"
    " from had has have he hello her hey hi his how i if in into is it its know may me more most my myself no"
    " not of on one or other our out over please she should so some somebody someone such tell than thank thanks"
    " that the their them then there these they this those to under up us want was we were what when where"
    " which while who why will with would you your".split()
)
"""English words that say nothing of a subject. In other languages nothing is left out."""


def telling(words: Iterable[str]) -> list[str]:
    """The words that say something of a subject; all of them when none does."""
    given = list(words)
    return [word for word in given if word not in FUNCTION_WORDS] or given


def telling_text(text: str) -> str:
    """The telling words of a question as a text to embed. All of it in scripts without spaces."""
    words = question_words(text)
    return text if any(map(is_unspaced, words)) else " ".join(telling(words)[:MOST_TERMS])


def quoted(term: str) -> str:
    """A word as an FTS5 string: in quotes nothing is an operator."""
    return '"' + term.replace('"', '""') + '"'


def any_of(terms: Sequence[str]) -> str:
    """An expression that one of these words satisfies."""
    return "(" + " OR ".join(map(quoted, terms)) + ")"


def packed(vector: Sequence[float]) -> bytes:
    """The vector, scaled to length 1, as bytes. One of no length, or with a part that is no number, is all zeros."""
    length = math.sqrt(math.fsum(value * value for value in vector))
    usable = 0.0 < length < math.inf  # false for NaN
    return struct.pack(f"<{len(vector)}e", *(value / length if usable else 0.0 for value in vector))


def unpacked(vector: bytes) -> tuple[float, ...]:
    """The vector that `packed` wrote."""
    return struct.unpack(f"<{len(vector) // 2}e", vector)


class Embedder(Protocol):
    """Text to vectors of one space."""

    @property
    def name(self) -> str:
        """The name of the space. Vectors of different names are never compared; a new name embeds an index anew."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector a text, in order, all of one length. May raise anything; a query then goes on without vectors."""
        ...


class CallableEmbedder:
    """An embedder made of a function, such as a call of a router's `embeddings`."""

    def __init__(self, name: str, embed: Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]) -> None:
        self._name = name
        self._embed = embed

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Whatever the function says."""
        return await self._embed(texts)


class HashedEmbedder:
    """Words and the letters inside them, hashed into `dimensions` numbers. Deterministic, no model, no download.

    What it is: lexical. It brings inflections, compounds and misspellings together ("routing", "router", "ruoter"),
    which the keyword index does only in part, and it knows no meaning: a synonym is a stranger to it. For meaning,
    give an `Embedder` that has a model behind it. Ranks by it are worse than those by keywords on most collections:
    beside keywords it weighs next to nothing unless a weight is written (see `QueryOrchestrator`).
    """

    def __init__(self, dimensions: int = 1024) -> None:
        check_count("dimensions", dimensions, 16, 65_536)
        self._dimensions = dimensions

    @property
    def name(self) -> str:
        """The algorithm with its version and size."""
        return f"hashed-ngrams-2/{self._dimensions}"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of length 1 a text; of a text without words, zeros."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        sums = [0.0] * self._dimensions
        counted = Counter(question_words(text))
        for word in telling(counted):
            weight = 1.0 + math.log(counted[word])
            for place, share in _features(word):
                sums[place % self._dimensions] += weight * share
        length = math.sqrt(math.fsum(value * value for value in sums))
        return [value / length for value in sums] if length else sums


def is_lexical(embedder: Embedder) -> bool:
    """True where vectors are words and letters only, and so no evidence beside words."""
    return isinstance(embedder, HashedEmbedder)


_GRAMS = (3, 4)
_WORD_SHARE = 1.0
_GRAMS_SHARE = 0.6
"""The weight of all the letter groups of a word together, to the word's own 1 (in squares)."""


@lru_cache(maxsize=65_536)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    """Places before the reduction to the number of dimensions, with signed weights.

    The sign is a bit of the hash: words that meet in one place then cancel on average instead of adding up.
    """
    framed = f"<{word}>"
    grams = [framed[at : at + size] for size in _GRAMS for at in range(len(framed) - size + 1)]
    share = math.sqrt(_GRAMS_SHARE / len(grams)) if grams else 0.0
    features = [(f"={word}", math.sqrt(_WORD_SHARE)), *((gram, share) for gram in grams)]
    hashed = [(zlib.crc32(name.encode("utf-8", "replace")), weight) for name, weight in features]
    return tuple((value >> 1, weight if value & 1 else -weight) for value, weight in hashed)
