"""Drop-in clients: the SDKs' own classes, with the router in the place of the network.

    from smart_model_router.clients import OpenAI      # instead of: from openai import OpenAI

OpenAI, AsyncOpenAI, Anthropic and AsyncAnthropic are real subclasses; each is imported when it is asked for, and
brings its SDK. `report_of` gives the RouteReport behind anything they return or raise.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from smart_model_router.clients.reports import report_of

if TYPE_CHECKING:
    from smart_model_router.clients.anthropic import Anthropic, AsyncAnthropic
    from smart_model_router.clients.openai import AsyncOpenAI, OpenAI
    from smart_model_router.clients.transport import RouterTransport

__all__ = ["Anthropic", "AsyncAnthropic", "AsyncOpenAI", "OpenAI", "RouterTransport", "report_of"]

_HOMES = {
    "Anthropic": "anthropic",
    "AsyncAnthropic": "anthropic",
    "AsyncOpenAI": "openai",
    "OpenAI": "openai",
    "RouterTransport": "transport",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
