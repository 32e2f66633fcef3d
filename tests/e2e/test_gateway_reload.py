"""SIGHUP on a real `smr serve`: what was known of unchanged targets is known to the configuration that comes after."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.gateways import MESSAGES, Served, becomes, fleet, served

Start = Callable[..., Served]
CHAT = {"model": "smart", "messages": MESSAGES}


@pytest.fixture
def servers() -> Iterator[tuple[FaultServer, ...]]:
    """Three providers that do what a test says."""
    with FaultServer() as first, FaultServer() as second, FaultServer() as third:
        yield first, second, third


@pytest.fixture
def start(servers: tuple[FaultServer, ...], tmp_path: Path) -> Iterator[Start]:
    """Start a gateway before them."""
    with ExitStack() as stack:

        def start(**sections: Any) -> Served:
            config = fleet(*servers, routing={"strategy": "ordered"}, **sections)
            for provider in config["providers"].values():
                provider["bulkhead"] = 2
            return stack.enter_context(served(config, tmp_path))

        yield start


def reload(running: Served, change: Callable[[dict[str, Any]], object] = lambda config: None) -> None:
    """Change the configuration and say so; whoever returns knows that the new one serves."""
    changed = json.loads(running.file.read_text(encoding="utf-8"))
    change(changed)
    mark = f"reloaded-{len(changed['models'])}"
    changed["models"][mark] = changed["models"]["smart"]
    running.file.write_text(json.dumps(changed), encoding="utf-8")
    running.process.send_signal(signal.SIGHUP)
    assert becomes(lambda: mark in httpx2.get(running.base_url + "/v1/models").text)


def chat(running: Served) -> httpx2.Response:
    """One request."""
    return httpx2.post(running.base_url + "/v1/chat/completions", json=CHAT, timeout=30)


def refusals(running: Served) -> dict[str, Any]:
    """What every target would say to a call."""
    told = httpx2.get(running.base_url + "/api/targets").json()["targets"]
    return {target["id"]: target["refusal"] for target in told}


@pytest.mark.parametrize("stored", [False, True], ids=["no store", "store"])
def test_the_operators_no_and_a_dead_target_outlast_a_reload(
    servers: tuple[FaultServer, ...], start: Start, tmp_path: Path, stored: bool
) -> None:
    """Nobody calls what is isolated, and nobody finds out again that a target is dead."""
    dead, isolated, healthy = servers
    dead.set([Fault.status(500)])
    store = {"store": {"path": str(tmp_path / "stats.db")}} if stored else {}
    running = start(**store, resilience={"cooldown": {"failure": "10m"}})  # no rest ends while the test runs
    acted = httpx2.post(running.base_url + "/api/targets/isolate", json={"name": "bo/big"})
    assert acted.status_code == 200
    for _ in range(6):
        assert chat(running).status_code == 200
    before, calls = refusals(running), len(dead.requests)
    assert before["ao/big"] == "cooldown"
    assert before["bo/big"] == "isolated"
    reload(running)
    assert refusals(running) == before
    for _ in range(3):
        assert chat(running).status_code == 200
    assert len(dead.requests) == calls
    assert (len(isolated.requests), len(healthy.requests)) == (0, 9)
    assert running.stop() == 0


def test_a_reload_under_load_keeps_to_the_slots_and_loses_nobody(
    servers: tuple[FaultServer, ...], start: Start
) -> None:
    """Requests of three configurations at once, two slots: each is answered, and no third call is ever under way."""
    first, *_ = servers
    first.set([Fault.delay(first=0.3)])
    running = start()

    def only_first(config: dict[str, Any]) -> None:
        config["models"]["smart"]["tiers"] = [{"targets": ["ao/big"]}]

    reload(running, only_first)
    with ThreadPoolExecutor(12) as pool:
        answers = []
        for _ in range(3):
            answers += [pool.submit(chat, running) for _ in range(4)]
            assert becomes(lambda: first.in_flight == 2)
            reload(running)
        assert [answer.result().status_code for answer in answers] == [200] * 12
    assert first.max_in_flight() == 2
    assert running.stop() == 0
