"""The connection pool: which proxy a base URL gets, and one TLS context for all."""

from __future__ import annotations

import httpx2
import pytest

from smart_model_router_providers.pool import _proxy, _tls


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
