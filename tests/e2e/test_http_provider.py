"""The HTTP provider over real sockets: every fault comes out as its class, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import httpx2
import pytest

from smart_model_router import RouterUnavailable, SmartModelRouter, StreamInterrupted
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent, Success, Usage, Wait
from smart_model_router.domain.ports import ProviderCall, ProviderStream
from smart_model_router.domain.request import Dialect
from smart_model_router.wires import text_of
from smart_model_router_providers import http
from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_providers.http import HttpProvider
from tests.e2e.descriptors import sockets
from tests.e2e.eventually import PATIENCE, becomes
from tests.e2e.serving import serving

pytestmark = pytest.mark.asyncio

DIALECTS: tuple[Dialect, ...] = ("chat", "messages")


def a_call(dialect: Dialect = "chat", *, stream: bool = False, **body: Any) -> ProviderCall:
    """A small call, as the router would make it."""
    if dialect == "embeddings":
        body.setdefault("input", "Hi")
    else:
        body.setdefault("messages", [{"role": "user", "content": "Hi"}])
        body.setdefault("max_tokens", 50)
    if stream:
        body["stream"] = True
        if dialect == "chat":
            body["stream_options"] = {"include_usage": True}
    body["model"] = "fault"
    return ProviderCall(dialect, "fault", json.dumps(body).encode(), body, stream)


@asynccontextmanager
async def running(script: Sequence[Fault] = (), **options: Any) -> AsyncGenerator[tuple[HttpProvider, FaultServer]]:
    """A provider and the fault server it talks to."""
    async with FaultServer(list(script), text="Paris.") as server:
        provider = HttpProvider(base_url=server.base_url, api_keys=["k1", "k2"], **options)
        try:
            yield provider, server
        finally:
            await provider.aclose()


async def streamed(provider: HttpProvider, call: ProviderCall) -> list[StreamEvent]:
    """Every event of a stream that opens."""
    stream = await provider.open_stream(call)
    assert not isinstance(stream, Failure)
    try:
        return [event async for event in stream]
    finally:
        await stream.aclose()


def last_failure(events: list[StreamEvent]) -> FailureClass | None:
    """The class of the failure a stream ended with."""
    return events[-1].failure.failure_class if events[-1].failure else None


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_whole_answer(dialect: Dialect) -> None:
    """An answer comes back with its JSON, its own bytes and its usage."""
    async with running() as (provider, _):
        outcome = await provider.call(a_call(dialect))
    assert isinstance(outcome, Success)
    assert json.loads(outcome.raw) == outcome.body
    assert "Paris." in outcome.raw.decode()
    assert outcome.usage is not None
    assert outcome.usage.completion_tokens > 0


async def test_embeddings() -> None:
    """Embeddings are answers too."""
    async with running() as (provider, _):
        outcome = await provider.call(a_call("embeddings"))
    assert isinstance(outcome, Success)
    assert outcome.body["data"][0]["embedding"]


@pytest.mark.parametrize(("dialect", "finish"), [("chat", "stop"), ("messages", "end_turn")])
async def test_a_stream(dialect: Dialect, finish: str) -> None:
    """A stream gives its text, its finish reason, its usage and its terminator."""
    async with running() as (provider, _):
        events = await streamed(provider, a_call(dialect, stream=True))
    text = "".join(text_of(dialect, event.data) for event in events if event.data)
    assert text == "Paris."
    assert events[-1].kind is EventKind.END
    assert [event.finish for event in events if event.finish] == [finish]
    usage = [event.usage for event in events if event.usage][-1]
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens > 0


async def test_a_stream_is_passed_on_as_it_came() -> None:
    """The frames together are the bytes that were sent."""
    async with running() as (provider, _):
        events = await streamed(provider, a_call(stream=True))
    raw = b"".join(event.raw for event in events)
    assert raw.startswith(b"data: {")
    assert raw.endswith(b"data: [DONE]\n\n")


FAULTS = [
    (Fault.status(500), "SERVER_ERROR"),
    (Fault.status(429, headers={"retry-after": "3"}), "RATE_LIMITED"),
    (Fault.status(401), "AUTH"),
    (Fault.status(307, headers={"location": "/v1/elsewhere"}), "MISCONFIGURED"),
    (Fault.error_body(), "SERVER_ERROR"),
    (Fault.html(), "MALFORMED"),
    (Fault.wrong_json(), "MALFORMED"),
    (Fault.empty("body"), "MALFORMED"),
    (Fault.empty("content"), "EMPTY"),
    (Fault.empty("choices"), "EMPTY"),
    (Fault.bad_json(), "MALFORMED"),
    (Fault.cut(at_byte=20), "TRUNCATED"),
    (Fault.reset(), "TRANSPORT"),
    (Fault.down(), "TRANSPORT"),
]


@pytest.mark.parametrize(("fault", "expected"), FAULTS, ids=str)
async def test_every_fault_of_a_whole_answer_has_its_class(fault: Fault, expected: str) -> None:
    """What goes wrong with a whole answer is a value of its class, never an exception."""
    async with running([fault]) as (provider, _):
        outcome = await provider.call(a_call())
    assert isinstance(outcome, Failure)
    assert outcome.failure_class == expected
    assert outcome.message


STREAM_HEAD_FAULTS = [
    (Fault.status(503), "SERVER_ERROR"),
    (Fault.status(529), "OVERLOADED"),
    (Fault.html(), "MALFORMED"),
    (Fault.json_instead_of_stream(), "MALFORMED"),
    (Fault.error_body({"error": {"code": 429, "message": "slow"}}), "RATE_LIMITED"),
    (Fault.reset(), "TRANSPORT"),
    (Fault.down(), "TRANSPORT"),
]


@pytest.mark.parametrize(("fault", "expected"), STREAM_HEAD_FAULTS, ids=str)
async def test_a_stream_that_does_not_open_is_a_failure(fault: Fault, expected: str) -> None:
    """An error, a web page or JSON instead of events is a failure before any stream exists."""
    async with running([fault]) as (provider, _):
        outcome = await provider.open_stream(a_call(stream=True))
    assert isinstance(outcome, Failure)
    assert outcome.failure_class == expected


STREAM_FAULTS = [
    (Fault.cut(after=1), "TRUNCATED"),
    (Fault.cut(after=1, reset=True), "TRUNCATED"),
    (Fault.cut(at_byte=0), "TRANSPORT"),
    (Fault.error_event(after=1), "SERVER_ERROR"),
    (Fault.error_event(), "SERVER_ERROR"),
]


@pytest.mark.parametrize(("fault", "expected"), STREAM_FAULTS, ids=str)
async def test_a_stream_that_breaks_ends_with_its_failure(fault: Fault, expected: str) -> None:
    """A cut or an error event is the last event, with the class it means."""
    async with running([fault]) as (provider, _):
        events = await streamed(provider, a_call(stream=True))
    assert events[-1].kind is EventKind.ERROR
    assert last_failure(events) == expected


async def test_a_missing_terminator_is_not_made_up() -> None:
    """A stream that ends cleanly without its terminator simply ends: judging that is the router's."""
    async with running([Fault.no_terminator()]) as (provider, _):
        events = await streamed(provider, a_call(stream=True))
    assert EventKind.END not in {event.kind for event in events}
    assert events[-1].failure is None


