"""What clients say beyond the common subset, and where it is understood: caching, thinking, tools of every kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from smart_model_router.domain.request import Dialect
from smart_model_router.wires.outgoing import without_seals
from smart_model_router.wires.translate import Untranslatable, translate
from smart_model_router.wires.values import items, mapping
from tests.unit.wires.spoken_answers import CUSTOM, LOGPROB, SEARCHING, SPOKEN, TITLE, URL, Translated, translated
from tests.unit.wires.translating import SMALL, TERMS, chat_call, chat_tool, sent

MARK = {"type": "ephemeral", "ttl": "1h"}
NEWEST = replace(TERMS, newest_chat=True)
DROPPING = replace(TERMS, hosted_tools="drop")
BY_NAME = {case.name: case for case in translated()}

# ------------------------------------------------------------------------------------------- cache_control


def marks(value: Any, path: str = "") -> list[str]:
    """Where the mark is in a body."""
    if isinstance(value, dict):
        own = [path] if value.get("cache_control") == MARK else []
        return own + [found for key, inner in value.items() for found in marks(inner, f"{path}.{key}")]
    return [found for at, inner in enumerate(items(value)) for found in marks(inner, f"{path}[{at}]")]


TEXT = {"type": "text", "text": "a", "cache_control": MARK}
USER = {"role": "user", "content": "hi"}
CALL = chat_call("a", "f", "{}")
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "r"}


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"cache_control": MARK}, ""),
        ({"messages": [{"role": "system", "content": [TEXT]}, USER]}, ".system[0]"),
        ({"messages": [{"role": "system", "content": "s", "cache_control": MARK}, USER]}, ".system[0]"),
        ({"messages": [{**USER, "content": [TEXT]}]}, ".messages[0].content[0]"),
        ({"messages": [{**USER, "cache_control": MARK}]}, ".messages[0].content[0]"),
        (
            {
                "messages": [
                    {
                        **USER,
                        "content": [
                            {
                                "type": "image_url",
                                "image_url": {"url": "https://host.invalid/a.png"},
                                "cache_control": MARK,
                            }
                        ],
                    }
                ]
            },
            ".messages[0].content[0]",
        ),
        ({"messages": [USER, {"role": "assistant", "content": [TEXT]}]}, ".messages[1].content[0]"),
        ({"messages": [USER, CALLED, {**RESULT, "cache_control": MARK}]}, ".messages[2].content[0]"),
        ({"messages": [USER, CALLED, {**RESULT, "content": [TEXT]}]}, ".messages[2].content[0]"),
        (
            {"messages": [USER, {**CALLED, "tool_calls": [{**CALL, "cache_control": MARK}]}, RESULT]},
            ".messages[1].content[0]",
        ),
        ({"tools": [chat_tool("f"), {**chat_tool("g"), "cache_control": MARK}]}, ".tools[1]"),
        ({"tools": [{"type": "function", "function": {"name": "f", "cache_control": MARK}}]}, ".tools[0]"),
    ],
)
def test_a_mark_of_caching_is_messages_own(body: dict[str, Any], where: str) -> None:
    """Wherever LiteLLM, OpenRouter, aider and opencode put it; the content stays what it was; elsewhere it is lost."""
    made = sent("chat", "messages", **body)
    assert (marks(made.body), made.losses) == ([where], ())
    lost = sent("chat", "responses", **body)
    assert marks(lost.body) == []
    assert [loss for loss in lost.losses if "cache_control: dropped" in loss]


def test_a_marked_result_keeps_its_text_and_its_error() -> None:
    """Messages takes a mark on a tool's result alone; the text inside is as it was."""
    failed = {**RESULT, "content": [{**TEXT, "text": "[tool error]\nr"}]}
    made = sent("chat", "messages", messages=[USER, CALLED, failed])
    assert made.body["messages"][-1]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [{"type": "text", "text": "r"}],
            "cache_control": MARK,
            "is_error": True,
        }
    ]
    plain = sent("chat", "messages", messages=[USER, CALLED, {**RESULT, "cache_control": MARK}])
    assert plain.body["messages"][-1]["content"][0]["content"] == "r"


