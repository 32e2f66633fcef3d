"""Module paths of version 0.1: each still imports what it named, and warns."""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType

import pytest

from smart_model_router._moved import MOVED, moved_to


def imported_anew(old: str) -> tuple[ModuleType, list[str]]:
    """Import an old path as a first import would; its warnings, and those of the packages above it."""
    sys.modules.pop(old, None)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DeprecationWarning)
        module = importlib.import_module(old)
    return module, [str(one.message) for one in told if one.category is DeprecationWarning]


@pytest.mark.parametrize("old", MOVED)
def test_an_old_path_is_the_new_module(old: str) -> None:
    """The module of the old path is the one of the new path, and its import says so."""
    module, told = imported_anew(old)
    assert f"{old} moved to {MOVED[old]}; the old path goes with version 0.3" in told
    assert module is importlib.import_module(MOVED[old])
    assert module.__spec__ is not None
    assert module.__spec__.name == MOVED[old]


def test_a_module_of_a_package_that_moved_is_found() -> None:
    """The path of a package leads to its modules, too; none is loaded a second time."""
    module, _ = imported_anew("smart_model_router.telemetry.log")
    assert module is importlib.import_module("smart_model_router.observability.log")


def test_a_module_that_never_was_is_not_found() -> None:
    """What never existed is an ImportError that names the path."""
    assert moved_to("smart_model_router.nothing") is None
    with pytest.raises(ModuleNotFoundError, match=r"smart_model_router\.nothing"):
        importlib.import_module("smart_model_router.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"observability\.nothing"):
        imported_anew("smart_model_router.telemetry.nothing")
