"""The fault server over real sockets: what official clients get from it, and that its faults are real ones."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import httpx2
import pytest
import pytest_asyncio
from anthropic import AsyncAnthropic
from anthropic import RateLimitError as AnthropicRateLimitError
from anthropic.types import MessageParam
from openai import AsyncOpenAI, RateLimitError
from openai.types.chat import ChatCompletionUserMessageParam

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.fault import Fault, FaultServer, serve
from tests.e2e.eventually import PATIENCE, becomes

pytestmark = pytest.mark.asyncio

HELLO: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "hello"}]
GREETING: list[MessageParam] = [{"role": "user", "content": "hello"}]
SAID = "fault-server: echo of the last user message: hello"
CHAT = b'{"model":"m","messages":[{"role":"user","content":"hello"}]}'
STREAM = CHAT[:-1] + b',"stream":true}'


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """A plain HTTP client."""
    async with httpx2.AsyncClient(timeout=PATIENCE) as client:
        yield client


def openai(server: FaultServer, key: str = "k") -> AsyncOpenAI:
    """Return an official client of the server."""
    return AsyncOpenAI(base_url=server.base_url, api_key=key, max_retries=0, timeout=PATIENCE)


async def ask(http: httpx2.AsyncClient, server: FaultServer, *, key: str = "k", **body: Any) -> httpx2.Response:
    """Ask the server for a chat completion."""
    body = {"model": "m", "messages": HELLO, **body}
    headers = {"authorization": f"Bearer {key}"}
    return await http.post(f"{server.base_url}/chat/completions", json=body, headers=headers)


def posted(body: bytes) -> bytes:
    """A request as it goes over the wire."""
    return b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


async def receive(server: FaultServer, body: bytes = CHAT) -> tuple[bytes, bool]:
    """Everything a raw client gets until the server ends the connection, and whether that was a reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(posted(body))
    got = b""
    try:
        while chunk := await asyncio.wait_for(reader.read(65_536), PATIENCE):
            got += chunk
    except ConnectionResetError:
        return got, True
    finally:
        writer.close()
    return got, False


async def eventually(true: Callable[[], bool]) -> None:
    """Wait until the server has noticed what the client did."""
    assert await becomes(true)


# ------------------------------------------------------------------------------------------ official clients


