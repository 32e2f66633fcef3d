"""The door of `smr serve`: large bodies, raw sockets that mean no good, keys. Nothing delays or misleads others."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import httpx2
import pytest

from smart_model_router_providers.fault import FaultServer
from tests.e2e.gateways import Served, fleet, read_all, served

LONG = 'word, [and] {so} \\"on\\" ' * 40_000
LIMITS = {"body_timeout": "500ms", "body_bytes": 3_000_000, "max_elements": 20_000}


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
    assert told.count(b"HTTP/1.1") == 1


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
