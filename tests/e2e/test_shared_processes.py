"""One state file and real processes: one probe a breaker, restarts that forget nothing, a store nobody waits for."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.flow.clock import here
from tests.e2e.command import STARTED, StartedProgram
from tests.store_files import one, rows

PROGRAM = Path(__file__).with_name("shared_program.py")
SECONDS = 100.0


def start(*arguments: str | Path | float) -> StartedProgram:
    """Begin one of the programs of shared_program.py; it ends with the test at the latest."""
    program = StartedProgram(PROGRAM, *arguments)
    STARTED.append(program)
    return program


def line(program: StartedProgram) -> Any:
    """The next thing it tells."""
    told = program.stdout.readline()
    assert told, program.communicate()
    return json.loads(told)


def end(program: StartedProgram, told: str = "") -> Any:
    """Let it come to its good end; the last thing it tells."""
    out, errors = program.communicate(told, timeout=SECONDS)
    assert program.returncode == 0, errors
    assert "Traceback" not in errors, errors
    return json.loads(out.splitlines()[-1]) if out else None


def run(*arguments: str | Path | float) -> Any:
    """Run one to its good end; the last thing it tells."""
    return end(start(*arguments))


def due(path: Path) -> float:
    """The instant from which on all breakers may be probed, by the clock that processes have in common."""
    return float(one(path.with_name("state.db"), "SELECT max(boottime_until) FROM breaker"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A statistics file; `state.db` is beside it."""
    return tmp_path / "stats.db"


def test_eight_processes_race_a_hundred_breakers_that_are_due(path: Path) -> None:
    """At each of a hundred instants 24 requests of 8 processes meet a breaker that is due: one of them probes."""
    names = [f"t{number}" for number in range(100)]
    run("fail", path, *names)
    racers = [start("race", path, len(names), due(path)) for _ in range(8)]
    assert [line(racer) for racer in racers] == ["ready"] * 8
    at = f"{time.monotonic() + 0.2}\n"
    for racer in racers:
        racer.tell(at)
    probes = Counter(target for racer in racers for target in end(racer))
    assert probes == Counter({f"{name}/m": 1 for name in names})


def test_a_killed_probe_is_anothers_after_its_lease(path: Path) -> None:
    """kill -9 of the process that probes: nobody probes for 30 s, then the next one does."""
    run("fail", path, "t")
    began = due(path)
    winner = start("probe", path, "t", began, "closed")
    assert line(winner) == ["t/m"]
    winner.kill()
    winner.communicate()
    assert one(path.with_name("state.db"), "SELECT state FROM breaker") == "half_open"
    assert due(path) == pytest.approx(began + 30)
    early = start("refrain", path, "t", due(path) - 0.1)
    assert line(early) == []
    late = start("probe", path, "t", due(path), "closed")
    assert line(late) == ["t/m"]
    assert (end(late), end(early)) == ("closed", "closed")


def test_a_holder_that_comes_back_too_late_changes_nothing(path: Path) -> None:
    """Stopped while it probed, replaced, and continued: its success does not close what its successor reopened."""
    run("fail", path, "t")
    stale = start("probe", path, "t", due(path), "open")
    assert line(stale) == ["t/m"]
    stale.send_signal(signal.SIGSTOP)
    successor = start("reopen", path, "t", due(path))
    assert end(successor) == "open"
    before = rows(path.with_name("state.db"), "SELECT state, gen, step FROM breaker")
    stale.send_signal(signal.SIGCONT)
    assert end(stale) == "open"
    assert rows(path.with_name("state.db"), "SELECT state, gen, step FROM breaker") == before
    assert before[0][0] == "open"


def test_a_target_that_failed_five_times_is_known_as_failing_after_a_restart(path: Path) -> None:
    """Its breaker is OPEN for the rest of its time, and its success rate is that of five failures."""
    run("fail", path, "t")
    opened, seconds = rows(path.with_name("state.db"), "SELECT boottime, duration FROM breaker")[0]
    state, refusal, retry_after, success_rate = run("look", path, "t", opened)
    assert (state, refusal, success_rate) == ("open", "open", 0.0)
    assert retry_after == pytest.approx(seconds, abs=1)


