"""The process that holds a lease: this one by name, and when another one was started."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from smart_model_router.flow.clock import boot_id
from smart_model_router_research.engine.store_rules import Holder

_PROC = Path("/proc")
_ENDED = b"ZX"
"""States of processes that run no more, though their parent has not asked for it yet (proc_pid_stat(5))."""
_STARTED = 19
"""The place of `starttime` behind the name in /proc/PID/stat."""


def this_process() -> Holder:
    """Return this process as the holder of a lease."""
    pid = os.getpid()
    return Holder(host=platform.node(), boot=boot_id(), space=_space(), pid=pid, started=started_at(pid) or "")


def started_at(pid: int) -> str | None:
    """Return when the process was started, in the system's ticks since its boot; None when there is none.

    A system without /proc tells only whether there is one: then it is "". Windows tells nothing.
    """
    if sys.platform == "win32":  # os.kill would end the process
        return ""
    if not (_PROC / "self" / "stat").exists():
        return _signalled(pid)
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in _ENDED else fields[_STARTED].decode()


def _signalled(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""


def _space() -> str:
    """Return the name of the space of process ids: containers have their own."""
    try:
        return str((_PROC / "self" / "ns" / "pid").readlink())
    except OSError:
        return ""
