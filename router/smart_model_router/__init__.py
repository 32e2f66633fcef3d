"""smart-model-router: a resilient router between agents and every model provider."""

from __future__ import annotations

from smart_model_router.config import RouterConfig
from smart_model_router.core.tiers import ModelSelection
from smart_model_router.errors import (
    AllTargetsFailed,
    ConfigurationError,
    ContentBlocked,
    ContextTooLong,
    DeadlineExceeded,
    InvalidRequest,
    Overloaded,
    RequestRejected,
    RouterUnavailable,
    SmartRouterError,
    StreamInterrupted,
    TranslationRefused,
    UnsupportedFeature,
)
from smart_model_router.outcome import FailureClass
from smart_model_router.request import RouteReport
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
    "ModelSelection",
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
