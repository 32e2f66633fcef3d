"""The state of a target, of its provider, and of the connectivity of all remote providers, with its changes.

A gate (core/gate.py) decides by it, a lease (core/lease.py) settles on it. Pure: `now` is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from smart_model_router.core.breaker import BreakerState, CircuitBreaker, Permit, Transition, Verdict
from smart_model_router.core.capacity import AdaptiveThrottle, Bulkhead, LearnedLimit
from smart_model_router.core.cooldown import Cooldown
from smart_model_router.core.evidence import Evidence, SequentialTest
from smart_model_router.core.flow_config import GateConfig
from smart_model_router.core.ratelimit import RateLimitTracker
from smart_model_router.domain.outcome import BreakerCount, Failure, FailureClass

Kind = Literal["whole", "stream", "transport"]

_MOST_DOWN = 0.9
_MOST_ILL = 0.85
"""A target's own share of failures is taken to be at most this, or the test could never say yes."""
_EMPTIES = 3
_TOGETHER_SECONDS = 10.0
_PASS_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Moved:
    """A breaker's transition and which breaker it was."""

    kind: Kind
    transition: Transition


class Connectivity:
    """The connectivity by the transport breakers of all remote providers together (routing.md section 3)."""

    __slots__ = ("_last_pass", "_last_success", "_opened_at", "_remotes", "offline")

    def __init__(self, remotes: int) -> None:
        self._remotes = remotes
        self._opened_at: dict[str, float] = {}
        self._last_success: float | None = None
        self._last_pass = 0.0
        self.offline = False

    def go_on(self, remotes: int, same: Container[str]) -> None:
        """Adopt a changed configuration: there are `remotes` now, and those in `same` are as before."""
        self._remotes = remotes
        self._opened_at = {name: at for name, at in self._opened_at.items() if name in same}

    @property
    def remotes(self) -> int:
        """The number of remote providers."""
        return self._remotes

    def withholds(self, provider: str, now: float) -> bool:
        """True when a trip of `provider`'s transport breaker would be the last of all: then it is not its fault."""
        if self.offline:
            return True
        others = [at for name, at in self._opened_at.items() if name != provider]
        if self._remotes < 2 or len(others) < self._remotes - 1:
            return False
        first = min(others)
        silent_since = self._last_success is None or self._last_success < first
        return silent_since and now - first <= _TOGETHER_SECONDS

    def moved(self, provider: str, is_open: bool, now: float) -> None:
        """A transport breaker tripped or closed."""
        if is_open:
            self._opened_at[provider] = now
        else:
            self._opened_at.pop(provider, None)

    def went_offline(self, now: float) -> bool:
        """A trip was withheld; True when this is the beginning of being offline."""
        if self.offline:
            return False
        self.offline = True
        self._last_pass = now
        return True

    def reached(self, now: float) -> bool:
        """A remote answered; True when this ends being offline."""
        self._last_success = now
        was_offline, self.offline = self.offline, False
        return was_offline

    def pass_at(self, now: float) -> float:
        """When the next request may try a remote: `now` or later. Online it is always `now`."""
        return max(now, self._last_pass + _PASS_SECONDS) if self.offline else now

    def take_pass(self, now: float) -> None:
        """Note that a request tries a remote."""
        self._last_pass = now


