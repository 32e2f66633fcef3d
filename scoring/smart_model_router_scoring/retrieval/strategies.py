"""The strategies of a search that need no vectors: keywords, and the neighbours of what was found."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from smart_model_router_scoring.evidence import PassageEvidence, QuestionTerms, WordEvidence
from smart_model_router_scoring.retrieval.embedders import any_of, quoted
from smart_model_router_scoring.retrieval.index import Snapshot
from smart_model_router_scoring.retrieval.stems import DEFAULT_TOKENIZER, Tokenizer


@dataclass(frozen=True, slots=True)
class Found:
    """One chunk. `relevance` (0..1) is its relevance to the question by itself; None: unknown.

    `evidence` is the one that the relevance comes from, where it is that of words; `score` the number by which the
    strategy orders, on any scale, higher is better (None: the relevance is).
    """

    chunk_id: str
    relevance: float | None = None
    evidence: PassageEvidence | None = None
    score: float | None = None


class Strategy(Protocol):
    """One way to search. It may raise anything: the query goes on without it."""

    @property
    def name(self) -> str:
        """Its name in weights, timeouts and explanations, and of its lane in the snapshot."""
        ...

    async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
        """Up to `limit` chunks, best first. It looks at the index through its own lane of `snapshot` only."""
        ...


class NotAvailable(Exception):
    """A strategy that cannot take part here, and why."""


HEADING_WEIGHT = 2.0
"""A word in a heading counts as two in the text."""
ROWS_ENOUGH = 5_000
"""Candidates that the rarest words may bring; with as many, commoner words only add to scores. A row costs 3 us."""
MOST_ROWS = 10_000
"""Candidates that are scored, in the order of indexing, when there are only words that nearly every chunk has."""
_MOST_COUNTED = 50_000

# SQLite sorts: rows that cross into Python one by one take longer than their scores. And it settles the candidates
# first: as a mere subquery they would become part of the query around them, and their limit that of the sorted rows.
_SCORED = """
WITH found (row, score) AS MATERIALIZED (
  SELECT rowid, bm25(words, ?, 1.0) FROM words WHERE words MATCH ? LIMIT ?
) SELECT row, score FROM found ORDER BY score
"""

Counts = dict[str, int]


class TermCounts:
    """The number of chunks that have a stem, remembered for one generation. It may be shared by threads."""

    def __init__(self) -> None:
        self._counted: tuple[int, Counts] = (-1, {})

    def of(self, sql: sqlite3.Connection, stems: Iterable[str], generation: int) -> Counts:
        """The counts of these stems, and of others."""
        counted, counts = self._counted
        if counted != generation or len(counts) > _MOST_COUNTED:
            counts = {}
            self._counted = (generation, counts)
        for stem in stems:
            if stem not in counts:
                found = sql.execute("SELECT count(*) FROM words WHERE words MATCH ?", (quoted(stem),)).fetchone()
                counts[stem] = found[0]
        return counts


class Matched(list[Found]):
    """Chunks that have words of `question`, and the question: a passage that they miss is measured by it, too."""

    def __init__(self, found: Iterable[Found], question: QuestionTerms) -> None:
        super().__init__(found)
        self.question = question


class KeywordSearch:
    """Finds chunks by the terms of `tokenizer`, that of the index. Nothing in a question is syntax."""

    name = "keyword"

    def __init__(self, tokenizer: Tokenizer = DEFAULT_TOKENIZER) -> None:
        self.tokenizer = tokenizer
        self.counts = TermCounts()

    async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
        """See `Strategy`. The score is BM25, the relevance the share of the question's information that a chunk has."""
        facts = snapshot.facts
        if facts.tokenizer != self.tokenizer.name:
            raise NotAvailable(
                f"the index has terms of {facts.tokenizer}, the question would be cut by {self.tokenizer.name}"
            )

        def work(sql: sqlite3.Connection) -> Matched:
            stems = self.tokenizer.question(text)
            counts = self.counts.of(sql, stems, facts.generation)
            rows = best_rows(sql, stems, limit, facts.chunks, counts)
            question = QuestionTerms.of(stems, counts, facts.chunks)
            found = evidence_of(sql, question, rows)
            listed = (Found(name, found[row].share, found[row], score) for row, (name, score) in rows.items())
            return Matched(listed, question)

        return await snapshot.lane(self.name).run(work)


