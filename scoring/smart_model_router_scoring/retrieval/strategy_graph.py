"""Graph neighbours: documents one link away from what the other strategies found, in either direction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from smart_model_router_scoring.retrieval.strategy import Found

SEEDS = 10
"""How many of the best chunks are asked for their neighbours."""

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
