"""From a fused score to one that means something by itself: 0..1, the same from query to query."""

from __future__ import annotations

from smart_model_router_scoring.calibration.curves import (
    Calibration,
    Isotonic,
    Sigmoid,
    calibrate_score,
)
from smart_model_router_scoring.calibration.fitting import fit, fit_isotonic, fit_platt
from smart_model_router_scoring.calibration.labels import interpret

__all__ = [
    "Calibration",
    "Isotonic",
    "Sigmoid",
    "calibrate_score",
    "fit",
    "fit_isotonic",
    "fit_platt",
    "interpret",
]
