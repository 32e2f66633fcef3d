"""The locks that processes of one machine probe by while no server can be asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from smart_model_router.domain.shared_state import ClockReading, KeptOpen
from smart_model_router_stats.probe_locks import FileProbeLocks, folder_of_locks

NOW = ClockReading("boot", 1_000.0, 5_000.0)
HOLDER = """
import sys, pathlib
from smart_model_router.domain.shared_state import ClockReading
from smart_model_router_stats.probe_locks import FileProbeLocks
locks = FileProbeLocks(pathlib.Path(sys.argv[1]), "smr", lambda: ClockReading("boot", 1000.0, 5000.0))
print(locks.take("p"), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that is not there yet."""
    return tmp_path / "locks"


def locks_in(folder: Path, now: ClockReading = NOW, namespace: str = "smr") -> FileProbeLocks:
    """The locks of one process."""
    return FileProbeLocks(folder, namespace, lambda: now)


@pytest.fixture
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, which has the lock of `p`."""
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def test_one_of_two_has_the_lock_of_a_provider(folder: Path) -> None:
    """Until it lets it go; other providers and other fleets have locks of their own."""
    one, other = locks_in(folder), locks_in(folder)
    assert one.take("p")
    assert not other.take("p")
    assert other.take("q")
    assert locks_in(folder, namespace="another").take("p")
    one.let_go("p", {})
    assert other.take("p")


def test_the_lock_of_a_killed_process_is_free(folder: Path, holder: subprocess.Popen[str]) -> None:
    """At once."""
    ours = locks_in(folder)
    assert not ours.take("p")
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert ours.take("p")


def test_a_fork_leaves_its_parent_the_locks(folder: Path) -> None:
    """A lock that a child forgets stays locked for other processes."""
    parent = locks_in(folder)
    assert parent.take("p")
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        parent.forget()
        os._exit(0)
    os.waitpid(child, 0)
    assert not locks_in(folder).take("p")
    parent.let_go("p", {})
    assert locks_in(folder).take("p")


def test_the_next_holder_hears_how_long_breakers_are_open(folder: Path) -> None:
    """By the clock of the machine; what is over by then, or was said before the machine's last start, is not told."""
    first = locks_in(folder)
    assert first.take("p")
    assert first.left("p") == {}
    first.let_go("p", {"p/m whole": KeptOpen(10.0, 2), "p transport": KeptOpen(3.0, 0)})
    later = replace(NOW, boottime=NOW.boottime + 4.0)
    for now, told in ((later, {"p/m whole": KeptOpen(6.0, 2)}), (replace(later, boot="another"), {})):
        locks = locks_in(folder, now)
        assert locks.take("p")
        assert locks.left("p") == told
        locks.forget()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        '{"boot": "boot"}',
        '{"boot": "boot", "open": [1]}',
        '{"boot": "boot", "open": {"p/m whole": "soon"}}',
        '{"boot": "boot", "open": {"p/m whole": [NaN, 1]}}',
        '{"boot": "boot", "open": {"p/m whole": [Infinity, 1]}}',
        '{"boot": "boot", "open": {"p/m whole": [null, 1]}}',
        "[" * 50_000,
    ],
)
def test_what_was_written_by_hand_is_no_open_time(folder: Path, text: str) -> None:
    """The lock is one all the same, and the next holder writes it anew."""
    locks = locks_in(folder)
    assert locks.take("p")
    (file,) = folder.iterdir()
    file.write_text(text)
    assert locks.left("p") == {}
    locks.let_go("p", {"p/m whole": KeptOpen(1.0, 0)})
    assert locks.take("p")
    assert locks.left("p") == {"p/m whole": KeptOpen(1.0, 0)}


def test_without_a_folder_every_process_has_the_locks(tmp_path: Path) -> None:
    """A file is in its place, or a link of another user's making: each decides for itself."""
    file = tmp_path / "file"
    file.touch()
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for folder in (file, link, tmp_path / "not" / "there"):
        one, other = locks_in(folder), locks_in(folder)
        assert one.take("p")
        assert other.take("p")
        assert one.left("p") == {}
        one.let_go("p", {})


def test_the_folder_is_the_users_own() -> None:
    """Among the machine's temporary files."""
    assert str(os.getuid()) in folder_of_locks().name
