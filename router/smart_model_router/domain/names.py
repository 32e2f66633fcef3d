"""Names as people write them: the nearest known one to an unknown one, and the object that an import path names."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from importlib.metadata import entry_points


def unknown_model(name: str, known: Iterable[str]) -> str:
    """The message about a model that `known`, the names that its caller may use, do not have."""
    return f"model: {name[:100]!r} is unknown; {did_you_mean(name, known)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` when a known word is near, else the known words; empty when there are none."""
    from difflib import get_close_matches  # noqa: PLC0415 - paid for by mistakes only

    words = list(known)
    lowered = {candidate.lower(): candidate for candidate in words}
    near = get_close_matches(word.lower()[:100], lowered, n=1, cutoff=0.6)
    if near:
        return f"did you mean {lowered[near[0]]!r}?"
    shown = ", ".join(sorted(words)[:20])
    return f"known: {shown}" + (", ..." if len(words) > 20 else "") if words else ""


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
