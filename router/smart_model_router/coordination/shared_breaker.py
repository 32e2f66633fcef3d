"""One breaker that processes share: its shared row, and how the breaker differs from it."""

from __future__ import annotations

from dataclasses import dataclass

from smart_model_router.core.breaker import CircuitBreaker, Transition
from smart_model_router.core.gate import Gate
from smart_model_router.domain.shared_state import (
    BreakerKind,
    BreakerRow,
    ClockReading,
    Deadline,
    SharedBreakerState,
    remaining,
)

Key = tuple[str, str]

_SAME = 0.001


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
        same = known is not None and known.state == "open" and abs(self.until - until) < _SAME
        if same or (known is not None and known.state == "half_open" and self.held is None):
            return None
        return self.row("open", Deadline.after(max(0.0, until - now), here))

    def take(self, row: BreakerRow, now: float, here: ClockReading) -> Transition | None:
        """Adopt the row of another process; return the transition that follows here."""
        known, breaker = self.known, self.breaker
        if known is not None and row.gen == known.gen:
            self.known = row
            return None
        self.known, self.held = row, None
        left = remaining(row.until, here, breaker.config.open_cap)
        self.until = now + left
        if row.state == "closed":
            return None if breaker.isolated else breaker.close(now, "shared")
        until = now + left if row.state == "open" else now
        return breaker.adopt(until, row.step, now, reason="shared")