@pytest.mark.parametrize("mark", ["ephemeral", 1, True])
def test_a_mark_that_is_none_is_lost_by_name(mark: object) -> None:
    """It would be refused there; the request is served without it."""
    made = sent("chat", "messages", messages=[{**USER, "cache_control": mark}])
    assert made.losses == ("cache_control: dropped, an object is needed",)


def test_the_mark_of_a_message_that_says_nothing_is_told() -> None:
    """There is no block that could bear it."""
    made = sent("chat", "messages", messages=[USER, {"role": "assistant", "content": "", "cache_control": MARK}, USER])
    assert made.losses == ("cache_control: dropped, its message says nothing",)


# ------------------------------------------------------------------------------------------- thinking, logprobs


@pytest.mark.parametrize("thinking", [{"type": "enabled", "budget_tokens": 2000}, {"type": "disabled"}])
def test_thinking_is_messages_own(thinking: dict[str, Any]) -> None:
    """As it was said, whatever is known of the target; elsewhere it is lost."""
    for terms in (TERMS, replace(TERMS, reasoning=False)):
        made = sent("chat", "messages", terms, thinking=thinking)
        assert (made.body["thinking"], made.losses) == (thinking, ())
    assert sent("chat", "responses", thinking=thinking).losses == (
        "thinking: dropped, Responses has no such parameter",
    )


def test_a_budget_of_thoughts_is_beside_the_cap_that_we_set() -> None:
    """Messages refuses a cap that the thoughts alone would fill."""
    thinking = {"type": "enabled", "budget_tokens": 20_000}
    made = sent("chat", "messages", thinking=thinking, max_tokens=None)
    assert made.body["max_tokens"] == 28_192


def test_logprobs_are_asked_for_in_the_words_of_responses() -> None:
    """`include` and `top_logprobs`, and back again for OpenAI's own Chat; others reject what they do not know."""
    made = sent("chat", "responses", logprobs=True, top_logprobs=3)
    assert (made.body["include"], made.body["top_logprobs"], made.losses) == (
        ["reasoning.encrypted_content", "message.output_text.logprobs"],
        3,
        (),
    )
    asked: dict[str, Any] = {"include": ["message.output_text.logprobs"], "top_logprobs": 3}
    back = sent("responses", "chat", NEWEST, **asked)
    assert (back.body["logprobs"], back.body["top_logprobs"], back.losses) == (True, 3, ())
    other = sent("responses", "chat", **asked)
    assert {"logprobs", "top_logprobs"}.isdisjoint(other.body)
    assert [loss.partition(":")[0] for loss in other.losses] == ["include", "top_logprobs"]
    assert sent("chat", "messages", logprobs=True).losses == ("logprobs: dropped, Messages has no such parameter",)


def test_logprobs_come_back_whole_and_streamed() -> None:
    """Token by token, with the alternatives; Chat's bytes are null where a stream does not say them."""
    chat = BY_NAME["logprobs of Responses, asked in chat"]
    assert chat.whole["choices"][0]["logprobs"] == {"content": [LOGPROB], "refusal": None}
    (streamed,) = [choice["logprobs"] for event in chat.events for choice in event["choices"] if "logprobs" in choice]
    assert [held["token"] for held in streamed["content"]] == ["Hi"]
    assert streamed["content"][0]["bytes"] is None
    responses = BY_NAME["logprobs, asked in responses"]
    assert responses.whole["output"][0]["content"][0]["logprobs"] == [LOGPROB]
    deltas = [event for event in responses.events if event["type"] == "response.output_text.delta"]
    assert deltas[0]["logprobs"] == [
        {"token": "Hi", "logprob": -0.1, "top_logprobs": [{"token": "Hi", "logprob": -0.1}]}
    ]
    assert responses.events[-1]["response"]["output"] == [
        {**responses.whole["output"][0], "id": responses.events[-1]["response"]["output"][0]["id"]}
    ]


