"""A body without its tools: nothing asks for a call any more, and what was called is told in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router.domain.request import Dialect, peek
from smart_model_router.wires.untooled import without_tools

CALLED = {"name": "weather", "arguments": '{"at": "Rome"}'}
GONE = ("tool_calls", '"tool"', "tool_use", "tool_result", '"tools"', "tool_choice", '"function_call', "parallel")
CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "The weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": CALLED}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ],
    "tools": [{"type": "function", "function": {"name": "weather"}}],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "temperature": 0.5,
}
MESSAGES: dict[str, Any] = {
    "max_tokens": 10,
    "messages": [
        {"role": "user", "content": "The weather?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"at": "Rome"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "sunny"}]},
    ],
    "tools": [{"name": "weather", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "any"},
}
RESPONSES: dict[str, Any] = {
    "input": [
        {"role": "user", "content": "The weather?"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"at": "Rome"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
    ],
    "tools": [{"type": "function", "name": "weather"}],
}


@pytest.mark.parametrize(
    ("dialect", "body"), [("chat", CHAT), ("messages", MESSAGES), ("responses", RESPONSES)], ids=str
)
def test_calls_and_results_stay_as_text(dialect: Dialect, body: dict[str, Any]) -> None:
    """The name, the arguments and the result are there to be read; no key or part of a call is left."""
    before = json.dumps(body)
    made = without_tools(dialect, body)
    written = json.dumps(made)
    assert '[called weather with {\\"at\\": \\"Rome\\"}]' in written
    assert "[result of weather: sunny]" in written
    assert [gone for gone in GONE if gone in written] == []
    assert json.dumps(body) == before
    assert peek(dialect, {"model": "m", **made}).needs == frozenset()


def test_everything_else_stays_as_it_is() -> None:
    """Messages without calls, other settings, and shapes that are not understood."""
    odd = {"messages": ["text", {"role": "user", "content": [{"type": "text", "text": "hi"}]}], "temperature": 1}
    assert without_tools("chat", odd) == odd
    assert without_tools("messages", odd) == odd
    assert without_tools("responses", {"input": "hello", "tools": []}) == {"input": "hello"}


def test_the_functions_of_old_clients_are_tools() -> None:
    """`functions` and `function_call`, and a result by its name."""
    body = {
        "functions": [{"name": "weather"}],
        "messages": [
            {"role": "assistant", "content": "I look.", "function_call": {"name": "weather", "arguments": "{}"}},
            {"role": "function", "name": "weather", "content": [{"type": "text", "text": "sunny"}]},
        ],
    }
    assert without_tools("chat", body) == {
        "messages": [
            {"role": "assistant", "content": "I look.\n[called weather with {}]"},
            {"role": "user", "content": "[result of weather: sunny]"},
        ]
    }


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
RESULTS: dict[str, tuple[Dialect, dict[str, Any], list[dict[str, Any]]]] = {
    "chat": (
        "chat",
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "seen"}, {"type": "image_url"}]},
        [{"type": "text", "text": "[result of a tool: seen]"}, {"type": "image_url"}],
    ),
    "messages": (
        "messages",
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [
                        {"type": "text", "text": "seen"},
                        PICTURE,
                        {"type": "tool_reference", "tool_name": "weather"},
                    ],
                },
                {"type": "text", "text": "And now?"},
            ],
        },
        [{"type": "text", "text": "[result of a tool: seen]"}, PICTURE, {"type": "text", "text": "And now?"}],
    ),
    "responses": (
        "responses",
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": "data:,"}],
        },
        [{"type": "input_text", "text": "[result of a tool: seen]"}, {"type": "input_image", "image_url": "data:,"}],
    ),
}


@pytest.mark.parametrize(("dialect", "entry", "told"), RESULTS.values(), ids=RESULTS.keys())
def test_pictures_and_files_of_a_result_stay(
    dialect: Dialect, entry: dict[str, Any], told: list[dict[str, Any]]
) -> None:
    """They follow its text; a last resort that sees, and calls nothing, is shown what the tool showed."""
    key = "input" if dialect == "responses" else "messages"
    assert without_tools(dialect, {key: [entry]}) == {key: [{"role": "user", "content": told}]}
