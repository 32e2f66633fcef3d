"""Clients of `smr serve` that mean no good, over real sockets: in any order, and nothing of them is left."""

from __future__ import annotations

import json
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from urllib.error import HTTPError

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.gateways import ECHO, MESSAGES, Served, becomes, fleet, footprint, served

LIMITS = {"body_bytes": 10_000, "head_bytes": 4096, "head_timeout": "300ms", "body_timeout": "300ms"}
PATHS = ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/embeddings", "/v1/completions"]
CHAT = json.dumps({"model": "smart", "messages": MESSAGES}).encode()
STREAM = json.dumps({"model": "stalled", "messages": MESSAGES, "stream": True}).encode()
HARMLESS = {200, 400, 404, 405, 408, 413, 431, 501}
"""What becomes of a client that means no good; 500 would be a failure of ours."""


def head(path: str, length: int | str, *more: str) -> bytes:
    """The head of a POST."""
    return "\r\n".join(
        [f"POST {path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {length}", *more, "", ""]
    ).encode()


def slam(wire: socket.socket) -> None:
    """Hang up without a word: what is under way is reset."""
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_a_body(wire: socket.socket, path: str) -> None:
    """Say half of it, and leave."""
    wire.sendall(head(path, len(CHAT)) + CHAT[: len(CHAT) // 2])


def a_body_that_never_comes(wire: socket.socket, path: str) -> None:
    """Say half of it, and wait."""
    wire.sendall(head(path, len(CHAT)) + CHAT[:9])
    answered(wire)


def a_head_that_never_ends(wire: socket.socket, path: str) -> None:
    """Say half a head, and wait."""
    wire.sendall(head(path, 9)[:-2])
    answered(wire)


def a_header_bomb(wire: socket.socket, path: str) -> None:
    """One header that is too long."""
    wire.sendall(head(path, len(CHAT), "x-a: " + "b" * 9000) + CHAT)
    answered(wire)


def many_headers(wire: socket.socket, path: str) -> None:
    """A thousand that are not."""
    wire.sendall(head(path, len(CHAT), *(f"x-{number}: b" for number in range(1000))) + CHAT)
    answered(wire)


def too_much(wire: socket.socket, path: str) -> None:
    """More than is read, in chunks of unknown number."""
    wire.sendall(head(path, 0).replace(b"content-length: 0", b"transfer-encoding: chunked"))
    wire.sendall((b"1000\r\n" + b"a" * 0x1000 + b"\r\n") * 4)
    answered(wire)


def lengths_that_lie(wire: socket.socket, path: str) -> None:
    """Two lengths, none of them right; and one that is no number."""
    wire.sendall(head(path, 3, "content-length: 7") + CHAT)
    answered(wire)


def no_http(wire: socket.socket, path: str) -> None:
    """The beginning of TLS."""
    del path
    wire.sendall(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    answered(wire)


def two_at_once(wire: socket.socket, path: str) -> None:
    """A second request before the first is answered, and leave."""
    wire.sendall((head(path, len(CHAT)) + CHAT) * 2)


def leaving_a_stream(wire: socket.socket, path: str) -> None:
    """Ask for a stream, wait for its head, and hang up in the middle of it."""
    del path
    wire.sendall(head("/v1/chat/completions", len(STREAM)) + STREAM)
    assert wire.recv(100).startswith(b"HTTP/1.1 200")


def answered(wire: socket.socket) -> None:
    """Whoever waits gets a short answer, or is hung up on; it is harmless, and tells nothing of our insides."""
    with suppress(ConnectionError):
        got = wire.recv(65_536)
        assert not got or int(got.split()[1]) in HARMLESS, got
        assert b"Traceback" not in got


MOVES: list[Callable[[socket.socket, str], None]] = [
    half_a_body,
    a_body_that_never_comes,
    a_head_that_never_ends,
    a_header_bomb,
    many_headers,
    too_much,
    lengths_that_lie,
    no_http,
    two_at_once,
    leaving_a_stream,
]


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """A provider that is well, and falls silent in the middle of streams of one model."""
    with FaultServer({"silent": [Fault.stall(after=2)]}) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway that is not patient."""
    config = fleet(upstream)
    config["models"]["stalled"] = {"tiers": [{"targets": ["ao/silent"]}], "last_resort": []}
    with served(config, tmp_path_factory.mktemp("gateway"), gateway=LIMITS) as running:
        yield running


def play(gateway: Served, move: Callable[[socket.socket, str], None], path: str, *, slams: bool) -> None:
    """One of them comes and goes."""
    with socket.create_connection(gateway.address, timeout=2) as wire:
        with suppress(BrokenPipeError, ConnectionResetError):
            move(wire, path)
        if slams:
            slam(wire)


def asked_beside(gateway: Served) -> httpx2.Response:
    """A harmless request, asked again after each 408.

    A busy machine may hold this client for longer than 300 ms before its head or its body: 408 is the right answer.
    """
    while True:
        answer = httpx2.post(gateway.base_url + "/v1/chat/completions", content=CHAT, timeout=30)
        if answer.status_code != 408:
            return answer


def in_flight(gateway: Served) -> int | None:
    """Return what is in flight at the gateway; None where it answers the question with a 408, as above."""
    try:
        return gateway.in_flight()
    except HTTPError as error:
        error.close()
        if error.code != 408:
            raise
        return None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moves=st.lists(st.tuples(st.sampled_from(MOVES), st.sampled_from(PATHS), st.booleans()), min_size=1, max_size=2),
)
def test_clients_that_mean_no_good_harm_nobody(
    gateway: Served, upstream: FaultServer, moves: list[tuple[Callable[[socket.socket, str], None], str, bool]]
) -> None:
    """Each gets what it deserves; who asks beside them is answered; nothing stays in flight, here or at a provider."""
    for move, path, slams in moves:
        play(gateway, move, path, slams=slams)
    answer = asked_beside(gateway)
    assert answer.json()["choices"][0]["message"]["content"] == ECHO
    assert becomes(lambda: in_flight(gateway) == 0 and upstream.in_flight == 0)


def test_who_sends_two_requests_at_once_and_leaves_frees_the_provider(gateway: Served, upstream: FaultServer) -> None:
    """A client that hangs up while its second request waits behind the first is noticed like any other."""
    before = upstream.calls()
    with socket.create_connection(gateway.address, timeout=30) as wire:
        wire.sendall((head("/v1/chat/completions", len(STREAM)) + STREAM) * 2)
        assert becomes(lambda: upstream.in_flight == 1)
        slam(wire)
    assert becomes(lambda: upstream.in_flight == 0 and in_flight(gateway) == 0)
    assert upstream.calls() == before + 1


@pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc")
def test_clients_that_mean_no_good_leave_no_socket_and_no_memory(gateway: Served) -> None:
    """After twenty of each: not one open file more than before, and no memory worth a word."""

    def all_of_them(rounds: int) -> None:
        waiting = (a_body_that_never_comes, a_head_that_never_ends)  # each takes its 300 ms: see the test above
        for number in range(rounds):
            for move in (move for move in MOVES if move not in waiting):
                play(gateway, move, PATHS[number % len(PATHS)], slams=bool(number % 2))
        with suppress(ConnectionError):
            idle = [socket.create_connection(gateway.address, timeout=30) for _ in range(rounds)]
            assert all(wire.recv(99).startswith(b"HTTP/1.1 408") for wire in idle)
            for wire in idle:
                wire.close()
        assert becomes(lambda: in_flight(gateway) == 0)

    all_of_them(5)  # what is made once is made now
    files, memory = footprint(gateway.process.pid)
    all_of_them(20)
    assert becomes(lambda: footprint(gateway.process.pid)[0] <= files)
    assert footprint(gateway.process.pid)[1] - memory < 10_000
