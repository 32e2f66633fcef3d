"""Clocks that other processes read as well, and the name of this boot."""

from __future__ import annotations

import ctypes
import sys
import time
from functools import cache
from pathlib import Path

from smart_model_router.domain.shared_state import ClockReading

_LINUX = Path("/proc/sys/kernel/random/boot_id")


def here() -> ClockReading:
    """Now. On Linux and macOS the boot has a name; elsewhere the wall clock alone counts."""
    boot = boot_id()
    return ClockReading(boot, boottime() if boot else 0.0, time.time())


@cache
def boot_id() -> str:
    """What the system calls this boot, "" when it has no name."""
    if sys.platform == "darwin":
        return _sysctl("kern.bootsessionuuid")
    try:
        return _LINUX.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def boottime() -> float:
    """Seconds since the boot, suspended time included."""
    # On macOS CLOCK_MONOTONIC goes on while the machine sleeps (clock_gettime(3)); on Linux only CLOCK_BOOTTIME does.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _sysctl(name: str) -> str:
    """A string of the kernel's; "" when it has none of that name."""
    size = ctypes.c_size_t(64)
    buffer = ctypes.create_string_buffer(size.value)
    try:
        found = ctypes.CDLL(None).sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, ctypes.c_size_t(0))
    except (OSError, AttributeError):
        return ""
    return buffer.value.decode("ascii", "replace") if found == 0 else ""