async def test_a_broken_event_does_not_end_the_stream() -> None:
    """One event that is not JSON is MALFORMED; the next ones arrive."""
    async with running([Fault.bad_json(after=1)]) as (provider, _):
        kinds = [event.kind for event in await streamed(provider, a_call(stream=True))]
    assert EventKind.MALFORMED in kinds
    assert kinds[-1] is EventKind.END


async def test_a_hint_comes_with_the_failure() -> None:
    """Retry-After 1.5 is 1.5 seconds."""
    async with running([Fault.status(429, headers={"retry-after": "1.5"})]) as (provider, _):
        outcome = await provider.call(a_call())
    assert isinstance(outcome, Failure)
    assert outcome.wait == Wait(1.5, "minute")


async def test_limits_come_with_every_answer() -> None:
    """The buckets in the headers come with answers and with streams."""
    async with running([Fault.limit(rpm=30)]) as (provider, _):
        outcome = await provider.call(a_call())
        stream = await provider.open_stream(a_call(stream=True))
        assert not isinstance(stream, Failure)
        await stream.aclose()
    assert outcome.reading.buckets[0].limit == 30
    assert stream.reading.buckets[0].remaining == 28


async def test_what_goes_out() -> None:
    """The payload goes out as it is, under the credential the call names, with the call's own headers."""
    async with running(headers={"x-team": "search"}) as (provider, server):
        await provider.call(ProviderCall("chat", "fault", b'{"model":"fault","messages":[],"odd":1}', {}, credential=1))
        (request,) = server.requests
    assert request.key == "k2"
    assert request.body == {"model": "fault", "messages": [], "odd": 1}
    assert request.headers["x-team"] == "search"
    assert request.path.endswith("/v1/chat/completions")


