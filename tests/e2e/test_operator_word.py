"""The operator's word among real workers: `isolate` and `enable` reach every process of the host, and outlast it."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.command import Smr
from tests.e2e.gateways import MESSAGES, Served, becomes, fleet, served

CHAT = json.dumps({"model": "smart", "messages": MESSAGES}).encode()
PROMISED_SECONDS = 0.25
"""Within this time of the answer to the operator every process of the host obeys."""
WORKERS = ("--workers", "3")
Start = Callable[..., AbstractContextManager[Served]]


@pytest.fixture
def first() -> Iterator[FaultServer]:
    """The provider that is preferred: `ao/big`."""
    with FaultServer() as server:
        yield server


@pytest.fixture
def second() -> Iterator[FaultServer]:
    """The provider behind it: `bo/big`."""
    with FaultServer() as server:
        yield server


@pytest.fixture
def start(first: FaultServer, second: FaultServer, tmp_path: Path) -> Start:
    """Start a gateway of three workers with a store."""

    def start(arguments: tuple[str, ...] = WORKERS, **sections: Any) -> AbstractContextManager[Served]:
        models = {"smart": {"tiers": [{"targets": ["ao/big"]}, {"targets": ["bo/big"]}], "last_resort": []}}
        config = {**fleet(first, second, store={"path": str(tmp_path / "stats.db")}), "models": models}
        return served(config, tmp_path, arguments=arguments, **sections)

    return start


def say(running: Served, action: str, name: str = "ao/big", **more: str) -> dict[str, Any]:
    """The operator's word, on a connection of its own: whichever worker accepts it hears it."""
    status, told = running.post(f"/api/targets/{action}", json.dumps({"name": name, **more}).encode())
    assert status == 200, told
    return told


def ask(running: Served, times: int) -> Counter[int]:
    """So many requests, each on a connection of its own: all workers have some. How often each status came."""
    with ThreadPoolExecutor(8) as pool:
        return Counter(pool.map(lambda _: running.post("/v1/chat/completions", CHAT)[0], range(times)))


def quiet(running: Served, server: FaultServer) -> bool:
    """Whether none of a few requests reaches this provider."""
    before = server.calls()
    ask(running, 30)
    return server.calls() == before


def obeyed_in_time(running: Served, action: str, left: FaultServer) -> bool:
    """Whether none of 200 requests reaches the provider that the word leaves, from the promised time on."""
    assert say(running, action)["scope"] == "host"
    time.sleep(PROMISED_SECONDS)  # noqa: TID251  # real time: the promise is about it
    before = left.calls()
    assert ask(running, 200) == {200: 200}
    return left.calls() == before


def test_isolate_and_enable_reach_every_worker(start: Start, first: FaultServer, second: FaultServer) -> None:
    """0 of 200 requests reach an isolated target, also of workers that served nothing before; `enable` ends it.

    A busy machine may keep a worker from running for so long: then it counts that this happens once in a few times.
    """
    with start() as running:
        assert obeyed_in_time(running, "isolate", first) or becomes(lambda: quiet(running, first))
        for action, left in (("enable", second), ("isolate", first)):
            assert any(obeyed_in_time(running, action, left) for _ in range(5))


def test_the_word_outlasts_a_restart(start: Start, first: FaultServer, tmp_path: Path) -> None:
    """A server that begins after it obeys from its first request on, and shows who said what, when and why."""
    began = time.time()  # noqa: TID251 - compared with a stamp for people
    with start() as running:
        say(running, "isolate", why="the key leaked", by="ada")
    told = Smr(tmp_path)("stats", "--db", tmp_path / "stats.db", "--json")
    (shown,) = json.loads(told.stdout)["isolated"]
    table = Smr(tmp_path)("stats", "--db", tmp_path / "stats.db").stdout.splitlines()[-1].split()
    assert (table[0], table[-3:]) == ("ao/big", ["the", "key", "leaked"])
    with start() as running:
        assert ask(running, 60) == {200: 60}
        assert first.calls() == 0
        (status,) = [target for target in running.health()["targets"] if target["id"] == "ao/big"]
        word = status["isolated"]
        assert word == shown
        assert (word["by"], word["why"]) == ("ada (anyone)", "the key leaked")
        assert began - 1 < word["since"] < time.time()  # noqa: TID251 - as above


