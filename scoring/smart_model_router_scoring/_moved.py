"""Module paths of version 0.1 that moved: each still imports, with a DeprecationWarning, until version 0.3.

It is here, and not in the router, because this package imports nothing of the router.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    f"smart_model_router_scoring.{old}": f"smart_model_router_scoring.{new}"
    for old, new in {
        "errors": "options",
        "fusion.vectorised": "vectorised",
        "notes": "options",
        "recall.bias": "recall.memory",
        "recall.components": "recall.memory",
        "recall.floor": "recall.ranking",
        "recall.gate": "recall.prompt",
        "recall.intent": "recall.ranking",
        "recall.settings": "recall.memory",
        "recall.sort": "recall.memory",
        "recall.supersession": "recall.ranking",
        "times": "decay",
        "tools.capability": "tools.suggestions",
        "tools.communities": "tools.clusters",
        "tools.discovery": "tools.suggestions",
        "tools.hybrid": "tools.suggestions",
        "tools.incidence": "tools.graph",
        "tools.next_step": "tools.suggestions",
        "tools.spectral": "tools.clusters",
        "tools.suggestion": "tools.suggestions",
        "tools.thresholds": "tools.learning",
        "tools.weights": "tools.learning",
    }.items()
}
"""The new path by the old one. Of packages with an `__all__` only the package is public, and has not moved."""


def moved_to(name: str, moved: Mapping[str, str]) -> str | None:
    """Return the new path of the module `name`, or None for a module that did not move.

    A module of a package that moved is found under the package's new path.
    """
    package, rest = name, ""
    while "." in package:
        if package in moved:
            return moved[package] + rest
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

    def __init__(self) -> None:
        self.moved: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for an old path."""
        del path, target
        new = moved_to(fullname, self.moved) if fullname.startswith("smart_model_router") else None
        return None if new is None else ModuleSpec(fullname, _MovedLoader(new), is_package=True)


_FINDER = _MovedFinder()


def install(moved: Mapping[str, str]) -> None:
    """Let the old paths of this table be imported. Safe to call twice."""
    _FINDER.moved.update(moved)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
