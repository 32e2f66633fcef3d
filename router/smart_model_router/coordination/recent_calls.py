"""The recent calls of each target that this process has to tell, and those that a process hears of when it begins."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_model_router.core.gate import Gate
from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router.domain.shared_state import CallRow, ClockReading, SharedKeys, age

if TYPE_CHECKING:
    from smart_model_router.coordination.local_router import LocalRouter

_KEPT = 50
_MEMORY = 3600.0
"""Seconds. Older calls do not count in any decision (routing.md sections 1 and 2)."""


@dataclass(frozen=True, slots=True)
class Untold:
    """Ended calls by target, oldest first, and the targets among them that began anew before theirs."""

    calls: Mapping[str, Iterable[AttemptFinished]] = field(default_factory=dict)
    anew: frozenset[str] = frozenset()


class RecentCalls:
    """The calls that are not written yet. Not thread-safe: it belongs to the router's loop."""

    def __init__(self, state: LocalRouter, owners: Mapping[str, SharedKeys]) -> None:
        self._state = state
        self._owners = owners
        self._calls: dict[str, deque[AttemptFinished]] = {}
        self._anew: set[str] = set()

    def observe(self, event: AttemptFinished) -> None:
        """Keep a call that the next process should know of."""
        if event.target in self._owners and event.failure_class is not FailureClass.CANCELLED:
            self._calls.setdefault(event.target, deque(maxlen=_KEPT)).append(event)

    def begins_anew(self, target: str) -> None:
        """Drop the earlier calls of a target whose window was emptied; later processes drop them as well."""
        self._calls.pop(target, None)
        self._anew.add(target)

    def clear(self) -> None:
        """Forget all calls."""
        self._calls.clear()

    def take(self) -> Untold:
        """Take the calls to write now."""
        calls, self._calls = self._calls, {}
        anew = self._anew & calls.keys()
        self._anew -= anew
        return Untold(calls, frozenset(anew))

    def keep(self, untold: Untold) -> None:
        """Keep calls that could not be written, with those that ended meanwhile, for later."""
        for target in untold.calls.keys() - self._anew:  # a target that began anew since has no earlier calls
            self._calls[target] = deque([*untold.calls[target], *self._calls.get(target, ())], maxlen=_KEPT)
        self._anew |= untold.anew

    def rows(self, untold: Untold, now: float, here: ClockReading) -> tuple[CallRow, ...]:
        """The rows to write."""
        return tuple(
            CallRow(
                target=self._owners[target].target,
                at=_ago(here, now - event.at),
                failure=event.failure_class,
                stream=event.stream,
                seconds=event.seconds,
                ttft_seconds=event.ttft_seconds,
                completion_tokens=None if event.usage is None else event.usage.completion_tokens,
                anew=number == 0 and target in untold.anew,
            )
            for target, events in untold.calls.items()
            for number, event in enumerate(events)
        )

    def restore(self, rows: Iterable[CallRow], now: float, here: ClockReading) -> None:
        """Take in the calls that other processes wrote before this one began, oldest first."""
        targets = {owners.target: target for target, owners in self._owners.items()}
        for row in rows:
            gate = self._state.fleet.gates.get(targets.get(row.target, ""))
            if gate is None:
                continue
            event = _event(row, gate, now - age(row.at, here, _MEMORY))
            if row.anew:
                self._state.book.reset_window(gate.id, event.admitted_at)
            self._state.book.restore(event)


def _ago(here: ClockReading, seconds: float) -> ClockReading:
    return ClockReading(here.boot, here.boottime - seconds, here.wall - seconds)


def _event(call: CallRow, gate: Gate, at: float) -> AttemptFinished:
    tokens = call.completion_tokens
    return AttemptFinished(
        at=at,
        admitted_at=at - call.seconds,
        target=gate.id,
        provider=gate.provider.name,
        model=gate.id.partition("/")[2],
        stream=call.stream,
        seconds=call.seconds,
        failure_class=call.failure,
        ttft_seconds=call.ttft_seconds,
        usage=None if tokens is None else Usage(0, tokens),
    )
