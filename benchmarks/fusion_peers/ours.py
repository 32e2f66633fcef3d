"""This package's fusion."""

from __future__ import annotations

from benchmarks.fusion_peers.driving import Fused, Job, drive

from smart_model_router_scoring.fusion import Fusion, FusionConfig


def fuse(job: Job) -> Fused:
    """Every result is kept."""
    before = {name: list(found) for name, found in job.lists.items()}
    config = FusionConfig(fusion=job.mode, min_confidence=0.0, weights=job.weights or {})
    hits = Fusion(config, strategies=job.lists).fuse(job.lists, top_n=100).hits
    explained = all(abs(hit.explain().recompose() - hit.score) < 1e-12 for hit in hits[:1])
    return Fused([hit.id for hit in hits], [hit.score for hit in hits], bool(hits) and explained, job.lists == before)


if __name__ == "__main__":
    drive("smart-model-router", fuse)
