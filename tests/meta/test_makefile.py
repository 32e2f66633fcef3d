"""What `make` offers is there: a phony target without a recipe would do nothing, and call it success."""

from __future__ import annotations

import re

import pytest

from tests.meta.repository import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
(PHONY,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)
TARGETS = {
    name: bool(recipe) or bool(set(before.split()) - {"setup"})
    for name, before, recipe in re.findall(r"^([a-z-]+):([^#=\n]*).*\n(\t.+)?", MAKEFILE, flags=re.MULTILINE)
}
"""Each with whether it does anything: by a recipe, or by other targets than the set-up."""


@pytest.mark.parametrize("target", PHONY.split())
def test_every_target_has_something_to_do(target: str) -> None:
    """It has a recipe, or other targets that it consists of."""
    assert TARGETS[target]


def test_no_target_can_be_taken_for_a_file() -> None:
    """Every target is phony: a file of that name changes nothing."""
    assert set(TARGETS) == set(PHONY.split())