def test_a_last_resort_obeys(start: Start, first: FaultServer, second: FaultServer) -> None:
    """Whoever isolates the last resort rather has an error than its answer, from every worker."""
    first.set([Fault.status(500)])
    model = {"smart": {"tiers": [{"targets": ["ao/big"]}], "last_resort": ["bo/big"]}}
    with start(models=model, resilience={"timeouts": {"total": "1s"}}) as running:
        assert ask(running, 10)[200]
        say(running, "isolate", "bo/big")
        assert becomes(lambda: quiet(running, second))
        assert not ask(running, 40)[200]


def test_a_locked_file_loses_no_request_and_the_word_counts_where_it_was_heard(
    start: Start, first: FaultServer, tmp_path: Path
) -> None:
    """The reply says that one process obeys, and why; that one does. Once the lock is gone all of them do."""
    with start() as running, httpx2.Client(base_url=running.base_url, timeout=30) as one_worker:
        assert ask(running, 10) == {200: 10}
        with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as lock:
            lock.execute("BEGIN IMMEDIATE")
            told = one_worker.post("/api/targets/isolate", json={"name": "ao/big"}).json()
            assert told["scope"] == "process"
            assert told["note"]
            before = first.calls()
            assert {one_worker.post("/v1/chat/completions", content=CHAT).status_code for _ in range(20)} == {200}
            assert first.calls() == before
            assert ask(running, 40) == {200: 40}
        assert becomes(lambda: quiet(running, first))
        assert ask(running, 100) == {200: 100}


def test_a_removed_file_forgets_nothing_while_a_process_lives(start: Start, first: FaultServer, tmp_path: Path) -> None:
    """Every process obeys on, no request is lost, and what was said stands in the new file."""
    with start() as running:
        assert ask(running, 10) == {200: 10}
        say(running, "isolate")
        assert becomes(lambda: quiet(running, first))
        before = first.calls()
        for file in tmp_path.glob("state.db*"):
            file.unlink()
        assert ask(running, 100) == {200: 100}
        assert becomes((tmp_path / "state.db").exists)
    with start() as running:
        assert ask(running, 30) == {200: 30}
    assert first.calls() == before


def test_a_file_of_a_newer_release_is_left_alone(start: Start, first: FaultServer, tmp_path: Path) -> None:
    """It is not written; the reply names what to install; the process that heard the word obeys, and all serve."""
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as newer:
        newer.execute("PRAGMA user_version = 99")
    with start() as running, httpx2.Client(base_url=running.base_url, timeout=30) as one_worker:
        told = one_worker.post("/api/targets/isolate", json={"name": "ao/big"}).json()
        assert told["scope"] == "process"
        assert "schema 99 is newer" in told["note"]
        assert one_worker.post("/v1/chat/completions", content=CHAT).status_code == 200
        assert first.calls() == 0
        assert ask(running, 40) == {200: 40}
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as newer:
        assert newer.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


def test_a_reload_keeps_the_word_in_every_worker(start: Start, first: FaultServer) -> None:
    """SIGHUP with another key for the target: it is isolated all the same."""
    with start() as running:
        say(running, "isolate")
        changed = json.loads(running.file.read_text(encoding="utf-8"))
        changed["providers"]["ao"]["api_key"] = "another"
        running.file.write_text(json.dumps(changed), encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        log = running.file.parent / "gateway.log"
        assert becomes(lambda: log.read_text(encoding="utf-8").count("the new configuration is in use") == 3)
        assert ask(running, 60) == {200: 60}
        assert first.calls() == 0
