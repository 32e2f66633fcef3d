"""Keyword search: BM25 over FTS5, fast however common the words are, and how much of the question a chunk covers."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence

from smart_model_router_scoring.retrieval.index import Snapshot
from smart_model_router_scoring.retrieval.strategy import Found
from smart_model_router_scoring.retrieval.terms import any_of, quoted, terms_of

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


class KeywordSearch:
    """Finds chunks by their words (Porter stems, case and width folded). Nothing in a question is syntax."""

    name = "keyword"

    def __init__(self) -> None:
        self._counted: tuple[int, Counts] = (-1, {})

    async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
        """See `Strategy`. The relevance is the share of the question's information that a chunk has."""
        facts = snapshot.facts
        generation, counts = self._counted
        if generation != facts.generation or len(counts) > _MOST_COUNTED:
            counts = {}
            self._counted = (facts.generation, counts)
        return await snapshot.lane(self.name).run(lambda sql: _search(sql, text, limit, facts.chunks, counts))


def _search(sql: sqlite3.Connection, text: str, limit: int, chunks: int, counts: Counts) -> list[Found]:
    terms = terms_of(text)
    for term in terms:
        if term not in counts:
            found = sql.execute("SELECT count(*) FROM words WHERE words MATCH ?", (quoted(term),)).fetchone()
            counts[term] = found[0]
    expression = _expression(
        sorted((term for term in terms if counts[term]), key=lambda term: (counts[term], term)), counts, chunks
    )
    if expression is None:
        return []
    best: list[tuple[float, str, int]] = []
    for row, score in sql.execute(_SCORED, (HEADING_WEIGHT, expression, MOST_ROWS)):
        # Among equals the id decides, and not when they were indexed: all that are as good as the last one are kept.
        if len(best) >= limit and score > best[limit - 1][0]:
            break
        best.append((score, _chunk_id(sql, row), row))
    kept = {row: chunk_id for _, chunk_id, row in sorted(best)[:limit]}
    covered = _coverage(sql, terms, list(kept), {term: _information(counts[term], chunks) for term in terms})
    return [Found(chunk_id, covered[row]) for row, chunk_id in kept.items()]


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


def _information(count: int, chunks: int) -> float:
    """The weight of a word as in BM25, but never negative: 0 for a word that is everywhere."""
    return math.log1p(max(chunks - count + 0.5, 0.0) / (count + 0.5))


def _coverage(
    sql: sqlite3.Connection, terms: Sequence[str], rows: Sequence[int], information: Mapping[str, float]
) -> dict[int, float]:
    """For each row, the information of the question's words it has, as a share of all of it."""
    whole = math.fsum(information.values())
    has: dict[int, list[float]] = {row: [] for row in rows}
    query = f"SELECT rowid FROM words WHERE words MATCH ? AND rowid IN ({','.join('?' * len(rows))})"  # noqa: S608 - ours
    for term in terms:
        for (row,) in sql.execute(query, (quoted(term), *rows)):
            has[row].append(information[term])
    return {row: min(math.fsum(parts) / whole, 1.0) if whole else 0.0 for row, parts in has.items()}


def _chunk_id(sql: sqlite3.Connection, row: int) -> str:
    chunk_id: str = sql.execute("SELECT chunk_id FROM chunks WHERE id = ?", (row,)).fetchone()[0]
    return chunk_id
