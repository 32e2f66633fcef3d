"""One file of runs and real processes: killed, stopped, two at once, without room. Nothing settled is paid twice."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from smart_model_router.flow.clock import here
from smart_model_router_research.engine import RunLease, RunState, SqliteRunStore, StepState, StoredRun
from tests.e2e.command import StartedProgram
from tests.e2e.counting_provider import CountingProvider
from tests.e2e.run_program import ENGINES, NEEDS
from tests.store_files import one

PROGRAM = Path(__file__).with_name("run_program.py")
SECONDS = 100.0
POINTS = int(os.environ.get("SMR_KILL_POINTS", "10"))
T = TypeVar("T")


def start(*arguments: str | Path | int) -> StartedProgram:
    """Begin one of the programs of run_program.py."""
    return StartedProgram(PROGRAM, *arguments)


def finish(program: StartedProgram) -> str:
    """Let a program end well; returns its last line."""
    out, errors = program.communicate(timeout=SECONDS)
    assert program.returncode == 0, errors
    return out.splitlines()[-1]


def ended(line: str) -> dict[str, Any]:
    """Return how a run ended."""
    word, _, rest = line.partition(" ")
    assert word == "ended", line
    found: dict[str, Any] = json.loads(rest)
    return found


def with_store(path: Path, work: Callable[[SqliteRunStore], Coroutine[Any, Any, T]], later: float = 0.0) -> T:
    """Do something with the file of runs, on clocks that are so many seconds ahead."""

    async def main() -> T:
        store = SqliteRunStore(
            path, here=lambda: replace(now := here(), boottime=now.boottime + later, wall=now.wall + later)
        )
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(main())


def load(path: Path, run_id: str) -> StoredRun:
    """Return a run as it is kept."""
    return with_store(path, lambda store: store.load(run_id))


@pytest.fixture
def provider() -> Iterator[CountingProvider]:
    """A provider that is well."""
    with CountingProvider() as provider:
        yield provider


class Killing:
    """One process, and the event at which it is killed."""

    def __init__(self, provider: CountingProvider, program: StartedProgram, point: str, after: int) -> None:
        self._program = program
        self._left = after
        self._lock = threading.Lock()
        provider.on_asked = self._count if point == "asked" else int
        provider.on_answered = self._count if point == "answered" else int
        self._reads = self._count if point == "told" else int

    def run(self) -> bool:
        """Read what the process says until it ends; True when it was killed."""
        self.last = ""
        for line in self._program.stdout:
            self.last = line.strip()
            self._reads(1)
        self._program.communicate(timeout=SECONDS)
        return self._program.returncode == -signal.SIGKILL

    def _count(self, _: int) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self._program.send_signal(signal.SIGKILL)


@pytest.mark.alone
def test_kill_9_at_any_point_costs_no_settled_step(tmp_path: Path, provider: CountingProvider) -> None:
    """Killed after a line that it prints, a request that it sends, an answer that it gets, and taken up again at once.

    Each process has the other engine than the one before. What had settled when it was killed is not asked again, what
    was in flight once more; one key for each step.
    """
    engines = itertools.cycle(ENGINES)
    path, dice, killed, number = tmp_path / "runs.db", random.Random(20), 0, 0
    outputs: set[str] = set()
    while killed < POINTS:
        number += 1
        run_id = f"r{number}"
        provider.asked.clear()
        while True:
            asked = Counter(step for step, _ in provider.asked)
            settled = load(path, run_id).steps if asked else {}
            settled_names = {name for name, step in settled.items() if step.number is not None}
            process = start("execute", path, run_id, provider.base_url, next(engines))
            killing = Killing(provider, process, dice.choice(["told", "asked", "answered"]), dice.randint(1, 12))
            again = killing.run()
            now = Counter(step for step, _ in provider.asked)
            assert all(now[name] == asked[name] for name in settled_names)
            assert all(now[name] - asked[name] <= 1 for name in now)
            if not again:
                break
            killed += 1
            assert one(path, "PRAGMA integrity_check") == "ok"
        result = ended(killing.last)
        outputs.add(json.dumps(result["outputs"]))
        run = load(path, run_id)
        assert {name: step.result.state for name, step in run.steps.items()} == dict.fromkeys(NEEDS, "succeeded")
        assert (run.state, run.owner) == (RunState.COMPLETED, "")
        assert len(set(provider.asked)) == len(NEEDS)
        assert len(NEEDS) <= result["calls"] <= len(provider.asked)
    assert len(outputs) == 1


def test_a_holder_that_was_stopped_past_its_lease_writes_nothing(tmp_path: Path, provider: CountingProvider) -> None:
    """Continued, with the answer that it waited for: the run is as its new holder keeps it, and it says why it ends."""
    path = tmp_path / "runs.db"
    arrived, release = threading.Event(), threading.Event()

    def hold(number: int) -> None:
        if number == 3:
            arrived.set()
        release.wait(SECONDS)

    provider.on_asked = hold
    process = start("execute", path, "r", provider.base_url)
    assert arrived.wait(SECONDS)
    process.send_signal(signal.SIGSTOP)

    async def take(store: SqliteRunStore) -> RunLease:
        return await store.lease("r", "other", 3_600.0)

    lease = with_store(path, take, later=31.0)
    before = load(path, "r")
    process.send_signal(signal.SIGCONT)
    release.set()
    assert finish(process) == "StaleLease run 'r' was taken over: fence 1 is no longer the latest"
    assert load(path, "r") == before
    assert (before.owner, lease.fence) == ("other", 2)


def test_of_two_processes_that_go_on_at_once_one_is_told_who_has_the_run(
    tmp_path: Path, provider: CountingProvider
) -> None:
    """And for how many seconds; the other one ends the run, and no step is asked twice but the one in flight."""
    path, release, told = tmp_path / "runs.db", threading.Event(), threading.Event()
    first = start("execute", path, "r", provider.base_url)
    provider.on_asked = lambda number: first.kill() if number == 5 else None
    first.communicate(timeout=SECONDS)
    settled = {name for name, step in load(path, "r").steps.items() if step.number is not None}
    asked = len(provider.asked)
    provider.on_asked = lambda _: release.wait(SECONDS)
    both = [start("execute", path, "r", provider.base_url) for _ in range(2)]
    ends: list[str] = []

    def wait_for(process: StartedProgram) -> None:
        ends.append(finish(process))
        told.set()

    threads = [threading.Thread(target=wait_for, args=(process,)) for process in both]
    for thread in threads:
        thread.start()
    assert told.wait(SECONDS)  # the one that has the run waits for its answer
    release.set()
    for thread in threads:
        thread.join(SECONDS)
    word, _, rest = ends[0].partition(" ")
    assert word == "busy"
    busy = json.loads(rest)
    (holder,) = {process.pid for process in both} - {busy["pid"]}
    assert f":{holder}:" in busy["owner"]
    assert 0 < busy["seconds"] <= 30
    assert ended(ends[1])["status"] == "completed"
    assert not settled & {step for step, _ in provider.asked[asked:]}


def test_a_disk_without_room_ends_a_run_that_goes_on_where_it_was(tmp_path: Path, provider: CountingProvider) -> None:
    """The error names the file; what had settled is there, and is not asked again."""
    path = tmp_path / "runs.db"
    end = finish(start("cramped", path, "r", provider.base_url, 400_000))
    assert end.startswith(f"StoreUnavailable {path}: ")
    assert "full" in end or "disk I/O error" in end
    settled = {name for name, step in load(path, "r").steps.items() if step.result.state is StepState.SUCCEEDED}
    assert settled
    asked = len(provider.asked)
    assert ended(finish(start("execute", path, "r", provider.base_url)))["status"] == "completed"
    assert not settled & {step for step, _ in provider.asked[asked:]}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user gets to. Those of pytest are closed again by each pytest that starts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_file_that_cannot_be_written_ends_a_run_before_anything_is_asked(
    open_folder: Path, provider: CountingProvider
) -> None:
    """The error names the file, which stays as it was."""
    path = open_folder / "own" / "runs.db"
    with_store(path, lambda store: store.runs())
    before = path.read_bytes()
    assert "readonly" in finish(start("read_only", path, "r", provider.base_url))
    assert (provider.asked, path.read_bytes()) == ([], before)
