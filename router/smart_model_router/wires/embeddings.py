"""Embeddings: its answers. The dialect has no streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.answer import Answer
from smart_model_router.wires.chat import read_usage
from smart_model_router.wires.values import is_list, mapping

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_answer(body: Mapping[str, Any]) -> Answer:
    """A whole answer: a list of vectors (or of base64 strings that hold them)."""
    if body.get("error"):
        return Answer(error=body["error"])
    data = body.get("data")
    if not is_list(data):
        return Answer(malformed="no list of embeddings")
    if any(not mapping(item).get("embedding") for item in data):
        return Answer(malformed="an item without an embedding")
    return Answer(read_usage(body.get("usage")), empty=not data)
