"""Responses: what a request refers to, put in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.domain.request import is_reference
from smart_model_router.wires.own_ids import response_of
from smart_model_router.wires.values import is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PREVIOUS = "previous_response_id"


def own_items(body: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    """The items of a request's own input; those in `found` in the place of the references to them."""
    asked = body.get("input")
    if isinstance(asked, str):
        return [{"type": "message", "role": "user", "content": asked}]
    return [found.get(text(item.get("id")), item) if _refers(item) else item for item in items(asked)]


def after(body: Mapping[str, Any], history: Sequence[Any], own: Sequence[Any]) -> dict[str, Any]:
    """The request with all that it goes on from in its input, and no reference to an answer of ours."""
    rest = {key: value for key, value in body.items() if key != PREVIOUS or response_of(text(value)) is None}
    return {**rest, "input": [*history, *own]}


def items_of(answer: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The items of an answer of ours by their ids, as they go into a request: without those, which only we know."""
    return {
        text(item.get("id")): {key: value for key, value in item.items() if key not in ("id", "status")}
        for item in map(mapping, items(answer.get("output")))
    }


def _refers(item: object) -> bool:
    return is_object(item) and is_reference(item)