def test_the_slots_of_a_killed_process_are_anothers_after_its_lease(path: Path) -> None:
    """Two slots, two calls of a process that is killed: for half a minute they may still be at the provider."""
    began = here().boottime
    killed, other = start("occupy", path, began), start("queue_up", path)
    assert line(killed) == "busy"

    def is_served(instant: float, within: float) -> bool:
        other.tell(f"{instant} {within}\n")
        return bool(line(other))

    assert not is_served(began, 1.0)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not is_served(began + 29.0, 1.0)
    assert is_served(began + 31.0, SECONDS)


def test_nothing_secret_is_in_the_file(path: Path) -> None:
    """Of a key the first 8 hex digits of its SHA-256, and that is all."""
    run("keyed", path, "sk-a-very-secret-key")
    file = path.with_name("state.db")
    contents = file.read_bytes() + b"".join(each.read_bytes() for each in path.parent.glob("state.db-*"))
    assert b"very-secret" not in contents
    assert b"hello" not in contents
    assert rows(file, "SELECT owner FROM breaker") == [("t/m@9d24233e",)]
    assert file.stat().st_mode & 0o777 == 0o600


def a_hundred_more(program: StartedProgram) -> list[list[Any]]:
    """What it has said of its stores after a hundred more requests. Returns although whatever is in their way stays."""
    program.tell("\n")
    told = line(program)
    assert isinstance(told, list)
    return told


def serves_until(program: StartedProgram, condition: Callable[[list[list[Any]]], bool]) -> None:
    """It serves, and in the end what it says of its stores is so."""
    while not condition(a_hundred_more(program)):
        pass


def test_a_store_that_is_removed_and_locked_slows_nobody(path: Path) -> None:
    """Both files are removed, then locked, under load: requests are served all the while, and no one waits for a lock.

    The lock is held until the process has said that it does without the state, and has served on.
    """
    program, state = start("serve", path), path.with_name("state.db")
    serves_until(program, lambda _: state.exists() and path.exists())
    for file in path.parent.iterdir():
        file.unlink()
    serves_until(program, lambda _: state.exists())
    with closing(sqlite3.connect(state, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        serves_until(program, lambda events: ["state", True] in events)
        a_hundred_more(program)
    serves_until(program, lambda events: events[-1] == ["state", False])
    end(program)
    assert one(state, "PRAGMA integrity_check") == "ok"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives up root's rights, which it has to have")
def test_files_that_may_only_be_read_slow_nobody_and_stay_as_they_are() -> None:
    """A process that may not write to file and folder serves from memory, says so, and changes nothing."""
    folder = Path("/var/tmp") / f"smr-shared-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        run("fail", folder / "stats.db", "a")
        for file in folder.iterdir():
            os.chown(file, 65_534, 65_534)
            file.chmod(0o400)
        os.chown(folder, 65_534, 65_534)
        folder.chmod(0o500)
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        program = start("read_only", folder / "stats.db")
        serves_until(program, lambda events: {("state", True), ("stats", True)} <= set(map(tuple, events)))
        end(program)
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    finally:
        shutil.rmtree(folder)


def test_a_damaged_file_is_set_aside(path: Path) -> None:
    """A process that finds garbage renames it, begins anew, and serves."""
    path.with_name("state.db").write_bytes(b"this is no database" * 1_000)
    program = start("serve", path)
    a_hundred_more(program)
    end(program)
    assert path.with_name("state.db.corrupt-1").exists()
    assert one(path.with_name("state.db"), "PRAGMA integrity_check") == "ok"


def test_a_fork_and_two_loops_share_through_the_file(path: Path) -> None:
    """A router used before a fork, in the child, and on a second loop afterwards; each learns what the others did."""
    assert run("fork", path) == {"child": 0, "parent": "open"}
