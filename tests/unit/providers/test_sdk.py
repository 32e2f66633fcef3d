"""The SDK provider without a network: what a client is asked for, and which clients are refused."""

from __future__ import annotations

import json
from inspect import signature
from typing import Any

import anthropic
import openai
import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, Success, Wait
from smart_model_router.domain.ports import Provider, ProviderCall
from smart_model_router.domain.request import Dialect
from smart_model_router_providers.sdk import SDKS, SdkProvider, httpx_of

HTTPX: Any = httpx_of(SDKS["openai"])
"""What the installed SDKs are built on."""
CHAT = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}


def a_call(dialect: Dialect = "chat", **rest: Any) -> ProviderCall:
    """A small call."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "odd": {"kept": [1, None]}}
    return ProviderCall(dialect, "m", json.dumps(body).encode(), body, **rest)


class Wire:
    """A client of the SDK's httpx whose server gives the same answer every time, and the requests it got."""

    def __init__(self, answer: Any) -> None:
        self.requests: list[Any] = []
        self._answer = answer
        self.client = HTTPX.AsyncClient(transport=HTTPX.MockTransport(self._handle), follow_redirects=True)

    def _handle(self, request: Any) -> Any:
        self.requests.append(request)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def openai_over(wire: Wire) -> SdkProvider:
    """A provider over an OpenAI client with the SDK's own retries on."""
    client = AsyncOpenAI(api_key="k", base_url="http://h.test/v1", http_client=wire.client, max_retries=5)
    return SdkProvider(client)


@pytest.mark.asyncio
async def test_the_body_goes_out_unchanged() -> None:
    """No typed model touches the body; the SDK adds its URL and its key, the call its headers."""
    wire = Wire(HTTPX.Response(200, json=CHAT))
    call = a_call(headers={"x-team": "search"})
    outcome = await openai_over(wire).call(call)
    (request,) = wire.requests
    assert isinstance(outcome, Success)
    assert json.loads(request.content) == call.body
    assert str(request.url) == "http://h.test/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer k"
    assert request.headers["x-team"] == "search"


@pytest.mark.asyncio
async def test_azures_deployment_is_in_the_url() -> None:
    """Azure clients make the URL out of the model, as they do for their own calls."""
    wire = Wire(HTTPX.Response(200, json=CHAT))
    client = AsyncAzureOpenAI(
        api_version="2024-10-21",
        azure_endpoint="https://r.openai.azure.com",
        azure_ad_token="token",
        http_client=wire.client,
    )
    provider = SdkProvider(client)
    assert isinstance(await provider.call(a_call()), Success)
    assert provider.kind == "azure"
    assert wire.requests[0].url.path == "/openai/deployments/m/chat/completions"
    assert wire.requests[0].headers["authorization"] == "Bearer token"


@pytest.mark.asyncio
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_the_sdk_never_retries(status: int) -> None:
    """The router owns retries, whatever the client was told."""
    wire = Wire(HTTPX.Response(status, json={"error": {"message": "no"}}))
    await openai_over(wire).call(a_call())
    assert len(wire.requests) == 1


@pytest.mark.asyncio
async def test_redirects_are_not_followed() -> None:
    """A redirect is a wrong base URL, also for a client that would follow it."""
    wire = Wire(HTTPX.Response(307, headers={"location": "http://elsewhere.test/"}))
    outcome = await openai_over(wire).call(a_call())
    assert isinstance(outcome, Failure)
    assert outcome.failure_class is FailureClass.MISCONFIGURED
    assert len(wire.requests) == 1


