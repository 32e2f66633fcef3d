"""Words become the stems that the index keeps and that questions are asked by."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
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

    def of(self, texts: Sequence[Sequence[str]]) -> list[list[str]]:
        """The stems of the words of each text, in order. A word has one, seldom none or several.

        Words that are new cost less the more of them are learnt at once.
        """
        known = self._known
        try:
            return [[stem for word in words for stem in known[word]] for words in texts]
        except KeyError:
            with self._lock:
                known = self._learn(texts)
                return [[stem for word in words for stem in known[word]] for words in texts]

    def _learn(self, texts: Iterable[Iterable[str]]) -> dict[str, tuple[str, ...]]:
        if len(self._known) > _MOST_KNOWN:
            self._known = {}
        known = self._known
        unknown = dict.fromkeys(word for words in texts for word in words if word not in known)
        # FTS5 would cut a Thai word at its vowels.
        known.update((word, (word,)) for word in unknown if is_unspaced(word))
        new = [word for word in unknown if word not in known]
        sql = self._tokenizer()
        found: list[list[str]] = [[] for _ in new]
        sql.execute("BEGIN")  # each word in a transaction of its own would take ten times as long
        try:
            sql.executemany("INSERT INTO t (rowid, word) VALUES (?, ?)", enumerate(new))
            for stem, row in sql.execute("SELECT term, doc FROM v ORDER BY doc, offset"):
                found[row].append(stem)
        finally:
            sql.execute("ROLLBACK")
        known.update(zip(new, map(tuple, found), strict=True))
        return known

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

    def documents(self, texts: Sequence[str]) -> Sequence[Sequence[str]]:
        """The terms of each text, in order."""
        ...

    def question(self, text: str) -> list[str]:
        """The terms of a question that say something of its subject, in order and with repetitions."""
        ...


_STEMMER = Stemmer()


class StemsAndPairs:
    """Porter stems of words, and pairs of neighbouring characters in scripts without spaces. It has no state."""

    name = "porter-pairs-1"

    def documents(self, texts: Sequence[str]) -> list[list[str]]:
        """See `Tokenizer`."""
        return _STEMMER.of(list(map(document_words, texts)))

    def question(self, text: str) -> list[str]:
        """See `Tokenizer`: its first MOST_TERMS telling words."""
        return _STEMMER.of([telling(question_words(text))[:MOST_TERMS]])[0]


DEFAULT_TOKENIZER = StemsAndPairs()
