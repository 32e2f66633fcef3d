"""Upstreams that lie to `smr serve`: whatever they send, a client gets an error of its dialect, and nothing is left."""

from __future__ import annotations

import gzip
import json
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.gateways import MESSAGES, Served, becomes, footprint, served

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": MESSAGES},
    "messages": {"messages": MESSAGES, "max_tokens": 9},
    "responses": {"input": "hello"},
}
IMPATIENT = {"x-router-criticality": "sheddable", "x-router-timeout": "20s"}
STATUSES = {200, 400, 413, 429, 502, 503, 504, 529}
"""What may become of a lie; 500 would be a failure of ours."""


class Liar(socketserver.ThreadingTCPServer):
    """Answers every request with the bytes it was given, and hangs up."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Lie)
        self.answer = b""
        self.open = 0
        self.asked = 0


class _Lie(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        liar, wire = self.server, self.request
        assert isinstance(liar, Liar)
        liar.open += 1
        liar.asked += 1
        try:
            wire.settimeout(10)
            head = b""
            while b"\r\n\r\n" not in head:
                head += wire.recv(65_536) or b"\r\n\r\n"
            wire.sendall(liar.answer)
        except OSError:
            pass  # the gateway has had enough
        finally:
            liar.open -= 1


@pytest.fixture(scope="module")
def liar() -> Iterator[Liar]:
    """The upstream."""
    with Liar() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def gateway(liar: Liar, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway whose providers, one of each dialect, are the liar."""
    url = f"http://127.0.0.1:{liar.server_address[1]}/v1"
    providers = {
        name: {"kind": "openai_compatible", "base_url": url, "api_key": "k", "wires": [name]} for name in PATHS
    }
    models = {name: {"tiers": [{"targets": [f"{name}/x"]}], "last_resort": []} for name in PATHS}
    config = {"version": 1, "providers": providers, "models": models, "routing": {"sheddable_wait": 0}}
    with served(config, tmp_path_factory.mktemp("lies")) as running:
        yield running


