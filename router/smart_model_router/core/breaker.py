"""The circuit breaker: CLOSED -> OPEN -> HALF_OPEN -> CLOSED, one probe at a time, verdicts fenced by generation.

Pure: `now` is an argument (monotonic seconds), chance is an argument, nothing waits. Not thread-safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from smart_model_router.core.checked_options import Count, FailingShare, Interval, Options, Seconds
from smart_model_router.core.rest_seconds import base_seconds, cap_seconds, grown
from smart_model_router.domain.outcome import Refusal

Verdict = Literal["success", "failure", "ignored"]

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 5.0
"""Seconds between the probes of an OPEN target while no other one is free: 1, 2, 4, then 5."""
_PAUSE_SPREAD = 0.2


class BreakerState(StrEnum):
    """HALF_OPEN begins at `open_until`, probed or not. ISOLATED is set by the operator."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    ISOLATED = "isolated"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerConfig(Options):
    """The rules for opening a breaker, and for how long (routing.md section 3).

    It opens on `consecutive_failures` in a row that a sequential test calls down: `failing_share` of all calls failing
    against the target's own share, with odds of `odds` or `odds_per_call` x the calls of the last minute, whichever is
    more. The first open time is ten times the seconds that the failure lost a request, from `open_minimum` to `open`;
    the i-th reopening lasts `open_multiplier`^i times as long, plus up to a tenth by dice, at most `open_cap` seconds
    and at most 20 times the largest loss of the outage (15 s at least). `slow_call` (seconds, None is off): strictly
    slower counts as a failure.
    """

    consecutive_failures: Count = 5
    failing_share: FailingShare = 0.99
    odds: Count = 1000
    odds_per_call: Count = 20
    open: Seconds = 30.0
    open_minimum: Seconds = 5.0
    open_multiplier: Annotated[float, Interval(ge=1.1, le=10)] = 1.5
    open_cap: Seconds = 600.0
    half_open_successes: Count = 1
    slow_call: Seconds | None = None
    serialized_probes: bool = True


@dataclass(eq=False, slots=True)
class Permit:
    """The right to make one call. `generation` says which state of the breaker granted it.

    `settled` turns True at the first `record`.
    """

    generation: int
    probe: bool = False
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Transition:
    """The breaker moved. `open_until` is set when it opened; `reason` is what moved it."""

    from_state: BreakerState
    to_state: BreakerState
    reason: str
    at: float
    generation: int
    open_until: float | None = None


@dataclass(frozen=True, slots=True)
class BreakerSnapshot:
    """A breaker at one instant. `open_until` is None while CLOSED or isolated."""

    generation: int
    closed: bool
    open_until: float | None
    failures_in_a_row: int
    probe_in_flight: bool


