"""The circuit breaker: CLOSED -> OPEN -> HALF_OPEN -> CLOSED, one probe at a time, verdicts fenced by generation.

Pure: `now` is an argument (monotonic seconds), chance is an argument, nothing waits. Not thread-safe.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from smart_model_router.core.options import Count, Interval, Options, Ratio, Seconds, Unit
from smart_model_router.outcome import Refusal

Verdict = Literal["success", "failure", "ignored"]


class BreakerState(StrEnum):
    """HALF_OPEN begins at `open_until`, probed or not. ISOLATED is the operator's word."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    ISOLATED = "isolated"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerConfig(Options):
    """When a breaker opens and for how long (routing.md section 3).

    It opens on `consecutive_failures` in a row, or on a share of failures >= `failure_ratio` among at least
    `minimum_calls` within `window`. The i-th reopening lasts `open` x `open_multiplier`^i, plus up to a tenth by
    dice, at most `open_cap` seconds. `slow_call` (seconds, None is off): strictly slower counts as a failure.
    """

    window: Seconds = 30.0
    window_buckets: Annotated[int, Unit("count"), Interval(ge=1, le=1000)] = 10
    consecutive_failures: Count = 5
    failure_ratio: Ratio = 0.5
    minimum_calls: Count = 10
    open: Seconds = 30.0
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


