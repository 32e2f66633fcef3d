"""Module paths and names of version 0.1 that moved: each still works, with a DeprecationWarning, until version 0.3."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Any

MOVED = {
    f"smart_model_router.{old}": f"smart_model_router.{new}"
    for old, new in {
        "chaos": "rehearsal.chaos",
        "discovery": "config.discovery",
        "edge": "http_api",
        "errors": "domain.errors",
        "events": "domain.events",
        "forks": "domain.fork_hooks",
        "forwarding": "domain.forwarded_headers",
        "known": "config.known_models",
        "long_json": "domain.body_encoding",
        "media": "domain.media_parts",
        "media_headers": "domain.media_headers",
        "model_list": "flow.model_list",
        "monitor": "observability",
        "outcome": "domain.outcome",
        "payload": "domain.body_encoding",
        "ports": "domain.ports",
        "pricing": "domain.pricing",
        "quick": "domain.fast_dataclass",
        "recovery": "domain.recovery_policy",
        "redaction": "domain.redaction",
        "report": "domain.report",
        "request": "domain.request",
        "runtime": "flow",
        "runtime.sharing": "coordination",
        "searching": "flow.search_service",
        "shared": "domain.shared_state",
        "simulation": "rehearsal.simulation",
        "simulation.promises": "rehearsal.simulation.assertions",
        "simulation.setting": "rehearsal.simulation.scenario",
        "simulation.traffic": "rehearsal.simulation.workload",
        "simulation.weather": "rehearsal.simulation.provider_behaviour",
        "suggest": "domain.suggest",
        "telemetry": "observability",
        "wildcards": "flow.wildcards",
    }.items()
}
"""The new path by the old one. A module of a package that moved is found under the package's new path."""

NAMES = {
    "smart_model_router.domain.events": {"GuardsForgotten": "GuardsExpired", "TargetsForgotten": "TargetsEvicted"},
}
"""By module, the new name by the old one. Such a module has a `__getattr__` that calls `renamed`."""


def renamed(module: str, name: str) -> object:
    """Return an attribute of a module by its old name. Raises AttributeError for a name that never was."""
    new = NAMES[module].get(name)
    if new is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    told = f"{module}.{name} is now {new}; the old name goes with version 0.3"
    warnings.warn(told, DeprecationWarning, stacklevel=3)
    return getattr(sys.modules[module], new)


def transport(router: Any) -> Any:
    """Return what `SmartModelRouter.transport()` returned: a RouterTransport."""
    new = "smart_model_router.clients"
    told = f"SmartModelRouter.transport() is now {new}.RouterTransport(router); the method goes with version 0.3"
    warnings.warn(told, DeprecationWarning, stacklevel=3)
    return import_module(new).RouterTransport(router)
