"""The studies behind the confidence index: both means with and without floors, steady gates, and when to stop.

`python -m benchmarks.research_policy` prints what docs/adr/0017 decides from. Every run prints the same.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from smart_model_router_scoring.confidence import DEFAULT_WEIGHTS, coalesce_best_round, regression
from smart_model_router_scoring.confidence.gates import FLOORS

STEP = 0.05
TARGET = 0.80
SHIFT = 0.05
RUNS = 20_000
ROUNDS = 4
NOISE = (0.0, 0.02, 0.05)
Columns = Mapping[str, NDArray[np.float64]]


def grid() -> Columns:
    """Return every combination of the five metrics in steps of .05: 4,084,101 rows."""
    scores = np.round(np.arange(0, 1 + STEP / 2, STEP), 2)
    rows = np.array(np.meshgrid(*[scores] * len(DEFAULT_WEIGHTS), indexing="ij")).reshape(len(DEFAULT_WEIGHTS), -1)
    return dict(zip(DEFAULT_WEIGHTS, rows, strict=True))


def arithmetic(scores: Columns, weights: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the weighted mean of each row."""
    total = sum(weights.values())
    return np.asarray(sum(weights[name] * scores[name] for name in weights) / total)


def geometric(scores: Columns, weights: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the weighted geometric mean of each row."""
    total = sum(weights.values())
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(sum(weights[name] * np.log(scores[name]) for name in weights) / total))


def means() -> None:
    """Print how many rows pass each gate, how many of those below a floor, and how many of those not steadily."""
    scores = grid()
    above = np.all([scores[name] >= floor for name, floor in FLOORS.items()], axis=0)
    worst = np.min([scores[name] for name in scores], axis=0)
    print(f"{above.size:,} combinations of five metrics in steps of {STEP}; index >= {TARGET}")
    print(f"{'gate':32}{'pass':>10}{'a metric below its floor':>26}{'lowest metric':>15}{'not steady':>12}")
    for name, mean, floors in (
        ("arithmetic", arithmetic, False),
        ("geometric", geometric, False),
        ("arithmetic and floors", arithmetic, True),
        ("geometric and floors", geometric, True),
    ):
        passes = mean(scores, DEFAULT_WEIGHTS) >= TARGET - 1e-12
        passes = passes & above if floors else passes
        shifted = [
            mean(scores, {**DEFAULT_WEIGHTS, metric: weight + shift}) >= TARGET - 1e-12
            for (metric, weight), shift in product(DEFAULT_WEIGHTS.items(), (-SHIFT, SHIFT))
        ]
        steady = np.all(shifted, axis=0)
        print(
            f"{name:32}{passes.sum():10,}{(passes & ~above).sum() / passes.sum():26.1%}"
            f"{worst[passes].min():15.2f}{(passes & ~steady).sum() / passes.sum():12.1%}"
        )
    print()


def stops() -> None:
    """Print the rounds that each patience spends, and how far its best index is behind that of four rounds."""
    print(
        f"{RUNS:,} runs of up to {ROUNDS} rounds; each round gains half of what is left to its own ceiling, with noise"
    )
    print(f"{'noise':>6}{'falls that stop':>17}{'rounds':>9}{'index lost':>12}{'runs that lose .02':>20}")
    for noise in NOISE:
        dice = random.Random(17)  # noqa: S311 - a study, not a secret
        runs = [_run(dice, noise) for _ in range(RUNS)]
        for patience in (1, 2, 3):
            spent, lost = [], []
            for cis in runs:
                end = next((n for n in range(1, ROUNDS + 1) if regression(cis[:n], patience=patience).stop), ROUNDS)
                spent.append(end)
                lost.append(_best(cis) - _best(cis[:end]))
            behind = sum(each >= 0.02 for each in lost) / RUNS
            print(f"{noise:6.2f}{patience:17}{np.mean(spent):9.2f}{np.mean(lost):12.4f}{behind:20.1%}")


def _run(dice: random.Random, noise: float) -> list[float]:
    """Return the index of each round, towards a ceiling that a third of the runs has below its first round."""
    start, ceiling = dice.uniform(0.4, 0.75), dice.uniform(0.3, 0.79)
    found = [start]
    while len(found) < ROUNDS:
        found.append(found[-1] + (ceiling - found[-1]) / 2)
    return [min(1.0, max(0.0, each + dice.gauss(0, noise))) for each in found]


def _best(cis: list[float]) -> float:
    best = coalesce_best_round([{"ci_score": ci, "gate_passed": False} for ci in cis])
    return max(cis) if best is None else float(best["ci_score"])


if __name__ == "__main__":
    means()
    stops()
