"""One statistics file and real processes: sums are exact, kill -9 costs nothing acknowledged, exits are prompt."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from smart_model_router_stats.reading import read_store
from tests.e2e.command import StartedProgram
from tests.store_files import calls, make_first_schema, one, rows

PROGRAM = Path(__file__).with_name("store_program.py")
SECONDS = 100.0


def start(*arguments: str | Path | int) -> StartedProgram:
    """Begin one of the programs of store_program.py."""
    return StartedProgram(PROGRAM, *arguments)


def run(*arguments: str | Path | int) -> str:
    """Run one to its good end; its output."""
    program = start(*arguments)
    out, errors = program.communicate(timeout=SECONDS)
    assert program.returncode == 0, errors
    assert "Traceback" not in errors
    return out


def wait_for_lines(file: Path, count: int) -> None:
    """Return once `file` has so many lines."""
    until = time.monotonic() + SECONDS
    while not file.exists() or file.read_bytes().count(b"\n") < count:
        assert time.monotonic() < until
        threading.Event().wait(0.005)


def last_line(file: Path) -> int:
    """The number in the last whole line of `file`."""
    return int(file.read_text().rpartition("\n")[0].split()[-1])


@pytest.mark.alone
def test_eight_processes_of_5000_calls_add_up_exactly(tmp_path: Path) -> None:
    """Totals by target and class are the sum of what every router saw; percentiles are within 1 % of nearest rank."""
    path = tmp_path / "s.db"
    outs = [tmp_path / f"{number}.json" for number in range(8)]
    programs = [start("serve", path, 5_000, out) for out in outs]
    assert [program.communicate(timeout=SECONDS)[1] for program in programs] == [""] * 8
    samples = [tuple(sample) for out in outs for sample in json.loads(out.read_text())]
    assert len(samples) >= 40_000
    view = read_store(path)
    stored = {
        (name, None if cause is None else cause): count
        for name, stats in view.figures.targets.items()
        for cause, count in [(None, stats.successes), *((each.value, n) for each, n in stats.failures.items())]
    }
    assert stored == Counter((target, cause) for target, cause, _ in samples)
    assert (view.observed, view.stats_dropped) == (len(samples), 0)
    for stats in view.figures.targets.values():
        assert (stats.prompt_tokens, stats.cached_prompt_tokens) == (10 * stats.successes, 6 * stats.successes)
    answered = sorted(seconds for target, cause, seconds in samples if target == "a/big" and cause is None)
    latency = view.figures.targets["a/big"].latency_all_time
    for percent in (50, 75, 90, 95, 99):
        exact = answered[math.ceil(percent * len(answered) / 100) - 1]
        assert getattr(latency, f"p{percent}") == pytest.approx(exact, rel=0.01)


def test_processes_that_meet_an_older_file_bring_it_up_to_date_once(tmp_path: Path) -> None:
    """Four writers open it at once: what was in it stays, and what they add is exactly their sum."""
    path = tmp_path / "s.db"
    make_first_schema(path)
    programs = [start("write", path, 500, "a/big", tmp_path / f"{number}.txt") for number in range(4)]
    assert [program.communicate(timeout=SECONDS)[1] for program in programs] == [""] * 4
    stats = read_store(path).figures.targets["a/big"]
    assert (stats.calls, stats.prompt_tokens, stats.cached_prompt_tokens) == (2_010, 20_100, 12_000)
    assert rows(path, "SELECT number FROM migration") == [(1,), (2,), (3,), (4,)]
    assert one(path, "PRAGMA integrity_check") == "ok"


@pytest.mark.alone
def test_kill_9_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Half of 8 writers are killed at random moments: what they were told is written is there, the file is whole."""
    path = tmp_path / "s.db"
    dice = random.Random(7)
    outs = [tmp_path / f"{number}.txt" for number in range(8)]
    counts = [10_000_000, 2_000] * 4  # no victim is ready before it is killed
    programs = [
        start("write", path, count, f"w/{number}", out)
        for number, (count, out) in enumerate(zip(counts, outs, strict=True))
    ]
    for victim, out in sorted(zip(programs[::2], outs[::2], strict=True), key=lambda _: dice.random()):
        wait_for_lines(out, dice.randint(1, 50))
        victim.send_signal(signal.SIGKILL)
    for program in programs:
        program.communicate(timeout=SECONDS)
    assert [program.returncode for program in programs] == [-signal.SIGKILL, 0] * 4
    stored = dict(rows(path, "SELECT target, calls FROM v_target_now"))
    for number, out in enumerate(outs):  # seven at once, and the line may be missing that tells of seven more
        assert last_line(out) <= stored[f"w/{number}"] <= last_line(out) + 14
    assert [last_line(out) for out in outs[1::2]] == [2_000] * 4
    assert one(path, "PRAGMA integrity_check") == "ok"


@pytest.mark.parametrize("program", ["leave", "leave_loop"])
def test_a_program_that_never_closes_its_router_exits_promptly_with_its_statistics_on_disk(
    tmp_path: Path, program: str
) -> None:
    """The thread of the file keeps nobody waiting, and what was not yet written is written at the end."""
    path = tmp_path / "s.db"
    left = float(run(program, path, 30))
    assert time.monotonic() - left < 20
    assert calls(path) >= 60
    assert read_store(path).figures.targets["a/big"].latency_15_min.count > 0


def test_a_fork_shares_nothing_but_the_file(tmp_path: Path) -> None:
    """With work waiting and the file open, both sides of a fork go on; each call is written once."""
    path = tmp_path / "s.db"
    assert json.loads(run("fork", path)) == {"child": 0}
    assert rows(path, "SELECT target, calls FROM v_target_now") == [("a/child", 7), ("a/parent", 30)]
    assert one(path, "SELECT count(*) FROM v_writers") == 2
    assert one(path, "PRAGMA integrity_check") == "ok"


def test_a_full_disk_degrades_visibly(tmp_path: Path) -> None:
    """Files may not grow any more (RLIMIT_FSIZE): the process serves on from memory and says why."""
    path = tmp_path / "s.db"
    told = json.loads(run("cramped", path, 1_000_000).splitlines()[0])
    assert told["served"] == 200
    assert told["reason"]
    assert calls(path) >= told["acknowledged"] > 0
    assert one(path, "PRAGMA integrity_check") == "ok"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives up root's rights, which it has to have")
def test_a_folder_that_cannot_be_written_degrades_visibly(tmp_path: Path) -> None:
    """In a folder of somebody else statistics stay in memory, and the reason is the system's."""
    folder = Path("/var/tmp") / f"smr-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        told = json.loads(run("unwritable", folder / "s.db"))
    finally:
        shutil.rmtree(folder)
    assert told == {"flushed": False, "reason": "Permission denied"}
