"""Haystack's DocumentJoiner."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.fusion_peers.driving import Fused, Job, drive


def fuse(job: Job) -> Fused:
    """Each list is what a retriever returns."""
    joiners: Any = importlib.import_module("haystack.components.joiners")
    document: Any = importlib.import_module("haystack").Document
    given = {
        name: [document(id=key, content=key, score=score) for key, score in found] for name, found in job.lists.items()
    }
    weights = None if job.weights is None else [job.weights[name] for name in given]
    joiner = joiners.DocumentJoiner(join_mode=job.mode, weights=weights, top_k=100)
    fused = joiner.run(documents=list(given.values()))["documents"]
    kept = {name: [(one.id, one.score) for one in found] for name, found in given.items()} == job.lists
    return Fused([one.id for one in fused], [one.score for one in fused], False, kept)


if __name__ == "__main__":
    drive("haystack-ai", fuse)
