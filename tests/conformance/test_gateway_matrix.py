"""Every recorded request by every dialect a provider may speak, through `smr serve` and over real sockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from smart_model_router.domain.request import Dialect
from smart_model_router.wires import text_of
from smart_model_router_providers.fault import Fault, FaultServer
from tests.conformance.recorded_requests import EVENTS, REQUESTS, TOOL_IDS, WHOLE, told
from tests.e2e.gateways import Served, served

TEXT = "Paris it is."
CALLS = [{"name": "read", "arguments": {"path": "a"}}, {"name": "read", "arguments": {"path": "b", "deep": [1, None]}}]
KINDS: dict[Dialect, str] = {"chat": "groq", "messages": "anthropic", "responses": "openai"}
PATHS: dict[Dialect, str] = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
ENDS = {"chat": b"data: [DONE]\n\n", "messages": b"message_stop", "responses": b"response.completed"}
DIALECTS = tuple(KINDS)
RECORDINGS = Path(__file__).parents[2].parent / "shared" / "data" / "client_requests"
RECORDED = sorted(RECORDINGS.glob("*/*.json"))
RECORDED_NAMES = ("mock-model", "mock/model")
MATRIX = [
    pytest.param(spoken, client, dialect, body, id=f"{client} by {spoken}")
    for spoken in DIALECTS
    for client, dialect, body in REQUESTS
]


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """Who is asked for `plain` says a sentence, who is asked for `tools` a sentence and two calls at once."""
    with FaultServer({"tools": [Fault.reply(TEXT, CALLS)]}, text=TEXT) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with one provider of each dialect, and no more than that: a model `chat/plain` is asked in Chat."""
    providers = {
        name: {"kind": kind, "base_url": upstream.base_url, "api_key": "k", "wires": [name]}
        for name, kind in KINDS.items()
    }
    others = {"vectors": {"kind": "openai_compatible", "base_url": upstream.base_url, "api_key": "k"}}
    models = {
        f"{name}/{model}": {"tiers": [{"targets": [f"{name}/{model}"]}], "last_resort": []}
        for name in KINDS
        for model in ("plain", "tools")
    }
    models |= {name: {"tiers": [{"targets": ["vectors/plain"]}], "last_resort": []} for name in RECORDED_NAMES}
    config = {"version": 1, "providers": providers | others, "models": models}
    with served(config, tmp_path_factory.mktemp("gateway")) as running:
        yield running


def ask(gateway: Served, dialect: Dialect, body: dict[str, Any]) -> httpx2.Response:
    """One request."""
    return httpx2.post(gateway.base_url + PATHS[dialect], json=body, timeout=30)


