"""Requests in another dialect: what becomes of each part, what is lost and said so, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.domain.request import Dialect
from smart_model_router.wires.translate import Terms
from tests.unit.wires.translating import SMALL, chat_call, chat_tool, refused, sent

USER = {"role": "user", "content": "hi"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}

# ------------------------------------------------------------------------------------------- refusals

REFUSALS: list[tuple[str, Dialect, Dialect, dict[str, Any]]] = [
    ("n", "chat", "messages", {"n": 2}),
    ("functions", "chat", "responses", {"functions": [{"name": "f"}]}),
    ("audio", "chat", "messages", {"audio": {"voice": "x"}}),
    ("custom tool", "chat", "messages", {"tools": [{"type": "custom", "custom": {"name": "f"}}]}),
    ("audio part", "chat", "messages", {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
    (
        "file of the provider",
        "chat",
        "messages",
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]},
    ),
    (
        "file of another type",
        "chat",
        "messages",
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": "data:a/b;base64,AA=="}}]}]},
    ),
    (
        "image of another scheme",
        "chat",
        "messages",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "ftp://x"}}]}]},
    ),
    ("grammar", "chat", "messages", {"response_format": {"type": "grammar"}}),
    ("no schema", "chat", "messages", {"response_format": {"type": "json_schema", "json_schema": {}}}),
    (
        "JSON mode with tools",
        "chat",
        "messages",
        {"response_format": {"type": "json_object"}, "tools": [chat_tool("f")]},
    ),
    ("only a system message", "chat", "messages", {"messages": [{"role": "system", "content": "s"}]}),
    ("a role of its own", "chat", "messages", {"messages": [USER, {"role": "function", "content": "x"}]}),
    (
        "arguments that are no object",
        "chat",
        "messages",
        {"messages": [USER, {"role": "assistant", "tool_calls": [chat_call("a", "f", "[1]")]}]},
    ),
    ("server tool", "messages", "chat", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
    ("container", "messages", "chat", {"container": "c1"}),
    ("MCP servers", "messages", "chat", {"mcp_servers": [{"name": "x"}]}),
    (
        "uploaded image",
        "messages",
        "chat",
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}]},
    ),
    (
        "document by link",
        "messages",
        "chat",
        {"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "x"}}]}]},
    ),
    (
        "search result",
        "messages",
        "responses",
        {"messages": [{"role": "user", "content": [{"type": "search_result"}]}]},
    ),
    ("state", "responses", "chat", {"previous_response_id": "resp_1"}),
    ("conversation", "responses", "messages", {"conversation": "conv_1"}),
    ("background", "responses", "chat", {"background": True}),
    ("stored prompt", "responses", "chat", {"prompt": {"id": "p"}}),
    ("hosted tool", "responses", "chat", {"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}),
    ("search for tools at the provider", "responses", "chat", {"tools": [{"type": "tool_search"}]}),
    ("found by the provider", "responses", "chat", {"input": [{"type": "tool_search_output", "tools": []}]}),
    ("reference to an item", "responses", "chat", {"input": [{"type": "item_reference", "id": "i"}]}),
    (
        "uploaded file",
        "responses",
        "chat",
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
    ),
    (
        "two tools of one name",
        "responses",
        "chat",
        {"tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "f"}]},
    ),
]


@pytest.mark.parametrize(("asked", "goal", "more"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_what_would_mean_something_else_is_refused(asked: Dialect, goal: Dialect, more: dict[str, Any]) -> None:
    """A file, a schema, a tool, an image or state that the other dialect has no word for refuses the target."""
    assert str(refused(asked, goal, **more))


# ------------------------------------------------------------------------------------------- losses

LOSSES: list[tuple[Dialect, Dialect, dict[str, Any], str]] = [
    ("chat", "messages", {"seed": 1}, "seed: dropped, Messages has no such parameter"),
    ("chat", "messages", {"logprobs": True}, "logprobs: dropped, Messages has no such parameter"),
    ("chat", "messages", {"max_tokens": None}, "max_tokens: 8192, Messages needs a cap and none was asked"),
    ("chat", "messages", {"temperature": 1.5}, "temperature: lowered to 1, the most that Messages takes"),
    ("chat", "responses", {"stop": ["x"]}, "stop: dropped, Responses has no such parameter"),
    ("messages", "chat", {"top_k": 5}, "top_k: dropped, Chat has no such parameter"),
    ("messages", "chat", {"stop_sequences": list("abcde")}, "stop_sequences: only the first 4 are kept"),
    (
        "messages",
        "chat",
        {"metadata": {"user_id": "u" * 65}},
        "metadata.user_id: dropped, longer than 64 characters",
    ),
    (
        "messages",
        "chat",
        {"messages": [USER, {"role": "assistant", "content": "Once"}]},
        "messages: the answer may not go on where the last message ends, as it would in Messages",
    ),
    (
        "messages",
        "chat",
        {"thinking": {"type": "enabled", "budget_tokens": 9000}},
        "thinking: a budget of 9000 tokens is asked for as effort 'medium'",
    ),
    ("responses", "chat", {"max_tool_calls": 3}, "max_tool_calls: dropped, Chat has no such parameter"),
]


@pytest.mark.parametrize(("asked", "goal", "more", "told"), LOSSES)
def test_what_is_lost_is_told(asked: Dialect, goal: Dialect, more: dict[str, Any], told: str) -> None:
    """Every parameter that the other dialect lacks, or takes less of, is in the loss report."""
    assert sent(asked, goal, **more).losses == (told,)


HARMLESS: list[tuple[Dialect, Dialect, dict[str, Any]]] = [
    ("chat", "messages", {"n": 1, "store": False, "logprobs": False, "presence_penalty": 0, "seed": None}),
    ("chat", "responses", {"n": 1, "functions": [], "modalities": ["text"]}),
    ("responses", "chat", {"store": False, "include": [], "truncation": "disabled", "background": False}),
]


@pytest.mark.parametrize(("asked", "goal", "more"), HARMLESS)
def test_what_says_nothing_is_no_loss(asked: Dialect, goal: Dialect, more: dict[str, Any]) -> None:
    """Fields at their default and nulls are left out without a word."""
    assert sent(asked, goal, **more).losses == ()


def test_cache_marks_are_told_once() -> None:
    """A mark on every block of a long conversation is one line of the report."""
    marked = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    made = sent("messages", "chat", system=[marked], messages=[{"role": "user", "content": [marked, marked]}] * 3)
    assert made.losses == ("cache_control: dropped, Chat has no such parameter",)


def test_effort_reaches_only_targets_that_think() -> None:
    """A model that is not marked as a reasoning one would reject the word: it is dropped and said so."""
    plain = sent("chat", "messages", Terms(), reasoning_effort="high")
    assert "output_config" not in plain.body
    assert plain.losses == ("reasoning_effort: dropped, the target is not marked as a reasoning one",)
    assert sent("chat", "messages", reasoning_effort="high").body["output_config"] == {"effort": "high"}
    assert sent("responses", "messages", reasoning={"effort": "low"}).body["output_config"] == {"effort": "low"}


@pytest.mark.parametrize(("newest", "cap"), [(False, "max_tokens"), (True, "max_completion_tokens")])
def test_the_cap_goes_where_the_provider_takes_it(newest: bool, cap: str) -> None:
    """OpenAI rejects `max_tokens` for newer models, others do not know the newer name."""
    assert sent("messages", "chat", Terms(newest_chat=newest)).body[cap] == 5
    assert sent("responses", "chat", Terms(newest_chat=newest)).body[cap] == 5


def test_parameters_of_openais_own_chat_reach_nobody_else() -> None:
    """Compatible endpoints reject what they do not know: there it is left out, and said."""
    more: dict[str, Any] = {"prompt_cache_key": "k", "metadata": {"a": "b"}, "text": {"verbosity": "low"}}
    newest = sent("responses", "chat", Terms(newest_chat=True), **more)
    assert (newest.body["prompt_cache_key"], newest.body["verbosity"], newest.losses) == ("k", "low", ())
    other = sent("responses", "chat", Terms(), **more)
    assert set(other.body) == {"messages", "max_tokens"}
    assert {loss.partition(":")[0] for loss in other.losses} == {"prompt_cache_key", "metadata", "text.verbosity"}


def test_a_turn_that_says_nothing_is_left_out_for_messages() -> None:
    """Messages rejects it."""
    made = sent("chat", "messages", messages=[USER, {"role": "assistant", "content": ""}, USER])
    assert made.body["messages"] == [USER, USER]


# ------------------------------------------------------------------------------------------- messages and tools


def test_system_messages_at_the_head_are_the_system() -> None:
    """Several become one list in their order; one in the middle stays where it is."""
    said = [{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, USER]
    made = sent("chat", "messages", messages=[*said, {"role": "system", "content": "c"}]).body
    assert made["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert made["messages"] == [USER, {"role": "system", "content": "c"}]


def test_results_of_parallel_calls_are_one_turn() -> None:
    """Messages wants the results of all calls in the message that follows them, errors marked."""
    calls = [chat_call("a", "f", "{}"), chat_call("b", "g", "")]
    results = [
        {"role": "tool", "tool_call_id": "b", "content": "[tool error]\nno"},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "yes"}]},
    ]
    made = sent("chat", "messages", messages=[USER, {"role": "assistant", "tool_calls": calls}, *results]).body
    assert made["messages"][1]["content"] == [
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        {"type": "tool_use", "id": "b", "name": "g", "input": {}},
    ]
    assert made["messages"][2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": True},
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "yes"}]},
        ],
    }


def test_a_tools_error_is_told_to_the_model() -> None:
    """Chat has no field for it: the first line of the result says it."""
    result = {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}
    made = sent("messages", "chat", messages=[USER, {"role": "user", "content": [result]}]).body
    assert made["messages"][1] == {"role": "tool", "tool_call_id": "a", "content": "[tool error]\nno"}


@pytest.mark.parametrize("goal", ["chat", "responses"])
def test_ids_that_messages_forbids_stay_a_pair(goal: Dialect) -> None:
    """A call and its result are renamed alike: `functions.f:0` is no id in Messages."""
    call = {"role": "assistant", "tool_calls": [chat_call("functions.f:0", "f", "{}")]}
    result = {"role": "tool", "tool_call_id": "functions.f:0", "content": "1"}
    made = sent("chat", "messages", messages=[USER, call, result]).body["messages"]
    assert made[1]["content"][0]["id"] == made[2]["content"][0]["tool_use_id"] == "functions_f_0"


@pytest.mark.parametrize("asked", ["messages", "responses"])
def test_images_of_a_tools_result_follow_it(asked: Dialect) -> None:
    """Chat's tool messages hold text: pictures come in a message of the user after all results, and it is said."""
    url = "data:image/png;base64,AAAA"
    bodies: dict[str, dict[str, Any]] = {
        "messages": {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "a", "content": [PICTURE]},
                        {"type": "tool_result", "tool_use_id": "b", "content": "2"},
                    ],
                }
            ]
        },
        "responses": {
            "input": [
                {
                    "type": "function_call_output",
                    "call_id": "a",
                    "output": [{"type": "input_image", "image_url": url}],
                },
                {"type": "function_call_output", "call_id": "b", "output": "2"},
            ]
        },
    }
    made = sent(asked, "chat", **bodies[asked])
    assert made.body["messages"] == [
        {"role": "tool", "tool_call_id": "a", "content": "(see the next message)"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]},
    ]
    assert len(made.losses) == 1


