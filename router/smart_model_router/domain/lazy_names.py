"""Public names of a package that are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]], found: dict[str, object]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package: `homes` has the names of each module, `found` is globals()."""
    home_of = {name: module for module, names in homes.items() for name in names}

    def imported(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found[name] = getattr(import_module(home_of[name]), name)
        return found[name]

    return imported, lambda: sorted({*found, *home_of})
