"""The process that holds a lease, by name, and whether another one still runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from smart_model_router_research.engine import processes
from smart_model_router_research.engine.processes import started_at, this_process
from smart_model_router_research.engine.store_rules import is_gone

WAITS = [sys.executable, "-c", "input()"]


def test_a_process_is_known_by_its_id_and_its_start() -> None:
    """This one is not gone, another one that runs is another."""
    me = this_process()
    assert (me.pid, me.started) == (os.getpid(), started_at(os.getpid()))
    assert not is_gone(me, me, started_at(me.pid), one_host=True)
    with subprocess.Popen(WAITS, stdin=subprocess.PIPE) as other:
        assert started_at(other.pid) not in {None, ""}
        assert other.stdin is not None
        other.stdin.close()


def test_a_process_that_ended_is_gone_before_its_parent_asked_for_it() -> None:
    """And after."""
    other = subprocess.Popen(WAITS, stdin=subprocess.PIPE)
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # it ended, and is still there to be waited for
    assert started_at(other.pid) is None
    other.communicate()
    assert started_at(other.pid) is None


def test_without_proc_a_signal_tells_whether_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its start is not known then, nor the space of its ids; that of another user counts as one."""
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    assert (this_process().started, this_process().space) == ("", "")
    with subprocess.Popen(WAITS, stdin=subprocess.PIPE) as other:
        assert started_at(other.pid) == ""
        other.kill()
    assert started_at(other.pid) is None

    def refused(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    assert started_at(other.pid) == ""


def test_windows_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal would end the process there: doubt is for the holder."""
    monkeypatch.setattr(sys, "platform", "win32")
    assert started_at(0) == ""
