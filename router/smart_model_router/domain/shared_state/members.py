"""The processes that share a state: each writes a row of its own every few seconds, and so all of them are known."""

from __future__ import annotations

from dataclasses import dataclass

from smart_model_router.domain.shared_state.clocks import ClockReading

TELL_EVERY = 5.0
"""Seconds between two writes of a process's own row."""
MEMBER_SECONDS = 15.0
"""A process that wrote its row no later than that ago counts: two writes may be lost."""
FORGET_SECONDS = 600.0
"""The row of a process that died stays visible for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """A process that takes part: `holder` names it among processes, `machine` is its host's name, `at` its last write.

    `over` is never stored: the process says with it that it ends.
    """

    holder: str
    machine: str
    version: str
    pid: int
    at: ClockReading
    over: bool = False


def is_member(row: MemberRow, here: ClockReading) -> bool:
    """True while the process counts among those that share the state."""
    return abs(silent_for(row, here)) <= MEMBER_SECONDS


def is_forgotten(row: MemberRow, here: ClockReading) -> bool:
    """True when the row may go. One whose instant is no number goes at once."""
    return not abs(silent_for(row, here)) <= FORGET_SECONDS


def silent_for(row: MemberRow, here: ClockReading) -> float:
    """The seconds since its last write; below 0 where another machine's reading of the common clock is ahead of ours.

    A row of another boot is as old as the wall tells.
    """
    same_boot = bool(here.boot) and row.at.boot == here.boot
    return here.boottime - row.at.boottime if same_boot else here.wall - row.at.wall
