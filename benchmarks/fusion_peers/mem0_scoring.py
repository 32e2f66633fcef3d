"""mem0's score_and_rank: the list `vector` is its semantic one, every other is added to it as a keyword score.

It fuses scores, not ranks, and only what the semantic list has. BM25 is normalised by its own function for questions
of average length.
"""

from __future__ import annotations

import copy
import importlib
from typing import Any

from benchmarks.fusion_peers.driving import Fused, Job, drive


def fuse(job: Job) -> Fused:
    """Additive scores."""
    scoring: Any = importlib.import_module("mem0.utils.scoring")
    first = "vector" if "vector" in job.lists else next(iter(job.lists))
    semantic = [{"id": key, "score": score, "payload": {}} for key, score in job.lists[first]]
    keyword = {
        key: scoring.normalize_bm25(score, *scoring.get_bm25_params("", lemmatized="one two three four five six seven"))
        for name, found in job.lists.items()
        if name != first
        for key, score in found
    }
    before = copy.deepcopy((semantic, keyword))
    fused = scoring.score_and_rank(semantic, keyword, {}, threshold=0.0, top_k=100, explain=True)
    explained = bool(fused) and "score_details" in fused[0]
    return Fused(
        [one["id"] for one in fused], [one["score"] for one in fused], explained, (semantic, keyword) == before
    )


if __name__ == "__main__":
    drive("mem0ai", fuse)
