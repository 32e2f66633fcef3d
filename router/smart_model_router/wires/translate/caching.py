"""Marks of prompt caching: Chat's `cache_control` (as LiteLLM and OpenRouter have it) is Messages' own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.values import is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.losses import Losses

KEY = "cache_control"


def marked(block: dict[str, Any], losses: Losses, *holders: Mapping[str, Any]) -> dict[str, Any]:
    """A Messages block with the mark of the first holder that has one. A mark that is no object is lost."""
    for holder in holders:
        mark = holder.get(KEY)
        if mark is None:
            continue
        if is_object(mark):
            return {**block, KEY: mark}
        losses.drop(KEY, "dropped, an object is needed")
    return block


def lifted(blocks: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The content of a tool's result without marks, and the last mark: Messages takes it on the result alone."""
    marks = [block[KEY] for block in blocks if KEY in block]
    bare = [{key: value for key, value in block.items() if key != KEY} for block in blocks]
    return bare, {KEY: marks[-1]} if marks else {}
