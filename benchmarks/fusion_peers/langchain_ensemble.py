"""LangChain's EnsembleRetriever (weighted reciprocal rank fusion)."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.fusion_peers.driving import Fused, Job, drive


def fuse(job: Job) -> Fused:
    """Each list is what a retriever returns. Without weights it gives each the same."""
    ensemble: Any = importlib.import_module("langchain_classic.retrievers").EnsembleRetriever
    document: Any = importlib.import_module("langchain_core.documents").Document
    runnables: Any = importlib.import_module("langchain_core.retrievers")
    given = {
        name: [document(page_content=key, metadata={"id": key, "score": score}) for key, score in found]
        for name, found in job.lists.items()
    }

    class Fixed(runnables.BaseRetriever):  # type: ignore[misc]  # known at run time only
        """Returns its list."""

        found: list[Any]

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            del query, run_manager
            return self.found

    retrievers = [Fixed(found=found) for found in given.values()]
    options = {} if job.weights is None else {"weights": [job.weights[name] for name in given]}
    fused = ensemble(retrievers=retrievers, id_key="id", **options).invoke("q")
    kept = {
        name: [(one.metadata["id"], one.metadata["score"]) for one in found] for name, found in given.items()
    } == job.lists
    return Fused([one.metadata["id"] for one in fused], [None for _ in fused], False, kept)


if __name__ == "__main__":
    drive("langchain-classic", fuse)