# ------------------------------------------------------------------------------------------- custom tools


def test_custom_tools_are_those_of_responses() -> None:
    """The tool, its grammar, the choice of it, calls and their results, in the conversation."""
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: A"}}
    called = {"id": "a", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    made = sent(
        "chat",
        "responses",
        tools=[{"type": "custom", "custom": {"name": "patch", "description": "Edits.", "format": grammar}}],
        tool_choice={"type": "custom", "custom": {"name": "patch"}},
        messages=[USER, {"role": "assistant", "content": None, "tool_calls": [called, CALL]}, RESULT],
    )
    assert made.losses == ()
    assert made.body["tools"] == [
        {
            "type": "custom",
            "name": "patch",
            "description": "Edits.",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: A"},
        }
    ]
    assert made.body["tool_choice"] == {"type": "custom", "name": "patch"}
    assert [item["type"] for item in made.body["input"][1:]] == [
        "custom_tool_call",
        "function_call",
        "custom_tool_call_output",
    ]
    assert made.body["input"][1] == {
        "type": "custom_tool_call",
        "call_id": "a",
        "name": "patch",
        "input": "*** Begin",
    }


def test_a_custom_call_comes_back_whole_and_streamed() -> None:
    """As a custom call, that Chat's clients call their own tool with."""
    case = BY_NAME["a custom call, asked in chat"]
    call = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    choice = case.whole["choices"][0]
    assert (choice["message"]["tool_calls"], choice["finish_reason"]) == ([call], "tool_calls")
    deltas = [one["delta"] for event in case.events for one in event["choices"]]
    assert [one["tool_calls"] for one in deltas if "tool_calls" in one] == [[{"index": 0, **call}]]
    assert case.losses == ()


# ------------------------------------------------------------------------------------------- web search

PLACE = {"type": "approximate", "city": "Oslo", "country": "NO"}


def test_a_search_goes_from_responses_to_messages() -> None:
    """Domains, place and the cap on calls; what a search of Messages cannot say is named."""
    tool = {"type": "web_search", "filters": {"allowed_domains": ["a.invalid"]}, "user_location": PLACE}
    made = sent("responses", "messages", tools=[tool], max_tool_calls=3, tool_choice={"type": "web_search"})
    assert made.body["tools"] == [
        {
            "type": "web_search_20250305",
            "name": "web_search",
            "allowed_domains": ["a.invalid"],
            "max_uses": 3,
            "user_location": PLACE,
        }
    ]
    assert (made.body["tool_choice"], made.losses) == ({"type": "tool", "name": "web_search"}, ())
    cached = {**tool, "external_web_access": False, "search_context_size": "high"}
    assert [loss.partition(":")[0] for loss in sent("responses", "messages", tools=[cached]).losses] == [
        "web_search.external_web_access",
        "web_search.search_context_size",
    ]


@pytest.mark.parametrize("version", ["web_search_20250305", "web_search_20260209"])
def test_a_search_goes_from_messages_to_responses(version: str) -> None:
    """The same the other way; a list of domains that must not be asked is not left out."""
    tool = {
        "type": version,
        "name": "web_search",
        "max_uses": 3,
        "allowed_domains": ["a.invalid"],
        "user_location": PLACE,
    }
    choice = {"type": "tool", "name": "web_search"}
    made = sent("messages", "responses", tools=[tool, {"name": "f", "input_schema": {}}], tool_choice=choice)
    assert made.body["tools"][1] == {
        "type": "web_search",
        "filters": {"allowed_domains": ["a.invalid"]},
        "user_location": PLACE,
    }
    assert (made.body["max_tool_calls"], made.body["tool_choice"]) == (3, {"type": "web_search"})
    assert made.losses == ()
    blocking = translate(
        "messages", "responses", {**SMALL["messages"], "tools": [{**tool, "blocked_domains": ["b.invalid"]}]}, TERMS
    )
    assert isinstance(blocking, Untranslatable)
    assert "blocked_domains" in str(blocking)


@pytest.mark.parametrize("goal", ["messages", "responses"])
def test_chat_s_own_search_goes_to_both(goal: Dialect) -> None:
    """`web_search_options` is Chat's word for it; the answer's citations are Chat's annotations."""
    place = {"type": "approximate", "approximate": {"city": "Oslo", "country": "NO"}}
    made = sent("chat", goal, web_search_options={"user_location": place})
    (tool,) = made.body["tools"]
    assert (tool["type"].startswith("web_search"), tool["user_location"], made.losses) == (True, PLACE, ())


def _responses_items(case: Translated) -> list[list[dict[str, Any]]]:
    return [case.whole["output"], case.events[-1]["response"]["output"]]


def test_what_messages_found_is_told_in_responses() -> None:
    """The search with its query and its sources, then the text with its citation, whole and streamed."""
    case = BY_NAME["a search of Messages, asked in responses"]
    assert case.losses == ()
    for search, said in _responses_items(case):
        assert (search["type"], search["id"], search["status"]) == ("web_search_call", "ws_m1_0", "completed")
        assert (search["action"]["query"], search["action"]["sources"]) == ("q", [{"type": "url", "url": URL}])
        (part,) = said["content"]
        assert part["annotations"] == [
            {"type": "url_citation", "start_index": 0, "end_index": 2, "url": URL, "title": TITLE}
        ]
    kinds = [event["type"] for event in case.events]
    assert [kind for kind in kinds if "web_search" in kind or "annotation" in kind] == [
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
        "response.output_text.annotation.added",
    ]
    failed = BY_NAME["a failed search of Messages, asked in responses"]
    assert [search["status"] for search, _ in _responses_items(failed)] == ["failed", "failed"]


def _blocks(case: Translated) -> list[list[dict[str, Any]]]:
    streamed: dict[int, dict[str, Any]] = {}
    for event in case.events:
        if event["type"] == "content_block_start":
            assert event["index"] == len(streamed)
            streamed[event["index"]] = {**event["content_block"]}
        elif event["type"] == "content_block_delta":
            block, delta = streamed[event["index"]], event["delta"]
            if delta["type"] == "citations_delta":
                block["citations"] = [*block["citations"], delta["citation"]]
            elif delta["type"] == "text_delta":
                block["text"] += delta["text"]
    return [case.whole["content"], list(streamed.values())]


def test_what_responses_found_is_told_in_messages() -> None:
    """Two blocks for the search, then the text with its citation; the usage counts it."""
    case = BY_NAME["a search of Responses, asked in messages"]
    assert case.losses == ()
    for used, found, said in _blocks(case):
        assert (used["type"], used["name"]) == ("server_tool_use", "web_search")
        assert (found["type"], found["tool_use_id"]) == ("web_search_tool_result", used["id"])
        assert [result["url"] for result in found["content"]] == [URL]
        (citation,) = said["citations"]
        assert (citation["url"], citation["cited_text"]) == (URL, "Hi")
    assert case.whole["usage"]["server_tool_use"]["web_search_requests"] == 1
    assert case.events[-2]["usage"]["server_tool_use"]["web_search_requests"] == 1


def test_citations_reach_chat_from_both() -> None:
    """Chat has a place for citations of the web; the search itself has none there."""
    for name in ("a search of Messages", "a search of Responses"):
        case = BY_NAME[f"{name}, asked in chat"]
        (annotation,) = case.whole["choices"][0]["message"]["annotations"]
        wanted = {"start_index": 0, "end_index": 2, "url": URL, "title": TITLE}
        assert annotation == {"type": "url_citation", "url_citation": wanted}
        deltas = [choice["delta"] for event in case.events for choice in event["choices"]]
        assert [one["annotations"] for one in deltas if "annotations" in one] == [[annotation]]
        assert len(case.losses) > 0


def test_what_another_provider_found_is_no_word_of_anthropic_s() -> None:
    """An answer that we made of Responses' search goes back to Messages without what only Messages can sign."""
    case = BY_NAME["a search of Responses, asked in messages"]
    body = {"messages": [{"role": "assistant", "content": case.whole["content"]}]}
    assert without_seals("messages", body) == {
        "messages": [{"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}]
    }


@pytest.mark.parametrize(
    ("asked", "goal", "turn"),
    [
        ("responses", "chat", SPOKEN[-2].whole["output"]),
        ("responses", "messages", SPOKEN[-2].whole["output"]),
        ("messages", "chat", SPOKEN[8].whole["content"]),
        ("messages", "responses", SPOKEN[8].whole["content"]),
    ],
)
def test_the_turn_after_a_search_is_served(asked: Dialect, goal: Dialect, turn: list[dict[str, Any]]) -> None:
    """What was said stays; that a search was made, with results nobody else can read, is a named loss."""
    more: dict[str, Any] = (
        {"input": [USER, *turn, USER]}
        if asked == "responses"
        else {"messages": [USER, {"role": "assistant", "content": turn}, USER]}
    )
    made = sent(asked, goal, **more)
    assert "Hi" in str(made.body)
    assert [loss for loss in made.losses if loss.startswith("web_search: a search that was made is left out")]


# ------------------------------------------------------------------------------------------- hosted tools


@pytest.mark.parametrize(
    ("asked", "tool"),
    [
        ("responses", {"type": "web_search"}),
        ("responses", {"type": "file_search", "vector_store_ids": ["v"]}),
        ("responses", {"type": "mcp", "server_label": "s"}),
        ("messages", {"type": "web_search_20250305", "name": "web_search"}),
        ("messages", {"type": "code_execution_20250825", "name": "code_execution"}),
    ],
)
def test_hosted_tools_toward_chat_are_dropped_or_refused(asked: Dialect, tool: dict[str, Any]) -> None:
    """As the configuration of the provider says; the refusal names the key."""
    refused = translate(asked, "chat", {**SMALL[asked], "tools": [tool]}, TERMS)
    assert isinstance(refused, Untranslatable)
    assert "hosted_tools: drop" in str(refused)
    made = sent(asked, "chat", DROPPING, tools=[tool])
    assert "tools" not in made.body
    assert [loss for loss in made.losses if loss.startswith(f"tools: a tool of type {tool['type']!r} is dropped")]


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        ("responses", {"tools": [{"type": "web_search"}], "tool_choice": "required"}),
        (
            "responses",
            {
                "tools": [{"type": "web_search"}, {"type": "function", "name": "f"}],
                "tool_choice": {"type": "web_search"},
            },
        ),
        ("messages", {**SEARCHING["messages"], "tool_choice": {"type": "tool", "name": "web_search"}}),
        ("messages", {**SEARCHING["messages"], "tool_choice": {"type": "any"}}),
    ],
)
def test_a_dropped_tool_that_must_be_called_refuses(asked: Dialect, more: dict[str, Any]) -> None:
    """The request would mean something else without it."""
    made = translate(asked, "chat", {**SMALL[asked], **more}, DROPPING)
    assert isinstance(made, Untranslatable)


@pytest.mark.parametrize(
    ("asked", "tool"),
    [("messages", {"type": "bash_20250124", "name": "bash"}), ("responses", {"type": "local_shell"})],
)
def test_a_client_s_own_tools_are_never_dropped(asked: Dialect, tool: dict[str, Any]) -> None:
    """Tools that the client runs, with a schema that only the provider knows, are no hosted ones."""
    assert isinstance(translate(asked, "chat", {**SMALL[asked], "tools": [tool]}, DROPPING), Untranslatable)


def test_the_pairs_of_tests_are_there() -> None:
    """The answers that the tests above name by their places."""
    assert (SPOKEN[-2].name, SPOKEN[8].name) == ("a search of Responses", "a search of Messages")
    assert mapping(CUSTOM["custom"]) == {"name": "patch"}
