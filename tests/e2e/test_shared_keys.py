"""Virtual keys among real processes and over kill -9: one limit for all of a host, a day's money that outlives them."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from smart_model_router.flow import clock
from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.gateways import MESSAGES, Served, becomes, fleet, served
from tests.e2e.test_shared_processes import line, start
from tests.store_files import rows

KEY = "vk-team-0123456789"
OPERATOR = "vk-operator-0123456789"
WORKERS = ("--workers", "2")
DAY = 86_400
CHAT: dict[str, Any] = {"model": "smart", "messages": MESSAGES, "max_tokens": 100}
DEAR: dict[str, Any] = {"target": "ao/big", "price": {"input": 0, "output": 10_000}}
"""So many tokens are a dollar."""
Start = Callable[..., AbstractContextManager[Served]]


def let_in(programs: list[Any], instant: float, count: int) -> int:
    """How many of `count` questions to each worker are let in at an instant."""
    for program in programs:
        program.tell(f"{instant} {count}\n")
    return sum(int(line(program)) for program in programs)


def test_three_a_minute_on_four_workers_are_three(tmp_path: Path) -> None:
    """Whichever of the processes is asked, and however often."""
    programs, began = [start("client", tmp_path / "stats.db", "3") for _ in range(4)], clock.here().boottime
    assert let_in(programs, began, 3) == 3
    assert [let_in(programs, began + 20.0 * number, 2) for number in range(1, 4)] == [1, 1, 1]
    assert let_in(programs[:1], began + 120.0, 5) == 3
    assert let_in(programs[1:], began + 140.0, 1) == 1


def test_sixty_a_minute_on_four_workers_are_sixty(tmp_path: Path) -> None:
    """Asked far more often, for four minutes by the clock of the host; in the first a full bucket goes out, too."""
    programs, began = [start("client", tmp_path / "stats.db", "60") for _ in range(4)], clock.here().boottime
    steps = [let_in(programs, began + 5.0 * number, 20) for number in range(48)]
    minutes = [sum(steps[at : at + 12]) for at in range(0, 48, 12)]
    assert 111 <= minutes[0] <= 119
    assert all(56 <= minute <= 64 for minute in minutes[1:]), minutes


@pytest.fixture
def gateway(tmp_path: Path) -> Callable[..., AbstractContextManager[Served]]:
    """Start a gateway of two workers with a store, in front of a server."""

    def gateway(server: FaultServer, usd_per_day: float) -> AbstractContextManager[Served]:
        config = fleet(server, store={"path": str(tmp_path / "stats.db")})
        config["models"] = {"smart": {"tiers": [{"targets": [DEAR]}], "last_resort": []}}
        keys = {"team": {"key": KEY, "usd_per_day": usd_per_day}, "operator": {"key": OPERATOR, "admin": True}}
        return served(config, tmp_path, arguments=WORKERS, gateway={"keys": keys})

    return gateway


def ask(running: Served) -> httpx2.Response:
    """One question, on a connection of its own."""
    headers = {"authorization": f"Bearer {KEY}"}
    return httpx2.post(running.base_url + "/v1/chat/completions", json=CHAT, headers=headers, timeout=60)


def kill(running: Served) -> None:
    """kill -9 of all of its processes, the first one first: it would replace the others."""
    pid = running.process.pid
    workers = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    os.kill(pid, signal.SIGKILL)
    for worker in workers:
        os.kill(int(worker), signal.SIGKILL)
    running.process.wait()


def budget(folder: Path) -> list[tuple[int, int]]:
    """What is used and what is reserved of the key's day, in micro-dollars."""
    if not (folder / "state.db").exists():
        return []
    try:
        found = rows(folder / "state.db", "SELECT used, reserved FROM budget")
    except sqlite3.OperationalError:  # the table is being made
        return []
    return [(int(used), int(reserved)) for used, reserved in found]


@pytest.mark.alone  # a store that takes half a second is done without
def test_what_was_spent_outlives_kill_9_and_restart(gateway: Start, tmp_path: Path) -> None:
    """The day is over for every worker, before and after; the client is told when it begins anew."""
    with FaultServer() as server:
        with gateway(server, 0.001) as running:
            assert ask(running).status_code == 200
            assert becomes(lambda: [used > 1_000 and not reserved for used, reserved in budget(tmp_path)] == [True])
            refused = [ask(running) for _ in range(4)]
            kill(running)
        with gateway(server, 0.001) as again:
            refused += [ask(again) for _ in range(4)]
        asked = len(server.requests)
    assert [reply.status_code for reply in refused] == [429] * 8
    assert all(DAY - 600 < int(reply.headers["retry-after"]) <= DAY for reply in refused)
    assert asked == 1


@pytest.mark.alone  # a store that takes half a second is done without
def test_what_a_dead_process_had_reserved_stays_spent(gateway: Start, tmp_path: Path) -> None:
    """An answer that nobody counted any more has cost what it was estimated to."""
    with FaultServer([Fault.delay(first=600.0)]) as server:
        with gateway(server, 1.0) as running, ThreadPoolExecutor() as pool:
            waiting = pool.submit(ask, running)
            assert becomes(lambda: len(server.requests) == 1 and budget(tmp_path) == [(1_000_000, 1_000_000)])
            kill(running)
            assert isinstance(waiting.exception(), httpx2.HTTPError)
        with gateway(server, 1.0) as again:
            assert [ask(again).status_code for _ in range(4)] == [429] * 4
        assert len(server.requests) == 1


def test_a_newer_state_file_counts_in_the_process_and_refuses_nobody(gateway: Start, tmp_path: Path) -> None:
    """A store that cannot be had is no reason to refuse a question."""
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as newer:
        newer.execute("PRAGMA user_version = 99")
    with FaultServer() as server, gateway(server, 100.0) as running:
        assert [ask(running).status_code for _ in range(4)] == [200] * 4
        told = httpx2.get(running.base_url + "/health", headers={"x-api-key": OPERATOR}).text
    assert "schema 99 is newer" in told
