"""A Responses answer as a Chat Completions answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate.reasoning import OPENAI, encrypted_detail
from smart_model_router.wires.translate.words import FINISH_OF_INCOMPLETE, chat_usage_of_responses, named_id
from smart_model_router.wires.values import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.losses import Losses
    from smart_model_router.wires.translate.terms import Context


def answer(body: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The Chat answer that says the same."""
    message = _message(items(body.get("output")), context.losses)
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": finish_reason(body, called=bool(message.get("tool_calls"))),
    }
    return {
        "id": named_id("chatcmpl-", body.get("id")),
        "object": "chat.completion",
        "created": context.terms.created,
        "model": text(body.get("model")),
        "choices": [choice],
        "usage": chat_usage_of_responses(mapping(body.get("usage"))),
    }


def finish_reason(body: Mapping[str, Any], *, called: bool) -> str:
    """Chat's word for why the answer ended."""
    why = text(mapping(body.get("incomplete_details")).get("reason"))
    if body.get("status") == "incomplete":
        return FINISH_OF_INCOMPLETE.get(why, "length")
    return "tool_calls" if called else "stop"


def thought_of(item: Mapping[str, Any]) -> str:
    """The reasoning that an item shows: its summary, else the reasoning itself."""
    parts = items(item.get("summary")) or items(item.get("content"))
    return "\n\n".join(text(mapping(part).get("text")) for part in parts)


def detail_of(item: Mapping[str, Any], index: int) -> dict[str, Any] | None:
    """The encrypted reasoning of an item as Chat carries it; None when it has none."""
    data = text(item.get("encrypted_content"))
    return encrypted_detail(data, index, OPENAI, id=text(item.get("id"))) if data else None


def _message(output: list[Any], losses: Losses) -> dict[str, Any]:
    said: list[str] = []
    refused: list[str] = []
    thoughts: list[str] = []
    details: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for item in map(mapping, output):
        kind = item.get("type")
        if kind == "message":
            for part in map(mapping, items(item.get("content"))):
                said.append(text(part.get("text")))
                refused.append(text(part.get("refusal")))
                if part.get("annotations"):
                    losses.drop("annotations", "dropped from the answer, Chat has no place for them")
        elif kind == "function_call":
            function = {"name": text(item.get("name")), "arguments": text(item.get("arguments")) or "{}"}
            calls.append({"id": text(item.get("call_id")), "type": "function", "function": function})
        elif kind == "reasoning":
            thoughts.append(thought_of(item))
            detail = detail_of(item, len(details))
            details += [] if detail is None else [detail]
        else:
            losses.drop("output", f"an item of type {text(kind)!r} is dropped from the answer"[:200])
    out: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(said) or None,
        "refusal": "".join(refused) or None,
    }
    if "".join(thoughts):
        out["reasoning_content"] = "\n\n".join(filter(None, thoughts))
    if details:
        out["reasoning_details"] = details
    if calls:
        out["tool_calls"] = calls
    return out
