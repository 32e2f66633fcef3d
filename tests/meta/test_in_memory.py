"""Temporary files of the lanes are in memory where there is room, and are gone afterwards."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import in_memory

PROGRAM = """
import pathlib, sys, tempfile
pathlib.Path(sys.argv[1]).write_text(tempfile.mkdtemp())
sys.exit(3)
"""


def ran(out: Path) -> Path:
    """Run a program that ends with 3; return the folder that it made for its temporary files."""
    assert in_memory.main([sys.executable, "-c", PROGRAM, str(out)]) == 3
    return Path(out.read_text())


def test_what_a_command_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit code is that of the command."""
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(in_memory, "PLACE", memory)
    monkeypatch.setattr(in_memory, "has_room", lambda: True)
    folder = ran(tmp_path / "out")
    assert folder.is_relative_to(memory)
    assert list(memory.iterdir()) == []


def test_without_room_a_command_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place that is not there has none, and neither has one that is too small."""
    monkeypatch.setattr(in_memory, "PLACE", tmp_path)
    monkeypatch.setattr(in_memory, "has_room", lambda: False)
    folder = ran(tmp_path / "out")
    assert folder.exists()
    folder.rmdir()
    monkeypatch.undo()
    assert not in_memory.has_room(tmp_path / "nowhere")
    monkeypatch.setattr(in_memory, "ROOM", 1 << 60)
    assert not in_memory.has_room(tmp_path)
