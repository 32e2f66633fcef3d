"""The HTTP provider's half that needs no socket: URLs, credentials, versions, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import httpx2
import pytest
import respx
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, Success
from smart_model_router.domain.ports import Provider, ProviderCall
from smart_model_router.domain.request import Dialect
from smart_model_router_providers.http import HttpProvider
from smart_model_router_providers.response import judge

CHAT = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
MESSAGE = {"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}


class Wire:
    """A transport that answers 200 with `answer` and keeps the requests."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.requests: list[httpx2.Request] = []
        self.transport = httpx2.MockTransport(self._answer)
        self._body = answer

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return httpx2.Response(200, json=self._body)


def a_call(dialect: Dialect = "chat", body: dict[str, Any] | None = None, **rest: Any) -> ProviderCall:
    """A call with this body."""
    body = {"model": "m", "messages": []} if body is None else body
    return ProviderCall(dialect, "m", json.dumps(body).encode(), body, **rest)


async def sent(call: ProviderCall, answer: dict[str, Any] = CHAT, **options: Any) -> httpx2.Request:
    """The request that a provider with these options makes of a call."""
    wire = Wire(answer)
    provider = HttpProvider(transport=wire.transport, **options)
    assert isinstance(await provider.call(call), Success)
    return wire.requests[0]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("kind", "base_url", "dialect", "url"),
    [
        ("openai", None, "chat", "https://api.openai.com/v1/chat/completions"),
        ("openai_compatible", "http://h:1/v1/", "chat", "http://h:1/v1/chat/completions"),
        ("openai_compatible", "http://h/x?a=b", "chat", "http://h/x/chat/completions?a=b"),
        ("anthropic", None, "messages", "https://api.anthropic.com/v1/messages"),
        ("anthropic", "https://proxy.test", "messages", "https://proxy.test/v1/messages"),
        ("anthropic", "https://proxy.test/a/v1", "messages", "https://proxy.test/a/v1/messages"),
        (
            "azure",
            "https://r.openai.azure.com",
            "chat",
            "https://r.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21",
        ),
        (
            "azure",
            "https://r.openai.azure.com/openai/v1",
            "chat",
            "https://r.openai.azure.com/openai/v1/chat/completions",
        ),
    ],
)
async def test_where_a_call_goes(kind: str, base_url: str | None, dialect: Dialect, url: str) -> None:
    """Each kind's URL, Azure's deployments and Anthropic's bare hosts included."""
    request = await sent(a_call(dialect), MESSAGE if dialect == "messages" else CHAT, kind=kind, base_url=base_url)
    assert str(request.url) == url


@pytest.mark.asyncio
@pytest.mark.parametrize("deployment", [".", ".."])
async def test_a_deployment_of_dots_makes_no_other_path(deployment: str) -> None:
    """A wildcard lets a caller name it: nothing is sent, whole or as a stream."""
    wire = Wire(CHAT)
    provider = HttpProvider(transport=wire.transport, kind="azure", base_url="https://r.openai.azure.com")
    call = replace(a_call(), model=deployment)
    for refused in (await provider.call(call), await provider.open_stream(call)):
        assert isinstance(refused, Failure)
        assert refused.failure_class is FailureClass.INVALID_REQUEST
    assert wire.requests == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("kind", "header", "value"),
    [
        ("openai", "authorization", "Bearer k2"),
        ("azure", "api-key", "k2"),
        ("anthropic", "x-api-key", "k2"),
    ],
)
async def test_the_named_credential_is_sent_in_the_kinds_own_way(kind: str, header: str, value: str) -> None:
    """Credentials are numbered from 0; each kind has its header for them."""
    dialect: Dialect = "messages" if kind == "anthropic" else "chat"
    answer = MESSAGE if kind == "anthropic" else CHAT
    options = {"kind": kind, "base_url": "https://h.test/v1", "api_keys": ["k1", "k2"]}
    request = await sent(a_call(dialect, credential=1), answer, **options)
    assert request.headers[header] == value


@pytest.mark.asyncio
async def test_without_a_key_nothing_is_claimed() -> None:
    """An endpoint without authentication gets no authorization header."""
    request = await sent(a_call(), base_url="http://h/v1")
    assert "authorization" not in request.headers


@pytest.mark.asyncio
async def test_headers_of_the_owner_and_of_the_call_win() -> None:
    """The owner's headers win over ours, the call's over both, whatever their case."""
    call = a_call(headers={"X-Team": "call"})
    headers = {"Authorization": "Custom x", "x-team": "owner", "User-Agent": "mine"}
    request = await sent(call, base_url="http://h/v1", api_keys=["k"], headers=headers)
    found = {name: request.headers.get_list(name) for name in ("authorization", "x-team", "user-agent")}
    assert found == {"authorization": ["Custom x"], "x-team": ["call"], "user-agent": ["mine"]}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("version", "header", "value", "kept"),
    [
        (None, "x-api-key", "k", {"model", "messages", "temperature", "top_p", "top_k"}),
        ("2023-06-01", "x-api-key", "k", {"model", "messages", "temperature", "top_p", "top_k"}),
        ("2026-10-21", "authorization", "Bearer k", {"model", "messages"}),
        ("2027-01-01", "authorization", "Bearer k", {"model", "messages"}),
    ],
)
async def test_anthropics_versions(version: str | None, header: str, value: str, kept: set[str]) -> None:
    """2026-10-21 takes a Bearer token and rejects sampling parameters; 2023-06-01 is the default."""
    body = {"model": "m", "messages": [], "temperature": 1, "top_p": 1, "top_k": 1}
    request = await sent(a_call("messages", body), MESSAGE, kind="anthropic", api_keys=["k"], api_version=version)
    assert request.headers["anthropic-version"] == (version or "2023-06-01")
    assert request.headers[header] == value
    assert set(json.loads(request.content)) == kept


