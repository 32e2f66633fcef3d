"""Processes that share a server, as those of several machines do: one probe a fleet, limits, the operator's word.

They are the programs that share a file in other tests; here none of them can see a file of another.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from smart_model_router.domain.shared_state import ClockReading, SharedView
from smart_model_router.flow import clock
from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_stats import shared_optimistic
from smart_model_router_stats.shared_optimistic import ServerSharedState
from smart_model_router_stats.shared_postgres import postgres_rows
from smart_model_router_stats.shared_valkey import valkey_rows
from tests.database_servers import DatabaseServer, PostgresServer, ValkeyServer, running
from tests.e2e.command import StartedProgram
from tests.e2e.eventually import becomes
from tests.e2e.gateways import Served, fleet, served
from tests.e2e.gateways import becomes as gateway_becomes
from tests.e2e.test_operator_word import ask, quiet, say
from tests.e2e.test_shared_processes import a_hundred_more, end, line, run, serves_until, start


@pytest.fixture(autouse=True)
def _a_test_reads_however_busy_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_optimistic, "_BLOCKING_SECONDS", 60.0)


class HostClock:
    """The clock of the programs, whose rows are not to be converted."""

    far = 0.0

    def __call__(self) -> ClockReading:
        return clock.here()

    def heard(self, epoch: str, at: float, sent: float, received: float) -> bool:
        """The server's clock is not listened to."""
        return False


class SharedServer:
    """A server, the URL that processes share it by, and what is on it."""

    def __init__(self, server: DatabaseServer) -> None:
        self.server = server
        self.url = server.new_database() if isinstance(server, PostgresServer) else cast("ValkeyServer", server).url
        self._connect = (postgres_rows if isinstance(server, PostgresServer) else valkey_rows)(self.url, "smr")

    @property
    def view(self) -> SharedView:
        """Everything that is shared now."""
        return ServerSharedState(self._connect, HostClock(), clock.boottime).restore().view

    @property
    def due(self) -> float:
        """The instant from which on all breakers may be probed."""
        return max(row.until.boottime_until for row in self.view.breakers)


@pytest.fixture(params=["valkey", "postgres"])
def shared(request: pytest.FixtureRequest) -> Iterator[SharedServer]:
    """A server of each kind, which keeps nothing over a crash (Valkey) or everything (PostgreSQL)."""
    with running(ValkeyServer if request.param == "valkey" else PostgresServer) as server:
        yield SharedServer(server)


@pytest.fixture
def valkey_server() -> Iterator[SharedServer]:
    """A Valkey server alone: the suite of SharedState shows that both kinds are alike."""
    with running(ValkeyServer) as server:
        yield SharedServer(server)


def test_eight_processes_race_for_breakers_that_are_due(shared: SharedServer) -> None:
    """At each of twenty instants 24 requests of 8 processes meet a breaker that is due: one of them probes."""
    names = [f"t{number}" for number in range(20)]
    run("fail", shared.url, *names)
    racers = [start("race", shared.url, len(names), shared.due) for _ in range(8)]
    assert [line(racer) for racer in racers] == ["ready"] * 8
    at = f"{time.monotonic() + 0.2}\n"
    for racer in racers:
        racer.tell(at)
    probes = Counter(target for racer in racers for target in end(racer))
    assert probes == Counter({f"{name}/m": 1 for name in names})


def test_a_killed_probe_is_anothers_after_its_lease(shared: SharedServer) -> None:
    """kill -9 of the process that probes: none probes for 30 s, then the next one does."""
    run("fail", shared.url, "t")
    began = shared.due
    winner = start("probe", shared.url, "t", began, "closed")
    assert line(winner) == ["t/m"]
    winner.kill()
    winner.communicate()
    assert [row.state for row in shared.view.breakers if row.owner == "t/m" and row.holder] == ["half_open"]
    assert shared.due == pytest.approx(began + 30)
    early = start("refrain", shared.url, "t", shared.due - 0.1)
    assert line(early) == []
    late = start("probe", shared.url, "t", shared.due, "closed")
    assert line(late) == ["t/m"]
    assert (end(late), end(early)) == ("closed", "closed")


