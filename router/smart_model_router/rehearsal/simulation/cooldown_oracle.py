"""The rests of a target or a credential, reckoned from the results of its calls alone.

A second account of docs/design/routing.md section 4 on purpose. It reads nothing of the router's: a rest that is too
long, too short or missing there differs from this one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from smart_model_router.core.cooldown import CooldownConfig, LawReason
from smart_model_router.domain.outcome import Category, CooldownRule, Failure, FailureClass, Wait

_SHORTEST = 0.05
_DAY = 86_400.0
_ALIVE = 10.0
"""Seconds. A target that answered that shortly before a wait ended returns without probation."""
_FRESH = 300.0
_LADDER = (1.0, 2.0, 30.0, 60.0)
_SPREAD = 1.2
_TIMES_BASE, _TIMES_CAP, _LEAST_CAP = 10.0, 20.0, 15.0
"""D7: a cooldown lasts ten times what the failure lost a request, at most twenty times the largest loss."""
EPSILON = 1e-6


@dataclass(slots=True)
class Law:
    """A wait that ends between `least` and `most`: one instant, unless dice or experience decide."""

    least: float
    most: float
    began: float
    sequence: int
    hinted: bool


@dataclass(slots=True)
class CooldownAccount:
    """The rests of one target or one credential. Instants are the router's clock, in seconds."""

    config: CooldownConfig
    laws: dict[LawReason, Law] = field(default_factory=dict)
    advice_until: float = 0.0
    advice_began: float = 0.0
    warming: bool = False
    _cooldowns: int = 0
    _largest_loss: float = 0.0
    _successes: int = 0
    _guesses: int = 0
    _overloads: int = 0
    _auths: int = 0
    _last_success: float | None = None
    _guessed: bool = False
    _must_prove: bool = False
    _unless_alive: bool = False
    _absent: bool = False

    def ends(self) -> float:
        """The end of all of it."""
        return max([self.advice_until, *(law.least for law in self.laws.values())])

    def on_probation(self, now: float) -> bool:
        """True when it is back and has still to show that it works."""
        ends = self.ends()
        if now < ends:
            return False
        alive = self._last_success is not None and ends - self._last_success <= _ALIVE
        return self._must_prove or (self._unless_alive and not alive)

    def tripped(self) -> None:
        """A breaker opened: it decides from now on, and only law stays."""
        self.advice_until, self._cooldowns, self._largest_loss = 0.0, 0, 0.0
        if not self.laws:
            self._back()

    def forgiven(self) -> None:
        """The operator let it in."""
        self.laws.clear()
        self.advice_until = 0.0
        self._cooldowns = self._guesses = self._overloads = self._auths = 0
        self._largest_loss = 0.0
        self._back()

    def succeeded(self, admitted_at: float, now: float) -> bool:
        """A call was answered; whether that ended an absence."""
        self._last_success = now
        self._guesses = self._overloads = self._auths = 0
        self._successes += 1
        if self._successes >= self.config.success_count_to_clear:
            self._cooldowns, self._largest_loss = 0, 0.0
        if self.advice_until and admitted_at >= self.advice_began:
            self.advice_until = 0.0
        self.laws = {reason: law for reason, law in self.laws.items() if admitted_at <= law.began}
        ended = self._absent and not self.laws and not self.advice_until
        if ended:
            self._back()
        return ended

    def failed(
        self, failure: Failure, admitted_at: float, sequence: int, now: float, *, advised: bool, ill: bool, paced: bool
    ) -> float | None:
        """A call failed; until when at most it binds, None when nothing follows.

        `advised` is False while a breaker decides in place of cooldowns, `ill` says whether the evidence calls for one,
        `paced` that a known bucket paces the return.
        """
        failure_class, wait = failure.failure_class, failure.wait
        if failure_class.policy.category is Category.CALLER:
            return None
        self._successes = 0
        advice = self._advice(failure_class, admitted_at, now, hinted=wait is not None, advised=advised, ill=ill)
        if advice is not None:
            self.advice_began, self.advice_until = now, max(self.advice_until, now + advice)
            self._must_prove = self._absent = True
        law = self._law(failure_class, wait, admitted_at, sequence, now, paced)
        return law or (None if advice is None else self.advice_until)

    def may_advise(self, failure_class: FailureClass, admitted_at: float, now: float) -> bool:
        """True when a failure begins a cooldown where the evidence calls for one: it came after the last cooldown."""
        if failure_class.policy.cooldown not in (CooldownRule.FAILURE, CooldownRule.TIMEOUT):
            return False
        return now >= self.advice_until and (self._cooldowns == 0 or admitted_at > self.advice_began)

    def _advice(
        self, failure_class: FailureClass, admitted_at: float, now: float, *, hinted: bool, advised: bool, ill: bool
    ) -> float | None:
        config = self.config
        if failure_class.policy.cooldown is CooldownRule.HINT_OR_BRIEF:
            self._overloads += 1
            return None if hinted or self._overloads == 1 or not advised else config.brief
        if not (ill and advised and self.may_advise(failure_class, admitted_at, now)):
            return None
        self._cooldowns += 1
        lost = now - admitted_at
        self._largest_loss = max(self._largest_loss, lost)
        base = min(max(config.failure, _TIMES_BASE * lost), max(config.failure, config.timeout))
        cap = min(config.cap, max(_LEAST_CAP, _TIMES_CAP * self._largest_loss))
        return float(min(cap, base * config.multiplier ** (self._cooldowns - 1)))

    def _law(
        self, failure_class: FailureClass, wait: Wait | None, admitted_at: float, sequence: int, now: float, paced: bool
    ) -> float | None:
        config = self.config
        if failure_class is FailureClass.QUOTA:
            stated = config.quota if wait is None else max(wait.seconds, _SHORTEST)
            return self._bind("wall", min(stated, _DAY), sequence, now, wait is not None)
        if failure_class is FailureClass.AUTH:
            known = self.laws.get("off")
            if known is not None and admitted_at <= known.began:
                return None
            self._auths += 1
            fresh = self._last_success is not None and now - self._last_success <= _FRESH
            brief = fresh and self._auths == 1
            return self._bind("off", config.auth_after_success if brief else config.auth, sequence, now, False)
        if failure_class is FailureClass.MODEL_GONE:
            return self._bind("off", config.model_gone, sequence, now, False)
        if failure_class is FailureClass.MISCONFIGURED:
            return self._bind("off", config.misconfigured, sequence, now, False)
        if wait is not None:
            if wait.scope == "concurrency" and wait.seconds <= 0:
                return None
            if wait.scope in ("day", "credit"):
                return self._bind("wall", min(max(wait.seconds, _SHORTEST), _DAY), sequence, now, True)
            return self._bind("wait", min(max(wait.seconds, _SHORTEST), config.hint_cap), sequence, now, True, paced)
        if failure_class.policy.cooldown is CooldownRule.WARMING:
            bound = self._bind("wait", config.brief, sequence, now, False, paced=True)
            self.warming = self.warming or bound is not None
            return bound
        if failure_class.policy.cooldown is CooldownRule.LAW and paced:  # else the provider's limits are unknown
            return self._guess(admitted_at, sequence, now, paced)
        return None

    def _guess(self, admitted_at: float, sequence: int, now: float, paced: bool) -> float | None:
        known = self.laws.get("wait")
        if known is not None and admitted_at <= known.began:
            return None
        rung, config = self._guesses, self.config
        self._guesses += 1
        if rung >= len(_LADDER):
            seconds = min(config.cap, config.rate_limit * config.multiplier ** (rung - len(_LADDER)))
            return self._bind("wait", seconds, sequence, now, False, paced)
        least, most = _LADDER[rung], _LADDER[rung] * _SPREAD
        if rung == 0 and (self._guessed or paced):  # what it took before, or the end of a known window
            least, most = _SHORTEST, config.hint_cap * _SPREAD
        self._guessed = True
        return self._bind("wait", least, sequence, now, False, paced, most)

    def _bind(
        self,
        reason: LawReason,
        seconds: float,
        sequence: int,
        now: float,
        hinted: bool,
        paced: bool = False,
        most: float | None = None,
    ) -> float | None:
        known, until = self.laws.get(reason), now + seconds
        if known is not None and now < known.least:
            later = until > known.least or (most is not None and now + most > known.least)
            replaces = not known.hinted or sequence > known.sequence or later if hinted else not known.hinted and later
            if not replaces:
                return None
            if most is not None:  # by luck shorter than the one before: that one stays
                until = min(until, known.least)
        law = Law(until, until if most is None else now + most, now, sequence, hinted)
        self.laws[reason] = law
        self._absent = True
        self._must_prove |= reason != "wait"
        self._unless_alive |= reason == "wait" and not paced
        return law.most

    def _back(self) -> None:
        self._must_prove = self._unless_alive = self._absent = self.warming = False
