"""smart-model-router: a resilient router between agents and every model provider."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smart_model_router.config import RouterConfig
    from smart_model_router.core.tiers import ModelSelection
    from smart_model_router.errors import (
        AllTargetsFailed,
        ConfigurationError,
        ContentBlocked,
        ContextTooLong,
        DeadlineExceeded,
        InvalidRequest,
        ModelNotFound,
        NotFound,
        Overloaded,
        RequestRejected,
        RouterUnavailable,
        SmartRouterError,
        StreamInterrupted,
        TranslationRefused,
        UnsupportedFeature,
    )
    from smart_model_router.outcome import FailureClass
    from smart_model_router.report import RouteReport
    from smart_model_router.router import RouterReply, SmartModelRouter
    from smart_model_router.runtime.guarding import GuardLimits
    from smart_model_router.runtime.streaming import RouterStream

__all__ = [
    "AllTargetsFailed",
    "ConfigurationError",
    "ContentBlocked",
    "ContextTooLong",
    "DeadlineExceeded",
    "FailureClass",
    "GuardLimits",
    "InvalidRequest",
    "ModelNotFound",
    "ModelSelection",
    "NotFound",
    "Overloaded",
    "RequestRejected",
    "RouteReport",
    "RouterConfig",
    "RouterReply",
    "RouterStream",
    "RouterUnavailable",
    "SmartModelRouter",
    "SmartRouterError",
    "StreamInterrupted",
    "TranslationRefused",
    "UnsupportedFeature",
]

_HOMES = {
    "config": ("RouterConfig",),
    "core.tiers": ("ModelSelection",),
    "errors": (
        "AllTargetsFailed",
        "ConfigurationError",
        "ContentBlocked",
        "ContextTooLong",
        "DeadlineExceeded",
        "InvalidRequest",
        "ModelNotFound",
        "NotFound",
        "Overloaded",
        "RequestRejected",
        "RouterUnavailable",
        "SmartRouterError",
        "StreamInterrupted",
        "TranslationRefused",
        "UnsupportedFeature",
    ),
    "outcome": ("FailureClass",),
    "report": ("RouteReport",),
    "router": (
        "RouterReply",
        "SmartModelRouter",
    ),
    "runtime.guarding": ("GuardLimits",),
    "runtime.streaming": ("RouterStream",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name when it is asked for: a command line that only prints help needs none of them."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
