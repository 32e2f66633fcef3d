"""Search by vectors, and the cosines of passages with a question. Needs numpy (the extra `scoring`)."""

from __future__ import annotations

import math
import sqlite3
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router_scoring.evidence import NO_COSINES, Cosines
from smart_model_router_scoring.retrieval.embedders import Embedder, is_lexical, telling_text
from smart_model_router_scoring.retrieval.index import IndexFacts, Snapshot
from smart_model_router_scoring.retrieval.strategies import Found, NotAvailable
from smart_model_router_scoring.retrieval.wordllama_embedder import WordLlamaEmbedder

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

    def nearest(self, vectors: Sequence[Sequence[float]], limit: int) -> Nearest:
        """Up to `limit` chunks whose cosine with the first vector is above 0, greatest first; of equals by id.

        The last vector is that of the telling words. Raises NotAvailable for vectors of another dimension.
        """
        import numpy as np  # noqa: PLC0415 - an extra

        question, telling = self._unit(vectors[0]), self._unit(vectors[-1])
        cosines = self._dot(self.rows, question)
        able = np.flatnonzero(cosines > 0)
        if len(able) > limit:
            able = able[cosines[able] >= np.partition(cosines[able], -limit)[-limit]]
        best = able[np.argsort(-cosines[able], kind="stable")][:limit]
        found = [Found(self.chunk_ids[at], float(cosines[at])) for at in best]

        def of(chunk_id: str) -> Cosines:
            at = bisect_left(self.chunk_ids, chunk_id)
            if at == len(self.chunk_ids) or self.chunk_ids[at] != chunk_id:
                return NO_COSINES
            return float(cosines[at]), float(self._dot(self.rows[at : at + 1], telling)[0])

        return Nearest(found, of)

    def _unit(self, vector: Sequence[float]) -> NDArray[np.float32]:
        """The vector at length 1; zeros for one of no length, or with a part that is no number."""
        import numpy as np  # noqa: PLC0415 - an extra

        asked = np.asarray(vector, dtype=np.float64)
        if self.chunk_ids and len(asked) != self.rows.shape[1]:
            raise NotAvailable(f"the question has {len(asked)} dimensions, the index {self.rows.shape[1]}")
        length = float(np.sqrt(np.sum(asked * asked)))
        unit = asked / length if 0.0 < length < np.inf else np.zeros_like(asked)  # false for NaN
        return unit.astype(np.float32)

    def _dot(self, rows: NDArray[np.float32], unit: NDArray[np.float32]) -> NDArray[np.float32]:
        import numpy as np  # noqa: PLC0415 - an extra

        if not self.chunk_ids:
            return np.zeros(0, dtype=np.float32)
        # The threads of a BLAS cost more than they gain: 10,000 rows take 0.5 ms here, and 1.7 to 7 ms of CPU there.
        # A vector of the index is a little longer than 1 where halves of floats round up.
        found: NDArray[np.float32] = np.minimum(np.round(np.einsum("ij,j->i", rows, unit), _DIGITS), 1.0)
        return found


class Nearest(list[Found]):
    """Chunks by their cosine with the question. `cosines` gives those of any chunk, 0 of one that has no vector."""

    def __init__(self, found: Iterable[Found], cosines: Callable[[str], Cosines]) -> None:
        super().__init__(found)
        self.cosines = cosines


class VectorSearch:
    """Finds chunks whose vectors point where the question's does."""

    name = "vector"

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._matrix: tuple[int, VectorMatrix] | None = None
        self._loading = threading.Lock()

    async def prepare(self, facts: IndexFacts) -> None:
        """Load what the first question needs, before its deadline begins. What fails here fails in `search`."""
        if isinstance(self.embedder, WordLlamaEmbedder) and facts.embedder == self.embedder.name:
            with suppress(Exception):  # a broken package raises anything
                await self.embedder.load()

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
        texts = [text] if lexical else [text, telling_text(text)]
        vectors = await self.embedder.embed(texts)
        if len(vectors) != len(texts):
            raise NotAvailable(f"the embedder gave {len(vectors)} vectors for {len(texts)} texts")
        if not lexical and not 0.0 < math.hypot(*vectors[0]) < math.inf:  # false for NaN
            raise NotAvailable("the vector of the question has no length, or a part that is no number")

        def work(sql: sqlite3.Connection) -> Sequence[Found]:
            nearest = self._loaded(sql, facts.generation).nearest(vectors, limit)
            return list(nearest) if lexical else nearest

        return await snapshot.lane(self.name).run(work)

    def _loaded(self, sql: sqlite3.Connection, generation: int) -> VectorMatrix:
        with self._loading:
            if self._matrix is None or self._matrix[0] != generation:
                self._matrix = generation, VectorMatrix.load(sql)
            return self._matrix[1]
