"""Search by vectors, and the cosines of passages with a question. Needs numpy (the extra `scoring`)."""

from __future__ import annotations

import sqlite3
import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router_scoring.evidence import NO_COSINES, Cosines
from smart_model_router_scoring.retrieval.embedders import Embedder, is_lexical, telling_text
from smart_model_router_scoring.retrieval.index import Snapshot
from smart_model_router_scoring.retrieval.strategies import Found, NotAvailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DIGITS = 6
"""Of a cosine: fewer than machines agree on, so that every one of them finds the same order."""


@dataclass(frozen=True, slots=True)
class VectorMatrix:
    """The vectors of an index as rows of length 1 (or 0), in the order of chunk ids."""

    chunk_ids: tuple[str, ...]
    rows: NDArray[np.float32]

    @classmethod
    def load(cls, sql: sqlite3.Connection) -> VectorMatrix:
        """All vectors of the index. It takes 4 bytes a dimension and chunk."""
        import numpy as np  # noqa: PLC0415 - an extra

        found = sql.execute(
            "SELECT chunk_id, vector FROM vectors JOIN chunks ON id = chunk ORDER BY chunk_id"
        ).fetchall()
        whole = np.frombuffer(b"".join(vector for _, vector in found), dtype="<f2").astype(np.float32)
        return cls(tuple(name for name, _ in found), whole.reshape(max(len(found), 1), -1))

    def cosines(self, vectors: Sequence[Sequence[float]]) -> NDArray[np.float32]:
        """A row a chunk, a column a vector; 0 for a vector of no length. Raises NotAvailable for another dimension."""
        import numpy as np  # noqa: PLC0415 - an extra

        asked = np.asarray(vectors, dtype=np.float64)
        if not self.chunk_ids:
            return np.zeros((0, len(asked)), dtype=np.float32)
        if asked.shape[1] != self.rows.shape[1]:
            raise NotAvailable(f"the question has {asked.shape[1]} dimensions, the index {self.rows.shape[1]}")
        lengths = np.sqrt(np.sum(asked * asked, axis=1, keepdims=True))
        usable = (lengths > 0) & (lengths < np.inf)  # false for NaN
        unit = np.divide(asked, lengths, out=np.zeros_like(asked), where=usable)
        cosines: NDArray[np.float32] = np.round(self.rows @ unit.T.astype(np.float32), _DIGITS)
        return cosines

    def nearest(self, vectors: Sequence[Sequence[float]], limit: int) -> Nearest:
        """Up to `limit` chunks whose cosine with the first vector is above 0, greatest first; of equals by id."""
        import numpy as np  # noqa: PLC0415 - an extra

        cosines = self.cosines(vectors)
        first = cosines[:, 0]
        able = np.flatnonzero(first > 0)
        if len(able) > limit:
            able = np.flatnonzero(first >= max(np.partition(first, -limit)[-limit], np.nextafter(np.float32(0), 1)))
        best = able[np.argsort(-first[able], kind="stable")][:limit]
        found = [Found(self.chunk_ids[at], min(float(first[at]), 1.0)) for at in best]
        return Nearest(found, self.chunk_ids, cosines)


class Nearest(list[Found]):
    """Chunks by their cosine with the question, which also knows the cosines of all others."""

    def __init__(self, found: Iterable[Found], chunk_ids: Sequence[str], cosines: NDArray[np.float32]) -> None:
        super().__init__(found)
        self._chunk_ids = chunk_ids
        self._cosines = cosines

    def cosines(self, chunk_id: str) -> Cosines:
        """Those of a chunk with the question and with its telling words; 0 of one that has no vector."""
        at = bisect_left(self._chunk_ids, chunk_id)
        if at == len(self._chunk_ids) or self._chunk_ids[at] != chunk_id:
            return NO_COSINES
        whole, telling = self._cosines[at].tolist()
        return whole, telling


class VectorSearch:
    """Finds chunks whose vectors point where the question's does."""

    name = "vector"

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._matrix: tuple[int, VectorMatrix] | None = None
        self._loading = threading.Lock()

    async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
        """See `Strategy`. The relevance is the cosine; chunks with none above 0 are not found.

        `Nearest` for vectors that are evidence, which those of words and letters are not.
        """
        facts = snapshot.facts
        if facts.embedder != self.embedder.name:
            has = f"vectors of {facts.embedder}" if facts.embedder else "no vectors"
            wanted = f"the question would be embedded by {self.embedder.name}: index the folder again"
            raise NotAvailable(f"the index has {has}, {wanted}")
        lexical = is_lexical(self.embedder)
        vectors = await self.embedder.embed([text] if lexical else [text, telling_text(text)])

        def work(sql: sqlite3.Connection) -> Sequence[Found]:
            nearest = self._loaded(sql, facts.generation).nearest(vectors, limit)
            return list(nearest) if lexical else nearest

        return await snapshot.lane(self.name).run(work)

    def _loaded(self, sql: sqlite3.Connection, generation: int) -> VectorMatrix:
        with self._loading:
            if self._matrix is None or self._matrix[0] != generation:
                self._matrix = generation, VectorMatrix.load(sql)
            return self._matrix[1]
