"""The door of `smr serve`: large bodies, raw sockets that mean no good, keys. Nothing delays or misleads others."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from smart_model_router_providers.fault import FaultServer
from tests.e2e.gateways import Served, fleet, read_all, served

LONG = 'word, [and] {so} \\"on\\" ' * 40_000
LIMITS = {"body_timeout": "2s", "body_bytes": 3_000_000, "max_elements": 20_000}


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """A provider that is well."""
    with FaultServer() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without keys."""
    with served(fleet(upstream), tmp_path_factory.mktemp("gateway"), gateway=LIMITS) as running:
        yield running


def head(length: int | str, *more: str, path: str = "/v1/chat/completions") -> bytes:
    """The head of a POST."""
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {length}", *more, "", ""]
    return "\r\n".join(lines).encode()


def many(count: int) -> bytes:
    """A body of about so many elements."""
    return b'{"model": "smart", "messages": [{"role": "user", "content": "hi"}], "metadata": {"a": [' + (
        b"[],".join([b""] * count) + b"1]}}"
    )


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_too_many_elements_is_a_413_and_the_last_one(gateway: Served, *, chunked: bool) -> None:
    """It is refused as soon as there are too many, before the rest has come; nothing behind it is answered."""
    body = many(60_000)
    part = body[: len(body) * 2 // 3]
    begin = head(len(body))
    if chunked:
        begin = head(0).replace(b"content-length: 0", b"transfer-encoding: chunked")
        part = b"%x\r\n%b\r\n" % (len(part), part)
    with socket.create_connection(gateway.address, timeout=20) as wire:
        wire.sendall(begin + part)
        told = read_all(wire)
    assert told.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in told
    assert b"gateway.max_elements" in told
    assert told.count(b"HTTP/1.1 ") == 1


def test_commas_in_texts_are_no_elements(gateway: Served, upstream: FaultServer) -> None:
    """A long text goes through, byte by byte as it came, and translated as it was meant."""
    content = json.loads(f'"{LONG}"')
    for model in ("smart", "claude"):
        raw = b'{"model": "%b", "messages": [{"role": "user", "content": "%b"}]}' % (model.encode(), LONG.encode())
        answer = httpx2.post(gateway.base_url + "/v1/chat/completions", content=raw, timeout=30)
        assert answer.status_code == 200
        asked = upstream.requests[-1].body
        assert asked["messages"][0]["content"] in (content, [{"type": "text", "text": content}])


def test_a_large_body_that_is_no_json_is_a_400(gateway: Served) -> None:
    """Large or not, the error is the same."""
    raw = b'{"model": "smart", "messages": "%b"' % LONG.encode()
    answer = httpx2.post(gateway.base_url + "/v1/chat/completions", content=raw, timeout=30)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "the body is not JSON")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (head(100) + b"{", 408),
        (head(4_000_000), 413),
        (head(2_000_000) + many(30_000), 413),
        (head(0).replace(b"content-length: 0", b"transfer-encoding: chunked") + b"300000\r\n" + b" " * 3_100_000, 413),
    ],
    ids=["a body that does not come", "a length above the limit", "too many elements", "chunks above the limit"],
)
def test_a_connection_ends_with_a_408_and_a_413(gateway: Served, sent: bytes, status: int) -> None:
    """The client reads the answer and then the end; what it sends behind is never taken for a request."""
    with socket.create_connection(gateway.address, timeout=20) as wire:
        wire.sendall(sent)
        told = b""
        while piece := wire.recv(65_536):  # the end comes by itself, without a timeout
            told += piece
        wire.sendall(b"GET /health/liveness HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert read_all(wire) == b""
    assert told.startswith(b"HTTP/1.1 %d" % status)
    assert b"connection: close" in told


def test_an_order_of_the_operator_is_short(gateway: Served) -> None:
    """Nobody isolates a target with a megabyte."""
    answer = httpx2.post(gateway.base_url + "/api/drain", content=b'{"on": false, "why": "' + b"a" * 70_000 + b'"}')
    assert answer.status_code == 413


BODY = json.dumps({"model": "smart", "messages": [{"role": "user", "content": "hi"}]}).encode()
BEHIND = b"GET /health/liveness HTTP/1.1\r\nhost: 127.0.0.1\r\nx-smuggled: yes\r\n\r\n"
POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
LENGTH = b"%d" % len(BODY)
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)