async def test_one_connection_serves_calls_in_turn() -> None:
    """Calls one after another share a connection, failed ones included."""
    peers: set[object] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.add(writer.get_extra_info("peername"))
        body = b'{"error": {"message": "no"}}'
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                await reader.readexactly(length)
                writer.write(b"HTTP/1.1 500 No\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        except asyncio.IncompleteReadError:
            writer.close()

    async with serving(serve) as url:
        provider = HttpProvider(base_url=url)
        for _ in range(5):
            await provider.call(a_call())
        await provider.aclose()
    assert len(peers) == 1


@pytest.mark.parametrize(
    ("answers_anew", "outcome", "received"),
    [(True, FailureClass.INVALID_REQUEST, 3), (False, FailureClass.TRANSPORT, 3)],
    ids=["the new one answers", "the new one dies, too"],
)
async def test_a_kept_connection_that_died_costs_no_verdict(
    answers_anew: bool, outcome: FailureClass, received: int
) -> None:
    """A call on a reused connection that ends before the first byte is sent once more, on a new connection, no more."""
    requests, connections = 0, 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests, connections
        connections += 1
        number, answers = connections, 1 if connections == 1 or answers_anew else 0
        while head := await _head(reader):
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            requests += 1
            if (number == 1 and requests > 1) or not answers:
                break
            writer.write(b"HTTP/1.1 400 No\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    async with serving(serve) as url:
        provider = HttpProvider(base_url=url)
        await provider.call(a_call())
        second = await provider.call(a_call())
        await provider.aclose()
    assert isinstance(second, Failure)
    assert (second.failure_class, requests, connections) == (outcome, received, 2)


async def test_a_new_connection_that_dies_is_a_verdict() -> None:
    """Only a reused connection earns a second call: what fails on a new one has failed."""
    requests = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        head = await _head(reader)
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
        requests += 1
        writer.close()

    async with serving(serve) as url:
        provider = HttpProvider(base_url=url)
        outcome = await provider.call(a_call())
        await provider.aclose()
    assert isinstance(outcome, Failure)
    assert (outcome.failure_class, requests) == (FailureClass.TRANSPORT, 1)


async def _head(reader: asyncio.StreamReader) -> bytes:
    """The head of the next request; b"" when there is none."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        return await reader.readuntil(b"\r\n\r\n")
    return b""


async def test_a_hundred_and_fifty_calls_at_once() -> None:
    """The pool is no bottleneck: more calls than any default limit are in flight together."""
    async with running([Fault.delay(first=0.5)]) as (provider, server):
        outcomes = await asyncio.gather(*(provider.call(a_call()) for _ in range(150)))
        assert server.max_in_flight() == 150
    assert all(isinstance(outcome, Success) for outcome in outcomes)


@pytest.mark.parametrize("fault", [Fault.hang(), Fault.stall(after=1), Fault.headers_only()], ids=str)
async def test_cancelling_a_call_closes_its_connection(fault: Fault) -> None:
    """The provider sees the caller leave within a moment, so that it stops generating."""
    async with running([fault]) as (provider, server):
        task = asyncio.create_task(provider.call(a_call()))
        await arrival(server)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await abandoned(server)


async def test_leaving_a_stream_closes_its_connection() -> None:
    """aclose in the middle of a stream is seen by the provider at once, and leaves no task to this end."""
    async with running([Fault.stall(after=1)]) as (provider, server):
        before = asyncio.all_tasks()
        stream = await provider.open_stream(a_call(stream=True))
        assert not isinstance(stream, Failure)
        await anext(aiter(stream))
        await stream.aclose()
        await stream.aclose()
        assert await abandoned(server)
        gc.collect()
        assert asyncio.all_tasks() - before == set()


async def test_cancelling_a_waiting_stream_closes_its_connection() -> None:
    """A consumer cancelled while it waits for an event leaves nothing open."""
    async with running([Fault.stall(after=1)]) as (provider, server):
        stream = await provider.open_stream(a_call(stream=True))
        assert not isinstance(stream, Failure)

        async def consume() -> None:
            async for _ in stream:
                pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(0.05)  # real time: the other task waits by now; it is told the same if it does not yet
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await stream.aclose()
        assert await abandoned(server)


async def reading(provider: HttpProvider) -> tuple[AsyncIterator[StreamEvent], ProviderStream]:
    """A stream whose first content was read, and no more of it will come."""
    stream = await provider.open_stream(a_call(stream=True))
    assert not isinstance(stream, Failure)
    events = aiter(stream)
    while (await anext(events)).kind is not EventKind.CONTENT:
        pass
    return events, stream


async def rest(events: AsyncIterator[StreamEvent]) -> list[StreamEvent]:
    """What is left of a stream."""
    return [event async for event in events]


async def test_who_reads_a_stream_that_another_task_closes_is_told() -> None:
    """The reader waits for nothing that cannot come any more."""
    async with running([Fault.stall(after=1)]) as (provider, _):
        events, stream = await reading(provider)
        reader = asyncio.create_task(rest(events))
        await asyncio.sleep(0.05)  # real time: the other task waits by now; it is told the same if it does not yet
        await stream.aclose()
        assert last_failure(await asyncio.wait_for(reader, PATIENCE)) is FailureClass.TRUNCATED


@pytest.mark.parametrize("fault", [Fault.hang(), Fault.headers_only(), Fault.stall(after=1)], ids=str)
async def test_closing_a_provider_ends_its_calls(fault: Fault) -> None:
    """Who waits for a head or reads a body when the provider is closed is told at once."""
    async with running([fault]) as (provider, server):
        call = asyncio.create_task(provider.call(a_call()))
        await arrival(server)
        await asyncio.sleep(0.05)  # real time: the other task waits by now; it is told the same if it does not yet
        await provider.aclose()
        outcome = await asyncio.wait_for(call, PATIENCE)
    assert isinstance(outcome, Failure)
    assert outcome.failure_class in {FailureClass.TRANSPORT, FailureClass.TRUNCATED}


async def test_closing_a_provider_ends_its_streams() -> None:
    """Who waits for the next event is told at once, and who asks for it only afterwards, too: never an end as usual."""
    async with running([Fault.stall(after=1)]) as (provider, server):
        (waited_for, one), (asked_later, other) = await reading(provider), await reading(provider)
        waiting = asyncio.create_task(rest(waited_for))
        await asyncio.sleep(0.05)  # real time: the other task waits by now; it is told the same if it does not yet
        await provider.aclose()
        endings = [await asyncio.wait_for(waiting, PATIENCE), await asyncio.wait_for(rest(asked_later), PATIENCE)]
        assert await becomes(lambda: all(call.ending == "abandoned" for call in server.requests))
        await one.aclose()
        await other.aclose()
    assert [last_failure(events) for events in endings] == [FailureClass.TRUNCATED] * 2


async def test_closing_a_provider_ends_its_streams_on_other_loops() -> None:
    """A reader on another thread's loop is told as well."""
    async with running([Fault.stall(after=1)]) as (provider, _):
        opened = threading.Event()

        async def read() -> list[StreamEvent]:
            events, _ = await reading(provider)
            opened.set()
            return await rest(events)

        reader = asyncio.create_task(asyncio.to_thread(asyncio.run, read()))
        assert await becomes(opened.is_set)
        await provider.aclose()
        assert last_failure(await asyncio.wait_for(reader, PATIENCE)) is FailureClass.TRUNCATED


def routed_to(*servers: FaultServer) -> SmartModelRouter:
    """A router over fault servers, the first one first."""
    providers = {f"p{n}": {"kind": "openai_compatible", "base_url": s.base_url} for n, s in enumerate(servers)}
    tier = {"targets": [f"{name}/m" for name in providers]}
    models = {"smart": {"tiers": [tier], "last_resort": []}}
    return SmartModelRouter.from_config({"version": 1, "providers": providers, "models": models})


async def test_closing_a_router_ends_its_calls_and_blames_nobody() -> None:
    """Who waits for an answer hears at once why there is none; nobody else is asked, and nobody is held to account."""
    async with FaultServer([Fault.stall()]) as server, FaultServer() as other:
        router = routed_to(server, other)
        asked = asyncio.ensure_future(router.chat({"model": "smart", "messages": [{"role": "user", "content": "Hi"}]}))
        await asyncio.sleep(0.1)  # real time: the other side is at work by now; the same holds if it is not yet
        await router.aclose()
        with pytest.raises(RouterUnavailable, match="the router was closed") as caught:
            await asyncio.wait_for(asked, PATIENCE)
        assert not other.requests
    assert [(a.target, a.failure_class) for a in caught.value.attempts] == [("p0/m", FailureClass.CANCELLED)]


async def test_closing_a_router_ends_its_streams() -> None:
    """Who reads a router's stream hears at once that it was cut, with what had arrived."""
    async with FaultServer([Fault.stall(after=1)], text="Paris is here.") as server:
        router = routed_to(server)
        stream = router.stream_chat({"model": "smart", "messages": [{"role": "user", "content": "Hi"}]})
        while not stream.text:
            await anext(stream)
        reader = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.05)  # real time: the other task waits by now; it is told the same if it does not yet
        await router.aclose()
        with pytest.raises(StreamInterrupted, match="the router was closed") as caught:
            await asyncio.wait_for(reader, PATIENCE)
    assert "Paris is here.".startswith(caught.value.text)


async def test_what_comes_unasked_is_nobodys_answer() -> None:
    """A second answer on an idle connection is not taken for that to the next call: another connection is."""
    peers: set[object] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.add(writer.get_extra_info("peername"))
        with suppress(asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
                for text in ("asked", "unasked"):
                    body = ANSWER.replace(b"Hi", f"{text} {len(peers)}".encode())
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
                    await writer.drain()
                    await asyncio.sleep(0.02)

    async with serving(serve) as url:
        provider = HttpProvider(base_url=url)
        for number in (1, 2, 3):
            answer = await provider.call(a_call())
            assert isinstance(answer, Success)
            assert f'"asked {number}"'.encode() in answer.raw
            await asyncio.sleep(0.1)  # real time: the other side is at work by now; the same holds if it is not yet
        await provider.aclose()


async def arrival(server: FaultServer) -> None:
    """Until the server has a call."""
    await becomes(lambda: bool(server.requests))


async def abandoned(server: FaultServer) -> bool:
    """Whether the server sees its client leave within a second."""
    return await becomes(lambda: server.requests[-1].ending == "abandoned")


def raw_answer(head: bytes, body: bytes) -> Any:
    """A handler that answers every connection with these bytes and closes it."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n" + head + b"\r\n" + body)
        await writer.drain()

    return handler


ANSWER = json.dumps({"choices": [{"message": {"content": "Hi"}}], "usage": {"prompt_tokens": 1}}).encode()


async def test_a_compressed_answer() -> None:
    """gzip is undone."""
    body = gzip.compress(ANSWER)
    head = b"content-encoding: gzip\r\ncontent-length: %d\r\n" % len(body)
    async with serving(raw_answer(head, body)) as url:
        provider = HttpProvider(base_url=url)
        outcome = await provider.call(a_call())
        await provider.aclose()
    assert isinstance(outcome, Success)
    assert outcome.usage == Usage(1, 0)


async def test_a_broken_compression_is_malformed() -> None:
    """Bytes that are not the gzip they claim to be are MALFORMED."""
    head = b"content-encoding: gzip\r\ncontent-length: %d\r\n" % len(ANSWER)
    async with serving(raw_answer(head, ANSWER)) as url:
        provider = HttpProvider(base_url=url)
        outcome = await provider.call(a_call())
        await provider.aclose()
    assert isinstance(outcome, Failure)
    assert outcome.failure_class is FailureClass.MALFORMED


@asynccontextmanager
async def overheard(reply: bytes) -> AsyncGenerator[tuple[str, list[bytes]]]:
    """A server that answers everything with `reply`; its address, and the heads of what it is sent."""
    heads: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(reply)
        await writer.drain()

    async with serving(handler) as url:
        yield url.removeprefix("http://").removesuffix("/v1"), heads


WHOLE = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)


async def test_what_comes_before_an_answer_is_passed_over() -> None:
    """A 100 or a 103 is not the answer yet."""
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    async with overheard(early + WHOLE) as (address, _):
        provider = HttpProvider(base_url=f"http://{address}/v1")
        outcome = await provider.call(a_call())
        await provider.aclose()
    assert isinstance(outcome, Success)


async def test_a_name_and_a_password_in_the_url() -> None:
    """They go out as basic authentication, unless the owner's headers or a key say otherwise."""
    async with overheard(WHOLE) as (address, heads):
        for keys in ([], ["k"]):
            provider = HttpProvider(base_url=f"http://me:p%40ss@{address}/v1", api_keys=keys)
            assert isinstance(await provider.call(a_call()), Success)
            await provider.aclose()
    assert b"authorization: Basic bWU6cEBzcw==\r\n" in heads[0]
    assert b"authorization: Bearer k\r\n" in heads[1]
    assert b"host: %b\r\n" % address.encode() in heads[0]


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_is_told_where_to_and_who_asks(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's proxy gets the whole URL, or a CONNECT for TLS, with the name and password of its own URL."""
    refusal = b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n"
    async with overheard(WHOLE if scheme == "http" else refusal) as (address, heads):
        monkeypatch.setenv(f"{scheme}_proxy", f"http://me:pw@{address}")
        provider = HttpProvider(base_url=f"{scheme}://provider.test/v1", api_keys=["k"])
        outcomes = [await provider.call(a_call()) for _ in range(2)]
        await provider.aclose()
    line = b"POST http://provider.test/v1/chat/completions" if scheme == "http" else b"CONNECT provider.test:443"
    assert [head.startswith(line) for head in heads] == [True, True]
    assert all(b"proxy-authorization: basic bwu6chc=\r\n" in head.lower() for head in heads)
    assert all((b"Bearer k" in head) == (scheme == "http") for head in heads)
    assert [type(outcome) for outcome in outcomes] == [Success if scheme == "http" else Failure] * 2


async def test_an_answer_without_end_is_malformed() -> None:
    """A body over 64 MiB is given up, not read to its end."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
        while True:
            writer.write(b" " * (1 << 20))
            await writer.drain()

    async with serving(handler) as url:
        provider = HttpProvider(base_url=url)
        outcome = await provider.call(a_call())
        await provider.aclose()
    assert isinstance(outcome, Failure)
    assert outcome.failure_class is FailureClass.MALFORMED
    assert "67108864" in outcome.message


async def test_what_is_not_http_is_malformed() -> None:
    """A server that speaks something else is MALFORMED."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n")
        await writer.drain()
        await reader.read(1)

    async with serving(handler) as url:
        provider = HttpProvider(base_url=url)
        outcome = await provider.call(a_call())
        await provider.aclose()
    assert isinstance(outcome, Failure)
    assert outcome.failure_class is FailureClass.MALFORMED


async def test_a_large_body_arrives_whole() -> None:
    """Ten megabytes go out in pieces and arrive as one body with its length."""
    async with running() as (provider, server):
        call = a_call(padding="x" * 10_000_000)
        outcome = await provider.call(call)
        (request,) = server.requests
    assert isinstance(outcome, Success)
    assert request.body == call.body
    assert request.headers["content-length"] == str(len(call.payload))
    assert "transfer-encoding" not in request.headers


async def test_a_rejected_upload_is_answered_at_once() -> None:
    """A server that refuses a large body without reading it is heard, and nothing hangs."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 No\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(1_000)  # real time: for ever

    async with serving(handler) as url:
        provider = HttpProvider(base_url=url)
        started = time.monotonic()
        outcome = await provider.call(a_call(padding="x" * 20_000_000))
        await provider.aclose()
    assert time.monotonic() - started < 20
    assert isinstance(outcome, Failure)
    assert outcome.failure_class is FailureClass.TOO_LARGE


DEAF = [("call", "cancelled"), ("stream", "closed"), ("stream", "collected"), ("call", "provider closed")]


@pytest.mark.parametrize(("what", "end"), DEAF)
async def test_what_a_server_does_not_read_is_not_kept_for_it(what: str, end: str) -> None:
    """Giving up a large body that nobody takes closes its socket now, not once the server has read it: never."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if what == "stream":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {}\n\n")
        cast("asyncio.Transport", writer.transport).pause_reading()
        await asyncio.sleep(1_000)  # real time: for ever

    async with serving(handler) as url:
        provider = HttpProvider(base_url=url)
        before = sockets()
        body = a_call(stream=what == "stream", padding="x" * 12_000_000)
        task = asyncio.create_task(provider.open_stream(body) if what == "stream" else provider.call(body))
        assert await becomes(lambda: sockets() == before + 2)
        await asyncio.sleep(0.1)  # real time: the other side is at work by now; the same holds if it is not yet
        if end == "cancelled":
            task.cancel()
        elif end == "provider closed":
            await provider.aclose()
        elif end == "closed":
            await cast("ProviderStream", await task).aclose()
        await asyncio.wait([task])
        del task
        gc.collect()
        try:
            assert await becomes(lambda: sockets() == before + 1)  # the server's end is still open
        finally:
            await provider.aclose()


async def test_an_unreachable_host_is_given_up_after_the_connect_timeout() -> None:
    """The connect timeout holds where nothing answers (a full backlog here, a lost packet elsewhere)."""
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(listening.getsockname())
            fillers.append(filler)
        provider = HttpProvider(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1")
        call = a_call()
        started = time.monotonic()
        outcome = await provider.call(
            ProviderCall(call.dialect, call.model, call.payload, call.body, connect_timeout=0.2)
        )
        await provider.aclose()
        for filler in fillers:
            filler.close()
    assert isinstance(outcome, Failure)
    assert outcome.failure_class is FailureClass.TRANSPORT
    assert 0.15 < time.monotonic() - started < PATIENCE


async def test_closing_leaves_nothing_behind() -> None:
    """After aclose no socket, task or warning is left; a second aclose is nothing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with running() as (provider, _):
            await provider.call(a_call())
            await streamed(provider, a_call(stream=True))
        await provider.aclose()
        del provider
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_closed_provider_makes_no_new_connections() -> None:
    """Calling after aclose is a bug, and says so."""
    async with running() as (provider, _):
        await provider.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await provider.call(a_call())


ABANDONED = {
    "one loop after another, none of them told to close anything": """
        for _ in range(3):
            asyncio.run(answer())
    """,
    "a stream that is read halfway": """
        stream = asyncio.run(beginning())
    """,
    "a stream that is collected after its loop": """
        stream = asyncio.run(beginning())
        del stream
        gc.collect()
    """,
    "a stream that is collected beside its loop": """
        loop = asyncio.new_event_loop()
        stream = loop.run_until_complete(beginning())
        del stream
        gc.collect()
        loop.close()
    """,
    "a provider that is closed from elsewhere while its loop stands still": """
        loop = asyncio.new_event_loop()
        loop.run_until_complete(answer())
        stream = loop.run_until_complete(beginning())
        asyncio.run(provider.aclose())
        loop.close()
    """,
    "a provider that is collected while its loop stands still": """
        loop = asyncio.new_event_loop()
        loop.run_until_complete(answer())
        del provider
        gc.collect()
        loop.close()
    """,
}
PROGRAM = """
import asyncio, gc, sys, weakref

weakref.finalize(sys, int)  # whoever else arranges for the end of a program may have come before us

from smart_model_router.domain.ports import ProviderCall
from smart_model_router_providers.http import HttpProvider

provider = HttpProvider(base_url=sys.argv[1])

async def answer():
    body = b'{"model":"m","messages":[{"role":"user","content":"Hi"}]}'
    assert type(await provider.call(ProviderCall("chat", "m", body, {}))).__name__ == "Success"

async def beginning():
    body = b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"stream":true}'
    stream = await provider.open_stream(ProviderCall("chat", "m", body, {}, True))
    await anext(aiter(stream))
    return stream

"""


@pytest.mark.parametrize("case", ABANDONED)
async def test_what_nobody_closed_is_silent(case: str) -> None:
    """Whatever becomes of the loops that used a provider: sockets go with them, and the process has nothing to say."""
    async with FaultServer([Fault.delay(each=0.2)], text="Paris is here.") as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-W", "always::ResourceWarning", "-c"),
            PROGRAM + textwrap.dedent(ABANDONED[case]),
            server.base_url,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert (process.returncode, out.decode(), err.decode()) == (0, "", "")


@pytest.mark.parametrize("faulty", ["drops", "flood"])
async def test_a_list_of_models_is_bounded_in_time_and_size(faulty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes drop by drop never lets a single read time out."""
    if faulty == "drops":  # a flood may take a busy machine longer than this
        monkeypatch.setattr(http, "_SECONDS", 0.5)
    monkeypatch.setattr(http, "_BYTES", 100_000)

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
        while True:
            writer.write(b" " * (1 if faulty == "drops" else 65_536))
            await writer.drain()
            await asyncio.sleep(0.05 if faulty == "drops" else 0)

    async with serving(send) as base:
        async with asyncio.timeout(PATIENCE):
            found = await http.list_models(httpx2.URL(base + "/models"), {}, "openai")
    assert isinstance(found, Failure)
    assert found.failure_class is (FailureClass.TIMEOUT if faulty == "drops" else FailureClass.MALFORMED)
