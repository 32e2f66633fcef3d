"""Objects that a configuration names: `package.module:attribute`, or an entry point of an installed package."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points


def reference_of(name: str, group: str) -> str | None:
    """Return the import path that `name` stands for: itself, or that of an entry point; None when there is none."""
    return name if ":" in name else next((found.value for found in entry_points(group=group, name=name)), None)


def imported(reference: str) -> object:
    """Import `package.module:attribute`. Raises whatever the module raises, ImportError and AttributeError."""
    module, _, attributes = reference.partition(":")
    found: object = importlib.import_module(module)
    for attribute in attributes.split("."):
        found = getattr(found, attribute)
    return found
