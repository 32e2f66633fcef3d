"""The connection pool: which proxy a base URL gets, one TLS context for all, and large bodies."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from aiohttp.client_proto import ResponseHandler

from smart_model_router_providers.http_request import SLICE_BYTES, Slices
from smart_model_router_providers.http_transport import _proxy, _tls, _upload


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", "internal.test")


def test_the_environments_proxy_is_used() -> None:
    """A remote provider is reached through the proxy that the environment names."""
    found = _proxy(httpx2.URL("https://api.provider.test/v1"))
    assert found == "http://proxy.test:3128"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/v1", "http://localhost:1/v1", "http://[::1]:1/v1", "https://internal.test/v1"]
)
def test_some_hosts_need_no_proxy(url: str) -> None:
    """This machine and what NO_PROXY lists are reached directly."""
    assert _proxy(httpx2.URL(url)) is None


def test_one_tls_context_for_all() -> None:
    """Certificates are loaded once, and checked."""
    assert _tls() is _tls()
    assert _tls().check_hostname


class _Leaving(asyncio.Transport):
    """One that begins to close after the first piece, and takes nothing afterwards, as uvloop's."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def is_closing(self) -> bool:
        """After the first piece."""
        return self.taken > 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take the first piece."""
        if self.is_closing():
            raise RuntimeError("unable to perform operation on closing transport")
        self.taken += len(data)


@pytest.mark.asyncio
async def test_nothing_is_written_to_a_connection_that_closes() -> None:
    """A body whose connection goes in the middle is given up; whoever waits for the answer is told why."""
    protocol = ResponseHandler(asyncio.get_running_loop())
    protocol.transport = transport = _Leaving()
    await _upload(protocol, Slices(bytes(3 * SLICE_BYTES)))
    assert transport.taken == SLICE_BYTES
