"""LlamaIndex's QueryFusionRetriever, one query, no model."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.fusion_peers.driving import Fused, Job, drive


def fuse(job: Job) -> Fused:
    """Each list is what a retriever returns."""
    schema: Any = importlib.import_module("llama_index.core.schema")
    retrievers: Any = importlib.import_module("llama_index.core.retrievers")
    llms: Any = importlib.import_module("llama_index.core.llms")
    nodes = {
        name: [schema.NodeWithScore(node=schema.TextNode(id_=key, text=key), score=score) for key, score in found]
        for name, found in job.lists.items()
    }

    class Fixed(retrievers.BaseRetriever):  # type: ignore[misc]  # known at run time only
        """Returns its list."""

        def __init__(self, found: list[Any]) -> None:
            super().__init__()
            self.found = found

        def _retrieve(self, _query: Any) -> list[Any]:
            return self.found

    weights = None if job.weights is None else [job.weights[name] for name in nodes]
    retriever = retrievers.QueryFusionRetriever(
        [Fixed(found) for found in nodes.values()],
        llm=llms.MockLLM(),
        mode=job.mode,
        num_queries=1,
        similarity_top_k=100,
        use_async=False,
        retriever_weights=weights,
    )
    fused = retriever.retrieve("q")
    kept = {name: [(one.node.node_id, one.score) for one in found] for name, found in nodes.items()} == job.lists
    return Fused([one.node.node_id for one in fused], [one.score for one in fused], False, kept)


if __name__ == "__main__":
    drive("llama-index-core", fuse)
