"""The pytest plugin as a user meets it: in their own test run, with their own settings."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

# Blocked under its entry point's name, so that it is loaded once whether or not the package is installed.
PLUGIN = ("-p", "no:smart_model_router", "-p", "smart_model_router_providers.testing")
QUIET = ("-p", "no:randomly", "-p", "no:langsmith_plugin", "-p", "no:cacheprovider", "-W", "error")
SET = ("-o", "asyncio_default_fixture_loop_scope=function")


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run pytest as a user would, with our plugin."""
    return pytester.runpytest_subprocess(*PLUGIN, *QUIET, *SET, *options, timeout=60)


def test_plain_tests_get_a_server_on_real_sockets(pytester: pytest.Pytester) -> None:
    """A synchronous test starts servers, counts what reached them, and need not close them."""
    pytester.makepyfile(
        """
        import httpx2
        import pytest
        from smart_model_router_providers.fault import Fault

        started = []

        def test_two_servers(fault_server):
            down, well = fault_server([Fault.status(503)]), fault_server(text="fine")
            started.append(well)
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            statuses = [httpx2.post(f"{s.base_url}/chat/completions", json=body).status_code for s in (down, well)]
            assert statuses == [503, 200]
            assert (down.calls(), well.calls("m")) == (1, 1)

        def test_they_are_gone():
            with pytest.raises(httpx2.ConnectError):
                httpx2.get(started[0].base_url)
        """
    )
    run(pytester).assert_outcomes(passed=2)


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_asynchronous_tests_get_both_fixtures_in_any_mode(pytester: pytest.Pytester, mode: str) -> None:
    """The fixtures are plain ones: pytest-asyncio's mode does not matter to them."""
    pytester.makepyfile(
        """
        import asyncio
        import json

        import httpx2
        import pytest
        from smart_model_router.domain.outcome import Success
        from smart_model_router.domain.ports import ProviderCall
        from smart_model_router_providers.fault import Fault

        BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

        @pytest.mark.asyncio
        async def test_sockets(fault_server):
            server = fault_server([Fault.status(429, times=1)])
            async with httpx2.AsyncClient() as http:
                got = [await http.post(f"{server.base_url}/chat/completions", json=BODY) for _ in range(2)]
            assert [answer.status_code for answer in got] == [429, 200]

        @pytest.mark.asyncio
        async def test_in_process(scripted_provider):
            provider = scripted_provider(text="fine")
            outcome = await provider.call(ProviderCall("chat", "m", json.dumps(BODY).encode(), BODY))
            assert isinstance(outcome, Success)
        """
    )
    run(pytester, "-o", f"asyncio_mode={mode}").assert_outcomes(passed=2)


@pytest.mark.parametrize("options", [("--disable-socket", "--allow-unix-socket"), ("--allow-hosts=192.0.2.9",)])
def test_loopback_opens_for_those_who_ask_and_for_nobody_else(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    """With pytest-socket on guard, `fault_server` reaches this machine; other hosts and other tests stay shut."""
    pytester.makepyfile(
        """
        import socket

        import pytest
        from pytest_socket import SocketBlockedError, SocketConnectBlockedError

        REFUSED = (SocketBlockedError, SocketConnectBlockedError)

        @pytest.mark.filterwarnings("ignore::UserWarning")
        def test_with_a_server(fault_server):
            server = fault_server()
            socket.create_connection(("127.0.0.1", server.port)).close()
            with pytest.raises(REFUSED), socket.socket() as outward:
                outward.connect(("192.0.2.1", 80))

        @pytest.mark.filterwarnings("ignore::UserWarning")
        def test_without_one():
            with pytest.raises(REFUSED), socket.socket() as inward:
                inward.connect(("127.0.0.1", 9))
        """
    )
    run(pytester, *options).assert_outcomes(passed=2)


def test_a_project_without_guards_keeps_its_network(pytester: pytest.Pytester) -> None:
    """Asking for a fault server takes nothing away from a test that was free before."""
    pytester.makepyfile(
        """
        def test_free(request, fault_server):
            assert request.node.get_closest_marker("allow_hosts") is None
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_the_plugin_costs_a_pytest_start_next_to_nothing() -> None:
    """Loading it brings in none of the libraries that its fixtures need."""
    heavy = "asyncio", "yaml", "httpx2", "aiohttp", "openai", "anthropic", "smart_model_router_providers.fault"
    code = (
        "import sys, pytest; before = set(sys.modules); import smart_model_router_providers.testing;"
        f"print(sorted(set({heavy!r}) & (set(sys.modules) - before)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "[]"
