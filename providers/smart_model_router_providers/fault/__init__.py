"""Providers that fail on purpose: over real sockets (FaultServer) and in process (ScriptedProvider)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router_providers.fault.backend import RecordedRequest
from smart_model_router_providers.fault.effects import Latency
from smart_model_router_providers.fault.faults import Fault, lognormal, uniform
from smart_model_router_providers.fault.script import Script, load_script
from smart_model_router_providers.fault.server import FaultServer, serve

if TYPE_CHECKING:
    from smart_model_router_providers.fault.scripted import ScriptedProvider

__all__ = [
    "Fault",
    "FaultServer",
    "Latency",
    "RecordedRequest",
    "Script",
    "ScriptedProvider",
    "load_script",
    "lognormal",
    "serve",
    "uniform",
]


def __getattr__(name: str) -> object:
    """Import the scripted provider when it is asked for: it needs an HTTP client, the server needs none."""
    if name != "ScriptedProvider":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from smart_model_router_providers.fault.scripted import ScriptedProvider  # noqa: PLC0415  see above

    return ScriptedProvider