async def test_the_openai_client_gets_whole_and_streamed_answers() -> None:
    """Chat Completions: the same text and the same usage, whole and in many chunks."""
    async with FaultServer(seed=1) as server, openai(server) as client:
        whole = await client.chat.completions.create(model="m", messages=HELLO)
        stream = await client.chat.completions.create(
            model="m",
            messages=HELLO,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    assert whole.choices[0].message.content == SAID
    assert whole.choices[0].finish_reason == "stop"
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == SAID
    assert len([text for text in texts if text]) > 5
    assert chunks[-1].usage == whole.usage


async def test_the_openai_client_gets_responses() -> None:
    """Responses: whole, and streamed to `response.completed`."""
    async with FaultServer() as server, openai(server) as client:
        whole = await client.responses.create(model="m", input="hello")
        events = [event async for event in await client.responses.create(model="m", input="hello", stream=True)]
    assert whole.output_text == SAID
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == SAID
    assert events[-1].type == "response.completed"
    assert events[-1].response.usage == whole.usage


async def test_the_openai_client_gets_embeddings_and_models() -> None:
    """Embeddings are unit vectors that depend on the input alone, packed as the client asks for them."""
    async with FaultServer(models=["m", "n"]) as server, openai(server) as client:
        packed = await client.embeddings.create(model="e", input=["a", "b"])
        plain = await client.embeddings.create(model="e", input="a", encoding_format="float")
        models = [model.id async for model in client.models.list()]
    assert packed.data[0].embedding == pytest.approx(plain.data[0].embedding, abs=1e-6)
    assert packed.data[0].embedding != packed.data[1].embedding
    assert sum(value * value for value in plain.data[0].embedding) == pytest.approx(1)
    assert models == ["m", "n"]


@pytest.mark.parametrize("suffix", ["", "/v1"])
async def test_the_anthropic_client_works_with_either_base_url(suffix: str) -> None:
    """Messages, whole and streamed, whether `/v1` is in the base URL or not."""
    async with FaultServer() as server:
        url = server.base_url.removesuffix("/v1") + suffix
        async with AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
            whole = await client.messages.create(model="m", max_tokens=100, messages=GREETING)
            async with client.messages.stream(model="m", max_tokens=100, messages=GREETING) as stream:
                final = await stream.get_final_message()
    assert [block.text for block in whole.content if block.type == "text"] == [SAID]
    assert [block.text for block in final.content if block.type == "text"] == [SAID]
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", whole.usage.output_tokens)


async def test_a_token_cap_is_respected() -> None:
    """`max_tokens` cuts the answer there and the finish reason says so."""
    async with FaultServer() as server, openai(server) as client:
        got = await client.chat.completions.create(model="m", messages=HELLO, max_tokens=2)
    assert (got.choices[0].message.content, got.choices[0].finish_reason) == (SAID[:8], "length")
    assert got.usage is not None
    assert got.usage.completion_tokens == 2


async def test_errors_are_the_dialects_own() -> None:
    """Each client raises its own typed error and finds its own fields in it."""
    async with FaultServer([Fault.status(429, headers={"retry-after": "3"})]) as server:
        async with openai(server) as client:
            with pytest.raises(RateLimitError) as from_openai:
                await client.chat.completions.create(model="m", messages=HELLO)
        async with AsyncAnthropic(base_url=server.base_url, api_key="k", max_retries=0) as other:
            with pytest.raises(AnthropicRateLimitError) as from_anthropic:
                await other.messages.create(model="m", max_tokens=9, messages=GREETING)
    assert from_openai.value.response.headers["retry-after"] == "3"
    assert from_openai.value.code == "rate_limit_exceeded"
    assert "rate_limit_error" in str(from_anthropic.value.body)


# ------------------------------------------------------------------------------------------ faults on the wire


async def test_a_cut_stream_stops_after_its_content() -> None:
    """Exactly `after` pieces arrive; the connection closes without the terminating chunk."""
    async with FaultServer([Fault.cut(after=5)]) as server:
        got, reset = await receive(server, STREAM)
    assert not reset
    assert got.count(b'"content":"') == 1 + 5  # the role chunk's is empty
    assert not got.endswith(b"0\r\n\r\n")
    assert b'finish_reason":"' not in got


async def test_a_cut_beyond_the_answer_still_cuts_it() -> None:
    """Asked to cut after more pieces than there are, it cuts before whatever would end the stream well."""
    async with FaultServer([Fault.cut(after=500)], text="short") as server:
        got, _ = await receive(server, STREAM)
    assert got.count(b'"content":"') == 1 + 2
    assert b"[DONE]" not in got


async def test_a_cut_at_a_byte_is_at_that_byte() -> None:
    """So many bytes of the body and not one more, fewer than content-length promised."""
    async with FaultServer([Fault.cut(at_byte=17)]) as server:
        got, reset = await receive(server)
    head, _, body = got.partition(b"\r\n\r\n")
    assert (len(body), reset) == (17, False)
    assert int(head.partition(b"content-length: ")[2]) > 17


async def test_a_reset_is_a_tcp_reset() -> None:
    """The client sees ECONNRESET, not an end of file, and no byte of an answer."""
    async with FaultServer([Fault.reset()]) as server:
        assert await receive(server) == (b"", True)


@pytest.mark.parametrize(
    ("fault", "last"),
    [(Fault.headers_only(), b"\r\n\r\n"), (Fault.stall(after=2), b'"content":"t-se"'), (Fault.hang(), b"")],
    ids=["headers", "stall", "hang"],
)
async def test_a_silent_server_stays_silent(fault: Fault, last: bytes) -> None:
    """It says what it has to say and nothing more, until the client leaves: then the call is abandoned."""
    async with FaultServer([fault]) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(posted(STREAM))
        got = await asyncio.wait_for(reader.readuntil(last), PATIENCE) if last else b""
        await eventually(lambda: server.in_flight == 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.readuntil(b"[DONE]"), 0.1)
        writer.close()
        await eventually(lambda: server.in_flight == 0)
        assert server.requests[-1].ending == "abandoned"
    assert got.endswith(last)


async def test_a_stall_may_send_comments_and_may_end() -> None:
    """Comments keep the line alive for a while, then the stream goes on to its good end."""
    async with FaultServer([Fault.stall(after=1, comments=True, every=0.02, seconds=0.09)]) as server:
        async with openai(server) as client:
            stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        server.reset()
        async with httpx2.AsyncClient() as http:
            answer = await ask(http, server, stream=True)
    assert text == SAID
    assert answer.text.count(": keep-alive") == 4


async def test_pings_are_the_dialects_own() -> None:
    """Messages has a ping event; it is sent while the answer stalls."""
    async with (
        FaultServer([Fault.stall(after=0, comments="pings", every=0.02, seconds=0.05)]) as server,
        httpx2.AsyncClient() as http,
    ):
        body = {"model": "m", "max_tokens": 9, "messages": HELLO, "stream": True}
        answer = await http.post(f"{server.base_url}/messages", json=body)
    assert answer.text.count("event: ping") == 1 + 2  # a healthy stream opens with one
    assert "message_stop" in answer.text


async def test_delays_are_kept(http: httpx2.AsyncClient) -> None:
    """`first` passes before the head, `slow_first_token` after it and before the content."""
    script = [Fault.delay(first=0.1, times=1), Fault.slow_first_token(0.1, times=1), Fault.slow_first_token(1_000)]
    async with FaultServer(script) as server:
        for read in (False, True):
            began = time.monotonic()
            async with http.stream("POST", f"{server.base_url}/chat/completions", content=CHAT) as answer:
                if read:
                    await answer.aread()
                assert time.monotonic() - began >= 0.1
        async with http.stream("POST", f"{server.base_url}/chat/completions", content=CHAT):
            assert server.in_flight == 1


async def test_an_error_event_ends_a_good_looking_stream(http: httpx2.AsyncClient) -> None:
    """200, two pieces of content, the dialect's error, and no terminator."""
    async with FaultServer([Fault.error_event(after=2)]) as server:
        answer = await ask(http, server, stream=True)
    assert answer.status_code == 200
    assert answer.text.count('"content":"') == 1 + 2
    assert '"error":{' in answer.text.split("\n\n")[-2]
    assert "[DONE]" not in answer.text


@pytest.mark.parametrize(
    ("fault", "stream", "body"),
    [
        (Fault.html(), True, "<!doctype html>"),
        (Fault.wrong_json(), False, '{"hello":"world"}'),
        (Fault.error_body(), False, '{"error":{'),
        (Fault.json_instead_of_stream(), True, '{"id":"chatcmpl-1"'),
        (Fault.empty("body"), False, ""),
        (Fault.empty("choices"), True, "data: [DONE]"),
    ],
    ids=lambda value: str(getattr(value, "effect", value)),
)
async def test_a_200_may_be_anything(http: httpx2.AsyncClient, fault: Fault, stream: bool, body: str) -> None:
    """Pages, foreign JSON, errors, nothing: all with status 200."""
    async with FaultServer([fault]) as server:
        answer = await ask(http, server, stream=stream)
    assert answer.status_code == 200
    assert answer.text.startswith(body)
    assert bool(answer.text) is bool(body)


async def test_an_answer_without_content_keeps_its_brackets(http: httpx2.AsyncClient) -> None:
    """Empty: a well-formed stream that says nothing."""
    async with FaultServer([Fault.empty()]) as server:
        answer = await ask(http, server, stream=True)
    assert '"finish_reason":"stop"' in answer.text
    assert answer.text.count('"content":"') == 1  # the role chunk's, which is empty


async def test_a_stream_may_end_without_its_terminator(http: httpx2.AsyncClient) -> None:
    """Everything but the finish reason and [DONE], and a clean end of the body."""
    async with FaultServer([Fault.no_terminator()]) as server:
        answer = await ask(http, server, stream=True)
    assert answer.text.count('"content":"') == 1 + 13
    assert '"finish_reason":"' not in answer.text


async def test_a_204_has_no_body(http: httpx2.AsyncClient) -> None:
    """The connection is good for the next call after a status that may have no body."""
    async with FaultServer([Fault.status(204, times=1)]) as server:
        assert (await ask(http, server)).content == b""
        assert (await ask(http, server)).status_code == 200


# ------------------------------------------------------------------------------------------ outages and limits


async def test_an_outage_refuses_connections_and_ends(http: httpx2.AsyncClient) -> None:
    """From `start` to `stop` nobody gets in; afterwards the same port answers again."""
    async with FaultServer() as server:
        port = server.port
        server.script = [Fault.down(0, 3)]
        with pytest.raises(httpx2.ConnectError):
            await ask(http, server)
        await asyncio.sleep(3.1)  # real time: the outage lasts as long at least
        assert (await ask(http, server)).status_code == 200
        assert (server.port, server.calls()) == (port, 1)


async def test_an_outage_resets_open_connections() -> None:
    """A stream under way when the outage begins is reset."""
    async with FaultServer([Fault.down(3), Fault.stall(after=1)]) as server:
        got, reset = await receive(server, STREAM)
    assert b'"content":"faul"' in got
    assert reset


async def test_a_server_may_be_taken_down_by_hand(http: httpx2.AsyncClient) -> None:
    """A script set while it runs acts at once, in both directions."""
    async with FaultServer() as server:
        assert (await ask(http, server)).status_code == 200
        server.script = [Fault.down()]
        with pytest.raises((httpx2.ConnectError, httpx2.ReadError, httpx2.RemoteProtocolError)):
            await ask(http, server)
        with pytest.raises(httpx2.ConnectError):
            await ask(http, server)
        server.script = None
        assert (await ask(http, server)).status_code == 200


async def test_an_outage_of_one_key_spares_the_others(http: httpx2.AsyncClient) -> None:
    """In a script for one key its calls are reset; the port stays open for everybody else."""
    async with FaultServer({"a": [Fault.down()]}) as server:
        with pytest.raises(httpx2.ReadError):
            await ask(http, server, key="a")
        assert (await ask(http, server, key="b")).status_code == 200


async def test_a_limit_really_counts(http: httpx2.AsyncClient) -> None:
    """Two every 8 s: the hasty caller is refused, the one that waits as told is admitted."""
    async with FaultServer([Fault.limit(rpm=2, window=8)]) as server:
        statuses = [(await ask(http, server)).status_code for _ in range(3)]
        refused = await ask(http, server)
        await asyncio.sleep(int(refused.headers["retry-after-ms"]) / 1000)
        admitted = await ask(http, server)
    assert statuses == [200, 200, 429]
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert admitted.status_code == 200
    assert admitted.headers["x-ratelimit-limit-requests"] == "2"


async def test_concurrency_is_limited_and_counted(http: httpx2.AsyncClient) -> None:
    """Of five calls at once two are served; the book knows how many there were."""
    async with FaultServer([Fault.concurrency(2), Fault.delay(first=2)]) as server:
        answers = await asyncio.gather(*(ask(http, server) for _ in range(5)))
        assert sorted(answer.status_code for answer in answers) == [200, 200, 429, 429, 429]
        assert 2 <= server.max_in_flight("k") <= 5
        assert (server.calls("k"), server.in_flight) == (5, 0)


# ------------------------------------------------------------------------------------------ the book


async def test_requests_are_recorded_without_secrets(http: httpx2.AsyncClient) -> None:
    """Arrival, path, body, key and model are there; the headers and the repr do not show the key."""
    async with FaultServer([Fault.status(503, times=1)]) as server:
        await ask(http, server, key="very-secret")
        await asyncio.sleep(0.05)  # real time: the least that may lie between the two
        await ask(http, server, key="very-secret", model="n", stream=True)
        first, second = server.requests
    assert second.at - first.at >= 0.05
    assert (first.key, first.model, first.path, first.status) == ("very-secret", "m", "/v1/chat/completions", 503)
    assert (second.model, second.stream, second.status, second.ending) == ("n", True, 200, "answered")
    assert second.body["messages"] == HELLO
    assert first.headers["authorization"] == "***"
    assert "very-secret" not in repr(first)


async def test_calls_are_counted_by_key_and_by_model(http: httpx2.AsyncClient) -> None:
    """Counts go on when requests are no longer kept; `reset` forgets them all."""
    async with FaultServer(keep_requests=2) as server:
        for key in ("a", "a", "b"):
            await ask(http, server, key=key)
        assert [server.calls(name) for name in (None, "a", "b", "m", "c")] == [3, 2, 1, 3, 0]
        assert len(server.requests) == 2
        server.reset()
        assert (server.calls(), server.requests) == (0, [])


async def test_what_is_no_call_of_a_model_is_not_counted(http: httpx2.AsyncClient) -> None:
    """Listing models and asking for health go by the script and the book alike; other paths do not exist."""
    async with FaultServer([Fault.status(500)]) as server:
        root = server.base_url.removesuffix("/v1")
        assert (await http.get(f"{root}/v1/models?limit=1")).json()["data"][0]["id"] == "fault"
        listed = await http.get(f"{root}/v1/models", headers={"anthropic-version": "2023-06-01"})
        assert listed.json()["data"][0]["type"] == "model"
        assert (await http.get(f"{root}/health")).status_code == 200
        assert (await http.head(f"{root}/")).status_code == 200
        assert (await http.post(f"{root}/v1/nothing")).status_code == 404
        assert server.calls() == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'{"messages":[1]}', "model"),
        (b'{"model":"m"}', "messages"),
    ],
)
async def test_a_bad_request_is_answered_400(http: httpx2.AsyncClient, content: bytes, message: str) -> None:
    """A body that is no request is the caller's fault, as at any provider, and is counted as a call."""
    async with FaultServer() as server:
        answer = await http.post(f"{server.base_url}/chat/completions", content=content)
        assert server.calls() == 1
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


