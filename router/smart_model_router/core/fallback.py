"""The attempts of one request, the budget of all requests for retries and hedges, and load shedding.

Pure bookkeeping (routing.md section 8, "Attempts").
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from smart_model_router.core.checked_options import CountOrZero, Interval, Options, Ratio, Seconds
from smart_model_router.core.flow_config import RoutingConfig
from smart_model_router.core.tiers import Plan, TargetFacts
from smart_model_router.domain.outcome import EVENT_REASONS, Failure, FailureClass, NextTarget, Refusal, Snapshot
from smart_model_router.domain.request import WAITING_CRITICALITIES, Criticality

_UNCOUNTED = frozenset({FailureClass.RATE_LIMITED, FailureClass.OVERLOADED, FailureClass.WARMING})
"""Answers that say 'later', not 'no': they count only toward the total."""
_AGAIN = _UNCOUNTED | {
    FailureClass.SERVER_ERROR,
    FailureClass.TRANSPORT,
    FailureClass.TIMEOUT,
    FailureClass.TRUNCATED,
    FailureClass.MALFORMED,
    FailureClass.EMPTY,
    FailureClass.CANCELLED,
}
"""Failures after which the same target may answer the same request later."""
_OF_RESUMED = 2
_SOON = 1.0
_LEAST_RETRY_AFTER = 0.1
"""Seconds. A client that is told 0 comes back at once, and meets the same refusal."""
_UNWAITABLE = frozenset({"wall", "off", "isolated", "too_large", "shed"})


@dataclass(frozen=True, slots=True)
class _Failed:
    failure: Failure
    again_at: float


class AttemptHistory:
    """The tries of one request. `used` counts toward the total, per target and per tier as the table says."""

    __slots__ = (
        "_by_target",
        "_by_tier",
        "_config",
        "_failed",
        "_first",
        "_larger_than",
        "_paid_back",
        "_plan",
        "_resumed",
        "_retried",
        "_ruled_out",
        "_unknown_asked",
        "exhausted",
        "failures",
        "last_resort_tried",
        "left",
        "rejected",
        "touched",
        "used",
    )

    def __init__(self, config: RoutingConfig, plan: Plan) -> None:
        self._config = config
        self._plan = plan
        self._first = plan.first
        self.used = 0
        self.rejected = 0
        self.failures: list[tuple[TargetFacts, Failure]] = []
        self.last_resort_tried: set[str] = set()
        self._by_target: dict[str, int] = {}
        self._by_tier: dict[str, int] = {}
        self._failed: dict[str, _Failed] = {}
        self._resumed = False
        """True when the caller has a part of the answer, and the next target has to continue it."""
        self._retried: set[str] = set()
        self._ruled_out: dict[str, tuple[str, str]] = {}
        self._larger_than: int | None = None
        """The largest context window that was too small, 0 where none is known; None: none was too small."""
        self._unknown_asked = False
        """True when a target of unknown window was called because its window may be larger."""
        self._paid_back = 0
        self.touched = False
        """True when there is a target that the request may not call any more, or not yet."""
        self.exhausted = False
        """True when the request has used its attempts (the last resort has one of its own)."""
        self.left = config.attempts
        """Attempts it may still make, the one under way included."""

    def _count(self) -> None:
        self.left = self._config.attempts - self.used
        self.exhausted = self.left <= 0 or self.rejected >= self._config.rejected_by_fallback

    def tried(self, target: str) -> bool:
        """True when a call to this target has ended, or none can be made."""
        return target in self._failed or target in self._ruled_out

    def untried(self) -> int:
        """Targets of the plan not asked yet."""
        return sum(not self.tried(f.id) for tier in self._plan.tiers for f in tier.targets)

    def tier_is_spent(self, tier: str) -> bool:
        """True when the tier has used its share of the attempts, and a lower one may take over."""
        return self._by_tier.get(tier, 0) >= self._config.attempts_per_tier

    def refusal(self, facts: TargetFacts, now: float) -> Refusal | None:
        """The reason not to call a target again; None when it may be called. `retry_at` None: not in its lifetime."""
        if (self._ruled_out or self._larger_than is not None) and (filtered := self._filtered(facts)) is not None:
            return filtered
        last = self._failed.get(facts.id)
        if last is None:
            return None
        if last.failure.failure_class not in _UNCOUNTED:
            return Refusal("filtered:failed")
        if self._by_target.get(facts.id, 0) >= self._config.attempts_per_target:
            return Refusal("filtered:failed")
        return Refusal("cooldown", last.again_at) if now < last.again_at else None

    def resume(self) -> None:
        """The stream broke off after content. Of several targets none is then called more than twice in all.

        Each call is billed its prompt, and a target that cuts every stream would take all attempts of each request.
        """
        self._resumed = len(self._plan.by_id) > 1

    def pause(self, facts: TargetFacts, now: float) -> Refusal | None:
        """As `refusal`, where no other target is free: one that failed may be called again after its back-off."""
        last = self._failed.get(facts.id)
        if self._resumed and self.tries(facts.id) >= _OF_RESUMED:
            return Refusal("filtered:failed")
        if last is None or last.failure.not_again or self._filtered(facts) is not None:
            return self.refusal(facts, now)
        if last.failure.failure_class not in _AGAIN:
            return Refusal("filtered:failed")
        return Refusal("cooldown", last.again_at) if now < last.again_at else None

    def tries(self, target: str) -> int:
        """The number of failed calls to the target."""
        return sum(facts.id == target for facts, _ in self.failures)

    def forgive_rejection(self) -> None:
        """Uncount a rejection: the target rejected the form of the call, not the request."""
        self.rejected -= 1
        self._count()

    def native_rejection(self, facts: TargetFacts, failure: Failure) -> bool:
        """True when a 400 is the caller's own: from the plan's first target, before anything else was tried."""
        return failure.failure_class is FailureClass.INVALID_REQUEST and facts.id == self._first and not self.failures

    def note(
        self,
        facts: TargetFacts,
        tier: str,
        failure: Failure,
        again_at: float,
        *,
        last_resort: bool = False,
        probe: bool = False,
    ) -> None:
        """Record a failed call. The target is not called again before `again_at`; a `probe` is not counted."""
        self.failures.append((facts, failure))
        if last_resort:
            self.last_resort_tried.add(facts.id)
            return
        self._failed[facts.id] = _Failed(failure, again_at)
        self.touched = True
        if probe:
            return
        self.used += 1
        if failure.failure_class in _UNCOUNTED:
            self._paid_back += 1
        else:
            self._by_target[facts.id] = self._by_target.get(facts.id, 0) + 1
            self._by_tier[tier] = self._by_tier.get(tier, 0) + 1
        if failure.failure_class is FailureClass.REJECTED_BY_FALLBACK:
            self.rejected += 1
        if failure.failure_class.policy.next is NextTarget.LARGER_ONLY:
            self._unknown_asked |= self._larger_than is not None and not facts.context
            self._larger_than = max(self._larger_than or 0, failure.context_tokens or facts.context)
        self._count()

    def rule_out(self, target: str, why: str, need: str = "translation") -> Refusal:
        """Exclude a target where the request would mean something else, or cannot be continued."""
        self._ruled_out[target] = need, why
        self.touched = True
        return Refusal(f"filtered:{need}")

    def untranslatable(self) -> str | None:
        """The reasons why no target can be sent the request as it is meant; None when one can."""
        everyone = [*(f.id for tier in self._plan.tiers for f in tier.targets), *(f.id for f in self._plan.last_resort)]
        if any(target not in self._ruled_out for target in everyone):
            return None
        return "; ".join(f"{target}: {self._ruled_out[target][1]}" for target in dict.fromkeys(everyone))

    def waited(self) -> None:
        """Uncount the answers that only said 'later', as the request has waited."""
        self.used -= self._paid_back
        self._paid_back = 0
        self._count()

    def may_retry_same(self, facts: TargetFacts, failure: Failure) -> bool:
        """True when the request may retry the same target once, quickly; its breaker and the budget decide as well."""
        single = failure.failure_class.policy.retry_same and not failure.not_again and facts.id not in self._retried
        room = self._by_target.get(facts.id, 0) < self._config.attempts_per_target
        return single and room and self.left > self.untried() and not self.exhausted

    def retrying(self, facts: TargetFacts) -> None:
        """Record that the quick retry is being made."""
        self._retried.add(facts.id)

    def last_resort_allowed(self) -> bool:
        """True unless a fallback rejected the request: the last resort would reject it as well."""
        return self.rejected == 0

    def _filtered(self, facts: TargetFacts) -> Refusal | None:
        """The reason why the target cannot serve this request at all, however long it waits."""
        if facts.id in self._ruled_out:
            return Refusal(f"filtered:{self._ruled_out[facts.id][0]}")
        if self._larger_than is not None:
            context = facts.context
            if context <= self._larger_than if context else self._unknown_asked:
                return Refusal("filtered:context")
        return None


def gate_waits(failure: Failure) -> bool:
    """True when the target's own gate refuses long enough: a hint is law; 'fewer at once' and 'later' name no time."""
    wait = failure.wait
    return failure.failure_class is FailureClass.WARMING or (wait is not None and wait.seconds > 0)


