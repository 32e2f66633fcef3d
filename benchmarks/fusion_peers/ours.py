"""This package's fusion."""

from __future__ import annotations

from benchmarks.fusion_peers.driving import Fused, Job, drive

from smart_model_router_scoring.fusion import Fusion, FusionConfig


def fuse(job: Job) -> Fused:
    """Reciprocal rank fusion with every result kept."""
    lists = {name: [key for key, _ in found] for name, found in job.lists.items()}
    before = {name: list(ids) for name, ids in lists.items()}
    fusion = Fusion(FusionConfig(min_confidence=0.0, weights=job.weights or {}), strategies=lists)
    hits = fusion.fuse(lists, top_n=100).hits
    explained = all(abs(hit.explain().recompose() - hit.score) < 1e-12 for hit in hits[:1])
    return Fused([hit.id for hit in hits], [hit.score for hit in hits], bool(hits) and explained, lists == before)


if __name__ == "__main__":
    drive("smart-model-router", fuse)
