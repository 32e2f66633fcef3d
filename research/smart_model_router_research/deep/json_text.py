"""The text of a JSON document: a block for each value, with the key that it stands under. Never raises."""

from __future__ import annotations

import json
from collections.abc import Iterator

MOST_VALUES = 20_000
"""Values that are read; the rest is left out."""


def text_of_json(text: str) -> str | None:
    """Return the values of a JSON document in their order, each as a block of its own; None for what is no JSON.

    In an object a value is `key: value`, in a list it is an item. Nothing else of the syntax is kept.
    """
    try:
        blocks = _blocks(json.loads(text), "")
        return "\n\n".join(block for _, block in zip(range(MOST_VALUES), blocks, strict=False))
    except (ValueError, RecursionError):
        return None


def _blocks(value: object, label: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _blocks(member, f"{_line(key)}: ")
    elif isinstance(value, list):
        for member in value:
            yield from _blocks(member, "- ")
    elif value is not None:
        yield label + (_line(value) if isinstance(value, str) else json.dumps(value))


def _line(text: str) -> str:
    return " ".join(text.split())