class CircuitBreaker:
    """One breaker. `try_acquire` asks, `record` tells; neither waits."""

    __slots__ = (
        "_backoff_index",
        "_base",
        "_closed_at",
        "_config",
        "_eager_at",
        "_elsewhere_until",
        "_failed_probes",
        "_failures_in_a_row",
        "_generation",
        "_largest_loss",
        "_last_open_seconds",
        "_open_until",
        "_probe",
        "_probe_successes",
        "_state",
        "is_closed",
        "used",
    )

    def __init__(self, config: BreakerConfig | None = None) -> None:
        self._config = config or BreakerConfig()
        self._state: Literal["closed", "open", "isolated"] = "closed"
        self.is_closed = True
        """True while the breaker is CLOSED: calls need no probe."""
        self._generation = 0
        self._open_until = 0.0
        self._eager_at = 0.0
        self._failed_probes = 0
        self._closed_at = 0.0
        self._backoff_index = 0
        self._base = self._config.open
        self._largest_loss: float | None = 0.0
        self._last_open_seconds = 0.0
        self._failures_in_a_row = 0
        self._probe: Permit | None = None
        self._probe_successes = 0
        self._elsewhere_until = 0.0
        self.used = False
        """True when it ever admitted a call: an unused breaker says nothing about health."""

    @property
    def config(self) -> BreakerConfig:
        """The options it was made with."""
        return self._config

    @property
    def generation(self) -> int:
        """Grows with every transition and every probe; verdicts of an older one change nothing."""
        return self._generation

    @property
    def open_until(self) -> float | None:
        """The monotonic instant at which a probe is due; None while CLOSED or isolated."""
        return self._open_until if self._state == "open" else None

    @property
    def backoff_index(self) -> int:
        """The number of times that the open time has grown."""
        return self._backoff_index

    @property
    def open_seconds(self) -> float:
        """The seconds it stays open at this back-off, without the random part: base x 1.5^i, at most the cap."""
        return grown(self._base, self._config.open_multiplier, self._backoff_index, self._cap)

    @property
    def eager_at(self) -> float:
        """When a probe of an OPEN breaker is due where no other target is free: by back-off, not after `open`."""
        return min(self._open_until, self._eager_at)

    @property
    def isolated(self) -> bool:
        """True when the operator isolated it."""
        return self._state == "isolated"

    @property
    def elsewhere_until(self) -> float:
        """Until when another process may have the probe, at the latest."""
        return self._elsewhere_until

    @property
    def probe_in_flight(self) -> bool:
        """True when a probe was granted and has not been settled."""
        return self._probe is not None

    def state(self, now: float) -> BreakerState:
        """The state at `now`."""
        if self._state == "open":
            return BreakerState.HALF_OPEN if now >= self._open_until else BreakerState.OPEN
        return BreakerState(self._state)

    def snapshot(self) -> BreakerSnapshot:
        """The state that verdicts move, for checkers."""
        return BreakerSnapshot(
            self._generation, self.is_closed, self.open_until, self._failures_in_a_row, self.probe_in_flight
        )

    def refusal(self, now: float, *, eager: bool = False) -> Refusal | None:
        """The refusal of a call at `now`, None when `try_acquire` would grant it. Changes nothing.

        `eager`: no other target is free, so the next probe is due by back-off.
        """
        if self.is_closed:
            return None
        if self._state == "isolated":
            return Refusal("isolated")
        due = self.eager_at if eager else self._open_until
        if now < due:
            return Refusal("open", due)
        probed = self._probe is not None or now < self._elsewhere_until
        return Refusal("half_open") if probed and self._config.serialized_probes else None

    def try_acquire(self, now: float, *, eager: bool = False) -> Permit | Refusal:
        """A permit, or the reason for none. In HALF_OPEN exactly one permit, the probe, is out at a time."""
        if self.is_closed:
            self.used = True
            return Permit(self._generation)
        refusal = self.refusal(now, eager=eager)
        if refusal is not None:
            return refusal
        if self._config.serialized_probes:  # else several probe, and the first verdict of them counts
            self._generation += 1
        self._probe = Permit(self._generation, probe=True)
        return self._probe

    def is_current(self, permit: Permit) -> bool:
        """True when a verdict of this permit would still move the breaker."""
        return not permit.settled and permit.generation == self._generation

    def record(
        self,
        permit: Permit,
        verdict: Verdict,
        now: float,
        *,
        roll: float = 0.0,
        hold: bool = False,
        down: bool = True,
        lost: float | None = None,
    ) -> Transition | None:
        """Settle a permit; a second `record` of it, or one of an older generation, changes nothing.

        `ignored` gives the permit back without a verdict. `roll` in [0, 1) spreads the open time. With `hold` a
        due trip is withheld: the returned transition then stays CLOSED and says so. `down` is what the evidence says
        of a failure (core/evidence.py), `lost` the seconds that it lost a request; None: unknown.
        """
        if permit.settled:
            return None
        permit.settled = True
        if permit is self._probe:
            self._probe = None
        if permit.generation != self._generation or verdict == "ignored":
            return None
        if permit.probe:
            return self._record_probe(verdict, now, roll, lost)
        return self._record_call(verdict, now, roll, hold, down, lost)

    def isolate(self, now: float) -> Transition | None:
        """Refuse every call until `close`."""
        return None if self._state == "isolated" else self._move("isolated", "operator", now)

    def close(self, now: float, reason: str = "operator") -> Transition | None:
        """Go to CLOSED with an empty window from any state. Returns None when it was CLOSED."""
        if reason == "operator":
            self._backoff_index = 0
        was_closed = self.is_closed
        probed = BreakerState.HALF_OPEN if reason == "probe_succeeded" else None
        transition = self._move("closed", reason, now, probed)
        return None if was_closed else transition

    def probed_elsewhere(self, until: float) -> None:
        """Another process has the probe, until the instant `until` at the latest; one that is over ends that."""
        self._elsewhere_until = until

    def adopt(self, open_until: float, backoff_index: int, now: float, *, reason: str) -> Transition | None:
        """OPEN until an instant that another process, or this one before a restart, arrived at; never a nearer one.

        HALF_OPEN when the instant has passed. A probe of ours that is under way has no say any more. None when it was
        OPEN before, or is isolated.
        """
        if self._state == "isolated":
            return None
        self.used = True
        self._backoff_index = backoff_index
        if self._state == "open":  # a probe of another process has failed
            self._open_until = max(self._open_until, open_until)
            self._failed_probes += 1
            self._put_off(now)
            self._generation += 1
            self._probe = None
            return None
        self._open_until = open_until
        self._put_off(now)
        return self._move("open", reason, now)

    def make_due(self, now: float) -> None:
        """Let the probe of an OPEN breaker come due at once."""
        if self._state == "open":
            self._open_until = min(self._open_until, now)

    @property
    def _cap(self) -> float:
        return cap_seconds(self._largest_loss, self._least, self._config.open_cap)

    @property
    def _least(self) -> float:
        return min(self._config.open_minimum, self._config.open)

    def _record_probe(self, verdict: Verdict, now: float, roll: float, lost: float | None) -> Transition | None:
        if verdict == "failure":
            self._failed_probes += 1
            return self._trip("probe_failed", now, roll, lost)
        self._probe_successes += 1
        if self._probe_successes < self._config.half_open_successes:
            return None
        return self.close(now, "probe_succeeded")

    def _record_call(
        self, verdict: Verdict, now: float, roll: float, hold: bool, down: bool, lost: float | None
    ) -> Transition | None:
        if verdict != "failure":
            self._failures_in_a_row = 0
            return None
        self._failures_in_a_row += 1
        if self._failures_in_a_row < self._config.consecutive_failures or not down:
            return None
        if hold:
            closed = BreakerState.CLOSED
            return Transition(closed, closed, "withheld", now, self._generation)
        healthy = int((now - self._closed_at) / self._base)
        self._backoff_index = max(0, self._backoff_index - healthy)
        return self._trip("consecutive_failures", now, roll, lost)

    def _trip(self, reason: str, now: float, roll: float, lost: float | None) -> Transition:
        from_state = BreakerState.CLOSED if self.is_closed else BreakerState.HALF_OPEN
        self._base = base_seconds(lost, self._least, self._config.open)
        self._largest_loss = _larger(self._largest_loss, lost)
        if not self.is_closed:  # an index beyond the cap would only delay the decay
            self._backoff_index += self.open_seconds < self._cap
        seconds = max(self._last_open_seconds, min(self._cap, self.open_seconds * (1 + roll / 10)))
        self._last_open_seconds = seconds
        self._open_until = now + seconds
        self._put_off(now, roll)
        return self._move("open", reason, now, from_state)

    def _put_off(self, now: float, roll: float = 0.0) -> None:
        """The next probe where no other target is free: after 1, 2, 4, then 5 s, less up to a fifth by dice."""
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failed_probes, _LONGEST_PAUSE))
        self._eager_at = now + pause * (1 - _PAUSE_SPREAD * roll)

    def _move(
        self,
        to: Literal["closed", "open", "isolated"],
        reason: str,
        now: float,
        from_state: BreakerState | None = None,
    ) -> Transition:
        before = from_state or self.state(now)
        self._state = to
        self.is_closed = to == "closed"
        self._generation += 1
        self._probe = None
        self._probe_successes = 0
        self._elsewhere_until = 0.0
        self._failures_in_a_row = 0
        if self.is_closed:
            self._closed_at = now
            self._largest_loss, self._last_open_seconds, self._failed_probes = 0.0, 0.0, 0
        open_until = self._open_until if to == "open" else None
        return Transition(before, BreakerState(to), reason, now, self._generation, open_until)


def _larger(one: float | None, other: float | None) -> float | None:
    """The larger loss; an unknown one may be any."""
    return None if one is None or other is None else max(one, other)
