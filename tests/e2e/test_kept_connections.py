"""Kept connections that the server closes just as the next request goes out: sent once more, and counted nowhere."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.ports import Provider, ProviderCall
from smart_model_router.domain.request import Dialect
from smart_model_router_providers.http import HttpProvider
from smart_model_router_providers.httpx2_transport import ResendingTransport
from smart_model_router_providers.sdk import SdkProvider
from tests.certificates import serving_loopback, trusting_loopback
from tests.e2e.serving import serving

pytestmark = pytest.mark.asyncio

ANSWERS: dict[Dialect, dict[str, Any]] = {
    "chat": {
        "id": "c1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Paris."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    },
    "messages": {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Paris."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 2},
    },
}
EVENTS = [
    {"id": "c1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Paris."}}]},
    {"id": "c1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
]
PARTS = {
    "one byte": b"H",
    "a status line": b"HTTP/1.1 200 OK\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\ncontent-type: appl",
    "an interim answer": b"HTTP/1.1 102 Processing\r\n\r\n",
}


@dataclass
class Closing:
    """A server that answers `lives` requests on each connection and dies of the next one, having sent `part`."""

    lives: int = 1
    part: bytes = b""
    reset: bool = False
    lives_later: int = 1000
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0
    _served_at_once: int = 1

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        lives = self.lives if self.connections <= self._served_at_once else self.lives_later
        while body := await _request(reader):
            self.bodies.append(body)
            if not lives:
                await self._die(writer)
                break
            lives -= 1
            writer.write(_answer(body))

    async def _die(self, writer: asyncio.StreamWriter) -> None:
        if self.part:
            writer.write(self.part)
            await writer.drain()
            await asyncio.sleep(0.1)  # real time: a reset at once would take the bytes back
        if self.reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

    def dies_on(self, connections: int) -> None:
        """The first `connections` of them have `lives`, those after them `lives_later`."""
        self._served_at_once = connections


async def _request(reader: asyncio.StreamReader) -> bytes:
    """The body of the next request; b"" when there is none."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        return await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def _answer(body: bytes) -> bytes:
    asked = json.loads(body)
    if asked.get("stream"):
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in EVENTS) + "data: [DONE]\n\n"
        head, payload = "text/event-stream", text.encode()
    else:
        dialect: Dialect = "messages" if asked.get("model") == "claude" else "chat"
        head, payload = "application/json", json.dumps(ANSWERS[dialect]).encode()
    return f"HTTP/1.1 200 OK\r\ncontent-type: {head}\r\ncontent-length: {len(payload)}\r\n\r\n".encode() + payload


def a_call(*, stream: bool = False, model: str = "m", text: str = "Hi") -> ProviderCall:
    """A small call, as the router would make it."""
    dialect: Dialect = "messages" if model == "claude" else "chat"
    body = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 50, "stream": stream}
    return ProviderCall(dialect, model, json.dumps(body).encode(), body, stream)


async def ask(provider: Provider, call: ProviderCall) -> Failure | str:
    """What one call comes to: the failure, or `ok`."""
    if not call.stream:
        outcome = await provider.call(call)
        return outcome if isinstance(outcome, Failure) else "ok"
    stream = await provider.open_stream(call)
    if isinstance(stream, Failure):
        return stream
    try:
        failures = [event.failure async for event in stream if event.failure is not None]
    finally:
        await stream.aclose()
    return failures[0] if failures else "ok"


def over_httpx2(url: str) -> HttpProvider:
    """A provider over a transport that its owner gave."""
    return HttpProvider(base_url=url, transport=httpx2.AsyncHTTPTransport())


def over_openai(url: str) -> SdkProvider:
    """A provider over a client of the `openai` SDK with our transport."""
    http_client = openai.DefaultAsyncHttpxClient(transport=ResendingTransport(httpx2.AsyncHTTPTransport()))
    return SdkProvider(openai.AsyncOpenAI(api_key="k", base_url=url, http_client=http_client))


def over_anthropic(url: str) -> SdkProvider:
    """The same with `anthropic`."""
    http_client = anthropic.DefaultAsyncHttpxClient(transport=ResendingTransport(httpx2.AsyncHTTPTransport()))
    return SdkProvider(anthropic.AsyncAnthropic(api_key="k", base_url=url.removesuffix("/v1"), http_client=http_client))


Way = Callable[[str], Provider]
WAYS: dict[str, Way] = {
    "aiohttp": lambda url: HttpProvider(base_url=url),
    "httpx2": over_httpx2,
    "openai": over_openai,
}


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_kept_connection_that_died_is_no_failure(way: str, stream: bool, reset: bool) -> None:
    """The same bytes go out once more on a new connection, and the answer comes from there."""
    server = Closing(reset=reset)
    async with serving(server.serve) as url:
        provider = WAYS[way](url)
        call = a_call(stream=stream)
        assert [await ask(provider, call) for _ in range(3)] == ["ok"] * 3
        await provider.aclose()
    assert (len(server.bodies), server.connections) == (4, 2)
    assert len(set(server.bodies)) == 1


