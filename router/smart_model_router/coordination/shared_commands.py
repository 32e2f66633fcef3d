"""The operator's commands that processes share: the later one counts everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from smart_model_router.domain.shared_state import ClockReading, OperatorRow, SharedView, is_later

if TYPE_CHECKING:
    from smart_model_router.coordination.local_router import LocalRouter


class SharedCommands:
    """The shared rows of this router's commands. Not thread-safe: it belongs to the router's loop."""

    def __init__(self, state: LocalRouter) -> None:
        self._state = state
        self._known: dict[str, OperatorRow] = {}
        self._began = state.here()

    def differences(self) -> tuple[OperatorRow, ...]:
        """The commands that differ from the shared ones."""
        return tuple(
            replace(row, gen=0 if known is None else known.gen)
            for target, row in self._state.words.rows.items()
            if (known := self._known.get(target)) is not row and (known is None or not _same(known, row))
        )

    def begin_anew(self) -> None:
        """Forget all rows: the store began anew, and its generations count from other rows."""
        self._known.clear()

    def miss(self, view: SharedView) -> bool:
        """Forget the rows that are gone from the shared state; True when there are any: its file was removed."""
        lost = self._known.keys() - {row.target for row in view.words}
        for target in lost:
            del self._known[target]
        return bool(lost)

    def take(self, rows: Iterable[OperatorRow], here: ClockReading) -> bool:
        """Obey the commands of other processes that are later than ours; True when one of ours is later.

        An `enable` from before this router began ends no rest.
        """
        words, later = self._state.words, False
        for row in rows:
            self._known[row.target] = row
            ours = words.rows.get(row.target)
            if ours is not None and _same(ours, row):
                words.rows[row.target] = row
            elif ours is not None and not is_later(row.at, ours.at, here):
                later = True
            elif ours is None and row.word == "enable" and not is_later(row.at, self._began, here):
                words.rows[row.target] = row
            else:
                words.obey(row, heard=True)
        return later


def _same(one: OperatorRow, other: OperatorRow) -> bool:
    return replace(one, gen=other.gen) == other
