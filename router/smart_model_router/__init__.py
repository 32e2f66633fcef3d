"""smart-model-router: a resilient router between agents and every model provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router._moved import MOVED
from smart_model_router.domain.lazy_names import lazy_names
from smart_model_router_scoring._moved import install

if TYPE_CHECKING:
    from smart_model_router.config import RouterConfig
    from smart_model_router.core.tiers import ModelSelection
    from smart_model_router.domain.errors import (
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
    from smart_model_router.domain.outcome import Failure, FailureClass, StreamEvent, Success
    from smart_model_router.domain.ports import EventSink, Provider, ProviderCall
    from smart_model_router.domain.report import RouteReport
    from smart_model_router.domain.request import RequestOptions
    from smart_model_router.flow.guard import GuardLimits
    from smart_model_router.flow.router_stream import RouterStream
    from smart_model_router.router import RouterReply, SmartModelRouter
    from smart_model_router_providers.sdk import SdkProvider

__all__ = [
    "AllTargetsFailed",
    "ConfigurationError",
    "ContentBlocked",
    "ContextTooLong",
    "DeadlineExceeded",
    "EventSink",
    "Failure",
    "FailureClass",
    "GuardLimits",
    "InvalidRequest",
    "ModelNotFound",
    "ModelSelection",
    "NotFound",
    "Overloaded",
    "Provider",
    "ProviderCall",
    "RequestOptions",
    "RequestRejected",
    "RouteReport",
    "RouterConfig",
    "RouterReply",
    "RouterStream",
    "RouterUnavailable",
    "SdkProvider",
    "SmartModelRouter",
    "SmartRouterError",
    "StreamEvent",
    "StreamInterrupted",
    "Success",
    "TranslationRefused",
    "UnsupportedFeature",
]

_HOMES = {
    "smart_model_router.config": ("RouterConfig",),
    "smart_model_router.core.tiers": ("ModelSelection",),
    "smart_model_router.domain.errors": (
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
    "smart_model_router.domain.outcome": ("Failure", "FailureClass", "StreamEvent", "Success"),
    "smart_model_router.domain.ports": ("EventSink", "Provider", "ProviderCall"),
    "smart_model_router.domain.report": ("RouteReport",),
    "smart_model_router.domain.request": ("RequestOptions",),
    "smart_model_router.router": ("RouterReply", "SmartModelRouter"),
    "smart_model_router.flow.guard": ("GuardLimits",),
    "smart_model_router.flow.router_stream": ("RouterStream",),
    "smart_model_router_providers.sdk": ("SdkProvider",),
}
install(MOVED)
__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
