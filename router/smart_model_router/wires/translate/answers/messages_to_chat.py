"""A Messages answer as a Chat Completions answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate.answers.chat_message import ChatMessage
from smart_model_router.wires.translate.citations import add_results, from_messages, search_of_messages
from smart_model_router.wires.translate.hosted import NAME
from smart_model_router.wires.translate.reasoning import encrypted_detail, signed_detail
from smart_model_router.wires.translate.words import FINISH_OF_STOP, JSON_TOOL, chat_usage_of_messages, dumps, named_id
from smart_model_router.wires.values import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.losses import Losses
    from smart_model_router.wires.translate.terms import Context


def answer(body: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The Chat answer that says the same."""
    message = _message(items(body.get("content")), context)
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


def dropped_block(kind: str, losses: Losses) -> None:
    """A block that Chat has no word for."""
    losses.drop("content", f"a block of type {kind!r} is dropped from the answer"[:200])


def _message(blocks: list[Any], context: Context) -> dict[str, Any]:
    message = ChatMessage()
    for block in map(mapping, blocks):
        _add(message, block, context)
    return message.body()


def _add(message: ChatMessage, block: Mapping[str, Any], context: Context) -> None:
    kind = text(block.get("type"))
    if kind == "text":
        start, said = message.length, text(block.get("text"))
        message.said.append(said)
        for citation in map(mapping, items(block.get("citations"))):
            message.cited += from_messages(citation, start, start + len(said), context.losses)
    elif kind == "tool_use" and block.get("name") == JSON_TOOL:
        message.said.append(dumps(mapping(block.get("input"))))
    elif kind == "tool_use":
        function = {"name": text(block.get("name")), "arguments": dumps(mapping(block.get("input")))}
        message.calls.append({"id": text(block.get("id")), "type": "function", "function": function})
    elif kind == "thinking":
        message.thoughts.append(text(block.get("thinking")))
        detail = signed_detail(message.thoughts[-1], text(block.get("signature")), len(message.details))
        message.details.append(detail)
    elif kind == "redacted_thinking":
        message.details.append(encrypted_detail(text(block.get("data")), len(message.details)))
    elif not (context.terms.between and _searched(message, block)):
        dropped_block(kind, context.losses)


def _searched(message: ChatMessage, block: Mapping[str, Any]) -> bool:
    """Whether the block is of a search of the web; what is to be known of it is kept."""
    if block.get("type") == "server_tool_use" and block.get("name") == NAME:
        message.searches.append(search_of_messages(block, mapping(block.get("input"))))
        return True
    made = next((one for one in message.searches if one["id"] == block.get("tool_use_id")), None)
    if block.get("type") != "web_search_tool_result" or made is None:
        return False
    add_results(made, block.get("content"))
    return True
