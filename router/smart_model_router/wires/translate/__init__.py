"""Translation between dialects, pure: requests, whole answers and stream events, with every loss told."""

from __future__ import annotations

from smart_model_router.wires.translate.losses import Losses, Untranslatable
from smart_model_router.wires.translate.own import SEALED, holds_seals, without_seals
from smart_model_router.wires.translate.routes import ROUTES, reachable, spoken
from smart_model_router.wires.translate.terms import Terms
from smart_model_router.wires.translate.translation import EventTranslator, Translation, translate

__all__ = [
    "ROUTES",
    "SEALED",
    "EventTranslator",
    "Losses",
    "Terms",
    "Translation",
    "Untranslatable",
    "holds_seals",
    "reachable",
    "spoken",
    "translate",
    "without_seals",
]
