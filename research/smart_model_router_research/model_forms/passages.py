"""Passages of documents, and those that are shown to a model for a question: the likeliest first, within a length."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from smart_model_router_research.deep.fitting import telling_words
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.matching import stems_of
from smart_model_router_research.deep.statement_stems import senses_of
from smart_model_router_scoring.retrieval.reading import READERS, chunks_of, ignored

MOST_SHOWN = 12_000
"""Characters of all passages that are shown for one question."""
MOST_TITLE = 300
"""Characters of a title, and of headings, that are shown: a page can have a heading without an end."""
MOST_RANKED = 4_000
"""Passages of all documents that are looked at."""


@dataclass(frozen=True)
class SourcePassage:
    """A piece of a document, at most about 1,600 characters, with the headings above it."""

    document: ReadDocument = field(repr=False)
    heading: str
    text: str

    def shown(self, key: str) -> dict[str, str]:
        """Return it as a model sees it, under an id."""
        title = self.document.stored.title[:MOST_TITLE]
        return {"id": key, "title": title, "headings": self.heading[:MOST_TITLE], "text": self.text}


def passages_of(document: ReadDocument) -> list[SourcePassage]:
    """Return the passages of a document, in its order."""
    found = _pieces(document.stored.text, PurePosixPath(document.path).suffix.lower())
    return [SourcePassage(document, heading, text) for heading, text in found]


@lru_cache(maxsize=256)
def _pieces(text: str, suffix: str) -> tuple[tuple[str, str], ...]:
    """Return headings and texts of the passages of a text; each question of a run looks at them."""
    read = READERS.get(suffix, READERS[".md"])
    return tuple((chunk.heading, chunk.text) for chunk in chunks_of(read(text, ignored)) if chunk.text.strip())


def passages_for(
    texts: Sequence[str], documents: Iterable[ReadDocument], most: int = MOST_SHOWN
) -> list[SourcePassage]:
    """Return the passages that say most of what these texts ask, then others in their order, up to a length.

    What fits is shown whole, also where no word of a question stands in it: a source may say it in other words.
    """
    passages = [each for document in documents for each in passages_of(document)][:MOST_RANKED]
    stems = [stems_of(f"{each.document.stored.title} {each.heading} {each.text}") for each in passages]
    counts = Counter(stem for each in stems for stem in each)
    asked = dict.fromkeys(word for text in texts for word in telling_words(text))
    weights = {word: _weight(senses_of(word), counts, len(passages)) for word in asked}
    scores = [sum(weight for word, weight in weights.items() if senses_of(word) & each) for each in stems]
    kept: list[SourcePassage] = []
    length = 0
    for at in sorted(range(len(passages)), key=lambda at: (-scores[at], at)):
        length += len(passages[at].text)
        if length > most and kept:
            break
        kept.append(passages[at])
    return kept


def _weight(senses: Iterable[str], counts: Mapping[str, int], total: int) -> float:
    return math.log(1 + total / (1 + sum(counts.get(each, 0) for each in senses)))


def by_key(passages: Sequence[SourcePassage]) -> dict[str, SourcePassage]:
    """Return passages by short ids: all that a model writes of them."""
    return {f"p{number}": each for number, each in enumerate(passages, 1)}


def all_shown(passages: Mapping[str, SourcePassage]) -> list[dict[str, Any]]:
    """Return passages as a model sees them."""
    return [each.shown(key) for key, each in passages.items()]