@pytest.mark.asyncio
async def test_a_status_keeps_its_hint() -> None:
    """The SDK's exception is read like the answer it was."""
    wire = Wire(HTTPX.Response(429, headers={"retry-after": "2"}, json={"error": {"message": "slow"}}))
    outcome = await openai_over(wire).call(a_call())
    assert isinstance(outcome, Failure)
    assert (outcome.failure_class, outcome.status, outcome.wait) == (FailureClass.RATE_LIMITED, 429, Wait(2.0))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (HTTPX.ConnectError("refused"), "TRANSPORT"),
        (HTTPX.ConnectTimeout("slow"), "TRANSPORT"),
        (HTTPX.ReadTimeout("slow"), "TIMEOUT"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_an_sdks_exception_is_a_value(raised: Exception, expected: str) -> None:
    """What the SDK raises comes back as a failure of its class, streaming or not."""
    provider = openai_over(Wire(raised))
    outcomes = [await provider.call(a_call()), await provider.open_stream(a_call())]
    assert [outcome.failure_class for outcome in outcomes if isinstance(outcome, Failure)] == [expected, expected]


@pytest.mark.asyncio
async def test_no_answer_is_not_an_answer() -> None:
    """The SDK returns a web page as if it were fine; here it is MALFORMED."""
    outcome = await openai_over(Wire(HTTPX.Response(200, html="<html></html>"))).call(a_call())
    assert isinstance(outcome, Failure)
    assert outcome.failure_class is FailureClass.MALFORMED


@pytest.mark.asyncio
async def test_a_stream_is_raw() -> None:
    """Streams come as the bytes they were, not through the SDK's decoder."""
    frames = b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\ndata: [DONE]\n\n'
    wire = Wire(HTTPX.Response(200, headers={"content-type": "text/event-stream"}, content=frames))
    stream = await openai_over(wire).open_stream(a_call())
    assert not isinstance(stream, Failure)
    events = [event async for event in stream]
    await stream.aclose()
    assert b"".join(event.raw for event in events) == frames
    assert [event.kind for event in events] == [EventKind.CONTENT, EventKind.END]


@pytest.mark.asyncio
async def test_a_dialect_the_sdk_does_not_speak_is_misconfigured() -> None:
    """An openai client has no Messages, an anthropic client no Chat; embeddings do not stream."""
    wire = Wire(HTTPX.Response(200, json=CHAT))
    provider = openai_over(wire)
    outcomes = [await provider.call(a_call("messages")), await provider.open_stream(a_call("embeddings"))]
    classes = [outcome.failure_class for outcome in outcomes if isinstance(outcome, Failure)]
    assert classes == [FailureClass.MISCONFIGURED, FailureClass.INVALID_REQUEST]
    assert wire.requests == []


@pytest.mark.skipif(
    "open_telemetry" not in signature(anthropic.AsyncAnthropic).parameters, reason="older SDKs have none of their own"
)
def test_anthropics_own_telemetry_is_off() -> None:
    """The router tells the story once, also when the client was told to trace."""
    client = anthropic.AsyncAnthropic(api_key="k", open_telemetry={"traces": {"enabled": True}})
    provider = SdkProvider(client)
    assert provider._client.open_telemetry["traces"]["enabled"] is False
    assert isinstance(provider, Provider)


@pytest.mark.parametrize(
    "client",
    [openai.OpenAI(api_key="k"), anthropic.Anthropic(api_key="k"), object(), None],
    ids=lambda c: type(c).__name__,
)
def test_only_asynchronous_clients_are_taken(client: object) -> None:
    """A synchronous client would block the loop, and is refused by name."""
    with pytest.raises(ConfigurationError, match=type(client).__name__):
        SdkProvider(client)


@pytest.mark.parametrize(
    ("version", "package", "module"),
    [
        ("2.45.0", "openai", "httpx"),
        ("3.0.0", "openai", "httpx2"),
        ("0.120.0", "anthropic", "httpx"),
        ("2.12.0", "anthropic", "httpx2"),
    ],
)
def test_each_major_speaks_its_httpx(monkeypatch: pytest.MonkeyPatch, version: str, package: str, module: str) -> None:
    """openai 3 and anthropic 1 moved to httpx2; their predecessors are served with httpx."""
    monkeypatch.setattr({"openai": openai, "anthropic": anthropic}[package], "__version__", version)
    assert httpx_of(SDKS[package]).__name__ == module