def http(body: bytes, *headers: str, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """A reply that is right as HTTP goes."""
    lines = [
        f"HTTP/1.1 {status}",
        f"content-type: {kind}",
        f"content-length: {len(body)}",
        "connection: close",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def ask(liar: Liar, client: httpx2.Client, asked: str, spoken: str, *, stream: bool) -> None:
    """One question about a lie. The answer must be an honest one."""
    for name in PATHS:  # what the last lie did to them is not the question, and half of them open would be shedding
        client.post("/api/targets/enable", json={"name": name})
    body = {**BODIES[asked], "model": spoken, "stream": stream}
    before = liar.asked
    try:
        answer = client.post(PATHS[asked], json=body, headers=IMPATIENT, timeout=60)
    except httpx2.RemoteProtocolError:
        assert stream  # one that fails after its head is aborted
        return
    assert answer.status_code in STATUSES, answer.text
    assert liar.asked > before
    assert "Traceback" not in answer.text
    assert 'File "' not in answer.text
    unchanged = answer.status_code == 400 and liar.answer.endswith(answer.content)
    if answer.status_code != 200 and not unchanged:  # a 400 of the caller's own dialect comes back as it was said
        told = answer.json()
        assert told["error"]["message"]
        assert (told.get("type") == "error") == (asked == "messages")


EVENTS = "text/event-stream"
LIES = {
    "nothing": b"",
    "no http": b"\x16\x03\x01\x02\x00\x01\x00",
    "half a head": b"HTTP/1.1 200 OK\r\ncontent-ty",
    "a status that is none": b"HTTP/1.1 999999 WHAT\r\n\r\n",
    "informational for ever": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 50,
    "a head bomb": b"HTTP/1.1 200 OK\r\n" + b"x-a: " + b"b" * 300_000 + b"\r\n\r\n",
    "too short": b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{}",
    "lengths that differ": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 9\r\n\r\n{}",
    "chunks that are none": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "gzip that is none": http(b"not gzip", "content-encoding: gzip"),
    "gzip cut short": http(gzip.compress(b'{"choices": []}')[:-9], "content-encoding: gzip"),
    "a redirect": http(b"", "location: http://127.0.0.1:1/elsewhere", status="302 Found"),
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "a number": http(b"3"),
    "deep": http(b"[" * 100_000),
    "NaN": http(b'{"choices": NaN}'),
    "a number without end": http(b'{"usage": ' + b"9" * 10_000 + b"}"),
    "half a surrogate": http(b'{"choices": [{"message": {"content": "\\ud800"}}]}'),
    "events that are none": http(b"data: {\n\ndata: [\n\n", kind=EVENTS),
    "an event without end": http(b"data: " + b"x" * 3_000_000, kind=EVENTS),
    "a tool without a name": http(b'data: {"choices":[{"delta":{"tool_calls":[{"index":"x"}, 3]}}]}\n\n', kind=EVENTS),
    "an end before the start": http(b'event: message_stop\ndata: {"type":"message_stop"}\n\n', kind=EVENTS),
    "blocks never begun": http(b'data: {"type":"content_block_delta","index":9,"delta":{"type":"x"}}\n\n', kind=EVENTS),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_lie_becomes_an_honest_answer(gateway: Served, liar: Liar, lie: bytes) -> None:
    """In every dialect asked and spoken, whole and streamed: a known status, an error of the dialect, no trace."""
    liar.answer = lie
    with httpx2.Client(base_url=gateway.base_url) as client:
        for asked in PATHS:
            for spoken in PATHS:
                ask(liar, client, asked, spoken, stream=False)
                ask(liar, client, asked, spoken, stream=True)


KEYS = (
    "choices message delta content tool_calls function usage finish_reason index error type text id output status "
    "response item content_block stop_reason arguments"
).split()
TYPES = (
    "text tool_use message message_start content_block_start content_block_delta message_delta response.completed "
    "response.output_text.delta response.output_item.added function_call error"
).split()
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(TYPES) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    said=st.lists(objects, min_size=1, max_size=3),
    asked=st.sampled_from(list(PATHS)),
    spoken=st.sampled_from(list(PATHS)),
    status=st.sampled_from(["200 OK", "200 OK", "400 Bad Request", "429 Too Many Requests", "500 Oh"]),
)
def test_no_answer_of_a_provider_makes_it_fail(
    gateway: Served, liar: Liar, said: list[dict[str, Any]], asked: str, spoken: str, status: str
) -> None:
    """JSON of the right words in any wrong shape, whole and as events."""
    with httpx2.Client(base_url=gateway.base_url) as client:
        liar.answer = http(json.dumps(said[0]).encode(), status=status)
        ask(liar, client, asked, spoken, stream=False)
        liar.answer = http(b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in said), kind=EVENTS)
        ask(liar, client, asked, spoken, stream=True)


@pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc")
def test_lies_and_vanishing_clients_leave_nothing_behind(gateway: Served, liar: Liar) -> None:
    """After 100 of each: nothing in flight, no socket more than before, and no memory worth a word."""

    def round_of(number: int) -> None:
        with httpx2.Client(base_url=gateway.base_url) as client:
            for _ in range(number):
                liar.answer = LIES["a tool without a name"]
                ask(liar, client, "messages", "chat", stream=True)
                body = json.dumps({**BODIES["chat"], "model": "chat"}).encode()
                head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
                with socket.create_connection(gateway.address, timeout=30) as wire:
                    wire.sendall(head.encode() + body[: len(body) // 2])
        assert becomes(lambda: gateway.in_flight() == 0 and liar.open == 0)

    round_of(30)  # what is made once is made now
    files, memory = footprint(gateway.process.pid)
    round_of(100)
    assert becomes(lambda: footprint(gateway.process.pid)[0] <= files)
    assert footprint(gateway.process.pid)[1] - memory < 10_000
