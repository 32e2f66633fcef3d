"""The cooldowns, waits, walls and off periods that processes share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from smart_model_router.core.cooldown import Cooldown, RestRecord
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Settlement
from smart_model_router.domain.shared_state import ClockReading, Deadline, RestRow, SharedView, remaining

if TYPE_CHECKING:
    from smart_model_router.coordination.local_router import LocalRouter

_SAME = 0.001


@dataclass(slots=True)
class _Known:
    """The rests of a target or a credential, and their shared rows: by reason, with the instant on our clock."""

    cooldown: Cooldown
    gate: Gate
    known: dict[str, tuple[RestRow, float]] = field(default_factory=dict)


class SharedCooldowns:
    """All rests, by target and by credential. Not thread-safe: it belongs to the router's loop."""

    def __init__(self, state: LocalRouter) -> None:
        self._state = state
        self._entries: dict[str, _Known] = {}

    def register(self, owner: str, cooldown: Cooldown, gate: Gate) -> None:
        """Share the rests of a target that takes part, or of its credential."""
        entry = self._entries.get(owner)
        if entry is None or entry.cooldown is not cooldown:
            self._entries[owner] = _Known(cooldown, gate)

    def forget(self, owner: str) -> None:
        """Forget the rests of a target."""
        self._entries.pop(owner, None)

    def differences(self, now: float, here: ClockReading) -> tuple[RestRow, ...]:
        """The rows that differ from the shared ones."""
        return tuple(row for owner, entry in self._entries.items() for row in _different(owner, entry, now, here))

    def begin_anew(self) -> None:
        """Forget all rows: the store began anew, and its generations count from other rows."""
        for entry in self._entries.values():
            entry.known.clear()

    def miss(self, view: SharedView) -> bool:
        """Forget the rows that are gone from the shared state; True when there are any: its file was removed."""
        there = {row.key for row in view.rests}
        lost = [(e, reason) for owner, e in self._entries.items() for reason in e.known if (owner, reason) not in there]
        for entry, reason in lost:
            del entry.known[reason]
        return bool(lost)

    def take(self, rows: Sequence[RestRow], now: float, here: ClockReading) -> bool:
        """Adopt the changes of other processes; True when a rest of ours lasts longer than one of them."""
        further = False
        for row in rows:
            entry = self._entries.get(row.owner)
            if entry is not None and self._take(entry, row, now, here):
                further = True
        return further

    def _take(self, entry: _Known, row: RestRow, now: float, here: ClockReading) -> bool:
        known = entry.known.get(row.reason)
        if known is not None and known[0].gen == row.gen:
            return False
        config = entry.gate.config.cooldown
        caps = {"cooldown": config.cap, "wait": max(config.hint_cap, config.cap)}
        until = now + remaining(row.until, here, caps.get(row.reason, row.until.duration))
        ours = next((r for r in entry.cooldown.records() if r.reason == row.reason), None)
        entry.known[row.reason] = (row, until)
        if row.over:
            self._end(entry, row, now)
            return False
        if ours is not None and ours.hinted == row.hinted and abs(ours.until - until) < _SAME:
            return False
        adopted = entry.cooldown.adopt(RestRecord(row.reason, until, row.hinted, row.cause, row.step), now)
        if adopted:
            self._state.apply(entry.gate, Settlement(), now, None)
        return not adopted

    def _end(self, entry: _Known, row: RestRow, now: float) -> None:
        slowly = entry.cooldown.on_probation(now)
        if entry.cooldown.end(row.reason):
            recovered = not entry.cooldown.returning
            if recovered:
                entry.gate.returned(now, slowly=slowly)
            self._state.apply(entry.gate, Settlement(recovered=recovered), now, None)


def _different(owner: str, entry: _Known, now: float, here: ClockReading) -> Iterator[RestRow]:
    records = {record.reason: record for record in entry.cooldown.records()}
    for record in records.values():
        known, until = entry.known.get(record.reason, (None, 0.0))
        if known is None or not _is_told(known, until, record, now):
            yield RestRow(
                owner=owner,
                reason=record.reason,
                until=Deadline.after(max(0.0, record.until - now), here),
                cause=record.cause,
                hinted=record.hinted,
                step=record.step,
                gen=0 if known is None else known.gen,
            )
    for reason, (known, _) in entry.known.items():
        if not known.over and reason not in records:
            yield replace(known, over=True)


def _is_told(known: RestRow, until: float, record: RestRecord, now: float) -> bool:
    if known.over or known.hinted != record.hinted:
        return False
    return abs(until - record.until) < _SAME or max(until, record.until) <= now
