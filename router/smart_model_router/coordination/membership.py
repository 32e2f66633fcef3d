"""The processes that share the state, as this one knows them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from smart_model_router.domain.shared_state import ClockReading, MemberRow, is_member
from smart_model_router.domain.shared_state.members import TELL_EVERY


class Members:
    """Says that this process is there, and counts the others. Not thread-safe: it belongs to the router's loop.

    There are `processes` on each machine at least, and as many `machines` as that; 0: as many as are counted. Without
    `many_machines` all processes run on one, whatever they call it (containers have names of their own).
    """

    def __init__(
        self,
        here: Callable[[], ClockReading],
        machine: str,
        version: str,
        *,
        processes: int,
        machines: int,
        many_machines: bool,
    ) -> None:
        self._here = here
        self.machine = machine
        self.many_machines = many_machines
        self._version = version
        self._processes = processes
        self._machines = machines
        self._holder = ""
        self._tell_at = 0.0
        self._told = False
        self._rows: dict[str, MemberRow] = {}
        self._lost: dict[str, MemberRow] = {}
        """The rows that were known when a server lost its own: their processes are there all the same."""
        self._boot = ""
        self.count = processes * max(1, machines)
        """The processes that shared the state when they were last heard of, this one included."""
        self.on_this_machine = processes
        """Those of them that run on this machine."""

    def begin(self, holder: str) -> None:
        """Take part in this name from now on; an earlier row belongs to another process."""
        self._holder = holder
        self._tell_at, self._told = 0.0, False

    def continue_from(self, before: Members) -> None:
        """Take the place of another router of this process, which is no member any more."""
        self._holder, self._told = before._holder, before._told
        before._holder, before._told = "", False

    def row(self, now: float, *, ending: bool) -> tuple[MemberRow, ...]:
        """Return the row to write now, if one is due."""
        if not self._holder or (not self._told if ending else now < self._tell_at):
            return ()
        return (
            MemberRow(
                holder=self._holder,
                machine=self.machine,
                version=self._version,
                pid=os.getpid(),
                at=self._here(),
                over=ending,
            ),
        )

    def written(self, now: float, rows: Iterable[MemberRow]) -> None:
        """Note that the row was written; `rows` are those of all processes then."""
        self.take(rows, self._here())
        self._tell_at, self._told = now + TELL_EVERY, True

    def take(self, rows: Iterable[MemberRow], here: ClockReading) -> None:
        """Take in the rows of all processes, and count those that wrote lately."""
        if here.boot != self._boot:
            self._boot, self._lost, self._tell_at = here.boot, self._rows, 0.0
        self._lost = {holder: row for holder, row in self._lost.items() if is_member(row, here)}
        self._rows = self._lost | {row.holder: row for row in rows}
        living = {row.holder: row.machine for row in self._rows.values() if is_member(row, here)}
        living[self._holder] = self.machine
        here_too = [machine for machine in living.values() if machine == self.machine or not self.many_machines]
        self.on_this_machine = max(self._processes, len(here_too))
        self.count = max(len(living), self.on_this_machine)
        if self._machines:
            self.count = self._machines * self.on_this_machine

    def living(self) -> tuple[MemberRow, ...]:
        """Return the rows of the processes that count now, in the order of their machines."""
        here = self._here()
        living = (row for row in self._rows.values() if is_member(row, here))
        return tuple(sorted(living, key=lambda row: (row.machine, row.pid, row.holder)))