class CircuitBreaker:
    """One breaker. `try_acquire` asks, `record` tells; neither waits."""

    __slots__ = (
        "_backoff_index",
        "_buckets",
        "_closed_at",
        "_config",
        "_elsewhere_until",
        "_failures_in_a_row",
        "_generation",
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
        """Whether calls pass unprobed."""
        self._generation = 0
        self._open_until = 0.0
        self._closed_at = 0.0
        self._backoff_index = 0
        self._failures_in_a_row = 0
        self._buckets: deque[_Bucket] = deque()
        self._probe: Permit | None = None
        self._probe_successes = 0
        self._elsewhere_until = 0.0
        self.used = False
        """Whether it ever admitted a call: a breaker nobody uses says nothing about health."""

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
        """How often the open time has grown."""
        return self._backoff_index

    @property
    def open_seconds(self) -> float:
        """How long it stays open at this back-off, without what chance adds: base x 1.5^i, at most the cap."""
        config = self._config
        return min(config.open_cap, config.open * config.open_multiplier**self._backoff_index)

    @property
    def isolated(self) -> bool:
        """Whether the operator said no."""
        return self._state == "isolated"

    @property
    def elsewhere_until(self) -> float:
        """Until when another process may have the probe, at the latest."""
        return self._elsewhere_until

    @property
    def probe_in_flight(self) -> bool:
        """Whether a probe was granted and has not been settled."""
        return self._probe is not None

    def state(self, now: float) -> BreakerState:
        """The state at `now`."""
        if self._state == "open":
            return BreakerState.HALF_OPEN if now >= self._open_until else BreakerState.OPEN
        return BreakerState(self._state)

    def refusal(self, now: float) -> Refusal | None:
        """Why a call would be refused at `now`, None when `try_acquire` would grant it. Changes nothing."""
        if self.is_closed:
            return None
        if self._state == "isolated":
            return Refusal("isolated")
        if now < self._open_until:
            return Refusal("open", self._open_until)
        probed = self._probe is not None or now < self._elsewhere_until
        return Refusal("half_open") if probed and self._config.serialized_probes else None

    def try_acquire(self, now: float) -> Permit | Refusal:
        """A permit, or the reason for none. In HALF_OPEN exactly one permit, the probe, is out at a time."""
        if self.is_closed:
            self.used = True
            return Permit(self._generation)
        refusal = self.refusal(now)
        if refusal is not None:
            return refusal
        if self._config.serialized_probes:  # else several probe, and the first verdict of them counts
            self._generation += 1
        self._probe = Permit(self._generation, probe=True)
        return self._probe

    def record(
        self, permit: Permit, verdict: Verdict, now: float, *, roll: float = 0.0, hold: bool = False
    ) -> Transition | None:
        """Settle a permit; a second `record` of it, or one of an older generation, changes nothing.

        `ignored` gives the permit back without a verdict. `roll` in [0, 1) spreads the open time. With `hold` a
        due trip is withheld: the returned transition then stays CLOSED and says so.
        """
        if permit.settled:
            return None
        permit.settled = True
        if permit is self._probe:
            self._probe = None
        if permit.generation != self._generation or verdict == "ignored":
            return None
        if permit.probe:
            return self._record_probe(verdict, now, roll)
        return self._record_call(verdict, now, roll, hold)

    def isolate(self, now: float) -> Transition | None:
        """The operator's no: refuse everything until `close`."""
        return None if self._state == "isolated" else self._move("isolated", "operator", now)

    def close(self, now: float, reason: str = "operator") -> Transition | None:
        """The operator's yes: CLOSED with an empty window, whatever was before; None when it was CLOSED."""
        if reason == "operator":
            self._backoff_index = 0
        was_closed = self.is_closed
        transition = self._move("closed", reason, now)
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
        if self._state == "open":
            self._open_until = max(self._open_until, open_until)
            self._generation += 1
            self._probe = None
            return None
        self._open_until = open_until
        return self._move("open", reason, now)

    def make_due(self, now: float) -> None:
        """Let the probe of an OPEN breaker come due at once."""
        if self._state == "open":
            self._open_until = min(self._open_until, now)

    def _record_probe(self, verdict: Verdict, now: float, roll: float) -> Transition | None:
        if verdict == "failure":
            self._backoff_index = self._next_index()
            return self._trip("probe_failed", now, roll)
        self._probe_successes += 1
        if self._probe_successes < self._config.half_open_successes:
            return None
        return self.close(now, "probe_succeeded")

    def _record_call(self, verdict: Verdict, now: float, roll: float, hold: bool) -> Transition | None:
        failed = verdict == "failure"
        self._count(failed, now)
        if not failed:
            self._failures_in_a_row = 0
            return None
        self._failures_in_a_row += 1
        reason = self._trip_reason()
        if reason is None:
            return None
        if hold:
            closed = BreakerState.CLOSED
            return Transition(closed, closed, "withheld", now, self._generation)
        healthy = int((now - self._closed_at) / self._config.open)
        self._backoff_index = max(0, self._backoff_index - healthy)
        return self._trip(reason, now, roll)

    def _count(self, failed: bool, now: float) -> None:
        config, buckets = self._config, self._buckets
        while buckets and now - buckets[0].start >= config.window:
            buckets.popleft()
        if not buckets or now - buckets[-1].start >= config.window / config.window_buckets:
            buckets.append(_Bucket(now))
        newest = buckets[-1]
        newest.calls += 1
        newest.failures += failed

    def _trip_reason(self) -> str | None:
        config = self._config
        if self._failures_in_a_row >= config.consecutive_failures:
            return "consecutive_failures"
        calls = sum(bucket.calls for bucket in self._buckets)
        failures = sum(bucket.failures for bucket in self._buckets)
        if calls >= config.minimum_calls and failures / calls >= config.failure_ratio:
            return "failure_ratio"
        return None

    def _next_index(self) -> int:
        """One more reopening, unless the cap is reached: an index beyond it would only delay the decay."""
        return self._backoff_index + (self.open_seconds < self._config.open_cap)

    def _trip(self, reason: str, now: float, roll: float) -> Transition:
        from_state = BreakerState.CLOSED if self.is_closed else BreakerState.HALF_OPEN
        self._open_until = now + min(self._config.open_cap, self.open_seconds * (1 + roll / 10))
        return self._move("open", reason, now, from_state)

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
        self._buckets.clear()
        if self.is_closed:
            self._closed_at = now
        open_until = self._open_until if to == "open" else None
        return Transition(before, BreakerState(to), reason, now, self._generation, open_until)


@dataclass(slots=True)
class _Bucket:
    start: float
    calls: int = 0
    failures: int = 0