@pytest.mark.asyncio
async def test_dropped_parameters_leave_the_rest_alone() -> None:
    """A listed parameter is dropped; without one the bytes are not touched."""
    provider_options: dict[str, Any] = {"base_url": "http://h/v1", "drop_params": ["seed"]}
    odd = b'{ "model" : "m",  "messages": [] }'
    untouched = await sent(ProviderCall("chat", "m", odd, {"model": "m"}), **provider_options)
    dropped = await sent(a_call(body={"model": "m", "seed": 1, "x": [1.50]}), **provider_options)
    assert untouched.content == odd
    assert json.loads(dropped.content) == {"model": "m", "x": [1.5]}


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"base_url": None}, "base_url"),
        ({"base_url": ""}, "base_url"),
        ({"base_url": "ftp://h"}, "base_url"),
        ({"base_url": "http://"}, "base_url"),
        ({"base_url": "h.test/v1"}, "base_url"),
        ({"base_url": "http://h:99999"}, "base_url"),
        ({"kind": "opnai"}, "kind"),
        ({"kind": "anthropic", "api_version": "1999-01-01"}, "api_version"),
        ({"kind": "anthropic", "api_version": "latest"}, "api_version"),
        ({"base_url": "http://h", "api_keys": "secret-key"}, "api_keys"),
        ({"base_url": "http://h", "api_keys": ["ok", "secret-key\n"]}, "api_keys[1]"),
        ({"base_url": "http://h", "api_keys": [""]}, "api_keys[0]"),
        ({"base_url": "http://h", "headers": {"x": "\u20ac"}}, "headers"),
        ({"base_url": "http://h", "headers": {"x": "secret\r\ny: z"}}, "headers"),
        ({"base_url": "http://h", "headers": {"x\n": "secret"}}, "headers"),
        ({"base_url": "http://h", "headers": {"Content-Length": "3"}}, "headers"),
    ],
    ids=str,
)
def test_nonsense_is_refused_at_once(options: dict[str, Any], key: str) -> None:
    """A wrong option is named when the provider is made, and a key is never shown."""
    with pytest.raises(ConfigurationError) as caught:
        HttpProvider(**options)
    assert caught.value.key == key
    assert "secret" not in str(caught.value)


@pytest.mark.asyncio
async def test_embeddings_do_not_stream() -> None:
    """Asking for it is refused without a call."""
    wire = Wire(CHAT)
    provider = HttpProvider(base_url="http://h/v1", transport=wire.transport)
    outcome = await provider.open_stream(a_call("embeddings"))
    assert isinstance(outcome, Failure)
    assert outcome.failure_class is FailureClass.INVALID_REQUEST
    assert wire.requests == []


@pytest.mark.asyncio
async def test_a_bug_below_is_not_swallowed() -> None:
    """An exception that no library raises is a bug and comes through."""

    def broken(request: httpx2.Request) -> httpx2.Response:
        raise ZeroDivisionError

    provider = HttpProvider(base_url="http://h/v1", transport=httpx2.MockTransport(broken))
    with pytest.raises(ZeroDivisionError):
        await provider.call(a_call())


@pytest.mark.asyncio
async def test_closing_closes_the_given_transport() -> None:
    """A transport handed over is closed with the provider, and closing twice is nothing."""

    class Closing(httpx2.MockTransport):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    transport = Closing(lambda request: httpx2.Response(200))
    provider = HttpProvider(base_url="http://h/v1", transport=transport)
    assert isinstance(provider, Provider)
    await provider.aclose()
    await provider.aclose()
    assert transport.closed == 2


@pytest.mark.asyncio
async def test_a_closed_provider_sends_nothing_over_the_given_transport() -> None:
    """Calling after aclose is a bug whoever brought the transport, and nothing goes out."""
    wire = Wire(CHAT)
    provider = HttpProvider(base_url="http://h/v1", transport=wire.transport)
    await provider.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await provider.call(a_call())
    assert wire.requests == []


def test_a_provider_serves_several_loops() -> None:
    """A provider outlives the event loop of its first call."""
    provider = HttpProvider(base_url="http://h/v1", transport=Wire(CHAT).transport)
    outcomes = [asyncio.run(provider.call(a_call())) for _ in range(2)]
    assert all(isinstance(outcome, Success) for outcome in outcomes)


# --------------------------------------------------------------- over httpx2's own pool, mocked at its wire


