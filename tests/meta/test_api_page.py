"""docs/api.md names what is public, and nothing that is not there."""

from __future__ import annotations

import importlib
import re

import smart_model_router
from tests.meta.repository import ROOT

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
FRONT, OTHER = PAGE.split("## Other modules")


def test_the_page_has_every_public_name() -> None:
    """The tables of the front door and its `__all__` are the same."""
    rows = re.findall(r"^\| (`.*?) \|", FRONT, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(smart_model_router.__all__)


def test_the_methods_that_the_page_names_exist() -> None:
    """The methods of the router that the page names are there."""
    row = next(line for line in FRONT.splitlines() if line.startswith("| `SmartModelRouter`"))
    named = re.findall(r"`(\w+)`", row)[1:] + re.findall(r"`(?:SmartModelRouter)?\.(\w+)`", OTHER.split("Advanced")[1])
    assert [name for name in named if not hasattr(smart_model_router.SmartModelRouter, name)] == []


def test_the_names_of_other_modules_exist() -> None:
    """Each name beside a module is in that module."""
    for module, names in re.findall(r"^\| `(smart_model_router[\w.]*)` \| (`.*?) \|$", OTHER, re.MULTILINE):
        found = importlib.import_module(module)
        assert [name for name in re.findall(r"`(\w+)`", names) if not hasattr(found, name)] == []
