"""Instants that mean something to another process, and after a restart.

A monotonic instant means nothing to either. So every deadline is written on two clocks, CLOCK_BOOTTIME (with the boot's
id) and the wall, together with how long it was to last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

CLOCK_ERROR = 0.25
"""Seconds by which the clocks of two machines may differ that both follow the clock of one server."""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Now, on clocks that other processes read as well: `boottime` since the boot with this id, `wall` since the epoch.

    `boot` is "" where the system names no boots: then nothing is ever of the same boot, and the wall alone counts.
    """

    boot: str
    boottime: float
    wall: float

    @property
    def ticks(self) -> float:
        """The clock that processes alive at the same time compare by."""
        return self.boottime if self.boot else self.wall


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant that outlives the process which wrote it. `duration` is how long it was to last then, in seconds."""

    boot: str
    boottime: float
    boottime_until: float
    wall: float
    wall_until: float
    duration: float

    @classmethod
    def after(cls, seconds: float, here: ClockReading) -> Deadline:
        """The instant so many seconds (>= 0) from `here`."""
        return cls(here.boot, here.boottime, here.boottime + seconds, here.wall, here.wall + seconds, seconds)


def remaining(deadline: Deadline, here: ClockReading, cap: float) -> float:
    """The seconds of `deadline` that are left, in [0, min(its duration, cap)] (routing.md section 10).

    Within one boot CLOCK_BOOTTIME tells, which counts suspended time; after another boot the wall does. A clock that
    went back tells nothing: then all of it is left. Figures that are none are a deadline that is over, which still
    has to be proven by a probe.
    """
    longest = min(deadline.duration, cap)
    if not 0.0 <= longest < math.inf:
        return 0.0
    if here.boot and deadline.boot == here.boot:
        written, until, now = deadline.boottime, deadline.boottime_until, here.boottime
    else:
        written, until, now = deadline.wall, deadline.wall_until, here.wall
    left = until - now if now >= written else longest
    return min(max(0.0, left), longest) if math.isfinite(left) else longest


def age(then: ClockReading, here: ClockReading, most: float) -> float:
    """The seconds since `then`, in [0, most], by the same rule: 0 after a clock went back."""
    return most - remaining(Deadline.after(most, then), here, most)
