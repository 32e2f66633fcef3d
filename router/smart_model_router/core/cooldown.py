"""Cooldowns: how long a target (or a credential) rests after failures, hints, walls - and how it comes back.

Advice (our own guess that a pause helps) and law (provider hints, walls, off periods) are kept apart.
Pure: `now` is an argument in monotonic seconds. Not thread-safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from smart_model_router.core.checked_options import DAY, Count, FailingShare, Interval, Options, Seconds
from smart_model_router.core.rest_seconds import RateLimitRecovery, base_seconds, cap_seconds, grown
from smart_model_router.domain.outcome import Category, CooldownRule, Failure, FailureClass, Refusal, RestReason, Wait

LawReason = Literal["wait", "wall", "off"]
_Return = Literal["on_probation", "on_probation_unless_alive", "paced", "warming"]

_WALL_SCOPES = frozenset({"day", "credit"})
_HINT_FLOOR = 0.05
"""Seconds. A millisecond hint below it would only be a busy loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CooldownConfig(Options):
    """Durations in seconds (routing.md section 4).

    Advice begins when a sequential test says that the target is ill: `failing_share` of all calls failing against its
    own share, with odds of `odds` or `odds_per_call` x the calls of the last minute, whichever is more. The first
    cooldown lasts ten times the seconds that the failure lost a request, from `failure` to `timeout`; the k-th lasts
    base x `multiplier`^(k-1), at most `cap` and 20 times the largest loss (15 s at least); `success_count_to_clear`
    successes in a row reset k. `brief` is the pause after an un-hinted overload (advice) or warm-up (law). Law:
    `rate_limit` is what an un-hinted 429 of a known bucket costs once the ladder 1, 2, 30, 60 is used up; hints are
    capped at `hint_cap` (walls at a day).
    """

    failing_share: FailingShare = 0.9
    odds: Count = 50
    odds_per_call: Count = 10
    failure: Seconds = 10.0
    timeout: Seconds = 30.0
    rate_limit: Seconds = 120.0
    brief: Seconds = 1.0
    multiplier: Annotated[float, Interval(ge=1, le=10)] = 1.5
    cap: Seconds = 600.0
    hint_cap: Seconds = 86_400.0
    success_count_to_clear: Count = 3
    auth: Seconds = 900.0
    auth_after_success: Seconds = 10.0
    model_gone: Seconds = 3600.0
    misconfigured: Seconds = 900.0
    quota: Seconds = 3600.0


LADDER = (1.0, 2.0, 30.0, 60.0)
"""Seconds an un-hinted 429 waits, the n-th in a row taking the n-th rung, plus up to a fifth by dice."""
_LADDER_SPREAD = 0.2
_RECENT_SUCCESS = 10.0
"""Seconds. A target that answered so shortly before a wait ended needs no probation."""
_AUTH_MEMORY = 300.0


@dataclass(frozen=True, slots=True)
class Rest:
    """A rest that began or moved: refused with `reason` until the monotonic instant `until`."""

    reason: RestReason
    until: float
    hinted: bool


@dataclass(frozen=True, slots=True)
class RestRecord:
    """A rest as it is stored: `step` is how many of its kind there were in a row."""

    reason: RestReason
    until: float
    hinted: bool
    cause: FailureClass | None
    step: int


@dataclass(frozen=True, slots=True)
class LawSnapshot:
    """A law at one instant: until when it binds, since when, and the call whose answer said so."""

    until: float
    began: float
    sent_seq: int
    hinted: bool


@dataclass(frozen=True, slots=True)
class CooldownSnapshot:
    """The rests of a target or a credential at one instant. `advice_until` is 0 where no cooldown is remembered."""

    advice_until: float
    advice_began: float
    laws: Mapping[LawReason, LawSnapshot]
    on_trial: int
    warming: bool


@dataclass(slots=True)
class _Law:
    until: float
    began: float
    sent_seq: int
    hinted: bool


