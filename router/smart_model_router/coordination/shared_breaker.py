"""One breaker that processes share: how it differs from what the others know, and what they know of it."""

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
    """A breaker of this process, and what all know of it."""

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
    """Whether the others are being told of it right now, such as that our lease is over."""
    renew_at: float = 0.0
    reason: str = ""
    """What moved it last."""

    @property
    def key(self) -> Key:
        """Which one it is, among processes."""
        return self.owner, self.kind

    @property
    def provider(self) -> str:
        """Whose probes are made one at a time."""
        return self.gate.provider.name

    def holds(self, now: float) -> bool:
        """Whether its probe is ours to make."""
        return self.held is not None and not self.being_told and now < self.until

    def row(self, state: SharedBreakerState, until: Deadline, holder: str = "") -> BreakerRow:
        """What the others are to know of it."""
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
        """What the others do not know yet; a probe under way has nothing to tell before it (or the process) ends."""
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
        """Take over what another process has written; what moved here by that."""
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
