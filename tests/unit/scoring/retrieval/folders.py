"""A small folder of documents, an index of it, and embedders that do as they are told: for the tests of retrieval."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from smart_model_router_scoring.retrieval import Embedder, IndexReport, index_folder

NOW = 1_800_000_000.0
DAY = 86_400.0
DOCUMENTS = {
    "breaker.md": "# Circuit breaker\n\nOpens after failures. See [waits](how/waiting.md#how-long) for what follows.\n",
    "how/waiting.md": "# Waiting\n\nA queue of requests.\n\n## How long\n\nUntil the deadline of the request.\n",
    "store.txt": "Statistics are kept in a database file.\n\nOld minutes go after fourteen days.\n",
    "page.html": "<html><head><title>Gateway</title></head><body><p>Speaks HTTP to any client.</p></body></html>",
}


def write(folder: Path, documents: dict[str, str], *, modified: float = NOW - 100 * DAY) -> Path:
    """Write files, all changed at one instant (seconds since 1970)."""
    for name, text in documents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (modified, modified))
    return folder


async def indexed(
    tmp_path: Path, documents: dict[str, str] | None = None, embedder: Embedder | None = None
) -> tuple[Path, IndexReport]:
    """An index of these documents (those above by default) and what making it reported."""
    folder = write(tmp_path / "docs", DOCUMENTS if documents is None else documents)
    db = tmp_path / "index.sqlite"
    return db, await index_folder(folder, db, now=NOW, embedder=embedder)


class Marks:
    """Vectors that say which of some words a text has: near when they share words, and nothing else."""

    def __init__(self, *words: str, name: str = "marks") -> None:
        self.words = words
        self.name = name
        self.calls = 0

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One number a word."""
        self.calls += 1
        return [[float(word in text.lower()) for word in self.words] for text in texts]


class Broken:
    """An embedder whose model is away."""

    name = "marks"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Always fails."""
        raise OSError("the model is away")