def comes_due(refusal: Refusal, now: float, within: float) -> bool:
    """True when waiting `within` seconds may help: the refusal ends by an event, or by then."""
    if refusal.retry_at is None:
        return refusal.reason in EVENT_REASONS
    if refusal.reason in _UNWAITABLE or refusal.reason.startswith("filtered:"):
        return False
    return refusal.retry_at <= now + within


def least_retry_after(refusals: Iterable[Refusal | None], now: float) -> float | None:
    """Seconds, above 0, until the first of them is worth asking again; None when none of them ever is.

    A gate that refuses nothing (None), or until an event of unknown time, is worth asking after a second.
    """
    instants = [_worth_asking_at(refusal, now) for refusal in refusals]
    least = min(instants, default=math.inf)
    return None if least == math.inf else max(_LEAST_RETRY_AFTER, least - now)


def _worth_asking_at(refusal: Refusal | None, now: float) -> float:
    if refusal is None or (refusal.retry_at is None and refusal.reason in EVENT_REASONS):
        return now + _SOON
    return math.inf if refusal.retry_at is None else refusal.retry_at


_EPSILON = 1e-9
"""Ten tenths are a retry, although as floats they add up to a little less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryBudgetConfig(Options):
    """Each request adds `ratio` of a retry; `start` retries are there at first, `maximum` at most."""

    ratio: Ratio = 0.1
    start: CountOrZero = 10
    maximum: Annotated[int, Interval(ge=0, le=1_000_000)] = 100


class RetryBudget:
    """Same-target retries and hedges stay below `ratio` of the requests plus `start` (I9)."""

    __slots__ = ("balance", "config")

    def __init__(self, config: RetryBudgetConfig | None = None) -> None:
        self.config = config or RetryBudgetConfig()
        self.balance = float(min(self.config.start, self.config.maximum))

    def deposit(self) -> None:
        """A request began."""
        self.balance = min(float(self.config.maximum), self.balance + self.config.ratio)

    @property
    def affordable(self) -> bool:
        """True when the budget has a retry left."""
        return self.balance >= 1.0 - _EPSILON

    def try_spend(self) -> bool:
        """Take one retry from the budget; False when it has none."""
        if not self.affordable:
            return False
        self.balance = max(0.0, self.balance - 1.0)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffConfig(Options):
    """The n-th pause is drawn from [0, min(cap, base x 2^n)) seconds."""

    base: Seconds = 0.25
    cap: Seconds = 8.0


def full_jitter(config: BackoffConfig, retry: int, roll: float) -> float:
    """Seconds to pause before retry number `retry` (from 0); `roll` in [0, 1)."""
    ceiling = config.cap if retry > 32 else min(config.cap, config.base * 2.0**retry)
    return roll * ceiling


LEAST_OUTCOMES = 20
"""Of fewer calls the 95th percentile is only the slowest one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgeConfig(Options):
    """Hedging of streams: `enabled` or not, for at most a `ratio` of the requests."""

    enabled: bool = False
    ratio: Ratio = 0.05

    @property
    def budget(self) -> RetryBudgetConfig:
        """The budget of all hedges: nothing in advance, and at most twenty saved up."""
        return RetryBudgetConfig(ratio=self.ratio, start=0, maximum=20)


