"""A test has no network unless it says so, and then only this machine's."""

from __future__ import annotations

import asyncio
import socket

import pytest
from pytest_socket import SocketBlockedError, SocketConnectBlockedError

ELSEWHERE = ("192.0.2.1", 80)  # RFC 5737: documentation only, routed nowhere


def test_a_test_opens_no_socket() -> None:
    """Without the mark not even a socket can be made."""
    with pytest.warns(UserWarning, match=r"socket\.socket"), pytest.raises(SocketBlockedError):
        socket.socket(socket.AF_INET, socket.SOCK_STREAM)


def test_an_event_loop_needs_no_mark() -> None:
    """asyncio's own pair of sockets is not the network."""
    assert asyncio.run(asyncio.sleep(0, result="done")) == "done"


@pytest.mark.loopback
def test_a_marked_test_reaches_this_machine_and_no_other() -> None:
    """The mark opens 127.0.0.1; another host stays out of reach."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getpeername() == server.getsockname()
    with (
        socket.socket() as outward,
        pytest.warns(UserWarning, match=r"connect\(\)"),
        pytest.raises(SocketConnectBlockedError),
    ):
        outward.connect(ELSEWHERE)
