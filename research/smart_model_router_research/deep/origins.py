"""Copies of one text among documents: those that share four fifths of their runs of five words have one origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice

from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_scoring.tokens import document_words

SHINGLE_WORDS = 5
SAME_ORIGIN = Fraction(4, 5)
"""The Jaccard similarity from which on two documents are one source."""
_MOST_CHARACTERS = 5_000_000


def with_origins(documents: Iterable[StoredDocument]) -> tuple[StoredDocument, ...]:
    """Return the documents with `origin`: the least id among the near-duplicates of each, its own where it has none.

    Copies of copies have one origin, too. A document without words is a duplicate of nothing.
    """
    listed = tuple(documents)
    shingles = _shingles_of([document.text for document in listed])
    leader = list(range(len(listed)))

    def lead_of(at: int) -> int:
        while leader[at] != at:
            leader[at] = leader[leader[at]]
            at = leader[at]
        return at

    for one, other in _near_duplicates(shingles):
        first, second = sorted((lead_of(one), lead_of(other)), key=lambda at: listed[at].id)
        leader[second] = first
    return tuple(replace(document, origin=listed[lead_of(at)].id) for at, document in enumerate(listed))


def similarity(one: str, other: str) -> float:
    """Return the Jaccard similarity of two texts in runs of five words, 0 to 1; 0 where one has no words."""
    first, second = _shingles_of([one, other])
    return len(first & second) / len(first | second) if first and second else 0.0


def _shingles_of(texts: Sequence[str]) -> list[set[int]]:
    """Return the hash of each run of words; a shorter text is one run. The hash of a tuple of numbers has no seed."""
    numbers: dict[str, int] = {}
    found: list[set[int]] = []
    for text in texts:
        words = document_words(fold(text[:_MOST_CHARACTERS]))
        ids = [numbers.setdefault(word, len(numbers)) for word in words]
        runs = zip(*(islice(ids, start, None) for start in range(SHINGLE_WORDS)), strict=False)
        found.append(set(map(hash, runs)) or ({hash(tuple(ids))} if ids else set()))
    return found


def _near_duplicates(shingles: Sequence[set[int]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of SAME_ORIGIN or more. What stands in one document alone is not compared, only counted."""
    counts = Counter[int]()
    for each in shingles:
        counts.update(each)
    places = {shingle: place for place, shingle in enumerate(s for s, count in counts.items() if count > 1)}
    shared = [_bits(places[shingle] for shingle in each if shingle in places) for each in shingles]
    least, most = SAME_ORIGIN.numerator, SAME_ORIGIN.denominator
    sized = sorted((len(each), at) for at, each in enumerate(shingles) if shared[at])
    for position, (size, at) in enumerate(sized):
        for larger, other in islice(sized, position + 1, None):
            if size * most < larger * least:
                break
            common = (shared[at] & shared[other]).bit_count()
            if common * most >= (size + larger - common) * least:
                yield at, other


def _bits(places: Iterable[int]) -> int:
    """Return the number that has these bits."""
    kept = list(places)
    if not kept:
        return 0
    found = bytearray(max(kept) // 8 + 1)
    for place in kept:
        found[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(found, "little")