SMUGGLED = {
    "two equal lengths": POST + b"content-length: %b\r\ncontent-length: %b\r\n\r\n" % (LENGTH, LENGTH) + BODY,
    "two lengths": POST + b"content-length: 0\r\ncontent-length: %b\r\n\r\n" % LENGTH + BODY,
    "a list of lengths": POST + b"content-length: %b, %b\r\n\r\n" % (LENGTH, LENGTH) + BODY,
    "length, then chunked": POST + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n" + CHUNKS,
    "chunked, then length": POST + b"transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n" + CHUNKS,
    "two encodings": POST + b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n" + CHUNKS,
    "an encoding after chunked": POST + b"transfer-encoding: chunked, identity\r\n\r\n" + CHUNKS,
    "an encoding before chunked": POST + b"transfer-encoding: gzip, chunked\r\n\r\n" + CHUNKS,
    "an unknown encoding": POST + b"transfer-encoding: xchunked\r\n\r\n" + CHUNKS,
    "a space before the colon": POST + b"transfer-encoding : chunked\r\n\r\n" + CHUNKS,
    "a vertical tab": POST + b"transfer-encoding:\x0bchunked\r\n\r\n" + CHUNKS,
    "bare line feeds": (POST + b"content-length: %b\r\n\r\n" % LENGTH).replace(b"\r\n", b"\n") + BODY,
    "one bare line feed": POST + b"x-a: b\ncontent-length: %b\r\n\r\n" % LENGTH + BODY,
    "a bare carriage return": POST + b"x-a: b\rcontent-length: %b\r\n\r\n" % LENGTH + BODY,
    "a folded header": POST + b"x-a: b\r\n c\r\ncontent-length: %b\r\n\r\n" % LENGTH + BODY,
    "a folded length": POST + b"content-length:\r\n %b\r\n\r\n" % LENGTH + BODY,
    "a folded encoding": POST + b"transfer-encoding:\r\n chunked\r\n\r\n" + CHUNKS,
    "a signed length": POST + b"content-length: +%b\r\n\r\n" % LENGTH + BODY,
    "a negative length": POST + b"content-length: -1\r\n\r\n" + BODY,
    "a length in hexadecimal": POST + b"content-length: 0x10\r\n\r\n" + BODY,
    "a length beyond 64 bits": POST + b"content-length: 99999999999999999999999\r\n\r\n" + BODY,
    "an empty length": POST + b"content-length: \r\n\r\n" + BODY,
    "a zero byte in a name": POST + b"x\x00a: b\r\ncontent-length: %b\r\n\r\n" % LENGTH + BODY,
    "a zero byte in a value": POST + b"x-a: b\x00c\r\ncontent-length: %b\r\n\r\n" % LENGTH + BODY,
    "a line feed in a chunk's head": POST + b"transfer-encoding: chunked\r\n\r\n" + CHUNKS.replace(b"\r\n", b"\n"),
    "a negative chunk": POST + b"transfer-encoding: chunked\r\n\r\n-5\r\n" + BODY,
    "a chunk beyond 64 bits": POST + b"transfer-encoding: chunked\r\n\r\n10000000000000001\r\n" + BODY,
    "a chunk with more in it": POST + b"transfer-encoding: chunked\r\n\r\n2\r\n" + CHUNKS,
    "a length behind the chunks": POST
    + b"transfer-encoding: chunked\r\n\r\n"
    + CHUNKS[:-2]
    + b"content-length: 5\r\n\r\n",
    "chunks of HTTP/1.0": POST.replace(b"1.1", b"1.0", 1) + b"transfer-encoding: chunked\r\n\r\n" + CHUNKS,
    "two hosts": POST + b"host: evil.example\r\ncontent-length: %b\r\n\r\n" % LENGTH + BODY,
    "two keys": POST + b"authorization: Bearer a\r\nauthorization: Bearer b\r\ncontent-length: 2\r\n\r\n{}",
    "two keys of Anthropic's": POST + b"x-api-key: a\r\nX-Api-Key: b\r\ncontent-length: 2\r\n\r\n{}",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "another HTTP": POST.replace(b"1.1", b"9.9", 1) + b"content-length: %b\r\n\r\n" % LENGTH + BODY,
    "a tunnel": b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
}
"""Requests whose end, or whose sender, two readers may see differently."""