def test_a_machine_that_comes_back_too_late_changes_nothing(shared: SharedServer) -> None:
    """Stopped while it probed, replaced, and continued: its success does not close what its successor reopened."""
    run("fail", shared.url, "t")
    stale = start("probe", shared.url, "t", shared.due, "open")
    assert line(stale) == ["t/m"]
    stale.send_signal(signal.SIGSTOP)
    successor = start("reopen", shared.url, "t", shared.due)
    assert end(successor) == "open"
    before = shared.view.breakers
    stale.send_signal(signal.SIGCONT)
    assert end(stale) == "open"
    assert shared.view.breakers == before


def test_a_server_that_is_killed_and_stopped_slows_no_request(shared: SharedServer) -> None:
    """Requests are served all the while; the process says once each way that it decides alone."""
    program = start("serve", shared.url)
    a_hundred_more(program)
    for away, back in ((shared.server.kill, shared.server.start), (shared.server.suspend, shared.server.resume)):
        said = len(a_hundred_more(program))
        away()
        serves_until(program, lambda events, said=said: events[said:] == [["state", True]])  # type: ignore[misc]
        back()
        serves_until(program, lambda events, said=said: events[said:] == [["state", True], ["state", False]])  # type: ignore[misc]
    end(program)


def test_a_server_that_stands_still_keeps_no_process_from_ending(shared: SharedServer) -> None:
    """Its last questions are given up; a process that begins meanwhile serves, too."""
    program = start("serve", shared.url)
    a_hundred_more(program)
    shared.server.suspend()
    try:
        serves_until(program, lambda events: events == [["state", True]])
        other = start("serve", shared.url)
        a_hundred_more(other)
        end(program)
        end(other)
    finally:
        shared.server.resume()


def test_the_requests_a_minute_of_a_key_hold_over_machines(valkey_server: SharedServer) -> None:
    """Sixty a minute on eight processes are sixty, asked far more often; a full bucket goes out, too."""
    programs, began = [start("client", valkey_server.url, "60") for _ in range(8)], clock.here().boottime

    def let_in(instant: float, count: int) -> int:
        for program in programs:
            program.tell(f"{instant} {count}\n")
        return sum(int(line(program)) for program in programs)

    first = let_in(began, 20)
    assert first == 60
    minutes = [sum(let_in(began + 60 * minute + 6.0 * part, 8) for part in range(1, 11)) for minute in range(3)]
    assert all(abs(minute - 60) <= 2 for minute in minutes), minutes


@pytest.mark.asyncio
async def test_four_machines_use_one_limit_up(valkey_server: SharedServer) -> None:
    """300 in ten minutes: 90 % of what is due is granted, and only what was under way at its end is refused."""
    limit = Fault.limit(rpm=300, window=600.0, kind="window", headers="openai")
    async with FaultServer([limit], keep_requests=10_000) as server:
        programs: list[StartedProgram] = [start("limited", valkey_server.url, server.base_url, 2) for _ in range(4)]
        granted: Callable[[], int] = lambda: sum(request.status == 200 for request in server.requests)  # noqa: E731
        used_up = await becomes(lambda: granted() >= 270, within=100)
        outs: list[Any] = [(await asyncio.to_thread(program.communicate))[0] for program in programs]
    assert used_up, granted()
    assert all(json.loads(out)["refused"] <= 2 for out in outs), outs


def test_the_operators_word_reaches_every_machine(valkey_server: SharedServer, tmp_path: Path) -> None:
    """Said to one of two gateways with two workers each; both obey, a third one begins so, and `enable` ends it."""
    with FaultServer() as first, FaultServer() as second, ExitStack() as stack:

        def machine(name: str) -> Served:
            folder = tmp_path / name
            folder.mkdir()
            models = {"smart": {"tiers": [{"targets": ["ao/big"]}, {"targets": ["bo/big"]}], "last_resort": []}}
            store = {"path": str(folder / "stats.db"), "shared_url": valkey_server.url}
            config = {**fleet(first, second, store=store), "models": models}
            return stack.enter_context(served(config, folder, arguments=("--workers", "2")))

        one, other = machine("one"), machine("other")
        assert say(one, "isolate", why="the key leaked")["scope"] == "fleet"
        assert gateway_becomes(lambda: quiet(other, first) and quiet(one, first))
        later = machine("later")
        before = first.calls()
        assert ask(later, 30) == {200: 30}
        assert first.calls() == before
        say(later, "enable")
        assert gateway_becomes(lambda: quiet(one, second) and quiet(other, second))
        (member, *_) = {row.machine for row in valkey_server.view.members}
        assert member
        assert len(valkey_server.view.members) == 6
