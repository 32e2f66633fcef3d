"""A Chat Completions answer as a Messages answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate import reasoning
from smart_model_router.wires.translate.citations import place_of, search_blocks, to_messages
from smart_model_router.wires.translate.hosted import SEARCHES
from smart_model_router.wires.translate.words import (
    STOP_OF_FINISH,
    arguments_of,
    messages_usage_of_chat,
    named_id,
    tool_use_id,
)
from smart_model_router.wires.values import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_model_router.wires.translate.losses import Losses
    from smart_model_router.wires.translate.terms import Context, Terms

_UNCOUNTED: dict[str, Any] = {
    "cache_creation": None,
    "inference_geo": None,
    "output_tokens_details": None,
    "server_tool_use": None,
    "service_tier": None,
}
"""What Anthropic's own count has besides tokens: nothing here."""


def answer(body: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The Messages answer that says the same."""
    choice = mapping(next(iter(items(body.get("choices"))), None))
    message = mapping(choice.get("message"))
    blocks = [
        *thinking(reasoning.text_of(message), items(message.get("reasoning_details")), context.terms),
        *(block for search in items(message.get(SEARCHES)) for block in search_blocks(mapping(search))),
        *_texts(message),
        *(_tool_use(mapping(call), at, context.losses) for at, call in enumerate(items(message.get("tool_calls")))),
    ]
    whole = frame(body.get("id"), text(body.get("model")), body.get("usage"))
    searches = len(items(message.get(SEARCHES)))
    return {
        **whole,
        "usage": {**whole["usage"], **counted_searches(searches)},
        "content": blocks,
        "stop_reason": stop_reason(text(choice.get("finish_reason")), called=bool(message.get("tool_calls"))),
    }


def frame(made: object, model: str, usage: object) -> dict[str, Any]:
    """A Messages answer that says nothing yet, with every field that Anthropic's own has. `usage` is Chat's."""
    return {
        "id": named_id("msg_", made),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": {**_UNCOUNTED, **messages_usage_of_chat(usage)},
    }


def counted_searches(number: int) -> dict[str, Any]:
    """What the usage says of searches of the web."""
    return {"server_tool_use": {"web_search_requests": number, "web_fetch_requests": 0}} if number else {}


def text_block(said: str, citations: Sequence[Any] = ()) -> dict[str, Any]:
    """A block of visible text. Anthropic's schema demands `citations` and some SDKs refuse null: a list suits both."""
    return {"type": "text", "text": said, "citations": [*citations]}


def tool_use_block(call_id: str, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a tool, made by the model itself."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": given, "caller": {"type": "direct"}}


def stop_reason(finish: str, *, called: bool) -> str:
    """Messages' word for why the answer ended. Some providers say `stop` after a tool call."""
    return "tool_use" if called and finish == "stop" else STOP_OF_FINISH.get(finish, "end_turn")


def thinking(thought: str, details: list[Any], terms: Terms) -> list[dict[str, Any]]:
    """Thinking blocks: the provider's own when it gave them, else one whose signature is our seal."""
    blocks: list[dict[str, Any]] = []
    for detail in map(mapping, details):
        if detail.get("format") == reasoning.ANTHROPIC and text(detail.get("signature")):
            blocks.append({"type": "thinking", "thinking": text(detail.get("text")), "signature": detail["signature"]})
        elif detail.get("format") == reasoning.ANTHROPIC and text(detail.get("data")):
            blocks.append({"type": "redacted_thinking", "data": detail["data"]})
    if blocks or not (thought or details):
        return blocks
    return [{"type": "thinking", "thinking": thought, "signature": reasoning.seal(terms.family, details)}]


def _texts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    parts = [content] if isinstance(content, str) else [mapping(part).get("text") for part in items(content)]
    said = [part for part in map(text, parts) if part]
    blocks = []
    for at, part in enumerate(said):
        before = sum(map(len, said[:at]))
        near = [one for one in items(message.get("annotations")) if before <= place_of(one) < before + len(part)]
        blocks.append(text_block(part, [cited for one in near for cited in to_messages(one, part, before)]))
    return [*blocks, *([text_block(text(message["refusal"]))] if text(message.get("refusal")) else [])]


def _tool_use(call: Mapping[str, Any], at: int, losses: Losses) -> dict[str, Any]:
    function = mapping(call.get("function"))
    arguments = arguments_of(function.get("arguments"))
    if arguments is None:
        losses.drop("tool_calls", "arguments that are no JSON object are handed on as `arguments`")
        arguments = {"arguments": text(function.get("arguments"))}
    found = tool_use_id(call.get("id")) if call.get("id") else f"call_{at}"
    return tool_use_block(found, text(function.get("name")), arguments)