def best_rows(
    sql: sqlite3.Connection, stems: Sequence[str], limit: int, chunks: int, counts: Counts
) -> dict[int, tuple[str, float]]:
    """The rows of the best chunks by BM25 for these stems, best first, with their ids and scores.

    The index has `chunks`. Scores of one question compare with each other and not with those of another one.
    """
    terms = list(dict.fromkeys(stems))
    expression = _expression(
        sorted((term for term in terms if counts[term]), key=lambda term: (counts[term], term)), counts, chunks
    )
    if expression is None:
        return {}
    best: dict[int, float] = {}
    last = math.inf
    for row, score in sql.execute(_SCORED, (HEADING_WEIGHT, expression, MOST_ROWS)):
        # Among equals the id decides, and not when they were indexed: all that are as good as the last one are kept.
        if len(best) >= limit and score > last:
            break
        best[row] = last = score
    query = f"SELECT id, chunk_id FROM chunks WHERE id IN {holes(best)}"  # noqa: S608 - ours
    ids = dict(sql.execute(query, tuple(best)))
    order = sorted(best, key=lambda row: (best[row], ids[row]))[:limit]
    return {row: (ids[row], -best[row]) for row in order}


def holes(values: Collection[object]) -> str:
    """The list of an SQL `IN` for as many values."""
    return f"({','.join('?' * len(values))})"


def evidence_of(sql: sqlite3.Connection, question: QuestionTerms, rows: Collection[int]) -> dict[int, PassageEvidence]:
    """The evidence of the chunks of these rows."""
    query = f"SELECT id, heading, body FROM stems WHERE id IN {holes(rows)}"  # noqa: S608 - ours
    found = sql.execute(query, tuple(rows)) if rows else ()
    return {row: PassageEvidence(WordEvidence(question, heading, body)) for row, heading, body in found}


def _expression(terms: Sequence[str], counts: Mapping[str, int], chunks: int) -> str | None:
    """Return the expression to match, from words that exist, rarest first. None without any.

    A word in more than half of the chunks has no weight in BM25: it is left out unless there is no other. When the
    rarest words bring candidates enough, the others are no way to become a candidate, but still count: each rare
    word stands twice in the expression (once to select, once to score) and so does each common one, which doubles every
    score and changes no order.
    """
    useful = [term for term in terms if counts[term] * 2 <= chunks] or list(terms[:1])
    if not useful:
        return None
    rows, rare = 0, 0
    for term in useful:
        if rare and rows + counts[term] > ROWS_ENOUGH:
            break
        rows, rare = rows + counts[term], rare + 1
    if rare == len(useful):
        return any_of(useful)
    return f"{any_of(useful[:rare])} AND {any_of([*useful, *useful[rare:]])}"


SEEDS = 10
"""The number of the best chunks whose neighbours are considered."""

_OUT = """
SELECT target.id, links.anchor FROM links JOIN documents AS target ON target.path = links.target
WHERE links.document = ? ORDER BY links.position
"""
_IN = """
SELECT source.id, '' FROM documents AS mine JOIN links ON links.target = mine.path
JOIN documents AS source ON source.id = links.document WHERE mine.id = ? ORDER BY source.path, links.position
"""
_ANCHORED = (
    "SELECT chunk_id FROM anchors JOIN chunks ON chunks.id = anchors.chunk WHERE anchors.document = ? AND anchor = ?"
)
_FIRST = "SELECT chunk_id FROM chunks WHERE document = ? ORDER BY id LIMIT 1"


def neighbours(sql: sqlite3.Connection, seeds: Sequence[str], limit: int) -> list[Found]:
    """Chunks of the neighbours of `seeds` (best first), each document once.

    Neighbours of a better seed come first; where a document links to before what links to it; by the position of
    the link, then by path. A neighbour is shown by its own best seed, else by the section that the link names, else
    by its beginning. Nothing is known of their relevance.
    """
    shown: dict[int, str] = {}
    for chunk_id in seeds[:SEEDS]:
        row = sql.execute("SELECT document FROM chunks WHERE chunk_id = ?", (chunk_id,)).fetchone()
        if row is not None:
            shown.setdefault(row[0], chunk_id)
    found: dict[int, str] = {}
    for document in shown:
        for query in (_OUT, _IN):
            for neighbour, anchor in sql.execute(query, (document,)).fetchall():
                if neighbour != document and neighbour not in found:
                    chunk = shown.get(neighbour) or _chunk(sql, neighbour, anchor)
                    if chunk is not None:
                        found[neighbour] = chunk
                if len(found) == limit:
                    return [Found(chunk) for chunk in found.values()]
    return [Found(chunk) for chunk in found.values()]


def _chunk(sql: sqlite3.Connection, document: int, anchor: str) -> str | None:
    row = sql.execute(_ANCHORED, (document, anchor)).fetchone() or sql.execute(_FIRST, (document,)).fetchone()
    return None if row is None else str(row[0])