def hedge_after(snapshot: Snapshot) -> float | None:
    """Seconds of silence after which a stream from this target is late: its p95 TTFT. None: too little is known."""
    return snapshot.ttft_p95 if snapshot.outcomes >= LEAST_OUTCOMES else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SheddingConfig(Options):
    """Shedding starts strictly above `threshold` and stops after `calm` seconds at or below it."""

    threshold: Ratio = 0.5
    calm: Seconds = 5.0


class Shedding:
    """The state of load shedding. `update` takes the share of OPEN providers, `sheds` decides for one request."""

    __slots__ = ("_calm_since", "_config", "active")

    def __init__(self, config: SheddingConfig | None = None) -> None:
        self._config = config or SheddingConfig()
        self._calm_since: float | None = None
        self.active = False

    @property
    def calm(self) -> float:
        """Seconds at or below the threshold after which it stops."""
        return self._config.calm

    def update(self, open_ratio: float, now: float) -> bool:
        """Take in the share of OPEN providers; True when shedding began or ended."""
        before = self.active
        if open_ratio > self._config.threshold:
            self._calm_since = None
            self.active = True
        elif self.active:
            self._calm_since = now if self._calm_since is None else self._calm_since
            self.active = now - self._calm_since < self._config.calm
        return self.active != before

    def sheds(self, criticality: Criticality) -> bool:
        """True when a request of this criticality is turned away now."""
        return self.active and criticality not in WAITING_CRITICALITIES
