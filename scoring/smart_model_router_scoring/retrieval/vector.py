"""Vector search: the question's vector against a matrix of all chunks, which stays in memory between changes."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router_scoring.retrieval.embedders import Embedder
from smart_model_router_scoring.retrieval.index import Snapshot
from smart_model_router_scoring.retrieval.strategy import Found, NotAvailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DIGITS = 6
"""Of a cosine: fewer than machines agree on, so that every one of them finds the same order."""


@dataclass(frozen=True, slots=True)
class _Matrix:
    """The vectors of one generation, in the order of chunk ids."""

    generation: int
    chunk_ids: tuple[str, ...]
    rows: NDArray[np.float32]


class VectorSearch:
    """Finds chunks whose vectors point where the question's does. Needs numpy (the extra `scoring`)."""

    name = "vector"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._matrix: _Matrix | None = None
        self._loading = threading.Lock()

    async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
        """See `Strategy`. The relevance is the cosine; chunks with none above 0 are not found."""
        facts = snapshot.facts
        if facts.embedder != self._embedder.name:
            has = f"vectors of {facts.embedder}" if facts.embedder else "no vectors"
            raise NotAvailable(f"the index has {has}, the question would be embedded by {self._embedder.name}")
        vectors = await self._embedder.embed([text])
        return await snapshot.lane(self.name).run(lambda sql: self._search(sql, facts.generation, vectors[0], limit))

    def _search(self, sql: sqlite3.Connection, generation: int, vector: Sequence[float], limit: int) -> list[Found]:
        import numpy as np  # noqa: PLC0415 - an extra

        matrix = self._loaded(sql, generation)
        if not matrix.chunk_ids:
            return []
        asked = np.asarray(vector, dtype=np.float64)
        if asked.shape != (matrix.rows.shape[1],):
            raise NotAvailable(f"the question has {asked.shape[0]} dimensions, the index {matrix.rows.shape[1]}")
        length = float(np.sqrt(np.sum(asked * asked)))
        if not 0.0 < length < np.inf:
            return []
        cosines = np.round(matrix.rows @ (asked / length).astype(np.float32), _DIGITS)
        best = np.argsort(-cosines, kind="stable")[:limit]
        return [Found(matrix.chunk_ids[at], min(float(cosines[at]), 1.0)) for at in best if cosines[at] > 0]

    def _loaded(self, sql: sqlite3.Connection, generation: int) -> _Matrix:
        import numpy as np  # noqa: PLC0415 - an extra

        with self._loading:
            matrix = self._matrix
            if matrix is None or matrix.generation != generation:
                query = "SELECT chunk_id, vector FROM vectors JOIN chunks ON id = chunk ORDER BY chunk_id"
                found = sql.execute(query).fetchall()
                whole = np.frombuffer(b"".join(vector for _, vector in found), dtype="<f2").astype(np.float32)
                matrix = _Matrix(generation, tuple(name for name, _ in found), whole.reshape(max(len(found), 1), -1))
                self._matrix = matrix
            return matrix