@pytest.fixture
def pooled() -> HttpProvider:
    """A provider over httpx2's default pool, which respx can reach."""
    return HttpProvider(base_url="https://provider.test/v1", api_keys=["k"], transport=httpx2.AsyncHTTPTransport())


@pytest.mark.asyncio
async def test_an_answer_over_httpx2s_pool(httpx2_mock: respx.Router, pooled: HttpProvider) -> None:
    """Any httpx2 transport does: answers are the same."""
    httpx2_mock.post("https://provider.test/v1/chat/completions").mock(return_value=httpx.Response(200, json=CHAT))
    outcome = await pooled.call(a_call())
    await pooled.aclose()
    assert isinstance(outcome, Success)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (httpx2.ConnectError("refused"), "TRANSPORT"),
        (httpx2.ConnectTimeout("slow"), "TRANSPORT"),
        (httpx2.ReadTimeout("slow"), "TIMEOUT"),
        (httpx2.RemoteProtocolError("gone"), "TRANSPORT"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_transports_exception_is_a_value(
    httpx2_mock: respx.Router, pooled: HttpProvider, raised: Exception, expected: str
) -> None:
    """What the transport raises comes back as a failure of its class, streaming or not."""
    httpx2_mock.post("https://provider.test/v1/chat/completions").mock(side_effect=raised)
    outcomes = [await pooled.call(a_call()), await pooled.open_stream(a_call())]
    await pooled.aclose()
    assert [outcome.failure_class for outcome in outcomes if isinstance(outcome, Failure)] == [expected, expected]


@pytest.mark.asyncio
async def test_a_stream_over_httpx2s_pool(httpx2_mock: respx.Router, pooled: HttpProvider) -> None:
    """Streams are the same, too."""
    httpx2_mock.post("https://provider.test/v1/chat/completions").mock(
        return_value=httpx.Response(200, headers={"content-type": "text/event-stream"}, content=b"data: [DONE]\n\n")
    )
    stream = await pooled.open_stream(a_call())
    assert not isinstance(stream, Failure)
    kinds = [event.kind async for event in stream]
    await stream.aclose()
    await pooled.aclose()
    assert kinds == [EventKind.END]


# ------------------------------------------------------------------------------------------ judging answers


@given(body=st.binary(max_size=80), status=st.sampled_from([200, 201, 404, 500]))
def test_no_body_makes_the_judge_raise(body: bytes, status: int) -> None:
    """Whatever came, it is a success or a failure."""
    assert isinstance(judge(status, {}, body, "chat", "openai"), Success | Failure)


def test_a_stop_by_the_cap_is_an_answer() -> None:
    """An answer cut off by max_tokens before its first word is still the answer that was asked for."""
    body = json.dumps({"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}).encode()
    assert isinstance(judge(200, {}, body, "chat", "openai"), Success)


def test_an_error_in_a_choice_is_its_codes_class() -> None:
    """OpenRouter reports an upstream's failure inside a choice of a 200."""
    choice = {"message": {}, "finish_reason": "error", "error": {"code": 429, "message": "slow"}}
    outcome = judge(200, {}, json.dumps({"choices": [choice]}).encode(), "chat", "openrouter")
    assert isinstance(outcome, Failure)
    assert outcome.failure_class is FailureClass.RATE_LIMITED


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("operation", "method", "path"),
    [
        ("create", "POST", "/v1/responses"),
        ("compact", "POST", "/v1/responses/compact"),
        ("count", "POST", "/v1/responses/input_tokens"),
        ("retrieve", "GET", "/v1/responses/resp_%2F1"),
        ("delete", "DELETE", "/v1/responses/resp_%2F1"),
    ],
)
async def test_each_operation_of_responses_has_its_method_and_path(operation: Any, method: str, path: str) -> None:
    """A query of the base URL stays, and so does what the client said; an id is no path."""
    answer = {"id": "resp_1", "output": [{"type": "function_call"}]}
    call = a_call("responses", operation=operation, thing="resp_/1", headers={"openai-project": "p"})
    request = await sent(call, answer, kind="openai", base_url="http://h/v1?a=b")
    assert (request.method, request.url.raw_path.decode()) == (method, f"{path}?a=b")
    assert request.headers["openai-project"] == "p"


@pytest.mark.asyncio
async def test_what_a_provider_does_not_keep_is_its_callers_fault() -> None:
    """A 404 switches nothing off; another status is judged as ever."""
    missing = {"error": {"message": "Response with id 'resp_1' not found.", "type": "invalid_request_error"}}
    classes = {404: FailureClass.INVALID_REQUEST, 401: FailureClass.AUTH, 500: FailureClass.SERVER_ERROR}
    for status, expected in classes.items():
        wire = httpx2.MockTransport(lambda _, status=status: httpx2.Response(status, json=missing))
        provider = HttpProvider(kind="openai", transport=wire)
        outcome = await provider.call(a_call("responses", operation="retrieve", thing="resp_1"))
        assert isinstance(outcome, Failure)
        assert (outcome.failure_class, outcome.status, json.loads(outcome.raw)) == (expected, status, missing)
