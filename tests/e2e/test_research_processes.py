"""Runs of research in processes that are killed: resumed on either engine, they write the same bytes."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from smart_model_router_research.deep import verify
from tests.e2e.command import StartedProgram
from tests.e2e.research_program import PACKAGED
from tests.research_worlds import ENGINES, PAGES, comparable
from tests.store_files import one

PROGRAM = Path(__file__).with_name("research_program.py")
POINTS = int(os.environ.get("SMR_KILL_POINTS", "5"))
SEED = int(os.environ.get("SMR_KILL_SEED", "23"))
SECONDS = 100.0


def world(base: Path) -> Path:
    """Write the pages of a corpus; returns the folder that a run gets."""
    (base / "pages").mkdir(parents=True)
    for name, text in PAGES.items():
        (base / "pages" / name).write_text(text, encoding="utf-8")
    return base


def run(base: Path, engine: str, killed_at: object = 0) -> dict[str, Any] | None:
    """Run the topic in a process; returns how it ended, None when it was killed."""
    program = StartedProgram(PROGRAM, base, engine, str(killed_at))
    out, errors = program.communicate(timeout=SECONDS)
    if program.returncode == -signal.SIGKILL:
        return None
    assert program.returncode == 0, errors
    word, _, rest = out.splitlines()[-1].partition(" ")
    assert word == "ended", out
    found: dict[str, Any] = json.loads(rest)
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mapping[str, bytes], Mapping[str, int]]:
    """The files of a run that nothing disturbs, and how many moments each engine has for it."""
    bases = {engine: world(tmp_path_factory.mktemp(engine)) for engine in ENGINES}
    ends = {engine: run(base, engine) for engine, base in bases.items()}
    files = [comparable(base / "runs" / "run") for base in bases.values()]
    assert files[0] == files[1]
    return files[0], {engine: end["moments"] for engine, end in ends.items() if end is not None}


def is_as_undisturbed(base: Path, files: Mapping[str, bytes]) -> bool:
    """Return whether a run has written what the other has, and nothing else is left of it."""
    folder = base / "runs" / "run"
    assert one(base / "runs.db", "PRAGMA integrity_check") == "ok"
    assert verify(folder).problems == ()
    left = {each.name for each in (base / "runs").iterdir()} - {"run", ".indexes"}
    assert left == set()
    return comparable(folder) == files


@pytest.mark.alone
def test_kill_9_at_any_moment_changes_no_byte(
    tmp_path: Path, undisturbed: tuple[Mapping[str, bytes], Mapping[str, int]]
) -> None:
    """X7: killed at drawn moments, one after another, and taken up on the other engine each time."""
    files, moments = undisturbed
    dice, engines, killed, number = random.Random(SEED), itertools.cycle(ENGINES), 0, 0
    while killed < POINTS:
        number += 1
        base = world(tmp_path / str(number))
        ends: list[int] = []
        while True:
            engine = next(engines)
            ends.append(dice.randint(1, moments[engine]))
            if (end := run(base, engine, ends[-1])) is not None:
                break
            killed += 1
        assert end["status"] == "completed"
        assert is_as_undisturbed(base, files), (SEED, ends)
        shutil.rmtree(base)


@pytest.mark.parametrize("engine", ENGINES)
def test_kill_9_behind_the_folder_and_before_its_step(
    tmp_path: Path, engine: str, undisturbed: tuple[Mapping[str, bytes], Mapping[str, int]]
) -> None:
    """The folder is there, and no step says so: it is written again, the same."""
    base = world(tmp_path / "world")
    assert run(base, engine, PACKAGED) is None
    written = comparable(base / "runs" / "run")

    other = next(each for each in ENGINES if each != engine)
    assert run(base, other) is not None
    assert is_as_undisturbed(base, undisturbed[0])
    assert written == undisturbed[0]
