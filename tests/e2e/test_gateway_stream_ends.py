"""How `smr serve` ends a stream: whole, with its terminator; or failed, in a way that no client takes for whole.

Over raw sockets, as a client that reads HTTP to the letter sees it, and through the SDKs.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tests.e2e.gateways import MESSAGES, SECONDS, Served, becomes, read_all, served
from tests.lies.answers import Block, frames_of
from tests.lies.client import seen_in
from tests.lies.lying import ERRORS

Start = Callable[..., Served]
TEXT = (Block("text", ("all ", "of ", "it")),)
CALL = (Block("call", ('{"path": ', '"/data/', 'only-this"}'), "wipe"),)
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": MESSAGES},
    "messages": {"messages": MESSAGES, "max_tokens": 99},
    "responses": {"input": "hello"},
}


class Upstream(socketserver.ThreadingTCPServer):
    """Answers every request with a stream of these bytes, and then hangs up or says nothing more.

    `later` is what it says once `go` is set: when the client has some of the first.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Call)
        self.said = self.later = b""
        self.go = threading.Event()
        self.kind = b"text/event-stream"
        self.hangs_up = True
        self.asked = 0
        self.over = threading.Event()


class _Call(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        upstream, wire = self.server, self.request
        assert isinstance(upstream, Upstream)
        head = b""
        while b"\r\n\r\n" not in head:
            head += wire.recv(65_536)
        upstream.asked += 1
        if upstream.said:
            head = b"HTTP/1.1 200 OK\r\ncontent-type: " + upstream.kind
            wire.sendall(head + b"\r\nconnection: close\r\n\r\n" + upstream.said)
        if upstream.later:
            upstream.go.wait(SECONDS)
            wire.sendall(upstream.later)
        if not upstream.hangs_up:
            upstream.over.wait(SECONDS)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """The one provider."""
    with Upstream() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def gateway(upstream: Upstream, tmp_path: Path) -> Iterator[Start]:
    """Start a gateway whose models `chat`, `messages` and `responses` are the upstream, in that dialect."""
    url = f"http://127.0.0.1:{upstream.server_address[1]}/v1"
    providers = {
        name: {"kind": "openai_compatible", "base_url": url, "api_key": "k", "wires": [name]} for name in PATHS
    }
    models = {name: {"tiers": [{"targets": [f"{name}/x"]}], "last_resort": []} for name in PATHS}
    with ExitStack() as stack:

        def start(**sections: Any) -> Served:
            config = {"version": 1, "providers": providers, "models": models, "routing": {"attempts": 1}}
            return stack.enter_context(served({**config, **sections}, tmp_path))

        yield start


def raw_of(blocks: tuple[Block, ...], dialect: Any, *, until: str = "") -> bytes:
    """A stream in a dialect, up to its first frame of some role."""
    frames = frames_of(dialect, blocks, "up")
    ends = next((at for at, frame in enumerate(frames) if frame.role == until), len(frames))
    return b"".join(frame.raw for frame in frames[:ends])


def request_of(asked: str, spoken: str, *, version: str = "1.1") -> bytes:
    """A streaming request as it goes over the wire."""
    body = json.dumps({**BODIES[asked], "model": spoken, "stream": True}).encode()
    head = f"POST {PATHS[asked]} HTTP/{version}\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def answered(gateway: Served, upstream: Upstream, asked: str, spoken: str) -> tuple[bytes, bool]:
    """The chunks of an answer joined, and whether the last chunk came."""
    upstream.go.clear()
    with socket.create_connection(gateway.address, timeout=SECONDS) as wire:
        wire.sendall(request_of(asked, spoken))
        head, _, body = _until_end(wire, upstream.go).partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.lower()
    return unchunked(body)


def _until_end(wire: socket.socket, begun: threading.Event) -> bytes:
    got = b""
    while not got.endswith(b"\r\n0\r\n\r\n") and (piece := wire.recv(65_536)):
        got += piece
        begun.set()
    return got


def unchunked(body: bytes) -> tuple[bytes, bool]:
    """The data of a chunked body, and whether it has its end."""
    data = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return data, True
        data, body = data + rest[:length], rest[length + 2 :]
    return data, False


def begun(blocks: tuple[Block, ...], dialect: Any) -> tuple[bytes, bytes]:
    """A stream in a dialect, in two parts: its second piece of content begins the second."""
    frames = frames_of(dialect, blocks, "up")
    at = [at for at, frame in enumerate(frames) if frame.is_content][1]
    return b"".join(frame.raw for frame in frames[:at]), b"".join(frame.raw for frame in frames[at:])


FAULTS: dict[str, Callable[[Any], tuple[bytes, bytes]]] = {
    "cut": lambda dialect: (begun(TEXT, dialect)[0], b": and now\n\n"),
    "error event": lambda dialect: (begun(TEXT, dialect)[0], ERRORS[dialect]),
    "control character": lambda dialect: (
        begun(CALL, dialect)[0],
        begun(CALL, dialect)[1].replace(b"only-this", b"only\x07-this"),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("asked", PATHS)
def test_a_failed_stream_has_no_clean_end(upstream: Upstream, gateway: Start, asked: str, fault: str) -> None:
    """Found: the Vercel AI SDK takes a clean end for success, whatever error event stood before it.

    One error event of the dialect (none in Responses, whose clients ask again after an abort), and then no last chunk.
    """
    running = gateway(gateway={"hold_head": 0.2})  # nothing of a call is told before it is whole
    for spoken in PATHS:
        upstream.said, upstream.later = FAULTS[fault](spoken)
        httpx2.post(running.base_url + "/api/targets/enable", json={"name": spoken})
        body, ended = answered(running, upstream, asked, spoken)
        seen = seen_in(asked, body)  # type: ignore[arg-type]
        assert not ended
        assert not seen.ended
        assert not seen.finish
        assert len(seen.errors) == (asked != "responses")


def test_a_client_without_chunks_sees_a_reset(upstream: Upstream, gateway: Start) -> None:
    """To HTTP/1.0 an end of the connection would be the end of the answer."""
    upstream.said, upstream.later = FAULTS["cut"]("chat")
    with socket.create_connection(gateway().address, timeout=SECONDS) as wire:
        wire.sendall(request_of("chat", "chat", version="1.0"))
        assert wire.recv(65_536)
        upstream.go.set()
        with pytest.raises(ConnectionResetError):
            _until_end(wire, upstream.go)


def test_the_sdks_raise_for_a_failed_stream(upstream: Upstream, gateway: Start) -> None:
    """The error event is theirs to raise; none of them returns what came so far as an answer."""
    running = gateway()
    upstream.said, upstream.later = FAULTS["error event"]("chat")

    def rest(stream: Iterator[Any]) -> None:
        next(stream)
        upstream.go.set()
        for _ in stream:
            pass

    with openai.OpenAI(base_url=running.base_url + "/v1", api_key="k", max_retries=0) as client:
        with pytest.raises(openai.APIError, match="cut after"):
            rest(client.chat.completions.create(model="chat", messages=MESSAGES, stream=True))
        upstream.go.clear()
        with pytest.raises((openai.APIError, httpx2.RemoteProtocolError)):
            rest(client.responses.create(model="chat", input="hello", stream=True))
    with anthropic.Anthropic(base_url=running.base_url, api_key="k", max_retries=0) as claude:
        upstream.go.clear()
        with pytest.raises(anthropic.APIStatusError, match="cut after"):
            rest(claude.messages.create(model="chat", max_tokens=9, messages=MESSAGES, stream=True))
        upstream.go.clear()
        with claude.messages.stream(model="chat", max_tokens=9, messages=MESSAGES) as stream:
            next(iter(stream))
            upstream.go.set()
            with pytest.raises(anthropic.APIStatusError):
                stream.get_final_message()


@pytest.mark.parametrize("asked", PATHS)
def test_a_verdict_on_the_request_is_told_in_every_dialect(upstream: Upstream, gateway: Start, asked: str) -> None:
    """In Responses, too: asked again it would be the same."""
    error = b'data: {"error": {"message": "no", "code": "content_filter", "type": "invalid_request_error"}}\n\n'
    upstream.said, upstream.later = begun(TEXT, "chat")[0], error
    body, ended = answered(gateway(), upstream, asked, "chat")
    seen = seen_in(asked, body)  # type: ignore[arg-type]
    assert (ended, len(seen.errors)) == (False, 1)
    assert asked == "messages" or "content_filter" in json.dumps(seen.errors)


def test_the_report_stands_beside_the_finish_reason_unless_it_is_not_wanted(upstream: Upstream, gateway: Start) -> None:
    """In each dialect, asked and spoken."""
    running = gateway()
    for asked in PATHS:
        for spoken in PATHS:
            upstream.said = raw_of(TEXT, spoken)
            body, ended = answered(running, upstream, asked, spoken)
            seen = seen_in(asked, body)  # type: ignore[arg-type]
            assert (ended, seen.ended, seen.content.text) == (True, True, "all of it")
            (told,) = seen.reports
            assert (told["complete"], told["provider"], told["tier"]) == (True, spoken, "frontier")


def test_without_stream_report_there_is_none(upstream: Upstream, gateway: Start) -> None:
    """`gateway.stream_report: false`."""
    upstream.said = raw_of(TEXT, "chat")
    body, ended = answered(gateway(gateway={"stream_report": False}), upstream, "chat", "chat")
    assert ended
    assert b'"router"' not in body


def test_a_whole_answer_with_a_replaced_byte_says_so_in_its_header(upstream: Upstream, gateway: Start) -> None:
    """It is delivered, and not called complete."""
    body = b'{"choices": [{"message": {"role": "assistant", "content": "caf\xff"}, "finish_reason": "stop"}]}'
    upstream.kind = b"application/json"
    running = gateway()
    for upstream.said, complete in ((body, "false"), (body.replace(b"\xff", b"e"), "true")):
        told = httpx2.post(running.base_url + PATHS["chat"], json={**BODIES["chat"], "model": "chat"}, timeout=SECONDS)
        assert (told.status_code, told.headers["x-router-complete"]) == (200, complete)
        assert told.json()["choices"][0]["message"]["content"] == ("cafe" if complete == "true" else "caf\ufffd")


# The end of the drain -------------------------------------------------------------------------------------


def begin(running: Served, asked: str, spoken: str) -> socket.socket:
    """Send a request, and leave its answer on the wire."""
    wire = socket.create_connection(running.address, timeout=SECONDS)
    wire.sendall(request_of(asked, spoken))
    return wire


@pytest.mark.parametrize("asked", PATHS)
def test_a_request_without_a_head_is_told_to_ask_again(upstream: Upstream, gateway: Start, asked: str) -> None:
    """503 with Retry-After, in each dialect, when its provider has said nothing until the drain is over."""
    upstream.hangs_up = False
    running = gateway(gateway={"drain": "500ms"})
    with begin(running, asked, asked) as wire:
        assert becomes(lambda: upstream.asked == 1)
        running.process.terminate()
        head, _, body = read_all(wire).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1\r\n" in head.lower()
    assert json.loads(body)["error"]["message"] == "the server is shutting down; ask again"
    assert running.process.wait(SECONDS) == 0


@pytest.mark.parametrize("asked", PATHS)
def test_a_stream_that_outlasts_the_drain_ends_as_a_failed_one(upstream: Upstream, gateway: Start, asked: str) -> None:
    """An error event where the dialect has one, no last chunk, and nothing is recovered."""
    upstream.said, upstream.hangs_up = raw_of(TEXT, "chat", until="finish"), False
    running = gateway(gateway={"drain": "500ms"})
    with begin(running, asked, "chat") as wire:
        got = b""
        while b"it" not in got.partition(b"\r\n\r\n")[2]:
            got += wire.recv(65_536)
        running.process.terminate()
        body, ended = unchunked((got + read_all(wire)).partition(b"\r\n\r\n")[2])
    seen = seen_in(asked, body)  # type: ignore[arg-type]
    assert (ended, seen.finish, len(seen.errors)) == (False, "", int(asked != "responses"))
    assert asked == "responses" or "closed" in json.dumps(seen.errors)
    assert upstream.asked == 1
    assert running.process.wait(SECONDS) == 0


@pytest.mark.parametrize("asked", PATHS)
def test_an_answer_that_is_finished_ends_with_the_drain(upstream: Upstream, gateway: Start, asked: str) -> None:
    """Its provider only lingers: the client gets its finish reason and its terminator."""
    upstream.said, upstream.hangs_up = raw_of(TEXT, "chat", until="usage"), False
    running = gateway(gateway={"drain": "500ms"}, resilience={"timeouts": {"finish_grace": "300s", "idle": "300s"}})
    with begin(running, asked, "chat") as wire:
        got = b""
        while b"it" not in got.partition(b"\r\n\r\n")[2]:
            got += wire.recv(65_536)
        running.process.terminate()
        body, ended = unchunked((got + read_all(wire)).partition(b"\r\n\r\n")[2])
    seen = seen_in(asked, body)  # type: ignore[arg-type]
    assert (ended, seen.ended, seen.content.text, seen.errors) == (True, True, "all of it", [])
    assert seen.reports[0]["complete"]
    assert running.process.wait(SECONDS) == 0


def test_a_body_that_is_still_coming_is_told_to_ask_again(gateway: Start) -> None:
    """A client that sends slowly is no reason to stay."""
    running = gateway(gateway={"drain": "100ms"})
    with socket.create_connection(running.address, timeout=SECONDS) as wire:
        wire.sendall(request_of("chat", "chat")[:-5])
        assert becomes(lambda: running.in_flight() == 1)
        running.process.terminate()
        assert read_all(wire).startswith(b"HTTP/1.1 503 ")
    assert running.process.wait(SECONDS) == 0