class ProviderState:
    """The state that the targets of one provider share."""

    __slots__ = (
        "bulkhead",
        "config",
        "connectivity",
        "credentials",
        "evidence",
        "failing",
        "gates",
        "keys",
        "name",
        "origin",
        "probe_in_flight",
        "queue",
        "remote",
        "returned_at",
        "sequence",
        "throttle",
        "transport",
    )

    def __init__(
        self,
        name: str,
        *,
        slots: int,
        remote: bool,
        connectivity: Connectivity,
        config: GateConfig | None = None,
        queue: int | None = None,
        origin: object = None,
        keys: Sequence[object] = (),
    ) -> None:
        self.name = name
        self.origin = origin
        """The settings of its calls, but for keys, slots and limits: one of equal origin is the same provider."""
        self.keys = keys
        """The key of each credential."""
        self.remote = remote
        self.config = config or GateConfig()
        self.bulkhead = Bulkhead(slots)
        self.throttle = AdaptiveThrottle(self.config.throttle)
        self.failing: dict[str, float] = {}
        """When each of its targets last had a call turned away, by target."""
        self.transport = CircuitBreaker(self.config.breaker)
        self.evidence = _evidence(self.config)
        """The evidence about its transport: all calls of all its targets."""
        self.gates: dict[str, TargetState] = {}
        self.connectivity = connectivity
        self.credentials: dict[int, Cooldown] = {}
        self.probe_in_flight = False
        self.returned_at = -math.inf
        """When its transport came back, and all of its targets with it; -inf: it was never away."""
        self.queue = queue
        """The number of requests that may wait for it as a last resort; None is limited by the wait queue alone."""
        self.sequence = 0
        """Numbers the calls in the order they were admitted: targets that share a credential compare them."""

    @property
    def has_slot(self) -> bool:
        """True when one more call is within its slots."""
        return self.bulkhead.free > 0 or not self.config.measures.cascade_prevention

    def credential(self, number: int) -> Cooldown:
        """The rests of one credential, shared by its targets."""
        return self.credentials.setdefault(number, Cooldown(self.config.cooldown))

    def record(
        self, permit: Permit, verdict: Verdict, sent_at: float, now: float, *, roll: float, patience: float
    ) -> Transition | None:
        """Enter the outcome of a call as evidence about the transport, and tell its breaker."""
        hold = verdict == "failure" and self.remote and self.connectivity.withholds(self.name, now)
        down = False
        if verdict != "ignored" and self.transport.is_current(permit):
            if verdict == "success":
                self.evidence.succeeded(sent_at, now, stream=False)
            else:
                _, down = self.evidence.failed(sent_at, now, stream=False, patience=patience)
        return self.transport.record(permit, verdict, now, roll=roll, hold=hold, down=down, lost=now - sent_at)

    def reached(self, now: float) -> bool:
        """Note that the provider answered; True when this ends being offline."""
        return self.remote and self.connectivity.reached(now)

    def throttled_together(self, now: float) -> bool:
        """True when two of its targets had calls turned away lately: then all of them are counted as one."""
        if len(self.failing) < 2:
            return False
        since = now - self.config.throttle.cells
        return sum(at > since for at in self.failing.values()) > 1

    def has_key_of(self, other: ProviderState, number: int) -> bool:
        """True when the credential `number` is the same in `other`."""
        return self.keys[number : number + 1] == other.keys[number : number + 1]

    def take_load_of(self, before: ProviderState) -> None:
        """Take over the slots and the throttle of the state `before`, whose calls go on.

        For a reload: `self` has admitted nothing yet. A part whose rules changed begins anew.
        """
        if self.config.measures != before.config.measures:
            return  # without the monotonic clock, instants mean something else
        before.bulkhead.resize(self.bulkhead.slots)
        self.bulkhead = before.bulkhead
        if self.config.throttle == before.config.throttle:
            self.throttle = before.throttle

    def take_keys_of(self, after: ProviderState) -> None:
        """Adopt the keys of a new configuration: a number that has another key now begins without a rest."""
        for number in tuple(self.credentials):
            if not self.has_key_of(after, number):
                del self.credentials[number]
        self.keys = after.keys


