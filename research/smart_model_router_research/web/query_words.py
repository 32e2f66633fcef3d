"""The words that a query may take to a public back-end where private documents are searched as well. Pure.

Queries are made of the topic and its questions, but some are completed with what a document says, such as the name that
a first step has found. Such a query would tell others what stands in a private document.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from smart_model_router_research.deep.fitting import LIGHT
from smart_model_router_research.deep.matching import WORD, alternatives, stem_of
from smart_model_router_research.deep.questions import STOP


@dataclass(frozen=True, slots=True)
class QueryWords:
    """Words and stems that may be sent."""

    known: frozenset[str]

    @classmethod
    def of(cls, texts: Iterable[str], more: Iterable[str] = ()) -> QueryWords:
        """Return the words of these texts, words of the same meaning by the shipped table, and `more`."""
        words = {word.casefold() for text in texts for word in WORD.findall(text)}
        stems = {stem_of(word) for word in words}
        others = {other for stem in stems for other in alternatives(stem)}
        return cls(frozenset(words | stems | others | {word.casefold() for word in more} | STOP | LIGHT))

    def permit(self, text: str) -> bool:
        """Return whether a text has no other words."""
        words = (word.casefold() for word in WORD.findall(text))
        return all(word in self.known or stem_of(word) in self.known for word in words)
