"""Answers in another dialect: content, reasons to end, token counts, and what is lost of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from smart_model_router.domain.request import Dialect
from smart_model_router.wires import ANSWER_READERS
from tests.unit.wires.translating import answered, chat_answer, chat_call, chat_tool, messages_answer

TEXT = {"type": "text", "text": "Hi"}


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("a_new_word", "stop"),
    ],
)
def test_why_messages_ended(stop: str, finish: str) -> None:
    """A refusal is a filter's, a full context is a length; a word nobody knows is an ordinary end."""
    made, _ = answered("chat", "messages", messages_answer(TEXT, stop=stop))
    assert made["choices"][0]["finish_reason"] == finish


@pytest.mark.parametrize(
    ("finish", "calls", "stop"),
    [
        ("stop", False, "end_turn"),
        ("length", False, "max_tokens"),
        ("content_filter", False, "refusal"),
        ("tool_calls", True, "tool_use"),
        ("stop", True, "tool_use"),
        ("eos", False, "end_turn"),
    ],
)
def test_why_chat_ended(finish: str, calls: bool, stop: str) -> None:
    """A provider that says `stop` after a tool call still means the call."""
    message = {"content": "x", **({"tool_calls": [chat_call("a", "f", "{}")]} if calls else {})}
    made, _ = answered("messages", "chat", chat_answer(message, finish))
    assert made["stop_reason"] == stop


@pytest.mark.parametrize(
    ("finish", "status", "why"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
    ],
)
def test_why_responses_ended(finish: str, status: str, why: dict[str, str] | None) -> None:
    """What the cap or a filter cut short is incomplete, and says why; and the same on the way back."""
    made, _ = answered("responses", "chat", chat_answer({"content": "x"}, finish))
    assert (made["status"], made["incomplete_details"]) == (status, why)
    assert answered("chat", "responses", made)[0]["choices"][0]["finish_reason"] == finish


def test_what_the_cache_gave_and_took_is_prompt() -> None:
    """prompt_tokens = input + cache read + cache write, and each of them comes back."""
    usage = {
        "input_tokens": 1,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 300,
        "output_tokens": 4,
        "output_tokens_details": {"thinking_tokens": 2},
    }
    made, _ = answered("chat", "messages", messages_answer(TEXT, usage=usage))
    assert made["usage"] == {
        "prompt_tokens": 321,
        "completion_tokens": 4,
        "total_tokens": 325,
        "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 300},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    again, _ = answered("messages", "chat", made)
    assert {key: value for key, value in again["usage"].items() if value is not None} == usage
    responses, _ = answered("responses", "messages", messages_answer(TEXT, usage=usage))
    assert responses["usage"]["input_tokens_details"] == {"cached_tokens": 20, "cache_write_tokens": 300}
    assert answered("chat", "responses", responses)[0]["usage"] == made["usage"]


def test_counts_that_make_no_sense_are_none() -> None:
    """More cached than there was is not believed, and no count is ever negative."""
    usage = {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 9, "cache_write_tokens": 9}}
    made, _ = answered("messages", "chat", chat_answer({"content": "x"}, usage=usage))
    assert {key: value for key, value in made["usage"].items() if value is not None} == {
        "input_tokens": 0,
        "output_tokens": 0,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 0,
    }


FIELDS = {
    "messages": "id type role content model stop_reason stop_sequence stop_details usage container",
    "usage": "cache_creation cache_creation_input_tokens cache_read_input_tokens inference_geo input_tokens "
    "output_tokens output_tokens_details server_tool_use service_tier",
    "text": "citations text type",
    "tool_use": "caller id input name type",
    "responses": "id object created_at completed_at status incomplete_details model previous_response_id instructions "
    "output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty "
    "top_logprobs temperature reasoning usage max_output_tokens max_tool_calls store background service_tier metadata "
    "safety_identifier prompt_cache_key",
    "function": "type name description parameters strict",
}
"""The required fields of Anthropic's and of Open Responses' own schemas, which `make comply` has in full."""


def missing(schema: str, value: Mapping[str, Any]) -> set[str]:
    """Required fields that are not there."""
    return set(FIELDS[schema].split()) - set(value)


def test_a_messages_answer_has_every_field_of_its_schema() -> None:
    """Also those that say nothing: clients with strict models read it."""
    message = {"content": "x", "tool_calls": [chat_call("a", "f", "{}")]}
    made, _ = answered("messages", "chat", chat_answer(message, "tool_calls"))
    said, called = made["content"]
    assert not missing("messages", made) | missing("usage", made["usage"])
    assert not missing("text", said) | missing("tool_use", called)