@pytest.mark.parametrize("case", SMUGGLED)
def test_a_request_in_doubt_is_refused_and_nothing_behind_it_is_answered_by_mistake(gateway: Served, case: str) -> None:
    """It is a 400. The body is never taken for a request: at most what follows its end is."""
    told = gateway.send(SMUGGLED[case] + BEHIND, silence=0.5)
    assert told.startswith(b"HTTP/1.1 400")
    assert b" 500 " not in told
    assert b"Traceback" not in told
    if case not in ("two hosts", "two keys", "two keys of Anthropic's"):  # the end of these is in no doubt
        assert told.count(b"HTTP/1.1 ") == 1
        assert b"connection: close" in told


UPGRADE = POST + b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAM\r\n"


@pytest.mark.parametrize("cut", [0, 1, 20], ids=["body in the next packet", "body in two", "body in three"])
def test_a_request_to_upgrade_is_served_as_any_other(gateway: Served, cut: int) -> None:
    """Java's HTTP client asks for HTTP/2 with its first POST; the request behind it is answered, too."""
    parts = [UPGRADE + b"content-length: %b\r\n\r\n" % LENGTH + BODY[:cut], BODY[cut:], BEHIND]
    with socket.create_connection(gateway.address, timeout=20) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.sendall(parts[0])
        wire.sendall(parts[1])
        answer = wire.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 200")
        assert b'"content":' in answer
        wire.sendall(parts[2])
        assert wire.recv(65_536).endswith(b'{"status":"ok"}')


@pytest.mark.parametrize("encoding", [b"content-length: %d" % len(BEHIND), b"transfer-encoding: chunked"])
def test_the_body_of_a_request_to_upgrade_is_never_a_request(gateway: Served, encoding: bytes) -> None:
    """The parser takes it for another protocol's: before, a body that came in its own packet was answered as one."""
    with socket.create_connection(gateway.address, timeout=20) as wire:
        wire.sendall(UPGRADE + encoding + b"\r\n\r\n")
        told = b""
        if encoding.startswith(b"transfer"):
            told = read_all(wire)  # it is not read at all, and the connection ends
            assert told
        else:
            wire.sendall(BEHIND)
            wire.shutdown(socket.SHUT_WR)  # the server closes when it has said all
            told = read_all(wire)
    assert told.startswith(b"HTTP/1.1 400")
    assert told.count(b"HTTP/1.1 ") == 1


def test_a_name_with_a_script_in_it_is_told_as_text(gateway: Served) -> None:
    """An unknown model's name comes back in JSON, which no browser takes for a page."""
    name = '<script>alert(1)</script>"\r\nx-injected: yes'
    answers = [
        httpx2.post(gateway.base_url + "/v1/chat/completions", json={"model": name, "messages": [{"role": "user"}]}),
        httpx2.get(gateway.base_url + "/v1/models/%3Cscript%3Ealert(1)%3C/script%3E"),
        httpx2.get(gateway.base_url + "/%3Cscript%3Ealert(1)%3C/script%3E"),
        httpx2.get(gateway.base_url + "/dashboard/%3Cscript%3E"),
    ]
    for answer in answers:
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/json"
        assert "x-injected" not in answer.headers


def test_a_key_sees_the_models_that_it_may_use(upstream: FaultServer, tmp_path: Path) -> None:
    """Health, metrics, statistics and targets are those of its models; an admin's are whole."""
    keys: dict[str, dict[str, Any]] = {
        "app": {"key": "key-of-an-application", "models": ["claude"]},
        "boss": {"key": "key-of-an-operator", "admin": True},
    }
    with served(fleet(upstream), tmp_path, gateway={"keys": keys}) as running:

        def get(path: str, key: str | None) -> httpx2.Response:
            headers = {} if key is None else {"authorization": f"Bearer {key}"}
            return httpx2.get(running.base_url + path, headers=headers, timeout=30)

        boss, app = keys["boss"]["key"], keys["app"]["key"]
        for model in ("smart", "claude"):
            body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
            told = httpx2.post(
                running.base_url + "/v1/chat/completions", json=body, headers={"x-api-key": boss}, timeout=30
            )
            assert told.status_code == 200
        for path in ("/health", "/metrics", "/api/stats", "/api/targets"):
            assert "ao/big" in get(path, boss).text
            assert "aa/big" in get(path, app).text
            assert "ao" not in get(path, app).text.replace("aa/big", "")
            assert "smart" not in get(path, app).text
        assert set(get("/health/readiness", None).json()) == {"status"}
        assert "models" in get("/health/readiness", app).json()
        assert get("/dashboard/stream", app).status_code == 403
