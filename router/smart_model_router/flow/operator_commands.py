"""The operator's newest command for each target, given in any process, and its effect on this router."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Settlement
from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.events import OperatorSpoke
from smart_model_router.domain.shared_state import Isolation, OperatorRow, OperatorWord, is_later

if TYPE_CHECKING:
    from smart_model_router.flow.state import RouterState

_BY_LIMIT, _WHY_LIMIT = 100, 200
"""Characters: one line of a log, and of a terminal."""


class OperatorCommands:
    """By target. Not thread-safe: it belongs to the router's loop."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self.rows: dict[str, OperatorRow] = {}

    def isolation(self, target: str) -> Isolation | None:
        """The isolation of a target: its operator, time and reason; None when it is not isolated."""
        row = self.rows.get(target)
        return None if row is None else row.isolation

    def speak(self, target: str, word: OperatorWord, *, by: str, why: str) -> None:
        """Obey a command given in this process. Raises InvalidRequest for texts that no log line can hold."""
        by, why = self._text("by", by, _BY_LIMIT), self._text("why", why, _WHY_LIMIT)
        self.obey(OperatorRow(target=target, word=word, by=by, why=why, at=self._state.here()), heard=False)

    def obey(self, row: OperatorRow, *, heard: bool) -> None:
        """Carry out the newest command. `heard`: it was given in another process, or before a restart."""
        state = self._state
        self.rows[row.target] = row
        gate = state.fleet.gates.get(row.target)
        if gate is None:
            return
        now, isolate = state.clock.now(), row.word == "isolate"
        state.emit(
            OperatorSpoke(
                at=now, target=row.target, word=row.word, by=row.by, why=row.why, since=row.at.wall, heard=heard
            )
        )
        moved = gate.isolate(now) if isolate else gate.close(now)
        state.apply(gate, Settlement(moved, recovered=not isolate), now, None)

    def bind(self, gate: Gate) -> None:
        """Apply the newest command to a new gate."""
        row, now = self.rows.get(gate.id), self._state.clock.now()
        if row is not None and gate.isolated != (row.word == "isolate"):
            _ = gate.close(now) if gate.isolated else gate.isolate(now)

    def continue_from(self, before: OperatorCommands) -> None:
        """Take over the commands of the router that this one replaces, as far as no later one is known."""
        here = self._state.here()
        for target, row in before.rows.items():
            ours = self.rows.get(target)
            if ours is None or is_later(row.at, ours.at, here):
                self.rows[target] = row
        for gate in self._state.fleet.gates.values():
            self.bind(gate)

    def _text(self, key: str, text: str, most: int) -> str:
        line = self._state.scrub_text(" ".join(text.split()))
        if len(line) > most or not line.isprintable():
            raise InvalidRequest(f"{key}: at most {most} printable characters are needed, not {text[:most]!r}")
        return line