class TargetState:
    """The state of one target and of its calls. The base of its gate, which admits them."""

    __slots__ = (
        "_empties",
        "_returned_at",
        "alone",
        "breakers",
        "chosen_at",
        "config",
        "cooldown",
        "credential",
        "evidence",
        "id",
        "in_flight",
        "in_paced_spell",
        "learned",
        "limits",
        "number",
        "provider",
        "throttle",
    )

    def __init__(
        self,
        target_id: str,
        provider: ProviderState,
        *,
        limits: RateLimitTracker | None = None,
        credential: int = 0,
        alone: bool = False,
    ) -> None:
        self.alone = alone
        """True when its load is another than that of the provider's models: the throttle counts it by itself."""
        self.id = target_id
        self.provider = provider
        self.config = provider.config
        self.limits = limits or RateLimitTracker()
        self.breakers: Mapping[Literal["whole", "stream"], CircuitBreaker] = {
            "whole": CircuitBreaker(self.config.breaker),
            "stream": CircuitBreaker(self.config.breaker),
        }
        self.cooldown = Cooldown(self.config.cooldown)
        self.number = credential
        """The number of its credential among the provider's."""
        self.credential = provider.credential(credential)
        self.in_flight = 0
        self.evidence = _evidence(self.config)
        """The evidence of its outcomes and its calls in flight about its health."""
        self.learned = LearnedLimit(provider.bulkhead.slots) if self.config.adaptive.enabled else None
        """The learned number of calls at once that it serves; None: that is not learned."""
        self.throttle = AdaptiveThrottle(self.config.throttle)
        """Counts this target alone; that of the provider counts when several of its targets turn calls away."""
        self.chosen_at = -math.inf
        """When it admitted the newest call; -inf: none yet."""
        self._empties = 0
        self.in_paced_spell = False
        """True when a call was admitted against judgement, and no other call has succeeded since."""
        self._returned_at = -math.inf
        provider.gates[target_id] = self

    def weigh(
        self,
        breaker: CircuitBreaker,
        permit: Permit,
        verdict: Verdict,
        failure: Failure | None,
        sent_at: float,
        now: float,
        *,
        stream: bool,
        patience: float,
    ) -> tuple[bool, bool]:
        """Enter the outcome of a call as evidence.

        Returns (the target is ill, it is down), False where nothing was learned.
        """
        if not breaker.is_current(permit):
            return False, False
        if verdict == "success":
            self.evidence.succeeded(sent_at, now, stream=stream)
        elif verdict == "failure" or (failure is not None and failure.failure_class is FailureClass.TRANSPORT):
            return self.evidence.failed(sent_at, now, stream=stream, patience=patience)
        return False, False

    def succeeded(self, admitted_at: float, now: float) -> bool:
        """Tell the rests of a success; True when it ended one of them."""
        own = self.cooldown.succeeded(admitted_at, now)
        return self.credential.succeeded(admitted_at, now) or own

    def turned_away(self, number: int, sent_at: float, now: float, patience: float, *, hinted: bool) -> None:
        """Take in the refusal for lack of capacity of a call sent at `sent_at` as the `number`-th in flight.

        `hinted`: the provider named how long to wait.
        """
        depends = self.evidence.turned_away(sent_at, now, patience)
        if depends and self.learned is not None:
            outlived = self.evidence.outlived_numbers(sent_at, now, patience)
            self.learned.refused(number, now, outlived, hinted=hinted)

    def count(self, accepted: bool, now: float) -> None:
        """Record the outcome of a call at the throttles."""
        self.throttle.record(accepted, now)
        if self.alone:
            return
        self.provider.throttle.record(accepted, now)
        if not accepted:
            self.provider.failing[self.id] = now

    def reset_throttle(self) -> None:
        """Reset the throttles of a target that is back: their counts are of the time before."""
        self.throttle.reset()
        if not self.alone:
            self.provider.throttle.reset()
            self.provider.failing.pop(self.id, None)

    def spell_ended(self) -> None:
        """End a paced spell, as a call that was not paced has succeeded."""
        self.in_paced_spell = False
        self.reset_throttle()

    def verdict(self, failure: Failure | None, probe: bool, slow: bool) -> Verdict:
        """The breaker's column of routing.md section 9."""
        if failure is None:
            self._empties = 0
            return "failure" if slow else "success"
        match failure.failure_class.policy.breaker:
            case BreakerCount.YES:
                self._empties = 0
                return "failure"
            case BreakerCount.PROVIDER:
                return "failure" if probe else "ignored"
            case BreakerCount.THIRD_IN_A_ROW:
                self._empties += 1
                if self._empties < _EMPTIES:
                    return "ignored"
                self._empties = 0
                return "failure"
            case BreakerCount.NO:
                return "ignored"
            case never:
                assert_never(never)

    def apply(self, moved: Moved, now: float) -> None:
        """Apply the consequences of a breaker's transition, caused by a call, the operator or another process.

        A transport breaker concerns every target of the provider. An OPEN breaker replaces all advice; a CLOSED one
        begins slow start and resets the throttle.
        """
        provider, to = self.provider, moved.transition.to_state
        concerned = tuple(provider.gates.values()) if moved.kind == "transport" else (self,)
        if moved.kind == "transport":
            provider.connectivity.moved(provider.name, to is BreakerState.OPEN, now)
            provider.returned_at = now if to is BreakerState.CLOSED else -math.inf
            if to is BreakerState.OPEN:
                provider.evidence.tripped()
        for gate in concerned:
            if to is BreakerState.OPEN:
                gate.cooldown.breaker_tripped()
                gate.evidence.tripped()
            elif to is BreakerState.CLOSED:
                gate.begin_slow_start(now)
                gate.reset_throttle()

    def returned(self, now: float, *, slowly: bool) -> None:
        """Take back a target whose rests a success has ended, seen by a call here or by another process.

        `slowly` says that the rest had expired and the success was a call on probation.
        """
        if slowly:
            self.begin_slow_start(now)
        self.reset_throttle()

    def begin_slow_start(self, now: float) -> None:
        """Begin slow start: the target has recovered and takes its full load step by step."""
        self._returned_at = now


def _evidence(config: GateConfig) -> Evidence:
    """The tests of a target, with the numbers of its configuration."""
    breaker, cooldown = config.breaker, config.cooldown

    def down() -> SequentialTest:
        return SequentialTest(
            failing=breaker.failing_share, most=_MOST_DOWN, odds=breaker.odds, odds_per_call=breaker.odds_per_call
        )

    ill = SequentialTest(
        failing=cooldown.failing_share, most=_MOST_ILL, odds=cooldown.odds, odds_per_call=cooldown.odds_per_call
    )
    return Evidence(rest=ill, whole=down(), stream=down())
