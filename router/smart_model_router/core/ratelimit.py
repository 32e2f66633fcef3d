"""The rate limits of one target: a bucket of requests and one of tokens, reserved together or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from smart_model_router.core.bucket import TokenBucket
from smart_model_router.outcome import Refusal, Usage

_MINUTE = 60.0
DEFAULT_OUTPUT_TOKENS = 1024
"""What an answer is taken to cost when neither the caller nor experience says."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The estimate of one call in tokens."""

    prompt_tokens: int
    output_tokens: int

    @property
    def total(self) -> int:
        """What the token bucket is asked for."""
        return self.prompt_tokens + self.output_tokens


def estimate(prompt_bytes: int, max_tokens: int | None, output_p95: int | None, *, counts_max_tokens: bool) -> Cost:
    """What a call will probably cost: a token per 4 bytes of prompt; of the answer what is usual, at most the cap.

    Providers of a family that counts `max_tokens` charge the whole cap at admission.
    """
    prompt = -(-prompt_bytes // 4)
    usual = output_p95 if output_p95 is not None else DEFAULT_OUTPUT_TOKENS
    if max_tokens is None:
        return Cost(prompt, usual)
    return Cost(prompt, max_tokens if counts_max_tokens else min(max_tokens, usual))


@dataclass(eq=False, slots=True)
class Reservation:
    """What one admitted call holds; settled once."""

    tokens: int
    settled: bool = False


class RateLimitTracker:
    """Requests and tokens per minute; None is not limited by us."""

    __slots__ = ("requests", "tokens")

    def __init__(self, rpm: float | None = None, tpm: float | None = None) -> None:
        self.requests = TokenBucket(rpm, rpm / _MINUTE) if rpm else None
        self.tokens = TokenBucket(tpm, tpm / _MINUTE) if tpm else None

    @property
    def known(self) -> bool:
        """Whether a bucket paces this target."""
        return self.requests is not None or self.tokens is not None

    def refusal(self, cost: Cost, now: float, ahead: tuple[int, int] = (0, 0)) -> Refusal | None:
        """Why `cost` cannot be reserved at `now`; `retry_at` is exact. Changes nothing.

        `ahead` are the requests and tokens that older waiters will take first.
        """
        if self.tokens is not None and cost.prompt_tokens > self.tokens.capacity:
            return Refusal("too_large")
        tokens_due = now if self.tokens is None else self.tokens.due_at(self._charge(cost) + ahead[1], now)
        if self.requests is not None and (due := self.requests.due_at(1 + ahead[0], now)) > now:
            return Refusal("requests", max(due, tokens_due))
        return Refusal("tokens", tokens_due) if tokens_due > now else None

    def reserve(self, cost: Cost, now: float) -> Reservation:
        """Take what `cost` estimates; the gate asked `refusal` first, in the same breath."""
        tokens = self._charge(cost)
        if self.requests is not None:
            self.requests.take(1, now)
        if self.tokens is not None:
            self.tokens.take(tokens, now)
        return Reservation(tokens)

    def settle(self, reservation: Reservation, usage: Usage | None, now: float, *, sent: bool) -> None:
        """Correct the estimate by real usage: a refund, or debt. A call that was never sent costs nothing."""
        if reservation.settled:
            return
        reservation.settled = True
        if not sent and self.requests is not None:
            self.requests.give_back(1, now)
        if self.tokens is None:
            return
        if not sent:
            self.tokens.give_back(reservation.tokens, now)
        elif usage is not None:
            self.tokens.give_back(reservation.tokens - usage.total_tokens, now)

    def hold_until(self, instant: float, now: float) -> None:
        """The provider named an instant: nothing is there before it, and the rate fills the buckets after it."""
        for bucket in (self.requests, self.tokens):
            if bucket is not None:
                bucket.empty_until(instant, now)

    def release(self, now: float) -> None:
        """Forget the instant a provider named."""
        for bucket in (self.requests, self.tokens):
            if bucket is not None:
                bucket.release(now)

    def free_share(self, now: float) -> float:
        """The fuller of doubts: the least level / capacity of the two, in [0, 1]."""
        shares = [b.level(now) / b.capacity for b in (self.requests, self.tokens) if b is not None]
        return max(0.0, min([1.0, *shares]))

    def _charge(self, cost: Cost) -> int:
        """An answer longer than the bucket is asked for all it can hold; the rest becomes debt."""
        return cost.total if self.tokens is None else min(cost.total, int(self.tokens.capacity))