# ------------------------------------------------------------------------------------------ HTTP and its life


async def exchange(server: FaultServer, sent: bytes, *, until: bytes) -> bytes:
    """Send raw bytes and read until the answer has `until` in it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    got = b""
    while until not in got:
        chunk = await asyncio.wait_for(reader.read(65_536), PATIENCE)
        assert chunk, got
        got += chunk
    writer.close()
    return got


async def test_one_connection_serves_many_requests() -> None:
    """Requests sent at once on one connection are answered in their order, streamed or not."""
    sent = posted(CHAT) + posted(STREAM) + b"GET /gone HTTP/1.1\r\n\r\n"
    async with FaultServer([Fault.delay(first=0.01)]) as server:
        got = await exchange(server, sent, until=b"Invalid URL")
    assert got.count(b"HTTP/1.1 200 OK") == 2
    assert got.index(b"chatcmpl-1") < got.index(b"chatcmpl-2") < got.index(b"HTTP/1.1 404")


async def test_a_large_body_may_be_announced() -> None:
    """`Expect: 100-continue`, as curl sends it, is answered before the body."""
    head = b"POST /v1/chat/completions HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(CHAT)
    async with FaultServer() as server:
        assert await exchange(server, head, until=b"100 Continue\r\n\r\n")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: -1\r\n\r\n", b"400"),
        (b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", b"411"),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", b"413"),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000, b"431"),
    ],
    ids=["nonsense", "negative", "chunked", "huge", "endless"],
)
async def test_what_is_not_understood_is_refused(sent: bytes, status: bytes) -> None:
    """A request it cannot read is answered with its status, and the connection closes."""
    async with FaultServer() as server:
        got = await exchange(server, sent, until=b"}")
    assert got.startswith(b"HTTP/1.1 " + status)
    assert b"connection: close" in got


async def test_closing_drops_clients_and_leaves_nothing() -> None:
    """With calls under way it closes at once, leaves no task and no connection, and gives its port back."""
    before = asyncio.all_tasks()
    async with FaultServer([Fault.hang()]) as server:
        calls = [asyncio.create_task(receive(server)) for _ in range(3)]
        await eventually(lambda: server.in_flight == 3)
        began = time.monotonic()
    assert time.monotonic() - began < PATIENCE
    assert await asyncio.gather(*calls) == [(b"", True)] * 3
    assert asyncio.all_tasks() == before
    with socket.create_server(("127.0.0.1", server.port)):
        await server.aclose()  # a second time: nothing happens


async def test_closing_sends_away_whom_it_has_just_accepted() -> None:
    """A client that connects at the last moment is reset as well, at whichever turn of the loop it comes."""
    for turns in range(6):
        async with FaultServer() as server:
            client = socket.create_connection(("127.0.0.1", server.port))
            for _ in range(turns):
                await asyncio.sleep(0)
        client.settimeout(PATIENCE)
        with client, pytest.raises(ConnectionResetError):
            client.recv(1)


async def test_a_taken_port_is_said_at_once() -> None:
    """Two servers cannot have one port, in a task or in a thread."""
    async with FaultServer() as server:
        with pytest.raises(OSError, match="in use"):
            await FaultServer(port=server.port).start()
        with pytest.raises(OSError, match="in use"):
            FaultServer(port=server.port).__enter__()


async def test_a_plain_with_runs_it_in_a_thread() -> None:
    """Synchronous code can use it, change its script from any thread, and leaves no thread behind."""
    threads = threading.active_count()
    with FaultServer([Fault.status(500, times=1)]) as server, httpx2.Client() as http:
        url = f"{server.base_url}/chat/completions"
        statuses = [http.post(url, content=CHAT).status_code for _ in range(2)]
        server.set([Fault.status(429)])
        statuses.append(http.post(url, content=CHAT).status_code)
        assert server.calls("m") == 3
    assert statuses == [500, 200, 429]
    assert threading.active_count() == threads


async def test_serve_runs_until_cancelled(http: httpx2.AsyncClient) -> None:
    """`serve` says when it listens and stops when it is told to."""
    ready: asyncio.Future[FaultServer] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve([Fault.status(500)], on_ready=ready.set_result))
    server = await asyncio.wait_for(ready, PATIENCE)
    assert (await ask(http, server)).status_code == 500
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(httpx2.ConnectError):
        await ask(http, server)


async def test_a_nonsense_script_is_refused_before_anything_listens() -> None:
    """At construction and while it runs; the old script stays."""
    with pytest.raises(ConfigurationError):
        FaultServer(cast("Any", "down"))
    async with FaultServer([Fault.status(500)]) as server:
        with pytest.raises(ConfigurationError):
            server.set([Fault.status(500), Fault.html()])
        assert server.script == [Fault.status(500)]
