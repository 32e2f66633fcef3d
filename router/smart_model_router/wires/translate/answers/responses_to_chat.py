"""A Responses answer as a Chat Completions answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate.answers.chat_message import ChatMessage
from smart_model_router.wires.translate.citations import from_responses, search_of_responses
from smart_model_router.wires.translate.reasoning import OPENAI, encrypted_detail
from smart_model_router.wires.translate.words import FINISH_OF_INCOMPLETE, chat_usage_of_responses, named_id
from smart_model_router.wires.values import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.losses import Losses
    from smart_model_router.wires.translate.terms import Context


def answer(body: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The Chat answer that says the same."""
    message = _message(items(body.get("output")), context)
    choice = {
        "index": 0,
        "message": message,
        "logprobs": _logprobs(items(body.get("output"))),
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


def chat_logprob(held: Mapping[str, Any]) -> dict[str, Any]:
    """The probability of a token as Chat has it: Responses' streams do not say its bytes."""
    tops = [{"bytes": None, **mapping(top)} for top in items(held.get("top_logprobs"))]
    return {"bytes": None, **held, "top_logprobs": tops}


def custom_call(item: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a custom tool."""
    custom = {"name": text(item.get("name")), "input": text(item.get("input"))}
    return {"id": text(item.get("call_id")), "type": "custom", "custom": custom}


def _logprobs(output: list[Any]) -> dict[str, Any] | None:
    parts = [mapping(part) for item in map(mapping, output) for part in items(item.get("content"))]
    found = [chat_logprob(mapping(one)) for part in parts for one in items(part.get("logprobs"))]
    return {"content": found, "refusal": None} if found else None


def _message(output: list[Any], context: Context) -> dict[str, Any]:
    message = ChatMessage()
    for item in map(mapping, output):
        _add(message, item, context)
    return message.body("\n\n")


def _add(message: ChatMessage, item: Mapping[str, Any], context: Context) -> None:
    kind = item.get("type")
    if kind == "message":
        for part in map(mapping, items(item.get("content"))):
            for annotation in map(mapping, items(part.get("annotations"))):
                message.cited += from_responses(annotation, message.length, context.losses)
            message.said.append(text(part.get("text")))
            message.refused.append(text(part.get("refusal")))
    elif kind == "function_call":
        function = {"name": text(item.get("name")), "arguments": text(item.get("arguments")) or "{}"}
        message.calls.append({"id": text(item.get("call_id")), "type": "function", "function": function})
    elif kind == "custom_tool_call":
        message.calls.append(custom_call(item))
    elif kind == "reasoning":
        message.thoughts.append(thought_of(item))
        detail = detail_of(item, len(message.details))
        message.details += [] if detail is None else [detail]
    elif kind == "web_search_call" and context.terms.between:
        message.searches.append(search_of_responses(item))
    else:
        dropped_item(kind, context.losses)


def dropped_item(kind: object, losses: Losses) -> None:
    """An item that Chat has no word for."""
    losses.drop("output", f"an item of type {text(kind)!r} is dropped from the answer"[:200])
