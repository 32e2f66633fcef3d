"""A Messages answer as a Chat Completions answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate.reasoning import encrypted_detail, signed_detail
from smart_model_router.wires.translate.words import FINISH_OF_STOP, JSON_TOOL, chat_usage_of_messages, dumps, named_id
from smart_model_router.wires.values import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.losses import Losses
    from smart_model_router.wires.translate.terms import Context


def answer(body: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The Chat answer that says the same."""
    message = _message(items(body.get("content")), context.losses)
    stop = text(body.get("stop_reason"))
    refusal = text(mapping(body.get("stop_details")).get("explanation"))
    if stop == "refusal" and refusal:
        message["refusal"] = refusal
    return {
        "id": named_id("chatcmpl-", body.get("id")),
        "object": "chat.completion",
        "created": context.terms.created,
        "model": text(body.get("model")),
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": finish_reason(stop, called=bool(message.get("tool_calls"))),
            }
        ],
        "usage": chat_usage_of_messages(mapping(body.get("usage"))),
    }


def finish_reason(stop: str, *, called: bool) -> str:
    """Chat's word for why the answer ended. The tool that stands for JSON mode is no call of a tool."""
    found = FINISH_OF_STOP.get(stop, "stop")
    return "stop" if found == "tool_calls" and not called else found


def _message(blocks: list[Any], losses: Losses) -> dict[str, Any]:
    said: list[str] = []
    thought: list[str] = []
    details: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for block in map(mapping, blocks):
        kind = block.get("type")
        if kind == "text":
            said.append(text(block.get("text")))
            if block.get("citations"):
                losses.drop("citations", "dropped from the answer, Chat has no place for them")
        elif kind == "tool_use" and block.get("name") == JSON_TOOL:
            said.append(dumps(mapping(block.get("input"))))
        elif kind == "tool_use":
            function = {"name": text(block.get("name")), "arguments": dumps(mapping(block.get("input")))}
            calls.append({"id": text(block.get("id")), "type": "function", "function": function})
        elif kind == "thinking":
            thought.append(text(block.get("thinking")))
            details.append(signed_detail(thought[-1], text(block.get("signature")), len(details)))
        elif kind == "redacted_thinking":
            details.append(encrypted_detail(text(block.get("data")), len(details)))
        else:
            losses.drop("content", f"a block of type {text(kind)!r} is dropped from the answer"[:200])
    out: dict[str, Any] = {"role": "assistant", "content": "".join(said) or None, "refusal": None}
    if "".join(thought):
        out["reasoning_content"] = "".join(thought)
    if details:
        out["reasoning_details"] = details
    if calls:
        out["tool_calls"] = calls
    return out