class Cooldown:
    """The rests of one target or one credential."""

    __slots__ = (
        "_advice_began",
        "_advice_until",
        "_auth_failures",
        "_causes",
        "_clearing",
        "_config",
        "_cooldowns",
        "_guesses",
        "_largest_loss",
        "_last_success",
        "_laws",
        "_must_prove",
        "_must_prove_unless_alive",
        "_overloads",
        "_rests_until",
        "_successes",
        "on_trial",
        "returning",
        "warming",
    )

    def __init__(self, config: CooldownConfig | None = None) -> None:
        self._config = config or CooldownConfig()
        self._laws: dict[LawReason, _Law] = {}
        self._causes: dict[str, FailureClass] = {}
        self._advice_until = 0.0
        self._advice_began = 0.0
        self._rests_until = 0.0
        self._cooldowns = 0
        self._largest_loss = 0.0
        self._successes = 0
        self._guesses = 0
        self._overloads = 0
        self._auth_failures = 0
        self._last_success: float | None = None
        self._clearing = RateLimitRecovery()
        self._must_prove = self._must_prove_unless_alive = False
        self.returning = False
        """True when a rest began and no later call has succeeded since: the first success is a recovery."""
        self.on_trial = 0
        """Calls in flight that were let through on probation: at most one, unless they were paced (the gate counts)."""
        self.warming = False
        """True when the model was loading at the last answer: one call in flight until one succeeds."""

    def snapshot(self) -> CooldownSnapshot:
        """The rests that outcomes move, for checkers."""
        laws: Mapping[LawReason, LawSnapshot] = {
            reason: LawSnapshot(law.until, law.began, law.sent_seq, law.hinted) for reason, law in self._laws.items()
        }
        return CooldownSnapshot(self._advice_until, self._advice_began, laws, self.on_trial, self.warming)

    def law(self, now: float) -> Refusal | None:
        """The law in force at `now`: off before wall before wait."""
        if now >= self._rests_until:
            return None
        for reason in ("off", "wall", "wait"):
            law = self._laws.get(reason)
            if law is not None and now < law.until:
                return Refusal(reason, law.until)
        return None

    def cause(self, now: float) -> FailureClass | None:
        """The class of the failure that caused the law in force at `now`; None when none is in force."""
        law = self.law(now)
        return None if law is None else self._causes.get(law.reason)

    def advice(self, now: float) -> Refusal | None:
        """The cooldown in force at `now`."""
        return Refusal("cooldown", self._advice_until) if now < self._advice_until else None

    def on_probation(self, now: float) -> bool:
        """True when its rest expired and it has still to prove itself, one call at a time."""
        if now < self._rests_until:
            return False
        return self._must_prove or (self._must_prove_unless_alive and not self._was_alive())

    def due_since(self, now: float) -> float | None:
        """The instant since which a call on probation is due; None when none is."""
        return self._rests_until if self.on_probation(now) else None

    def failed(
        self,
        failure: Failure,
        *,
        admitted_at: float,
        sent_seq: int,
        now: float,
        roll: float,
        paced: bool,
        advise: bool,
        ill: bool = True,
        expected: float | None = None,
        honour_hints: bool = True,
    ) -> Rest | None:
        """Take in the failure of a call. Returns the rest that follows, None when none begins or moves.

        `sent_seq` orders calls by the time they were sent. `paced` says that a known bucket paces the return from
        a wait, `expected` after how many seconds the exhausted window ends, when that is known. `advise` is False while
        a breaker that is not CLOSED decides in place of advice, `ill` is the evidence's verdict (core/evidence.py).
        """
        policy = failure.failure_class.policy
        if policy.category is Category.CALLER:
            return None
        self._successes = 0
        hint = failure.wait if honour_hints else None
        advice = self._note_failure(failure, hint is not None, admitted_at, now, advise and ill, advise)
        law: Rest | None = None
        if policy.cooldown is CooldownRule.OFF or policy.cooldown is CooldownRule.WALL:
            law = self._switch_off(failure, admitted_at, sent_seq, now)
        elif hint is not None:
            law = self._take_hint(hint, sent_seq, now, paced)
        elif policy.cooldown is CooldownRule.WARMING:
            law = self._bind("wait", now + self._config.brief, sent_seq, now, False, "warming")
        elif policy.cooldown is CooldownRule.LAW and (paced or not honour_hints):
            law = self._guess(admitted_at, sent_seq, now, roll, paced, expected, honour_hints)
        if law is not None:
            self._causes[law.reason] = failure.failure_class
        return law or advice

    def succeeded(self, admitted_at: float, now: float) -> bool:
        """Take in a success; True when it ended the spell that a rest began (statistics start afresh)."""
        self._last_success = now
        if self._clearing.began is not None:
            self._clearing.admitted(admitted_at)
        self._guesses = self._overloads = self._auth_failures = 0
        self._successes += 1
        if self._successes >= self._config.success_count_to_clear:
            self._cooldowns, self._largest_loss = 0, 0.0
        if not self.returning:  # nothing rests: every rest begins a return
            return False
        if self._advice_until and admitted_at >= self._advice_began:
            self._advice_until = 0.0
        for reason, law in list(self._laws.items()):
            if admitted_at > law.began:
                del self._laws[reason]
        self._settle_rests()
        if self._laws or self._advice_until:
            return False
        self._forget_return()
        return True

    def breaker_tripped(self) -> None:
        """Drop the advice, which the open breaker replaces; law stays."""
        self._advice_until = 0.0
        self._cooldowns, self._largest_loss = 0, 0.0
        self._settle_rests()
        if not self._laws:
            self._forget_return()

    def clear(self) -> None:
        """Forget every rest and probation, as the operator asks."""
        self._laws.clear()
        self._advice_until = self._rests_until = 0.0
        self._cooldowns = self._guesses = self._overloads = self._auth_failures = 0
        self._largest_loss = 0.0
        self._forget_return()

    def records(self) -> tuple[RestRecord, ...]:
        """Every rest that is in force, or that is over without a success since."""
        steps: Mapping[LawReason, int] = {"wait": self._guesses, "wall": 0, "off": self._auth_failures}
        found = [
            RestRecord(reason, law.until, law.hinted, self._causes.get(reason), steps[reason])
            for reason, law in self._laws.items()
        ]
        if self._advice_until:
            found.append(RestRecord("cooldown", self._advice_until, False, None, self._cooldowns))
        return tuple(found)

    def adopt(self, record: RestRecord, now: float) -> bool:
        """Adopt a rest that another process, or this one before a restart, began; True when that moved anything.

        A rest of the same kind is never shortened, but for a guess by a hint.
        """
        if record.reason == "cooldown":
            self._cooldowns = max(self._cooldowns, record.step)
            if record.until <= self._advice_until:
                return False
            self._advice_began, self._advice_until = now, record.until
            self._begin("on_probation")
            return True
        known = self._laws.get(record.reason)
        if known is not None and not self._replaces(known, record.until, known.sent_seq, record.hinted):
            return False
        self._laws[record.reason] = _Law(record.until, now, -1, record.hinted)
        if record.cause is not None:
            self._causes[record.reason] = record.cause
        if record.reason == "wait":
            self._guesses = max(self._guesses, record.step)
        elif record.reason == "off":
            self._auth_failures = max(self._auth_failures, record.step)
        self._begin("on_probation_unless_alive" if record.reason == "wait" else "on_probation")
        return True

    def end(self, reason: RestReason) -> bool:
        """End the rest of this kind, as another process saw a success; True when there was one."""
        if reason == "cooldown":
            was, self._advice_until = bool(self._advice_until), 0.0
        else:
            was = self._laws.pop(reason, None) is not None
        self._settle_rests()
        if not self._laws and not self._advice_until:
            self._forget_return()
        return was

    def _note_failure(
        self, failure: Failure, hinted: bool, admitted_at: float, now: float, ill: bool, advise: bool
    ) -> Rest | None:
        rule = failure.failure_class.policy.cooldown
        config = self._config
        if rule is CooldownRule.HINT_OR_BRIEF:
            self._overloads += 1
            patient = failure.failure_class is FailureClass.OVERLOADED and self._overloads < 2
            return None if patient or hinted or not advise else self._advise(config.brief, now)
        if rule is not CooldownRule.FAILURE and rule is not CooldownRule.TIMEOUT:
            return None
        same_wave = bool(self._cooldowns) and admitted_at <= self._advice_began
        if same_wave or now < self._advice_until or not ill:
            return None
        self._cooldowns += 1
        lost = now - admitted_at
        self._largest_loss = max(self._largest_loss, lost)
        base = base_seconds(lost, config.failure, config.timeout)
        cap = cap_seconds(self._largest_loss, config.failure, config.cap)
        return self._advise(grown(base, config.multiplier, self._cooldowns - 1, cap), now)

    def _advise(self, seconds: float, now: float) -> Rest:
        self._advice_began = now
        self._advice_until = max(self._advice_until, now + seconds)
        self._begin("on_probation")
        return Rest("cooldown", self._advice_until, hinted=False)

    def _switch_off(self, failure: Failure, admitted_at: float, sent_seq: int, now: float) -> Rest | None:
        config = self._config
        match failure.failure_class:
            case FailureClass.AUTH:
                if (known := self._laws.get("off")) is not None and admitted_at <= known.began:
                    return None  # one wave of refusals is one failure in a row
                self._auth_failures += 1
                fresh = self._last_success is not None and now - self._last_success <= _AUTH_MEMORY
                brief = fresh and self._auth_failures < 2
                seconds = config.auth_after_success if brief else config.auth
            case FailureClass.MODEL_GONE:
                seconds = config.model_gone
            case FailureClass.MISCONFIGURED:
                seconds = config.misconfigured
            case _:  # QUOTA
                stated = max(failure.wait.seconds, _HINT_FLOOR) if failure.wait else config.quota
                hinted = failure.wait is not None
                return self._bind("wall", now + min(stated, DAY), sent_seq, now, hinted, "on_probation")
        return self._bind("off", now + seconds, sent_seq, now, False, "on_probation")

    def _take_hint(self, hint: Wait, sent_seq: int, now: float, paced: bool) -> Rest | None:
        if hint.scope == "concurrency" and hint.seconds <= 0:
            return None  # fewer at once, not later: the bulkhead learns it
        if hint.scope in _WALL_SCOPES:
            wall = now + min(max(hint.seconds, _HINT_FLOOR), DAY)
            return self._bind("wall", wall, sent_seq, now, True, "on_probation")
        until = now + min(max(hint.seconds, _HINT_FLOOR), self._config.hint_cap)
        return self._bind("wait", until, sent_seq, now, True, "paced" if paced else "on_probation_unless_alive")

    def _guess(
        self,
        admitted_at: float,
        sent_seq: int,
        now: float,
        roll: float,
        paced: bool,
        expected: float | None,
        ladder: bool,
    ) -> Rest | None:
        """The wait without a hint: until the window's end, else as long as it took before, else by the ladder."""
        known = self._laws.get("wait")
        if known is not None and admitted_at <= known.began:
            return None  # one wave of refusals is one rung
        self._guesses += 1
        clear_after = self._clearing.refused(now)
        believed = expected if expected is not None else clear_after
        rung = self._guesses - 1 if ladder else self._guesses - 1 + len(LADDER)
        if ladder and rung == 0 and believed is not None:
            seconds = max(believed, _HINT_FLOOR) * (1 + _LADDER_SPREAD * roll)
        elif rung < len(LADDER):
            seconds = LADDER[rung] * (1 + _LADDER_SPREAD * roll)
        else:
            config = self._config
            seconds = grown(config.rate_limit, config.multiplier, rung - len(LADDER), config.cap)
        self._clearing.waits(now + seconds)
        returns: _Return = "paced" if paced else "on_probation_unless_alive"
        return self._bind("wait", now + seconds, sent_seq, now, False, returns)

    def _was_alive(self) -> bool:
        """True when a call succeeded here in the 10 s before the rests ended (or after)."""
        return self._last_success is not None and self._rests_until - self._last_success <= _RECENT_SUCCESS

    def _bind(
        self, reason: LawReason, until: float, sent_seq: int, now: float, hinted: bool, returns: _Return
    ) -> Rest | None:
        known = self._laws.get(reason)
        if known is not None and now < known.until and not self._replaces(known, until, sent_seq, hinted):
            return None
        self._laws[reason] = _Law(until, now, sent_seq, hinted)
        self._begin(returns)
        return Rest(reason, until, hinted)

    @staticmethod
    def _replaces(known: _Law, until: float, sent_seq: int, hinted: bool) -> bool:
        """A guess gives way to any hint; a hint only to that of a later-sent call, or to a longer one."""
        if hinted:
            return not known.hinted or sent_seq > known.sent_seq or until > known.until
        return not known.hinted and until > known.until

    def _begin(self, returns: _Return) -> None:
        self.returning = True
        self._must_prove |= returns == "on_probation"
        self._must_prove_unless_alive |= returns == "on_probation_unless_alive"
        self.warming |= returns == "warming"
        self._settle_rests()

    def _forget_return(self) -> None:
        self.returning = self.warming = self._must_prove = self._must_prove_unless_alive = False

    def _settle_rests(self) -> None:
        self._rests_until = max((law.until for law in self._laws.values()), default=0.0)
        self._rests_until = max(self._rests_until, self._advice_until)