async def test_an_anthropic_client_is_served_as_well() -> None:
    """Over the other SDK, in its dialect."""
    server = Closing()
    async with serving(server.serve) as url:
        provider = over_anthropic(url)
        assert [await ask(provider, a_call(model="claude")) for _ in range(2)] == ["ok"] * 2
        await provider.aclose()
    assert (len(server.bodies), server.connections) == (3, 2)


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_it_holds_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reset: bool) -> None:
    """A connection with TLS is not another case."""
    monkeypatch.setattr("smart_model_router_providers.http_transport._tls", trusting_loopback)
    server = Closing(reset=reset)
    async with serving(server.serve, serving_loopback(tmp_path)) as url:
        provider = HttpProvider(base_url=url)
        assert [await ask(provider, a_call(stream=stream)) for stream in (False, True)] == ["ok"] * 2
        await provider.aclose()
    assert (len(server.bodies), server.connections) == (3, 2)


@pytest.mark.parametrize("way", ["aiohttp", "httpx2"])
async def test_a_large_body_is_sent_whole_both_times(way: str) -> None:
    """A body that goes out in pieces begins from its beginning."""
    server = Closing()
    async with serving(server.serve) as url:
        provider = WAYS[way](url)
        call = a_call(text="x" * 700_000)
        assert [await ask(provider, call) for _ in range(2)] == ["ok"] * 2
        await provider.aclose()
    assert server.bodies == [call.payload] * 3


@pytest.mark.parametrize("way", WAYS)
async def test_the_second_connection_is_a_new_one(way: str) -> None:
    """Of twenty kept connections that all died none is tried after the first; the request goes out twice at most."""
    server = Closing()
    server.dies_on(20)
    async with serving(server.serve) as url:
        provider = WAYS[way](url)
        assert await asyncio.gather(*(ask(provider, a_call()) for _ in range(20))) == ["ok"] * 20
        opened, sent = server.connections, len(server.bodies)
        assert await ask(provider, a_call()) == "ok"
        await provider.aclose()
    assert (len(server.bodies) - sent, server.connections - opened) == (2, 1)


@pytest.mark.parametrize("way", WAYS)
async def test_a_new_connection_that_dies_is_a_failure(way: str) -> None:
    """Only what fails on a new connection is a verdict: the first request is sent once, a later one twice."""
    server = Closing(lives_later=0)
    async with serving(server.serve) as url:
        provider = WAYS[way](url)
        assert await ask(provider, a_call()) == "ok"
        outcomes = [await ask(provider, a_call()) for _ in range(2)]
        await provider.aclose()
    assert [isinstance(found, Failure) and found.failure_class for found in outcomes] == [FailureClass.TRANSPORT] * 2
    assert (len(server.bodies), server.connections) == (4, 3)  # kept 2, new 1, new 1


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("part", PARTS)
async def test_a_part_of_an_answer_forbids_it(part: str, reset: bool) -> None:
    """From the first byte of an answer on the provider may have done the work: nothing is sent again."""
    server = Closing(part=PARTS[part], reset=reset)
    async with serving(server.serve) as url:
        provider = HttpProvider(base_url=url)
        await provider.call(a_call())
        outcome = await provider.call(a_call())
        await provider.aclose()
    assert isinstance(outcome, Failure)
    assert (outcome.failure_class, len(server.bodies)) == (FailureClass.TRANSPORT, 2)
    assert "RawResponseMessage" not in outcome.message


async def test_the_router_counts_nothing() -> None:
    """A lone provider that closes every connection after one answer: no attempt, failure, retry or evidence more."""
    server = Closing(lives_later=1)
    async with serving(server.serve) as url:
        config = {
            "version": 1,
            "providers": {"a": {"kind": "openai_compatible", "base_url": url, "api_key": "k"}},
            "models": {"smart": {"tiers": [{"targets": ["a/x"]}], "last_resort": []}},
        }
        async with SmartModelRouter.from_config(config, seed=1) as router:
            body = {"model": "smart", "messages": [{"role": "user", "content": "Hi"}]}
            for _ in range(30):
                reply = await router.chat(body)
                assert [attempt.failure_class for attempt in reply.report.attempts] == [None]
            for _ in range(30):
                async with router.stream_chat(body) as chunks:
                    async for _chunk in chunks:
                        pass
                assert [attempt.failure_class for attempt in chunks.report.attempts] == [None]
            figures = router.stats().targets["a/x"]
    assert server.connections > 30
    assert (figures.calls, figures.successes, sum(figures.failures.values())) == (60, 60, 0)


async def test_a_client_without_the_transport_is_served_by_a_retry() -> None:
    """An SDK client as it comes does not tell which connection it used: the router's quick retry serves the request."""
    server = Closing()
    async with serving(server.serve) as url:
        client = openai.AsyncOpenAI(api_key="k", base_url=url)
        config = {
            "version": 1,
            "providers": {"a": {"kind": "openai"}},
            "models": {"smart": {"tiers": [{"targets": ["a/x"]}], "last_resort": []}},
        }
        async with SmartModelRouter.from_config(config, providers={"a": SdkProvider(client)}, seed=1) as router:
            body = {"model": "smart", "messages": [{"role": "user", "content": "Hi"}]}
            await router.chat(body)
            reply = await router.chat(body)
    assert [attempt.failure_class for attempt in reply.report.attempts] == [FailureClass.TRANSPORT, None]