def events(raw: bytes) -> list[dict[str, Any]]:
    """The data of a stream."""
    lines = [line.removeprefix(b"data:").strip() for line in raw.splitlines() if line.startswith(b"data:")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


@pytest.mark.parametrize(("spoken", "client", "dialect", "body"), MATRIX)
def test_a_recorded_request_is_served_whole_and_streamed(
    gateway: Served, upstream: FaultServer, spoken: Dialect, client: str, dialect: Dialect, body: dict[str, Any]
) -> None:
    """The client's SDK can parse the answer and every event; the provider's dialect is asked, tool ids are in order.

    In the client's own dialect the body is equal as JSON but for `model` and `include_usage`, and nothing is lost.
    """
    before = len(upstream.requests)
    asked = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
    whole = ask(gateway, dialect, {**asked, "model": f"{spoken}/plain"})
    streamed = ask(gateway, dialect, {**body, "model": f"{spoken}/plain", "stream": True})
    assert (whole.status_code, streamed.status_code) == (200, 200), whole.text + streamed.text
    WHOLE[dialect].validate_python(whole.json(), strict=False)
    said = events(streamed.content)
    for event in said:
        EVENTS[dialect].validate_python(event)
    assert TEXT in whole.text
    assert "".join(text_of(dialect, event) for event in said) == TEXT
    assert ENDS[dialect] in streamed.content[-2000:]
    assert f'"{spoken}/plain"' in whole.text
    sent = upstream.requests[before:]
    assert [request.path for request in sent] == [PATHS[spoken]] * 2
    assert [told(request.body) for request in sent] == [TOOL_IDS.get(client, [])] * 2
    native = [
        {k: v for k, v in request.body.items() if k not in ("model", "stream", "stream_options")} for request in sent
    ]
    assert dialect != spoken or native == [asked] * 2
    assert dialect != spoken or "x-router-lossy" not in {**whole.headers, **streamed.headers}


def chat_calls(gateway: Served, model: str) -> list[tuple[str, str, Any]]:
    """(id, name, arguments) as OpenAI's SDK puts a Chat stream together."""
    tools: Any = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    with (
        openai.OpenAI(base_url=gateway.base_url + "/v1", api_key="k", max_retries=0) as client,
        client.chat.completions.stream(
            model=model, messages=[{"role": "user", "content": "hi"}], tools=tools
        ) as stream,
    ):
        calls = stream.get_final_completion().choices[0].message.tool_calls or []
    return [(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls]


def message_calls(gateway: Served, model: str) -> list[tuple[str, str, Any]]:
    """The same as Anthropic's SDK puts a Messages stream together."""
    tools: Any = [{"name": "read", "input_schema": {"type": "object"}}]
    with (
        anthropic.Anthropic(base_url=gateway.base_url, api_key="k", max_retries=0) as client,
        client.messages.stream(
            model=model, max_tokens=99, messages=[{"role": "user", "content": "hi"}], tools=tools
        ) as stream,
    ):
        blocks = stream.get_final_message().content
    return [(block.id, block.name, block.input) for block in blocks if block.type == "tool_use"]


def response_calls(gateway: Served, model: str) -> list[tuple[str, str, Any]]:
    """The same as OpenAI's SDK puts a Responses stream together."""
    tools: Any = [{"type": "function", "name": "read", "parameters": {"type": "object"}, "strict": False}]
    with (
        openai.OpenAI(base_url=gateway.base_url + "/v1", api_key="k", max_retries=0) as client,
        client.responses.stream(model=model, input="hi", tools=tools) as stream,
    ):
        items = stream.get_final_response().output
    return [(item.call_id, item.name, json.loads(item.arguments)) for item in items if item.type == "function_call"]


def chat_turn(calls: list[tuple[str, str, Any]]) -> dict[str, Any]:
    """A Chat request that brings the results."""
    made = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for id_, name, given in calls
    ]
    results = [{"role": "tool", "tool_call_id": id_, "content": f"result {id_}"} for id_, _, _ in calls]
    hi = {"role": "user", "content": "hi"}
    return {"messages": [hi, {"role": "assistant", "content": None, "tool_calls": made}, *results]}


def message_turn(calls: list[tuple[str, str, Any]]) -> dict[str, Any]:
    """A Messages request that brings the results."""
    made = [{"type": "tool_use", "id": id_, "name": name, "input": given} for id_, name, given in calls]
    results = [{"type": "tool_result", "tool_use_id": id_, "content": f"result {id_}"} for id_, _, _ in calls]
    hi = {"role": "user", "content": "hi"}
    turns = [hi, {"role": "assistant", "content": made}, {"role": "user", "content": results}]
    return {"max_tokens": 99, "messages": turns}


def response_turn(calls: list[tuple[str, str, Any]]) -> dict[str, Any]:
    """A Responses request that brings the results."""
    made = [
        {"type": "function_call", "call_id": id_, "name": name, "arguments": json.dumps(given)}
        for id_, name, given in calls
    ]
    results = [{"type": "function_call_output", "call_id": id_, "output": f"result {id_}"} for id_, _, _ in calls]
    return {"input": [{"role": "user", "content": "hi"}, *made, *results]}


Talk = tuple[
    Callable[[Served, str], list[tuple[str, str, Any]]], Callable[[list[tuple[str, str, Any]]], dict[str, Any]]
]
TALKS: dict[Dialect, Talk] = {
    "chat": (chat_calls, chat_turn),
    "messages": (message_calls, message_turn),
    "responses": (response_calls, response_turn),
}


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_parallel_calls_and_their_results_keep_ids_and_order(
    gateway: Served, upstream: FaultServer, dialect: Dialect, spoken: Dialect
) -> None:
    """Two calls streamed at once reach the SDK whole and apart; their results reach the provider under its own ids."""
    calls, turn = TALKS[dialect]
    got = calls(gateway, f"{spoken}/tools")
    number = len(upstream.requests)
    assert [(name, given) for _, name, given in got] == [(call["name"], call["arguments"]) for call in CALLS]
    ids = [id_ for id_, _, _ in got]
    assert ids == [f"call_{number}_0", f"call_{number}_1"]
    assert ask(gateway, dialect, {"model": f"{spoken}/plain", **turn(got)}).status_code == 200
    sent = upstream.requests[-1].body
    assert told(sent) == ids
    text = json.dumps(sent)
    assert 0 < text.index(f"result {ids[0]}") < text.index(f"result {ids[1]}")


HI = [{"role": "user", "content": "hi"}]
FILE = {"type": "file", "file": {"file_id": "file-1"}}
CONTAINER = {"type": "document", "source": {"type": "file", "file_id": "file-1"}}


@pytest.mark.parametrize(
    ("dialect", "spoken", "body", "lost"),
    [
        ("chat", "messages", {"messages": HI, "seed": 7}, "seed"),
        ("chat", "responses", {"messages": HI, "stop": ["x"]}, "stop"),
        ("messages", "chat", {"messages": HI, "max_tokens": 9, "top_k": 3}, "top_k"),
        ("messages", "responses", {"messages": HI, "max_tokens": 9, "top_k": 3}, "top_k"),
        ("responses", "chat", {"input": "hi", "truncation": "auto"}, "truncation"),
        ("responses", "messages", {"input": "hi", "truncation": "auto"}, "truncation"),
    ],
)
def test_a_loss_is_told_in_the_head(
    gateway: Served, dialect: Dialect, spoken: Dialect, body: dict[str, Any], lost: str
) -> None:
    """Whole and streamed, `x-router-lossy` names the field that the provider's dialect has no word for."""
    for stream in (False, True):
        answer = ask(gateway, dialect, {**body, "model": f"{spoken}/plain", "stream": stream})
        assert answer.status_code == 200, answer.text
        assert f"{lost}:" in answer.headers["x-router-lossy"]


@pytest.mark.parametrize(
    ("dialect", "spoken", "body"),
    [
        ("chat", "messages", {"messages": [{"role": "user", "content": [FILE]}]}),
        ("chat", "messages", {"messages": HI, "n": 2}),
        ("chat", "responses", {"messages": HI, "n": 2}),
        ("messages", "chat", {"messages": [{"role": "user", "content": [CONTAINER]}], "max_tokens": 9}),
        (
            "messages",
            "chat",
            {"messages": HI, "max_tokens": 9, "tools": [{"type": "web_search_20250305", "name": "w"}]},
        ),
        ("responses", "chat", {"input": "hi", "tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}),
        ("responses", "messages", {"input": "hi", "previous_response_id": "resp_1"}),
    ],
)
def test_a_loss_of_meaning_is_refused(
    gateway: Served, upstream: FaultServer, dialect: Dialect, spoken: Dialect, body: dict[str, Any]
) -> None:
    """A file, a second answer, a tool of the provider's: a 400 in the client's dialect, and nobody is asked."""
    before = upstream.calls()
    answer = ask(gateway, dialect, {**body, "model": f"{spoken}/plain"})
    code = {"messages": ("error", "invalid_request_error")}.get(dialect, (None, "unsupported_feature"))
    told_as = answer.json()["error"]
    assert (answer.status_code, upstream.calls()) == (400, before), answer.text
    assert (answer.json().get("type"), told_as.get("code") or told_as["type"]) == code


@pytest.mark.skipif(not RECORDED, reason="recordings of real clients are not in the repository")
@pytest.mark.parametrize("spoken", DIALECTS)
def test_real_recordings_are_answered(gateway: Served, spoken: Dialect) -> None:
    """What real clients sent, byte for byte but for the model: every one is answered, by every dialect."""
    answers = {}
    for file in RECORDED:
        told_of = json.loads(file.read_text(encoding="utf-8"))
        own = {name: value for name, value in told_of["headers"] if name.lower() not in ("host", "content-length")}
        body, path = told_of["body"], told_of["path"]
        if path in PATHS.values():
            body = {**body, "model": f"{spoken}/plain"}
        content = b"" if body is None else json.dumps(body).encode()
        url = gateway.base_url + path
        answers[file.name] = httpx2.request(told_of["method"], url, content=content, headers=own).status_code
    assert {name: status for name, status in answers.items() if status != 200} == {}


def test_nothing_is_left_in_flight(gateway: Served) -> None:
    """After all that."""
    assert gateway.in_flight() == 0
