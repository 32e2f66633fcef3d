"""The cost of fusion and calibration, beside ten lines of plain code.

3 x 1,000 results < 3 ms; with numpy 3 x 100,000 < 60 ms by number, < 400 ms by text; 100,000 calibrations < 5 ms.
CPU time, medians, each in turn with its baseline. The ten lines sum in the order of the strategies, let the order of
arrival break ties and explain nothing.
"""

from __future__ import annotations

import asyncio
import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from benchmarks._measure import Figure, medians, report

from smart_model_router_scoring import vectorised
from smart_model_router_scoring.calibration import Sigmoid
from smart_model_router_scoring.fusion import Fusion
from smart_model_router_scoring.vectorised import calibrate_scores

RUNS = 7
STRATEGIES = ("vector", "keyword", "graph")
ATTAINABLE = 3 / 61


def ten_lines(lists: Mapping[str, Sequence[Any]]) -> list[tuple[Any, float]]:
    """Reciprocal rank fusion as it is usually written."""
    scores: dict[Any, float] = {}
    for ids in lists.values():
        for rank, key in enumerate(ids, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (60 + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])[:5]


def numbers(count: int) -> dict[str, list[int]]:
    """Three lists of `count` ids that share half of them."""
    chance = random.Random(1)  # noqa: S311 - a benchmark
    return {name: chance.sample(range(count * 3 // 2), count) for name in STRATEGIES}


async def both(work: Callable[[], object], baseline: Callable[[], object], calls: int) -> tuple[float, float]:
    """Milliseconds of CPU a call."""

    async def ours() -> None:
        work()

    async def theirs() -> None:
        baseline()

    found = await medians({"ours": ours, "theirs": theirs}, runs=RUNS, calls=calls)
    return found["ours"] / 1e3, found["theirs"] / 1e3


async def measure() -> list[Figure]:
    """Every promise of the specification."""
    fusion, curve = Fusion(), Sigmoid()
    few, many = numbers(1_000), numbers(100_000)
    arrays: dict[str, Any] = {name: np.array(ids) for name, ids in many.items()}
    text = {name: [f"document-{number}" for number in ids] for name, ids in many.items()}
    scores = np.linspace(0, ATTAINABLE, 100_000)
    plain: list[float] = scores.tolist()

    def plain_calibration() -> list[float]:
        return [1 / (1 + math.exp(-150 * (score - 0.035))) for score in plain]

    lines = "ten lines of Python"
    rows: list[tuple[str, Callable[[], object], Callable[[], object], int, float]] = [
        ("fuse 3 x 1,000", lambda: fusion.fuse(few), lambda: ten_lines(few), 20, 3.0),
        ("fuse 3 x 100,000 numbers (lists)", lambda: vectorised.fuse(fusion, many), lambda: ten_lines(many), 2, 60.0),
        (
            "fuse 3 x 100,000 numbers (arrays)",
            lambda: vectorised.fuse(fusion, arrays),
            lambda: ten_lines(many),
            2,
            60.0,
        ),
        ("fuse 3 x 100,000 texts", lambda: vectorised.fuse(fusion, text), lambda: ten_lines(text), 2, 400.0),
        ("calibrate 100,000", lambda: calibrate_scores(curve, scores, ATTAINABLE), plain_calibration, 5, 5.0),
    ]
    figures: list[Figure] = []
    for name, work, baseline, calls, limit in rows:
        ours, theirs = await both(work, baseline, calls)
        figures.append(Figure(name, ours, "ms CPU", theirs, lines, limit))
    return figures


if __name__ == "__main__":
    sys.exit(report(*asyncio.run(measure())))
