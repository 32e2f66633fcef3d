"""Pytest plugin: failing providers as fixtures, `fault_server` on real sockets, `scripted_provider` on none.

Installed with the package; nothing to switch on. Both fixtures are factories and work in plain and in
asynchronous tests, whatever the asyncio mode:

    def test_my_agent_survives_a_rate_limit(fault_server):
        server = fault_server([Fault.status(429, headers={"retry-after": "1"}, times=1)])
        ...                                     # point your client at server.base_url
        assert server.calls() == 2

Where pytest-socket keeps tests off the network, a test that asks for `fault_server` may reach this machine,
and nothing else.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

# Loaded by every pytest run of every project that has us installed: what costs time is imported late.
if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_model_router_providers.fault import FaultServer, Script, ScriptedProvider

LOOPBACK = ["127.0.0.0/8", "::1", "localhost"]


class FaultServerFactory(Protocol):
    """Starts a fault server."""

    def __call__(self, script: Script = None, seed: int = 0, **options: Any) -> FaultServer:
        """Start one that follows `script`, until the test ends; `options` are FaultServer's own."""
        ...


class ScriptedProviderFactory(Protocol):
    """Makes a scripted provider."""

    def __call__(self, script: Script = None, **options: Any) -> ScriptedProvider:
        """Make one that follows `script`; `options` are ScriptedProvider's own (`clock`, `seed`, ...)."""
        ...


@pytest.fixture
def fault_server() -> Iterator[FaultServerFactory]:
    """Start fault servers, each in a thread of its own; all are closed at the end of the test."""
    from smart_model_router_providers.fault import FaultServer  # noqa: PLC0415  see above

    with ExitStack() as servers:

        def start(script: Script = None, seed: int = 0, **options: Any) -> FaultServer:
            return servers.enter_context(FaultServer(script, seed, **options))

        yield start


@pytest.fixture
def scripted_provider() -> ScriptedProviderFactory:
    """Make scripted providers: no sockets, no threads, and no waiting but on the clock you give."""
    from smart_model_router_providers.fault import ScriptedProvider  # noqa: PLC0415  see above

    def make(script: Script = None, **options: Any) -> ScriptedProvider:
        return ScriptedProvider(script, **options)

    return make


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Open loopback to tests that ask for `fault_server`, if pytest-socket would keep it from them."""
    hosts = config.getoption("--allow-hosts", default=None)
    if not hosts and not config.getoption("--disable-socket", default=False):
        return
    others = hosts.split(",") if hosts else []
    for item in items:
        if "fault_server" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("allow_hosts"):
            item.add_marker(pytest.mark.allow_hosts([*LOOPBACK, *others]))