def test_a_responses_answer_has_every_field_of_its_schema() -> None:
    """What the request left out is said as the service would have decided; what it gave is repeated in full."""
    tools = [{"type": "function", "name": "f"}, {"type": "custom", "name": "g"}]
    asked = {"tools": tools, "text": {"verbosity": "low"}, "reasoning": {"effort": "low"}, "top_p": 0.5}
    made, _ = answered("responses", "chat", chat_answer({"content": "x"}), **asked)
    assert not missing("responses", made) | missing("function", made["tools"][0])
    assert made["tools"][1] == tools[1]
    assert made["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    assert made["reasoning"] == {"effort": "low", "summary": None}
    assert (made["temperature"], made["top_p"]) == (1.0, 0.5)


@pytest.mark.parametrize(("asked", "prefix"), [("chat", "chatcmpl-"), ("messages", "msg_"), ("responses", "resp_")])
@pytest.mark.parametrize("given", ["chatcmpl-7", "msg_7", "resp_7", "7"])
def test_an_id_begins_as_its_dialect_s_do(asked: Dialect, prefix: str, given: str) -> None:
    """The provider's own, so that it can be found in its logs, under the beginning that clients look for."""
    spoken: Dialect = "chat" if asked != "chat" else "messages"
    bodies = {"chat": chat_answer({"content": "x"}), "messages": messages_answer(TEXT)}
    made, _ = answered(asked, spoken, {**bodies[spoken], "id": given})
    assert made["id"] == f"{prefix}7"


def test_a_refusal_says_why() -> None:
    """Messages explains a refusal beside the content; in Chat it is the refusal."""
    details = {"type": "refusal", "explanation": "Not that."}
    made, _ = answered("chat", "messages", messages_answer(TEXT, stop="refusal", stop_details=details))
    assert made["choices"][0]["message"]["refusal"] == "Not that."


@pytest.mark.parametrize("asked", ["messages", "responses"])
def test_a_refusal_in_chat_is_not_lost(asked: Dialect) -> None:
    """Whoever asked sees the words of the refusal."""
    made, _ = answered(asked, "chat", chat_answer({"content": None, "refusal": "Not that."}))
    assert "Not that." in str(made)
    assert not ANSWER_READERS[asked](made).empty


def test_json_mode_is_a_tool_in_messages() -> None:
    """Messages has no JSON without a schema: the input of a forced tool comes back as the text."""
    block = {"type": "tool_use", "id": "a", "name": "answer_in_json", "input": {"a": [1]}}
    body = messages_answer(block, stop="tool_use")
    made, _ = answered("chat", "messages", body, response_format={"type": "json_object"})
    choice = made["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ('{"a":[1]}', "stop")
    assert "tool_calls" not in choice["message"]


def test_arguments_that_are_no_object_are_not_lost() -> None:
    """A model's broken arguments reach the caller, who may show them to it."""
    message = {"content": None, "tool_calls": [chat_call("a", "f", '{"a":')]}
    made, losses = answered("messages", "chat", chat_answer(message, "tool_calls"), tools=[])
    (block,) = made["content"]
    assert (block["type"], block["id"], block["name"]) == ("tool_use", "a", "f")
    assert block["input"] == {"arguments": '{"a":'}
    assert losses == ("tool_calls: arguments that are no JSON object are handed on as `arguments`",)


def test_what_chat_has_no_place_for_is_told() -> None:
    """Citations and blocks of other kinds are left out of the answer, and the report says so."""
    cited = {**TEXT, "citations": [{"type": "char_location"}]}
    _, losses = answered("chat", "messages", messages_answer(cited, {"type": "server_tool_use"}))
    assert losses == (
        "citations: dropped from the answer, Chat has no place for them",
        "content: a block of type 'server_tool_use' is dropped from the answer",
    )
    annotated = {"type": "output_text", "text": "x", "annotations": [{"type": "url_citation"}]}
    output = [{"type": "message", "content": [annotated]}, {"type": "web_search_call"}]
    _, losses = answered("chat", "responses", {"id": "r", "status": "completed", "output": output})
    assert [loss.partition(":")[0] for loss in losses] == ["annotations", "output"]


def test_a_responses_answer_repeats_what_was_asked() -> None:
    """Its clients read tools, settings and instructions from it; it is never kept."""
    asked: dict[str, Any] = {"instructions": "Be brief.", "temperature": 0.5, "metadata": {"a": "b"}}
    made, _ = answered("responses", "chat", chat_answer({"content": "x"}), **asked)
    assert {key: made[key] for key in asked} == asked
    assert (made["id"], made["object"], made["store"], made["created_at"]) == ("resp_c1", "response", False, 7)


def test_calls_go_back_to_the_tools_that_were_given() -> None:
    """A namespace and free text are restored from the names of the functions that stood for them."""
    tools: list[dict[str, Any]] = [
        {"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "read"}]},
        {"type": "custom", "name": "patch"},
    ]
    calls = [chat_call("a", "mcp__read", "{}"), chat_call("b", "patch", '{"input":"x"}'), chat_call("c", "patch", "y")]
    made, _ = answered("responses", "chat", chat_answer({"content": None, "tool_calls": calls}), tools=tools)
    read, patch, odd = made["output"]
    assert (read["type"], read["namespace"], read["name"]) == ("function_call", "mcp", "read")
    assert (patch["type"], patch["name"], patch["input"]) == ("custom_tool_call", "patch", "x")
    assert odd["input"] == "y"


def test_a_search_for_tools_goes_back_as_one() -> None:
    """The function that stood for the client's own search is its search again, its arguments an object."""
    tools = [{"type": "tool_search", "execution": "client", "parameters": {"type": "object"}}]
    calls = [chat_call("a", "tool_search", '{"query":"calendar"}'), chat_call("b", "tool_search", "calendar")]
    made, _ = answered("responses", "chat", chat_answer({"content": None, "tool_calls": calls}), tools=tools)
    assert [(item["type"], item["call_id"], item["execution"]) for item in made["output"]] == [
        ("tool_search_call", "a", "client"),
        ("tool_search_call", "b", "client"),
    ]
    assert [item["arguments"] for item in made["output"]] == [{"query": "calendar"}, {}]


def test_parallel_calls_keep_ids_and_order() -> None:
    """Three calls in one answer are three calls everywhere."""
    calls = [chat_call(name, "f", "{}") for name in ("a", "b", "c")]
    body = chat_answer({"content": None, "tool_calls": calls}, "tool_calls")
    messages, _ = answered("messages", "chat", body, tools=[])
    responses, _ = answered("responses", "chat", body, tools=[])
    assert [block["id"] for block in messages["content"]] == ["a", "b", "c"]
    assert [item["call_id"] for item in responses["output"]] == ["a", "b", "c"]
    back, _ = answered("chat", "messages", messages, tools=[chat_tool("f")])
    assert back["choices"][0]["message"]["tool_calls"] == calls
