"""Module paths of version 0.1: each still imports what it named, and warns."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from types import ModuleType

import pytest

import smart_model_router_providers
from smart_model_router import SmartModelRouter
from smart_model_router._moved import MOVED, NAMES
from smart_model_router.clients import RouterTransport
from smart_model_router_scoring._moved import MOVED as SCORING_MOVED
from smart_model_router_scoring._moved import moved_to

EVERY = {**MOVED, **SCORING_MOVED, **smart_model_router_providers.MOVED}


def imported_anew(old: str) -> tuple[ModuleType, list[str]]:
    """Import an old path as a first import would; its warnings, and those of the packages above it."""
    sys.modules.pop(old, None)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DeprecationWarning)
        module = importlib.import_module(old)
    return module, [str(one.message) for one in told if one.category is DeprecationWarning]


@pytest.mark.parametrize("old", EVERY)
def test_an_old_path_is_the_new_module(old: str) -> None:
    """The module of the old path is the one of the new path, and its import says so."""
    module, told = imported_anew(old)
    assert f"{old} moved to {EVERY[old]}; the old path goes with version 0.3" in told
    assert module is importlib.import_module(EVERY[old])
    assert module.__spec__ is not None
    assert module.__spec__.name == EVERY[old]


@pytest.mark.parametrize("old", [next(iter(SCORING_MOVED)), *smart_model_router_providers.MOVED])
def test_an_old_path_is_found_without_the_router(old: str) -> None:
    """A first import in a process that has not imported the router finds it, too."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", f"import {old}"], check=True, timeout=60)


def test_an_old_path_takes_no_name_of_its_package() -> None:
    """An import of an old path binds its last part in its package, where nothing public may have that name."""
    for old in EVERY:
        package, _, last = old.rpartition(".")
        assert package in EVERY or last not in getattr(importlib.import_module(package), "__all__", ())


def test_a_module_of_a_package_that_moved_is_found() -> None:
    """The path of a package leads to its modules, too; none is loaded a second time."""
    module, _ = imported_anew("smart_model_router.telemetry.log")
    assert module is importlib.import_module("smart_model_router.observability.log")


def test_a_module_that_never_was_is_not_found() -> None:
    """What never existed is an ImportError that names the path."""
    assert moved_to("smart_model_router.nothing", MOVED) is None
    with pytest.raises(ModuleNotFoundError, match=r"smart_model_router\.nothing"):
        importlib.import_module("smart_model_router.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"observability\.nothing"):
        imported_anew("smart_model_router.telemetry.nothing")


@pytest.mark.parametrize(("module", "old"), [(module, old) for module, names in NAMES.items() for old in names])
def test_an_old_name_is_the_new_one(module: str, old: str) -> None:
    """The old name of a class still leads to it, and its use says so."""
    there = importlib.import_module(module)
    new = NAMES[module][old]
    with pytest.warns(DeprecationWarning, match=f"{module}.{old} is now {new}; the old name goes with version 0.3"):
        assert getattr(there, old) is getattr(there, new)


def test_a_name_that_never_was_is_an_attribute_error() -> None:
    """As of any module."""
    for module in NAMES:
        with pytest.raises(AttributeError, match="has no attribute 'Never'"):
            _ = importlib.import_module(module).Never


def test_the_old_way_to_a_transport_warns() -> None:
    """`router.transport()` returns a transport until version 0.3, and names the new way."""
    provider = {"kind": "openai_compatible", "base_url": "http://127.0.0.1:9/v1", "api_key": "k"}
    config = {"version": 1, "providers": {"p": provider}, "models": {"m": {"targets": ["p/m"], "last_resort": []}}}
    router = SmartModelRouter.from_config(config)
    new = r"is now smart_model_router\.clients\.RouterTransport\(router\)"
    with pytest.warns(DeprecationWarning, match=new) as told:
        transport = router.transport()
    assert isinstance(transport, RouterTransport)
    assert told[0].filename == __file__
