"""Words become the stems that the index keeps and that questions are asked by."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from typing import Protocol

from smart_model_router_scoring.retrieval.embedders import MOST_TERMS, telling
from smart_model_router_scoring.tokens import document_words, is_unspaced, question_words

_MOST_KNOWN = 200_000
"""Words whose stems are remembered; a language has fewer, names and numbers are without end."""


class Stemmer:
    """Stems of words by FTS5's tokenizer (Porter over unicode61), remembered: a text is mostly words seen before.

    It may be shared by threads.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()
        self._sql: sqlite3.Connection | None = None

    def of(self, words: Iterable[str]) -> list[str]:
        """The stems of these words, in order. A word has one, seldom none or several."""
        given = list(words)
        known = self._known
        try:
            return [stem for word in given for stem in known[word]]
        except KeyError:
            with self._lock:
                return self._learn(given)

    def _learn(self, words: list[str]) -> list[str]:
        if len(self._known) > _MOST_KNOWN:
            self._known = {}
        known = self._known
        # FTS5 would cut a Thai word at its vowels.
        known.update((word, (word,)) for word in words if is_unspaced(word))
        new = [word for word in dict.fromkeys(words) if word not in known]
        sql = self._tokenizer()
        sql.execute("DELETE FROM t")
        sql.executemany("INSERT INTO t (rowid, word) VALUES (?, ?)", enumerate(new))
        found: list[list[str]] = [[] for _ in new]
        for stem, row in sql.execute("SELECT term, doc FROM v ORDER BY doc, offset"):
            found[row].append(stem)
        known.update(zip(new, map(tuple, found), strict=True))
        return [stem for word in words for stem in known[word]]

    def _tokenizer(self) -> sqlite3.Connection:
        if self._sql is None:
            self._sql = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            self._sql.execute("CREATE VIRTUAL TABLE t USING fts5 (word, tokenize = 'porter unicode61')")
            self._sql.execute("CREATE VIRTUAL TABLE v USING fts5vocab (t, 'instance')")
        return self._sql


class Tokenizer(Protocol):
    """Text to the terms that the index keeps. A term has no white space and is compared as it is."""

    @property
    def name(self) -> str:
        """The name of its rules. An index says whose terms it has; one of another name is made anew."""
        ...

    def document(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        ...

    def question(self, text: str) -> list[str]:
        """The terms of a question that say something of its subject, in order and with repetitions."""
        ...


_STEMMER = Stemmer()


class StemsAndPairs:
    """Porter stems of words, and pairs of neighbouring characters in scripts without spaces. It has no state."""

    name = "porter-pairs-1"

    def document(self, text: str) -> list[str]:
        """See `Tokenizer`."""
        return _STEMMER.of(document_words(text))

    def question(self, text: str) -> list[str]:
        """See `Tokenizer`: its first MOST_TERMS telling words."""
        return _STEMMER.of(telling(question_words(text))[:MOST_TERMS])


DEFAULT_TOKENIZER = StemsAndPairs()
