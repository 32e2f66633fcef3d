"""One name, one thing: no module and no class name stands for two things of the product."""

from __future__ import annotations

import ast
from collections import Counter

from tests.meta.repository import SOURCE_ROOTS

DIALECTS = {
    "chat",
    "messages",
    "responses",
    "chat_to_messages",
    "chat_to_responses",
    "messages_to_chat",
    "responses_to_chat",
}
"""Modules that each stand for a dialect in their package."""
OFTEN = {*DIALECTS, "errors", "__init__"}
STILL_TWICE = {"Delta", "Dice", "Finding", "Hit", "Interval", "Reply", "Scenario", "Snapshot"}
"""Class names that still stand for two things, in packages that do not import each other. Take names away, add none."""


def test_no_module_name_stands_for_two_things() -> None:
    """Within a source root each module has a name of its own, but for dialects and `errors`."""
    for root in SOURCE_ROOTS:
        names = Counter(path.stem for path in root.rglob("*.py"))
        assert {name for name, number in names.items() if number > 1} <= OFTEN


def test_no_class_name_stands_for_two_things() -> None:
    """Public classes of the product have names of their own, but for those of the list, which only shrinks."""
    names = Counter(
        node.name
        for root in SOURCE_ROOTS
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, number in names.items() if number > 1} == STILL_TWICE
