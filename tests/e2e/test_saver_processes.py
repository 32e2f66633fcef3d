"""RunSaver in real processes: killed at any instant, and two on one thread of a graph."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from smart_model_router_research.engine import RunSaver, SqliteRunStore
from tests.e2e.command import SECONDS, StartedProgram
from tests.e2e.saver_program import of, state
from tests.store_files import one

POINTS = int(os.environ.get("SMR_KILL_POINTS", "20"))
"""The number of times that a process is killed."""
PROGRAM = Path(__file__).with_name("saver_program.py")
ENDLESS = 1_000_000


class Writers:
    """Processes that write checkpoints, forked from one that has imported what they need."""

    def __init__(self) -> None:
        self._process = StartedProgram(PROGRAM)

    def begin(self, path: Path, thread: str, letter: str, most: int = ENDLESS) -> int:
        """Start a writer of so many checkpoints; returns its process id."""
        self._process.tell(f"{path} {thread} {letter} {most}\n")
        word, child = self.line()
        assert word == "writes"
        return int(child)

    def line(self) -> list[str]:
        """Return the words of the next line that was told, or raise what went wrong."""
        line = self._process.stdout.readline().split()
        assert line, self._process.communicate(timeout=SECONDS)[1]
        return line

    def told(self, lines: int) -> list[tuple[str, str]]:
        """Return what so many lines acknowledge."""
        return [(word, name) for word, name in (self.line() for _ in range(lines))]

    def kill(self, child: int) -> list[tuple[str, str]]:
        """End a writer by kill -9; returns what it had told by then."""
        os.kill(child, signal.SIGKILL)
        told: list[tuple[str, str]] = []
        while (line := self.line())[0] != "dead":
            told.append((line[0], line[1]))
        return told

    def close(self) -> None:
        """End the process that forks."""
        self._process.communicate(timeout=SECONDS)


@pytest.fixture
def writers() -> Iterator[list[Writers]]:
    """Return two processes that fork writers."""
    both = [Writers(), Writers()]
    yield both
    for each in both:
        each.close()


def check(path: Path, told: list[tuple[str, str]], letters: str) -> int:
    """Compare a thread with what was acknowledged; returns the number of its checkpoints.

    All of it is there, each checkpoint is whole and follows the one before, and the file is in order.
    """
    saver = RunSaver(SqliteRunStore(path))
    found = {each.checkpoint["id"]: each for each in saver.list(of("t", None))}
    saver.close()
    assert {name for word, name in told if word == "put"} <= found.keys()
    assert {name for word, name in told if word == "wrote"} <= {
        name for name, each in found.items() if each.pending_writes
    }
    for letter in letters:
        names = sorted(name for name in found if name[0] == letter)
        assert names == [f"{letter}{number:06}" for number in range(len(names))]
        for number, (parent, name) in enumerate(zip([None, *names], names, strict=False)):
            each = found[name]
            assert each.checkpoint["channel_values"] == state(number)
            assert each.parent_config == (None if parent is None else of("t", parent))
            large = state(number)["large"]
            assert each.pending_writes in ([], [("task", "number", number), ("task", "large", large)])
    assert one(path, "PRAGMA integrity_check") == "ok"
    return len(found)


def test_kill_9_loses_no_checkpoint_that_was_acknowledged(tmp_path: Path, writers: list[Writers]) -> None:
    """At any instant: nothing is lost or torn, at most the one in flight is there beside, and the next one goes on."""
    path, dice = tmp_path / "runs.db", random.Random(21)
    told: list[tuple[str, str]] = []
    for killed in range(1, POINTS + 1):
        child = writers[0].begin(path, "t", "a")
        told += writers[0].told(dice.randint(0, 12))
        told += writers[0].kill(child)
        beside = check(path, told, "a") - len({name for word, name in told if word == "put"})
        assert 0 <= beside <= killed
    assert len(told) > POINTS


def test_two_processes_on_one_thread_lose_and_tear_nothing(tmp_path: Path, writers: list[Writers]) -> None:
    """Both write at once, each after its own checkpoints: every one that was acknowledged is there, and whole."""
    path = tmp_path / "runs.db"
    children = [writer.begin(path, "t", letter, 15) for writer, letter in zip(writers, "ab", strict=True)]
    told = [each for writer in writers for each in writer.told(30)]
    for writer, child in zip(writers, children, strict=True):
        told += writer.kill(child)
    assert check(path, told, "ab") >= 30
