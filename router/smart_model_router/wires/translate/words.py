"""The small words of the dialects, as tables: finish reasons, tool choices, token counts, and JSON in strings."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from smart_model_router.wires.values import count, decode, is_object, mapping

if TYPE_CHECKING:
    from collections.abc import Mapping


FINISH_OF_STOP: Mapping[str, str] = MappingProxyType(
    {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "pause_turn": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    }
)
"""Messages' stop_reason -> Chat's finish_reason."""

STOP_OF_FINISH: Mapping[str, str] = MappingProxyType(
    {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "function_call": "tool_use",
        "content_filter": "refusal",
    }
)
"""Chat's finish_reason -> Messages' stop_reason."""

INCOMPLETE_OF_FINISH: Mapping[str, str] = MappingProxyType(
    {"length": "max_output_tokens", "content_filter": "content_filter"}
)
"""Chat's finish_reason -> why a Responses answer is incomplete; every other one is complete."""

FINISH_OF_INCOMPLETE: Mapping[str, str] = MappingProxyType({v: k for k, v in INCOMPLETE_OF_FINISH.items()})

TOOL_ERROR = "[tool error]\n"
"""Chat and Responses have no `is_error`: a tool's failure is told to the model, and to us, by this first line."""

JSON_TOOL = "answer_in_json"
"""Messages has no JSON mode without a schema: the model is made to call this tool, and its input is the answer."""

FORMAT_NAME = "response"
"""Chat's schemas have a name, Messages' have none: this one says nothing."""

_TOOL_ID = re.compile(r"[^A-Za-z0-9_-]")


def arguments_of(text: object) -> dict[str, Any] | None:
    """The object in a tool call's `arguments` ("" is none at all); None when it is no object."""
    if text is None or (isinstance(text, str) and not text.strip()):
        return {}
    if not isinstance(text, str):
        return None
    value = decode(text.encode(errors="replace"))
    return value if is_object(value) else None


def tool_use_id(value: object) -> str:
    """A tool call's id as Messages allows it (letters, digits, - and _): the same in the call and in its result."""
    return _TOOL_ID.sub("_", value) if isinstance(value, str) and value else "call"


def chat_usage_of_messages(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Messages' token counts as Chat writes them: what was read from and written to the cache is prompt too."""
    read = count(usage.get("cache_read_input_tokens")) or 0
    written = count(usage.get("cache_creation_input_tokens")) or 0
    thinking = count(mapping(usage.get("output_tokens_details")).get("thinking_tokens")) or 0
    prompt = (count(usage.get("input_tokens")) or 0) + read + written
    return _chat_usage(prompt, count(usage.get("output_tokens")) or 0, read, written, thinking)


def chat_usage_of_responses(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Responses' token counts as Chat writes them."""
    cached = mapping(usage.get("input_tokens_details"))
    reasoning = count(mapping(usage.get("output_tokens_details")).get("reasoning_tokens")) or 0
    return _chat_usage(
        count(usage.get("input_tokens")) or 0,
        count(usage.get("output_tokens")) or 0,
        count(cached.get("cached_tokens")) or 0,
        count(cached.get("cache_write_tokens")) or 0,
        reasoning,
    )


def responses_usage_of_chat(value: object) -> dict[str, Any]:
    """Chat's token counts as Responses writes them."""
    usage = mapping(value)
    details = mapping(usage.get("prompt_tokens_details"))
    prompt, completion = count(usage.get("prompt_tokens")) or 0, count(usage.get("completion_tokens")) or 0
    return {
        "input_tokens": prompt,
        "input_tokens_details": {
            "cached_tokens": count(details.get("cached_tokens")) or count(usage.get("prompt_cache_hit_tokens")) or 0,
            "cache_write_tokens": count(details.get("cache_write_tokens")) or 0,
        },
        "output_tokens": completion,
        "output_tokens_details": {
            "reasoning_tokens": count(mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")) or 0
        },
        "total_tokens": prompt + completion,
    }


def _chat_usage(prompt: int, completion: int, read: int, written: int, reasoning: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
