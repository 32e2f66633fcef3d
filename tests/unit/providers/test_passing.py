"""Requests that pass through an HTTP provider: where they go, what goes with them, and what answers mean."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import httpx2
import pytest

from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.ports import PassedCall, PassedReply, SupportsPassthrough
from smart_model_router_providers.http import HttpProvider
from smart_model_router_providers.sdk import SdkProvider

pytestmark = pytest.mark.asyncio


async def _body() -> AsyncIterator[bytes]:
    yield b"one"
    yield b"two"


def a_call(path: str = "/v1/audio/speech", **rest: Any) -> PassedCall:
    """A call with a body of six bytes."""
    given: dict[str, Any] = {"query": "", "headers": {}, "length": 6, **rest}
    return PassedCall(path=path, body=_body(), **given)


async def outcome(
    answer: Callable[[httpx2.Request], httpx2.Response], call: PassedCall, **options: Any
) -> tuple[httpx2.Request | None, PassedReply | Failure]:
    """The request that a provider makes, and what it comes to."""
    seen: list[httpx2.Request] = []

    async def answered(request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        seen.append(request)
        return answer(request)

    provider = HttpProvider(transport=httpx2.MockTransport(answered), **options)
    try:
        reply = await provider.pass_through(call)
        return (seen[0] if seen else None), reply
    finally:
        await provider.aclose()


def told(status: int, message: str) -> Callable[[httpx2.Request], httpx2.Response]:
    """An error."""
    return lambda _: httpx2.Response(status, json={"error": {"message": message}})


@pytest.mark.parametrize(
    ("options", "call", "url"),
    [
        ({"base_url": "http://h/v1"}, {"query": "a=1&b=%20"}, "http://h/v1/audio/speech?a=1&b=%20"),
        ({"base_url": "http://h/x?k=1"}, {"query": "a=1"}, "http://h/x/audio/speech?k=1&a=1"),
        (
            {"kind": "azure", "base_url": "https://r.openai.azure.com"},
            {"deployment": "a/b", "query": "x=1"},
            "https://r.openai.azure.com/openai/deployments/a%2Fb/audio/speech?api-version=2024-10-21&x=1",
        ),
        (
            {"kind": "azure", "base_url": "https://r.openai.azure.com/openai/v1"},
            {"deployment": "a"},
            "https://r.openai.azure.com/openai/v1/audio/speech",
        ),
    ],
)
async def test_where_a_call_goes(options: dict[str, Any], call: dict[str, Any], url: str) -> None:
    """Below the base URL, with the query; Azure's own URLs name the deployment."""
    request, reply = await outcome(lambda _: httpx2.Response(200, content=b"spoken"), a_call(**call), **options)
    assert request is not None
    assert str(request.url) == url
    assert not isinstance(reply, Failure)
    assert await reply.next_piece() == b"spoken"
    assert await reply.next_piece() == b""
    await reply.aclose()


async def test_what_goes_with_a_call() -> None:
    """The provider's key and configured headers, the client's word on the bodies, their length, and no compression."""
    options: dict[str, Any] = {"base_url": "http://h/v1", "api_keys": ["k"], "headers": {"X-Team": "t"}}
    first, _ = await outcome(lambda _: httpx2.Response(204), a_call(headers={"content-type": "audio/wav"}), **options)
    second, _ = await outcome(lambda _: httpx2.Response(204), a_call(), **options)
    assert first is not None
    assert second is not None
    assert first.content == b"onetwo"
    assert first.headers["content-length"] == "6"
    assert "transfer-encoding" not in first.headers
    names = ("authorization", "x-team", "content-type", "accept-encoding")
    assert [first.headers[name] for name in names] == ["Bearer k", "t", "audio/wav", "identity"]
    assert "content-type" not in second.headers


@pytest.mark.parametrize("deployment", ["", ".", ".."])
async def test_azure_needs_a_deployment_that_is_a_name(deployment: str) -> None:
    """Nothing is sent; the message says where it can be named."""
    azure = {"kind": "azure", "base_url": "https://r.openai.azure.com"}
    request, failure = await outcome(told(500, "not asked"), a_call(deployment=deployment), **azure)
    assert request is None
    assert isinstance(failure, Failure)
    assert failure.failure_class is FailureClass.INVALID_REQUEST
    assert "provider/deployment" in failure.message


@pytest.mark.parametrize(
    ("status", "message", "found", "wide"),
    [
        (401, "Incorrect API key provided", FailureClass.AUTH, True),
        (401, "Missing scopes: model.audio.request", FailureClass.AUTH, False),
        (403, "forbidden", FailureClass.AUTH, False),
        (402, "no credit", FailureClass.QUOTA, True),
        (404, "Invalid URL (POST /v1/audio/speech)", FailureClass.MISCONFIGURED, False),
        (405, "Method not allowed", FailureClass.MISCONFIGURED, False),
        (301, "moved", FailureClass.MISCONFIGURED, False),
        (500, "x" * 2_000_000, FailureClass.SERVER_ERROR, False),
    ],
)
async def test_what_an_answer_means(status: int, message: str, found: FailureClass, wide: bool) -> None:
    """By its status; a 401 for a scope that the key lacks is about this path alone. A long body is not kept."""
    _, failure = await outcome(told(status, message), a_call(), base_url="http://h/v1")
    assert isinstance(failure, Failure)
    assert (failure.failure_class, failure.credential_wide) == (found, wide)
    assert len(failure.raw) < 1_000_000


def _torn(stream: httpx2.AsyncByteStream, request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, stream=stream, request=request)


async def test_a_body_that_breaks_off_is_truncated() -> None:
    """After the head had arrived; what is no transport's exception is a bug, and raised."""

    class Torn(httpx2.AsyncByteStream):
        def __init__(self, error: Exception) -> None:
            self._error = error

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"spo"
            raise self._error

    for error in (httpx2.ReadError("reset"), ZeroDivisionError()):
        torn = partial(_torn, Torn(error))
        _, reply = await outcome(torn, a_call(), base_url="http://h")
        assert not isinstance(reply, Failure)
        assert await reply.next_piece() == b"spo"
        if isinstance(error, ZeroDivisionError):
            with pytest.raises(ZeroDivisionError):
                await reply.next_piece()
        else:
            failure = await reply.next_piece()
            assert isinstance(failure, Failure)
            assert (failure.failure_class, failure.status) == (FailureClass.TRUNCATED, 200)


async def test_an_sdk_client_has_no_other_paths() -> None:
    """It is no SupportsPassthrough, so that a route to it is a configuration error."""
    assert isinstance(HttpProvider(base_url="http://h/v1"), SupportsPassthrough)
    assert not hasattr(SdkProvider, "pass_through")
