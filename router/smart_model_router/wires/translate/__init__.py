"""Translation between dialects, pure: requests, whole answers and stream events, with every loss told."""

from __future__ import annotations

from smart_model_router.wires.translate.translation import (
    ROUTES,
    EventTranslator,
    Losses,
    Terms,
    Translation,
    Untranslatable,
    reachable,
    spoken,
    translate,
)

__all__ = [
    "ROUTES",
    "EventTranslator",
    "Losses",
    "Terms",
    "Translation",
    "Untranslatable",
    "reachable",
    "spoken",
    "translate",
]
