"""The breakers that processes share: the row of each, the changes to write, and those to adopt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_model_router.core.breaker import BreakerState, CircuitBreaker, Transition
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease, Settlement
from smart_model_router.core.target_state import Moved
from smart_model_router.domain.shared_state import (
    LEASE_SECONDS,
    BreakerKind,
    BreakerRow,
    ClockReading,
    Deadline,
    SharedBreakerState,
    SharedKeys,
    SharedView,
    remaining,
)

if TYPE_CHECKING:
    from smart_model_router.coordination.local_router import LocalRouter

Key = tuple[str, str]

SAME = 0.001
"""Seconds. Instants that differ by less are one."""
_CLAIM_SECONDS = 0.5
"""A lease in our name that is heard of, and not from the answer to a claim, is given back after that.

Either that answer is on its way, or the end of the lease was lost when the store lost its last writes.
"""
RENEW_SECONDS = LEASE_SECONDS / 3
"""The interval in which the lease of a probe is renewed, and after which one that is not used is given back."""


@dataclass(slots=True)
class SharedBreaker:
    """A breaker of this process, and its shared row."""

    owner: str
    kind: BreakerKind
    breaker: CircuitBreaker
    gate: Gate
    known: BreakerRow | None = None
    until: float = 0.0
    """The instant, on our clock, that `known` speaks of."""
    held: BreakerRow | None = None
    """Our lease on its probe."""
    being_told: bool = False
    """True while a change of it, such as the end of our lease, is being written."""
    renew_at: float = 0.0
    reason: str = ""
    """The reason of its last transition."""

    @property
    def key(self) -> Key:
        """The key of the breaker among processes."""
        return self.owner, self.kind

    @property
    def name(self) -> str:
        """The same as one word for each part."""
        return f"{self.owner} {self.kind}"

    @property
    def due_at(self) -> float:
        """The instant at which its probe is due; 0 when it is closed."""
        return self.breaker.open_until or 0.0

    @property
    def provider(self) -> str:
        """The provider; its probes are made one at a time."""
        return self.gate.provider.name

    def holds(self, now: float) -> bool:
        """True when this process may make its probe."""
        return self.held is not None and not self.being_told and now < self.until

    def row(self, state: SharedBreakerState, until: Deadline, holder: str = "") -> BreakerRow:
        """The row to write."""
        return BreakerRow(
            owner=self.owner,
            kind=self.kind,
            provider=self.provider,
            state=state,
            until=until,
            step=self.breaker.backoff_index,
            reason=self.reason,
            holder=holder,
            gen=0 if self.known is None else self.known.gen,
        )

    def different(self, now: float, here: ClockReading, *, ending: bool) -> BreakerRow | None:
        """The row with a change to write, None without one. A probe is written at its end, or the process's."""
        breaker, known = self.breaker, self.known
        if breaker.isolated or (breaker.probe_in_flight and not ending):
            return None
        if breaker.is_closed:
            told = known is None or known.state == "closed"
            return None if told else self.row("closed", Deadline.after(0.0, here))
        until = breaker.open_until or now
        same = known is not None and known.state == "open" and abs(self.until - until) < SAME
        if same or (known is not None and known.state == "half_open" and self.held is None):
            return None
        return self.row("open", Deadline.after(max(0.0, until - now), here))

    def outlasts(self, row: BreakerRow) -> bool:
        """True when it stays open longer here than `row` says, which was adopted just now."""
        until = self.breaker.open_until
        return row.state == "open" and until is not None and until > self.until + SAME

    def take(self, row: BreakerRow, now: float, here: ClockReading, holder: str) -> Transition | None:
        """Adopt the row of another process; return the transition that follows here. This one is `holder`."""
        known, breaker = self.known, self.breaker
        if known is not None and row.gen == known.gen:
            self.known = row
            return None
        self.known, self.held = row, None
        if row.state == "half_open" and row.holder == holder:
            self.held, self.renew_at = row, now + _CLAIM_SECONDS
        left = remaining(row.until, here, breaker.config.open_cap)
        self.until = now + left
        if row.state == "closed":
            return None if breaker.isolated else breaker.close(now, "shared")
        until = now + left if row.state == "open" else now
        return breaker.adopt(until, row.step, now, reason="shared")


_NOBODY = SharedKeys("", "", "")


