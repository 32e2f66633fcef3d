"""Requests as SDK clients and frameworks send them: (client, dialect, body), written after recordings of real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from smart_model_router.domain.request import Dialect

HI = {"role": "user", "content": "hi"}
HI_TEXT = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
HI_INPUT = {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}
ADD: dict[str, Any] = {
    "properties": {"a": {"title": "A", "type": "integer"}, "b": {"title": "B", "type": "integer"}},
    "required": ["a", "b"],
    "title": "add_args",
    "type": "object",
    "additionalProperties": False,
}
ADD_FUNCTION = {"name": "add", "description": "Adds.", "parameters": ADD, "strict": True}
FORM: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
READ = {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {}}}
EPHEMERAL = {"type": "ephemeral"}

REQUESTS: list[tuple[str, Dialect, dict[str, Any]]] = [
    ("openai-sdk", "chat", {"messages": [HI]}),
    ("openai-sdk stream", "chat", {"messages": [HI], "stream": True}),
    ("openai-sdk usage", "chat", {"messages": [HI], "stream": True, "stream_options": {"include_usage": True}}),
    ("openai-sdk responses", "responses", {"input": "hi"}),
    ("openai-sdk responses stream", "responses", {"input": "hi", "stream": True}),
    ("anthropic-sdk", "messages", {"max_tokens": 50, "messages": [HI]}),
    ("anthropic-sdk stream", "messages", {"max_tokens": 50, "messages": [HI], "stream": True}),
    ("langchain", "chat", {"stream": False, "messages": [HI]}),
    ("langchain responses", "responses", {"stream": False, "input": [{**HI, "type": "message"}]}),
    ("langchain messages", "messages", {"max_tokens": 4096, "messages": [HI], "stream": True}),
    ("llm-cli", "messages", {"max_tokens": 8192, "messages": [HI_TEXT], "stream": True, "temperature": 1.0}),
    ("openai-agents", "chat", {"messages": [HI], "tools": [{"type": "function", "function": ADD_FUNCTION}]}),
    (
        "openai-agents responses",
        "responses",
        {"include": [], "input": [HI], "tools": [{"type": "function", **ADD_FUNCTION}]},
    ),
    ("openai-agents stream", "responses", {"stream": True, "include": [], "input": [HI], "tools": []}),
    ("pydantic-ai", "chat", {"stream": False, "messages": [HI]}),
    ("pydantic-ai responses", "responses", {"stream": True, "input": [HI]}),
    ("pydantic-ai messages", "messages", {"max_tokens": 16384, "messages": [HI_TEXT], "stream": False}),
    ("vercel-ai", "chat", {"messages": [HI], "stream": True, "stream_options": {"include_usage": True}}),
    (
        "vercel-ai object",
        "chat",
        {
            "messages": [HI],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"schema": FORM, "strict": True, "name": "response"},
            },
        },
    ),
    ("vercel-ai responses", "responses", {"input": [HI_INPUT], "stream": True}),
    ("vercel-ai messages", "messages", {"max_tokens": 4096, "messages": [HI_TEXT]}),
    (
        "a coding agent on messages",
        "messages",
        {
            "max_tokens": 32000,
            "stream": True,
            "metadata": {"user_id": "user_1"},
            "system": [{"type": "text", "text": "You code.", "cache_control": EPHEMERAL}],
            "thinking": {"type": "enabled", "budget_tokens": 31999},
            "tools": [READ],
            "messages": [
                HI_TEXT,
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "sig"},
                        {"type": "text", "text": "Reading."},
                        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}},
                        {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"path": "b"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"},
                        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "none", "is_error": True},
                        {"type": "text", "text": "Go on.", "cache_control": EPHEMERAL},
                    ],
                },
            ],
        },
    ),
    (
        "a coding agent on responses",
        "responses",
        {
            "instructions": "You code.",
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "session",
            "parallel_tool_calls": True,
            "reasoning": {"effort": "medium", "summary": "auto"},
            "tool_choice": "auto",
            "tools": [
                {"type": "function", **ADD_FUNCTION},
                {
                    "type": "namespace",
                    "name": "mcp",
                    "description": "Files.",
                    "tools": [{"type": "function", "name": "read"}],
                },
                {"type": "custom", "name": "apply_patch", "format": {"type": "text"}},
            ],
            "input": [
                {"type": "message", **HI_INPUT},
                {"type": "reasoning", "summary": [], "encrypted_content": "enc"},
                {"type": "function_call", "call_id": "call_1", "name": "read", "namespace": "mcp", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin"},
                {"type": "function_call_output", "call_id": "call_1", "output": "1"},
                {"type": "custom_tool_call_output", "call_id": "call_2", "output": "ok"},
            ],
        },
    ),
]

WHOLE: dict[Dialect, TypeAdapter[Any]] = {
    "chat": TypeAdapter(ChatCompletion),
    "messages": TypeAdapter(Message),
    "responses": TypeAdapter(Response),
}
EVENTS: dict[Dialect, TypeAdapter[Any]] = {
    "chat": TypeAdapter(ChatCompletionChunk),
    "messages": TypeAdapter(RawMessageStreamEvent),
    "responses": TypeAdapter(ResponseStreamEvent),
}
TOOL_IDS = {"a coding agent on messages": ["toolu_1", "toolu_2"], "a coding agent on responses": ["call_1", "call_2"]}


def told(body: Mapping[str, Any]) -> list[str]:
    """Every id of a tool call in a body, in order, each once."""
    found: list[str] = []
    waiting: list[Any] = [body]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, dict):
            calls = [value[key] for key in ("call_id", "tool_call_id", "tool_use_id") if key in value]
            found += [call for call in calls if call not in found]
            waiting = [*value.values(), *waiting]
        elif isinstance(value, list):
            waiting = [*value, *waiting]
    return found
