"""Many scores at once. Needs numpy; equal to one at a time within 1e-12 (numpy's exponential has its own last bit)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smart_model_router_scoring.calibration.curves import Isotonic, Sigmoid


def calibrate_scores(curve: Sigmoid | Isotonic, raw: ArrayLike, attainable: float = 0.0) -> NDArray[np.float64]:
    """Return `curve.calibrate` of each of `raw` as a new array; `attainable` matters on that scale only."""
    scores = np.asarray(raw, dtype=np.float64)
    with np.errstate(over="ignore"):
        x = _on_scale(curve.scale, scores, attainable)
        y = _sigmoid(curve, x) if isinstance(curve, Sigmoid) else np.interp(x, *np.transpose(curve.knots))
    return np.where(np.isnan(scores), 0.0, y)


def _on_scale(scale: str, scores: NDArray[np.float64], attainable: float) -> NDArray[np.float64]:
    if scale == "raw":
        return scores
    return scores / attainable if attainable else np.zeros_like(scores)


def _sigmoid(curve: Sigmoid, x: NDArray[np.float64]) -> NDArray[np.float64]:
    threshold, steepness = curve.parameters
    exponent = steepness * (x - threshold)
    small = np.exp(-np.abs(exponent))
    return np.where(exponent >= 0, 1.0, small) / (1.0 + small)
