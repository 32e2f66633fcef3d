"""Module paths of version 0.1 that moved: each still imports, with a DeprecationWarning, until version 0.3."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

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
        "long_json": "domain.long_json",
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


def moved_to(name: str) -> str | None:
    """Return the new path of the module `name`, or None for a module that did not move."""
    package, rest = name, ""
    while "." in package:
        if package in MOVED:
            return MOVED[package] + rest
        package, _, last = package.rpartition(".")
        rest = f".{last}{rest}"
    return None


class _MovedLoader(Loader):
    """Puts the module of the new path in the place of the old one."""

    def __init__(self, new: str) -> None:
        self._new = new

    def exec_module(self, module: ModuleType) -> None:
        """Import the new path. Raises ImportError where it has no such module."""
        old = module.__name__
        told = f"{old} moved to {self._new}; the old path goes with version 0.3"
        warnings.warn(told, DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(self._new)


class _MovedFinder(MetaPathFinder):
    """Is asked first: the path finder would load a module of a moved package a second time, under its old name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for an old path."""
        del path, target
        new = moved_to(fullname)
        return None if new is None else ModuleSpec(fullname, _MovedLoader(new), is_package=True)


def install() -> None:
    """Let old paths be imported. Safe to call twice."""
    if not any(isinstance(finder, _MovedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _MovedFinder())