class SharedBreakers:
    """By owner and kind. Not thread-safe: it belongs to the router's loop."""

    def __init__(self, state: LocalRouter, owners: Mapping[str, SharedKeys]) -> None:
        self._state = state
        self._owners = owners
        self._entries: dict[Key, SharedBreaker] = {}
        self.holder = ""
        """The name in which this process takes probes."""

    def __getitem__(self, key: Key) -> SharedBreaker:
        return self._entries[key]

    def register(self, owner: str, gate: Gate) -> None:
        """Share the breakers of a target that takes part, and its provider's."""
        provider = gate.provider
        parts = [SharedBreaker(owner, kind, breaker, gate) for kind, breaker in gate.breakers.items()]
        for new in (*parts, SharedBreaker(provider.name, "transport", provider.transport, gate)):
            entry = self._entries.get(new.key)
            if entry is None or entry.breaker is not new.breaker:
                self._entries[new.key] = new

    def forget(self, owner: str) -> None:
        """Forget the breakers of a target."""
        for key in [key for key in self._entries if key[0] == owner and key[1] != "transport"]:
            del self._entries[key]

    def settled(self, gate: Gate, settlement: Settlement) -> None:
        """Remember the reasons of the transitions by a call or by the operator."""
        for moved in settlement.moved:
            owner = gate.provider.name if moved.kind == "transport" else self._owners.get(gate.id, _NOBODY).target
            entry = self._entries.get((owner, moved.kind))
            if entry is not None:
                entry.reason = moved.transition.reason

    # Probes -------------------------------------------------------------------------------------------------

    def probed(self, gate: Gate, lease: Lease) -> list[SharedBreaker]:
        """Those that this call would probe, as far as only one process may."""
        if gate.id not in self._owners or not gate.config.measures.serialized_probes:
            return []
        owner = self._owners[gate.id].target
        keys = ((owner, "stream" if lease.stream else "whole"), (gate.provider.name, "transport"))
        return [entry for key in keys if (entry := self._entries[key]).breaker.probe_in_flight]

    @property
    def held(self) -> list[SharedBreaker]:
        """Those whose probe is ours."""
        return [entry for entry in self._entries.values() if entry.held is not None]

    def release(self) -> None:
        """Hold no probe any more after a fork: it belongs to the parent process."""
        for entry in self._entries.values():
            entry.held = None

    def decide_alone(self) -> None:
        """Wait no more for the probes of other processes."""
        for entry in self._entries.values():
            entry.breaker.probed_elsewhere(0.0)

    def yield_probes(self, now: float, here: ClockReading) -> None:
        """While another process probes at a provider, none of its breakers is probed here."""
        leases: dict[str, float] = {}
        for entry in self._entries.values():
            known = entry.known
            if known is not None and known.state == "half_open" and entry.held is None:
                until = now + remaining(known.until, here, LEASE_SECONDS)
                leases[entry.provider] = max(leases.get(entry.provider, 0.0), until)
        for entry in self._entries.values():
            if not entry.breaker.is_closed and entry.held is None:
                entry.breaker.probed_elsewhere(leases.get(entry.provider, 0.0))
        for provider in leases:
            self._state.pump(provider)

    # Telling and listening ----------------------------------------------------------------------------------

    def differences(self, now: float, here: ClockReading, *, ending: bool) -> tuple[BreakerRow, ...]:
        """The rows that differ from the shared ones. Until `told`, no probe of these breakers begins on our lease."""
        rows = []
        for entry in self._entries.values():
            if (row := entry.different(now, here, ending=ending)) is not None:
                entry.being_told = True
                rows.append(row)
        return tuple(rows)

    def told(self, rows: Sequence[BreakerRow]) -> None:
        """Note that these rows were written, or could not be."""
        for row in rows:
            self._entries[row.key].being_told = False

    def written(self, rows: Sequence[BreakerRow], view: SharedView, now: float) -> None:
        """Note that these rows were written; `view` has the present ones."""
        ours = {row.key: row for row in rows}
        for there in view.breakers:
            if there == replace(ours[there.key], gen=there.gen):
                entry = self._entries[there.key]
                entry.known, entry.held = there, None
                entry.until = now + there.until.duration

    def begin_anew(self) -> None:
        """Forget all rows: the store began anew, and its generations count from other rows."""
        for entry in self._entries.values():
            entry.known = entry.held = None

    def miss(self, view: SharedView) -> bool:
        """Forget the rows that are gone from the shared state; True when there are any: its file was removed."""
        there: set[Key] = {row.key for row in view.breakers}
        lost = [entry for key, entry in self._entries.items() if entry.known is not None and key not in there]
        for entry in lost:
            entry.known = entry.held = None
        return bool(lost)

    def take(self, rows: Sequence[BreakerRow], now: float, here: ClockReading) -> bool:
        """Adopt the changes of other processes; True when a breaker of ours stays open longer than one of them."""
        longer = False
        for row in rows:
            entry = self._entries.get(row.key)
            if entry is None:
                continue
            news = entry.known is None or entry.known.gen != row.gen
            transition = entry.take(row, now, here, self.holder)
            if transition is not None:
                self._moved(entry, transition, now)
            longer = longer or (news and entry.outlasts(row))
        return longer

    def adopt(self, entry: SharedBreaker, until: float, step: int, now: float) -> None:
        """Keep a breaker open until then: a probe of another process has failed."""
        transition = entry.breaker.adopt(until, step, now, reason="shared")
        if transition is not None:
            self._moved(entry, transition, now)

    def _moved(self, entry: SharedBreaker, transition: Transition, now: float) -> None:
        moved = Moved(entry.kind, transition)
        entry.gate.apply(moved, now)
        closed = transition.to_state is BreakerState.CLOSED
        self._state.apply(entry.gate, Settlement((moved,), recovered=closed), now, None)
