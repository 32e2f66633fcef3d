"""Fits the functions of evidence to judgements. Needs numpy (the extra `scoring`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from smart_model_router_scoring.evaluate import brier_score, expected_calibration_error, over_halves
from smart_model_router_scoring.evidence import Features, Logistic, Null

RIDGE = 0.02
STEPS = 20_000
_SETTLED = 1e-9
"""The largest change of a weight in a step, below which the fit ends."""
DIGITS = 3
Kind = tuple[Null, Sequence[Features], bool]
"""Rows of one label: their null, their features, and the label."""


def fit_logistic(names: Sequence[str], kinds: Sequence[Kind], *, evenly: bool = True) -> Logistic:
    """The logistic function of least loss with weights of 0 or more, by projected gradients (Nesterov 1983).

    `evenly` has each kind count alike, whatever the number of its rows; else each row does. Kinds without rows are left
    out. Weights and bias are rounded to three digits.
    """
    kinds = [kind for kind in kinds if kind[1]]
    rows = [[*(null.above(name, one[name]) for name in names), 1.0] for null, found, _ in kinds for one in found]
    labels = [1.0 if label else -1.0 for _, found, label in kinds for _ in found]
    weights = [1 / len(found) if evenly else 1.0 for _, found, _ in kinds for _ in found]
    x, y, w = (np.array(of, dtype=np.float64) for of in (rows, labels, weights))
    w /= w.sum()
    penalty = np.append(np.full(len(names), 2 * RIDGE), 0.0)
    step = 1 / (0.25 * float(np.linalg.eigvalsh((x * w[:, None]).T @ x)[-1]) + 2 * RIDGE)
    at = momentum = np.zeros(len(names) + 1)
    for turn in range(STEPS):
        slope: NDArray[np.float64] = -(x.T @ (w * y / (1 + np.exp(y * (x @ momentum))))) + penalty * momentum
        new = momentum - step * slope
        new[:-1] = np.maximum(new[:-1], 0.0)
        moved = float(np.max(np.abs(new - at)))
        momentum = new + turn / (turn + 3) * (new - at)
        at = new
        if moved < _SETTLED:
            break
    found_weights = {name: round(float(value), DIGITS) for name, value in zip(names, at, strict=False)}
    return Logistic(weights=found_weights, bias=round(float(at[-1]), DIGITS))


LEAST = 50
"""Rows of each label for a fit that is to be relied on: a function has up to eight numbers."""
Rows = Sequence[tuple[Features, bool]]
Errors = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Refit:
    """A function fitted to rows, and its errors (second) beside those of the function that it would replace.

    Its own are those on halves of the rows that it was not fitted on. `positive` and `negative` count the rows.
    """

    fitted: Logistic
    positive: int
    negative: int
    ece: Errors
    brier: Errors

    @property
    def better(self) -> bool:
        """True when both errors are smaller. The ECE alone is 0 for the base rate, which tells nothing apart."""
        return self.ece[1] < self.ece[0] and self.brier[1] < self.brier[0]


def refit(now: Logistic, null: Null, rows: Rows) -> Refit | None:
    """The function of the features of `now` with the least loss over labelled rows; None below LEAST of a label.

    Each row counts alike: its score is right where rows come in these proportions.
    """
    positive = sum(label for _, label in rows)
    negative = len(rows) - positive
    if min(positive, negative) < LEAST:
        return None

    def fitted(some: Rows) -> Logistic:
        kinds = [(null, [of for of, label in some if label == kind], kind) for kind in (True, False)]
        return fit_logistic(tuple(now.weights), kinds, evenly=False)

    def curve(some: Rows) -> Callable[[Features], float]:
        return partial(fitted(some).score, null=null)

    measures = expected_calibration_error, brier_score
    before = [(now.score(of, null), label) for of, label in rows]
    after = over_halves(rows, curve, *measures)
    ece, brier = ((measure(before), value) for measure, value in zip(measures, after, strict=True))
    return Refit(fitted(rows), positive, negative, ece, brier)
