"""A Chat Completions answer as a Responses answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.own_ids import item_id
from smart_model_router.wires.translate import reasoning
from smart_model_router.wires.translate.citations import search_item, to_responses
from smart_model_router.wires.translate.hosted import SEARCHES, SOURCES
from smart_model_router.wires.translate.tools import Tool, tools_by_flat_name, unwrapped_input
from smart_model_router.wires.translate.words import (
    INCOMPLETE_OF_FINISH,
    arguments_of,
    named_id,
    responses_usage_of_chat,
)
from smart_model_router.wires.values import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_model_router.wires.translate.terms import Context, Terms

_ECHOED: dict[str, Any] = {
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "auto",
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
"""What a Responses answer repeats of its request, with what it says when the request did not."""
_COMPLETED = ("reasoning", "text")
"""Of these a request may give some fields; the answer has all of them."""
_FUNCTION: dict[str, Any] = {"description": None, "parameters": None, "strict": None}
"""What a request may leave out of a function; the answer does not."""


def answer(body: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The Responses answer that says the same."""
    choice = mapping(next(iter(items(body.get("choices"))), None))
    message = mapping(choice.get("message"))
    made = context.terms.response_id or named_id("resp_", body.get("id"))
    tools = tools_by_flat_name(context.asked)
    output: list[dict[str, Any]] = []
    thought, details = reasoning.text_of(message), items(message.get("reasoning_details"))
    if thought or details:
        output.append(reasoning_item(item_id("rs", made, 0), thought, details, context.terms))
    asked_sources = SOURCES in items(context.asked.get("include"))
    for search in map(mapping, items(message.get(SEARCHES))):
        output.append(search_item(item_id("ws", made, len(output)), search, sources=asked_sources))
    parts = _parts(message, mapping(choice.get("logprobs")))
    if parts:
        output.append(message_item(item_id("msg", made, len(output)), parts))
    for at, call in enumerate(map(mapping, items(message.get("tool_calls")))):
        function = mapping(call.get("function"))
        found = text(call.get("id")) or f"call_{at}"
        place = made, len(output)
        output.append(call_item(place, found, text(function.get("name")), text(function.get("arguments")), tools))
    return {
        **frame(made, text(body.get("model")), context.asked, context.terms),
        **ending(text(choice.get("finish_reason"))),
        "output": output,
        "usage": responses_usage_of_chat(body.get("usage")),
    }


def frame(made: str, model: str, asked: Mapping[str, Any], terms: Terms) -> dict[str, Any]:
    """What every state of a Responses answer has."""
    echoed = {key: usual if asked.get(key) is None else asked[key] for key, usual in _ECHOED.items()}
    echoed |= {key: {**_ECHOED[key], **mapping(echoed[key])} for key in _COMPLETED}
    echoed["tools"] = [_echoed_tool(tool) for tool in items(echoed["tools"])]
    echoed["previous_response_id"] = terms.previous or echoed["previous_response_id"]
    return {
        "id": made,
        "object": "response",
        "created_at": terms.created,
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        **echoed,
        "store": terms.kept,
        "usage": None,
    }


def _echoed_tool(tool: Any) -> Any:
    return {**_FUNCTION, **tool} if mapping(tool).get("type") == "function" else tool


def ending(finish: str) -> dict[str, Any]:
    """How a Responses answer says why it ended."""
    why = INCOMPLETE_OF_FINISH.get(finish)
    return {"status": "completed"} if why is None else {"status": "incomplete", "incomplete_details": {"reason": why}}


def text_part(said: str, annotations: Sequence[Any] = (), logprobs: Sequence[Any] = ()) -> dict[str, Any]:
    """A part of visible text. `logprobs` are Chat's."""
    return {
        "type": "output_text",
        "text": said,
        "annotations": [*annotations],
        "logprobs": responses_logprobs(logprobs),
    }


def responses_logprobs(found: Sequence[Any]) -> list[dict[str, Any]]:
    """Chat's probabilities of tokens as Responses has them: always with the bytes."""
    return [
        {**_bytes(held), "top_logprobs": [*map(_bytes, items(held.get("top_logprobs")))]}
        for held in map(mapping, found)
    ]


def _bytes(held: Any) -> dict[str, Any]:
    return {**mapping(held), "bytes": items(mapping(held).get("bytes"))}


def message_item(made: str, parts: list[dict[str, Any]], status: str = "completed") -> dict[str, Any]:
    """What the assistant said."""
    return {"id": made, "type": "message", "status": status, "role": "assistant", "content": parts}


def reasoning_item(made: str, thought: str, details: list[Any], terms: Terms) -> dict[str, Any]:
    """What the assistant thought. `encrypted_content` is the provider's own when it is of this dialect, else a seal."""
    summary = [{"type": "summary_text", "text": thought}] if thought else []
    own = next((mapping(one) for one in details if mapping(one).get("format") == reasoning.OPENAI), None)
    if own is not None and text(own.get("data")):
        return {
            "id": text(own.get("id")) or made,
            "type": "reasoning",
            "summary": summary,
            "encrypted_content": own["data"],
        }
    sealed = reasoning.seal(terms.family, details)
    return {"id": made, "type": "reasoning", "summary": summary, "encrypted_content": sealed}


def call_item(
    place: tuple[str, int],
    call_id: str,
    name: str,
    arguments: str,
    tools: Mapping[str, Tool],
    status: str = "completed",
) -> dict[str, Any]:
    """A tool call, by the name the caller's own tool has. `place` is the answer's id, and which of its items it is."""
    tool = tools.get(name, Tool(name))
    named: dict[str, Any] = {"call_id": call_id, "name": tool.name}
    if tool.namespace:
        named["namespace"] = tool.namespace
    if tool.kind == "tool_search":
        sought = arguments_of(arguments) or {}
        made = {"id": item_id("tsc", *place), "type": "tool_search_call", "status": status, "call_id": call_id}
        return {**made, "execution": "client", "arguments": sought}
    if tool.kind == "custom":
        said = unwrapped_input(arguments) if status == "completed" else ""
        return {"id": item_id("ctc", *place), "type": "custom_tool_call", "status": status, **named, "input": said}
    return {"id": item_id("fc", *place), "type": "function_call", "status": status, **named, "arguments": arguments}


def _parts(message: Mapping[str, Any], logprobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [mapping(part).get("text") for part in items(content)]
    said = [part for part in map(text, texts) if part]
    parts = [text_part(part) for part in said]
    if parts:
        parts[0] = text_part(said[0], to_responses(message.get("annotations")), items(logprobs.get("content")))
    if text(message.get("refusal")):
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    return parts