CHOICES: list[tuple[Any, Any]] = [
    ("auto", {"type": "auto"}),
    ("none", {"type": "none"}),
    ("required", {"type": "any"}),
    ({"type": "function", "function": {"name": "f"}}, {"type": "tool", "name": "f"}),
]


@pytest.mark.parametrize(("chat", "messages"), CHOICES)
def test_the_choice_of_tools_has_the_same_force(chat: Any, messages: Any) -> None:
    """Auto, none, any and one by name mean the same in both dialects, in both directions."""
    tools = [chat_tool("f")]
    there = sent("chat", "messages", tools=tools, tool_choice=chat).body
    assert there["tool_choice"] == messages
    assert sent("messages", "chat", tools=there["tools"], tool_choice=messages).body["tool_choice"] == chat


def test_a_choice_among_some_tools_leaves_the_others_out() -> None:
    """`allowed_tools` has no word in Messages: only the allowed ones are sent."""
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    made = sent("chat", "messages", tools=[chat_tool("f"), chat_tool("g")], tool_choice=choice).body
    assert ([tool["name"] for tool in made["tools"]], made["tool_choice"]) == (["g"], {"type": "any"})


def test_one_call_at_a_time_is_kept() -> None:
    """parallel_tool_calls: false is disable_parallel_tool_use, in every dialect."""
    made = sent("responses", "messages", tools=[{"type": "function", "name": "f"}], parallel_tool_calls=False).body
    assert made["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_tools_of_a_namespace_are_functions_of_both_names() -> None:
    """Codex groups its tools; a free-form one takes its text as one argument, its grammar is told."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
    tools = [
        {"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "read", "parameters": None}]},
        {"type": "custom", "name": "patch", "description": "Edits.", "format": grammar},
    ]
    history = [
        {"type": "function_call", "namespace": "mcp", "name": "read", "call_id": "a", "arguments": "{}"},
        {"type": "custom_tool_call", "name": "patch", "call_id": "b", "input": "x"},
    ]
    made = sent("responses", "chat", tools=tools, input=history)
    read, patch = (tool["function"] for tool in made.body["tools"])
    assert (read["name"], patch["name"]) == ("mcp__read", "patch")
    assert "start: /x/" in patch["description"]
    calls = made.body["messages"][0]["tool_calls"]
    assert [call["function"] for call in calls] == [
        {"name": "mcp__read", "arguments": "{}"},
        {"name": "patch", "arguments": '{"input":"x"}'},
    ]
    assert made.losses == ("tools: the grammar of 'patch' is told to the model, not enforced",)


def test_a_search_for_tools_is_a_function_and_what_it_found_is_declared() -> None:
    """Codex searches for tools by itself: to the model it is a function, and each tool found is one from then on."""
    search = {"type": "tool_search", "execution": "client", "description": "Finds.", "parameters": {"type": "object"}}
    group = {"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "read"}]}
    found = {"type": "tool_search_output", "execution": "client", "tools": [group, {"type": "function", "name": "f"}]}
    history = [
        {"type": "tool_search_call", "call_id": "a", "execution": "client", "arguments": {"query": "files"}},
        {**found, "call_id": "a"},
        {"type": "tool_search_call", "call_id": "b", "execution": "client", "arguments": {"query": "again"}},
        {**found, "call_id": "b"},
        {"type": "function_call", "namespace": "mcp", "name": "read", "call_id": "c", "arguments": "{}"},
    ]
    made = sent("responses", "chat", tools=[search, {"type": "function", "name": "f"}], input=history).body
    assert [tool["function"]["name"] for tool in made["tools"]] == ["tool_search", "f", "mcp__read"]
    assert made["tools"][0]["function"]["description"] == "Finds."
    first, result = made["messages"][:2]
    assert first["tool_calls"][0]["function"] == {"name": "tool_search", "arguments": '{"query":"files"}'}
    assert result == {"role": "tool", "tool_call_id": "a", "content": '{"tools":["mcp__read","f"]}'}
    assert made["messages"][-1]["tool_calls"][0]["function"]["name"] == "mcp__read"


def test_nothing_is_kept_at_a_provider_unasked() -> None:
    """Responses stores what it is not told to forget; Chat stores nothing."""
    assert sent("chat", "responses").body["store"] is False


def test_text_files_are_text_in_messages() -> None:
    """A text file is a document with its text, and comes back as the file it was."""
    file = {"type": "file", "file": {"file_data": "data:text/plain;base64,w6RiYw==", "filename": "a.txt"}}
    said = [{"role": "user", "content": [{"type": "text", "text": "read"}, file]}]
    made = sent("chat", "messages", messages=said).body
    source = {"type": "text", "media_type": "text/plain", "data": "äbc"}
    assert made["messages"][0]["content"][1] == {"type": "document", "source": source, "title": "a.txt"}
    assert sent("messages", "chat", messages=made["messages"]).body["messages"] == said


def test_a_body_nested_without_end_is_refused() -> None:
    """Depth is no reason to fail otherwise than with a refusal."""
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    made = sent("chat", "messages", tools=[chat_tool("f")], metadata=None)
    assert made.body["tools"]
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {"deep": deep}}
    assert refused("messages", "chat", messages=[{"role": "assistant", "content": [call]}]).where == "body"


def test_composed_translations_lose_in_both_steps() -> None:
    """Responses reaches Messages through Chat, and the report has the losses of both ways."""
    made = sent("responses", "messages", max_tool_calls=3, service_tier="flex")
    assert made.body["messages"] == [USER]
    assert {loss.partition(":")[0] for loss in made.losses} == {"max_tool_calls", "service_tier"}
    assert made.stages[0] == {**SMALL["responses"], "max_tool_calls": 3, "service_tier": "flex"}


def test_a_choice_among_some_tools_is_kept_where_there_is_a_word_for_it() -> None:
    """Chat and Responses both have `allowed_tools`, each in its own shape."""
    tools = [chat_tool("f"), chat_tool("g")]
    named = [{"type": "function", "function": {"name": "g"}}]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": named}}
    made = sent("chat", "responses", tools=tools, tool_choice=choice).body
    assert made["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "g"}],
    }
    back = sent("responses", "chat", tools=made["tools"], tool_choice=made["tool_choice"]).body
    assert back["tool_choice"] == choice


@pytest.mark.parametrize(("asked", "goal"), [("chat", "responses"), ("responses", "chat")])
def test_json_mode_and_verbosity_are_settings_of_text(asked: Dialect, goal: Dialect) -> None:
    """Responses has under `text` what Chat has at the top."""
    bodies: dict[str, dict[str, Any]] = {
        "chat": {"response_format": {"type": "json_object"}, "verbosity": "low"},
        "responses": {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
    }
    made = sent(asked, goal, Terms(newest_chat=True), **bodies[asked]).body
    assert {key: made[key] for key in bodies[goal]} == bodies[goal]


def test_json_mode_without_tools_is_a_forced_tool_in_messages() -> None:
    """The model is made to call the one tool there is, whose input is any object."""
    made = sent("chat", "messages", response_format={"type": "json_object"}).body
    assert made["tool_choice"] == {"type": "tool", "name": made["tools"][0]["name"]}
    assert made["tools"][0]["input_schema"]["type"] == "object"


def test_the_order_of_text_and_calls_is_told_when_it_is_lost() -> None:
    """Chat says first, then calls."""
    blocks = [{"type": "tool_use", "id": "a", "name": "f", "input": {}}, {"type": "text", "text": "later"}]
    made = sent("messages", "chat", messages=[{"role": "assistant", "content": blocks}, USER])
    assert made.body["messages"][0]["content"] == "later"
    assert made.losses == ("messages[].content: text after a tool call stands before it",)


def test_a_tools_error_in_parts_is_marked_before_them() -> None:
    """A result of several texts is an error as well as one of one, and comes back as it was."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    result = {"type": "tool_result", "tool_use_id": "x", "content": parts, "is_error": True}
    turn = {"role": "user", "content": [result]}
    made = sent("messages", "chat", messages=[turn]).body["messages"]
    assert made[0]["content"][0] == {"type": "text", "text": "[tool error]\n"}
    assert sent("chat", "messages", messages=[USER, *made]).body["messages"][1] == turn


def test_an_assistants_refusal_is_what_it_said() -> None:
    """Neither Messages nor Responses has refusals in what is sent: the words stay."""
    said = [USER, {"role": "assistant", "content": None, "refusal": "No."}, USER]
    assert sent("chat", "messages", messages=said).body["messages"][1]["content"] == "No."
    assert sent("chat", "responses", messages=said).body["input"][1]["content"] == "No."
    refusal = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    assert sent("responses", "chat", input=[USER, refusal]).body["messages"][1]["content"] == "No."


def test_names_and_details_that_have_no_place_are_told() -> None:
    """A speaker's name, the detail of an image and citations of a document are left out."""
    image = {"type": "image_url", "image_url": {"url": "https://host.invalid/a.png", "detail": "high"}}
    made = sent("chat", "messages", messages=[{"role": "user", "name": "ann", "content": [image]}])
    assert [loss.partition(":")[0] for loss in made.losses] == ["messages[].name", "image_url.detail"]
    source = {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}
    document = {"type": "document", "source": source, "citations": {"enabled": True}}
    losses = sent("messages", "chat", messages=[{"role": "user", "content": [document]}]).losses
    assert losses == ("citations: not available, answers come without them",)


def test_the_context_of_a_document_is_not_dropped() -> None:
    """It is a part of the prompt, and other dialects have no place for it."""
    source = {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}
    document = {"type": "document", "source": source, "context": "from 1999"}
    assert refused("messages", "chat", messages=[{"role": "user", "content": [document]}]).where == "document"
