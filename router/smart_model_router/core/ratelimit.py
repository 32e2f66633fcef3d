"""The rate limits of one key: buckets of requests and of tokens, reserved together or not at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from smart_model_router.core.bucket import TokenBucket
from smart_model_router.core.limit_bucket import MINUTE, Cost, LimitBucket, Outstanding, Refill, TokenLease, window_of
from smart_model_router.domain.outcome import NO_READING, LimitReading, Refusal, Usage
from smart_model_router.domain.shared_state import ToldLimit

__all__ = ["DEFAULT_OUTPUT_TOKENS", "NO_COST", "Cost", "RateLimitTracker", "Reservation", "TokenFactor", "estimate"]

DEFAULT_OUTPUT_TOKENS = 1024
"""The assumed tokens of an answer when neither the caller nor experience says."""
NO_COST = Cost(0, 0)

_TELLING_PROMPT = 50
"""Tokens. A shorter prompt is mostly JSON around it."""
_FACTOR_ALPHA = 0.1
_LEAST_FACTOR, _MOST_FACTOR = 0.1, 4.0
_LEAST_MEDIA, _MOST_MEDIA = 0.05, 20.0


def estimate(
    text_bytes: int,
    max_tokens: int | None,
    output_p95: int | None,
    *,
    counts_max_tokens: bool,
    media_tokens: int = 0,
    factor: TokenFactor | None = None,
) -> Cost:
    """The probable cost of a call: the prompt, and an answer of the usual length, at most the cap.

    `media_tokens` is the table's estimate for media (core/media_tokens.py), `factor` corrects both by usage. Providers
    of a family that counts `max_tokens` charge the whole cap at admission.
    """
    prompt, media = (factor or TokenFactor()).weigh(text_bytes, media_tokens)
    usual = output_p95 if output_p95 is not None else DEFAULT_OUTPUT_TOKENS
    if max_tokens is None:
        return Cost(prompt, usual, media)
    return Cost(prompt, max_tokens if counts_max_tokens else min(max_tokens, usual), media)


class TokenFactor:
    """The tokens that a model family counts, learned from usage; 1 until then.

    `value` is for 4 bytes of text, `media` for each token that the table of media estimates (core/media_tokens.py).
    """

    __slots__ = ("media", "value")

    def __init__(self) -> None:
        self.value = 1.0
        self.media = 1.0

    def weigh(self, text_bytes: int, media_tokens: int) -> tuple[int, int]:
        """The tokens of a prompt, and those of its media, which are included."""
        media = math.ceil(media_tokens * self.media)
        return math.ceil(text_bytes / 4 * self.value) + media, media

    def learn(self, cost: Cost, counted: int) -> None:
        """A prompt that was estimated with the present factors turned out to be `counted` tokens.

        Short prompts are mostly brackets, and a text that is far off is none: neither teaches anything. With media,
        text and media are corrected in proportion to the squares of their sizes (normalized least mean squares).
        """
        estimated, media = cost.prompt_tokens, cost.media_tokens
        if estimated < _TELLING_PROMPT or counted <= 0:
            return
        if not media:
            seen = self.value * counted / estimated
            if _LEAST_FACTOR <= seen <= _MOST_FACTOR:
                self.value += _FACTOR_ALPHA * (seen - self.value)
            return
        text = estimated - media
        credible = min(counted, _MOST_FACTOR * text / self.value + _MOST_MEDIA * media / self.media)
        step = _FACTOR_ALPHA * (credible - estimated) / (text * text + media * media)
        self.value = _within(self.value * (1 + step * text), _LEAST_FACTOR, _MOST_FACTOR)
        self.media = _within(self.media * (1 + step * media), _LEAST_MEDIA, _MOST_MEDIA)


def _within(factor: float, least: float, most: float) -> float:
    return min(max(factor, least), most)


@dataclass(eq=False, slots=True)
class Reservation:
    """The tokens and requests that one admitted call holds; settled once."""

    cost: Cost
    sent_seq: int
    charged: tuple[tuple[LimitBucket, int], ...]
    settled: bool = False

    def will_refund(self, meter: LimitBucket) -> bool:
        """True when settling it may give tokens back that the provider never counted."""
        return meter.counted != "requests" and any(charged is meter for charged, _ in self.charged)

    @property
    def tokens(self) -> int:
        """The amount it took from the bucket of tokens a minute."""
        return next((amount for meter, amount in self.charged if meter.name == "tokens"), 0)


class RateLimitTracker:
    """The limits of one key of a provider: requests and tokens per minute, and any others that its answers name.

    Without `rpm` and `tpm` nothing is limited until the provider's answers name a limit. `refill` is the assumption
    about limits before they show how they refill; `factor` is shared by the models of a family. `learns` False keeps to
    the owner's figures. `share` is the part of every limit that this process may use.
    """

    __slots__ = (
        "_alone",
        "_learns",
        "_meters",
        "_open",
        "_refill",
        "_share",
        "_stocked",
        "factor",
        "known",
        "seen",
        "terms",
    )

    def __init__(
        self,
        rpm: float | None = None,
        tpm: float | None = None,
        *,
        refill: Refill = "continuous",
        factor: TokenFactor | None = None,
        learns: bool = True,
        share: float = 1.0,
    ) -> None:
        self.terms = (rpm, tpm, refill, learns, share)
        """The arguments of its construction: trackers of equal terms differ only in their history."""
        configured = {"requests": rpm, "tokens": tpm}
        self._meters = {
            name: LimitBucket(name, most, configured=True, share=share) for name, most in configured.items() if most
        }
        self.known = bool(self._meters)
        """True when a bucket paces this target."""
        self._share = share
        self._stocked = False
        self._alone: tuple[int, float] | None = None
        """The number of processes that cannot be asked, and since when; None while they can."""
        self._open: dict[Reservation, None] = {}
        self._refill: Refill = refill
        self._learns = learns
        self.seen = False
        """True when an answer ever stated a limit: defaults of the catalog are no knowledge."""
        self.factor = factor or TokenFactor()

    @property
    def buckets(self) -> Mapping[str, TokenBucket]:
        """Every bucket by name; one of a window other than a minute names that too (`requests/86400`)."""
        return {name: meter.bucket for name, meter in self._meters.items()}

    @property
    def requests(self) -> TokenBucket | None:
        """The bucket of requests per minute, when there is one."""
        return self._bucket("requests")

    @property
    def tokens(self) -> TokenBucket | None:
        """The bucket of tokens per minute, when there is one."""
        return self._bucket("tokens")

    def refusal(self, cost: Cost, now: float, ahead: tuple[int, int] = (0, 0)) -> Refusal | None:
        """The reason why `cost` cannot be reserved at `now`; `retry_at` is exact. Changes nothing.

        `ahead` are the requests and tokens that older waiters will take first. The least bucket binds.
        """
        reason, due = "tokens", now
        for meter in self._meters.values():
            if meter.too_small_for(cost):
                return Refusal("too_large")
            before = ahead[0] if meter.counted == "requests" else ahead[1] if meter.counted == "total" else 0
            due_here = meter.due_at(meter.charge(cost) + before, now)
            if due_here > now and meter.counted == "requests":
                reason = "requests"
            due = max(due, due_here)
        return Refusal(reason, due) if due > now else None

    def reserve(self, cost: Cost, now: float, sent_seq: int = 0) -> Reservation:
        """Take the estimated `cost`; the gate called `refusal` just before.

        `sent_seq` numbers the calls of the key in the order they are sent.
        """
        charged = tuple([(meter, meter.take(cost, now)) for meter in self._meters.values()])
        reservation = Reservation(cost, sent_seq, charged)
        self._open[reservation] = None
        return reservation

    def settle(self, reservation: Reservation, usage: Usage | None, now: float, *, sent: bool) -> None:
        """Correct the estimate by real usage: a refund, or debt. A call that was never sent costs nothing."""
        if reservation.settled:
            return
        reservation.settled = True
        del self._open[reservation]
        for meter, amount in reservation.charged:
            if not sent:
                meter.give_back(amount, now)
            elif usage is not None:
                meter.give_back(amount - meter.used(usage), now)
        if usage is not None:
            self.factor.learn(reservation.cost, usage.prompt_tokens)

    def update(self, reading: LimitReading, sent_seq: int, now: float, *, sent_at: float | None = None) -> None:
        """Take in the limits of an answer, after every answer: levels, capacities, and how they refill.

        `sent_seq` is the answered call's number, `sent_at` the instant it was sent (None: just now). Whole answers are
        settled before; calls still open count as not seen by the provider where that is the safe side.
        """
        if not self._learns:
            return
        self.seen = self.seen or bool(reading.buckets)
        for bucket in reading.buckets:
            long = bucket.window_seconds is not None and bucket.window_seconds != MINUTE
            key = f"{bucket.name}/{bucket.window_seconds:g}" if long else bucket.name
            meter = self._meters.get(key)
            if meter is not None:
                begun = now if sent_at is None else sent_at
                meter.learn(bucket, self._outstanding(meter, sent_seq), sent_seq=sent_seq, sent_at=begun, now=now)
            elif bucket.limit is not None:
                meter = LimitBucket(bucket.name, bucket.limit, window_of(bucket.limit, bucket), share=self._share)
                open_calls = self._outstanding(meter, sent_seq)
                meter.begin(bucket, open_calls, self._refill, now)
                self._meters[key] = meter
                self.known = True
                if self._stocked:
                    self.share_out()
                meter.owe(open_calls.everyone + (meter.counted == "requests"), now)

    update_from_headers = update
    """The name it has in the founding documents."""

    def share_out(self) -> None:
        """Share these limits with other processes from now on: calls need leased tokens (core/limit_bucket.py)."""
        self._stocked = True
        for meter in self._meters.values():
            if meter.stock is None:
                meter.stock = TokenLease(meter.bucket.capacity)
                if self._alone is not None:
                    meter.suspend(*self._alone)

    def hear(self, name: str, told: ToldLimit, now: float) -> None:
        """Take in a limit that another process knows: a new process has no answers of its own to learn it from.

        A full limit that is unknown here is left out: the first answer will tell, and the news may be old.
        """
        meter = self._meters.get(name)
        if meter is None:
            if not self._learns or told.left >= told.capacity:
                return
            window = told.window or round(told.capacity / told.rate, 3)
            meter = self._meters[name] = LimitBucket(name.partition("/")[0], told.capacity, window)
            self.known = True
            self.share_out()
            meter.owe(sum(meter.charge(reservation.cost) for reservation in self._open), now)
        meter.hear(told, now)

    def suspend(self, members: int, now: float) -> None:
        """Stop leasing: of `members` processes, which cannot be asked now, each takes its part of every limit."""
        self._alone = members, now
        for meter in self._meters.values():
            meter.suspend(members, now)

    def resume(self, now: float) -> None:
        """Lease from the other processes again."""
        self._alone = None
        for _, _, stock in self.stocks:
            stock.resume(now)

    @property
    def stocks(self) -> tuple[tuple[str, LimitBucket, TokenLease], ...]:
        """Every shared limit by name, with its leases."""
        return tuple((name, meter, meter.stock) for name, meter in self._meters.items() if meter.stock is not None)

    @property
    def short(self) -> bool:
        """True when more should be leased."""
        return any(meter.stock is not None and meter.stock.short for meter in self._meters.values())

    def hold_until(self, instant: float, now: float, cost: Cost = NO_COST, reading: LimitReading = NO_READING) -> None:
        """Hold the buckets until the instant that a provider named when it refused a call; after it the rate refills.

        The refused `cost` fits at the instant itself. When the refusal's `reading` says which buckets are exhausted,
        the others are left alone.
        """
        exhausted = {bucket.name for bucket in reading.buckets if bucket.remaining == 0}
        exhausted &= {meter.name for meter in self._meters.values()}
        for meter in self._meters.values():
            if not exhausted or meter.name in exhausted:
                meter.refused_until(instant, cost, now)

    def release(self, now: float) -> None:
        """Forget the instant a provider named."""
        for meter in self._meters.values():
            meter.bucket.release(now)

    def next_window(self, now: float) -> float | None:
        """Seconds until the exhausted window of this key ends, None when it has none.

        A provider with windows that has not told when they end is taken to end one within a minute.
        """
        windows = [m.bucket for m in self._meters.values() if m.bucket.window == MINUTE]
        fullness = [(b.level(now) / b.capacity, b.resets_at or now) for b in windows]
        if fullness:
            return min(fullness)[1] - now
        return MINUTE if self._refill == "window" else None

    def free_share(self, now: float) -> float:
        """The least level / capacity of all buckets, in [0, 1]."""
        shares = [m.bucket.level(now) / m.bucket.capacity for m in self._meters.values()]
        return max(0.0, min([1.0, *shares]))

    def _bucket(self, name: str) -> TokenBucket | None:
        meter = self._meters.get(name)
        return None if meter is None else meter.bucket

    def _outstanding(self, meter: LimitBucket, sent_seq: int) -> Outstanding:
        everyone = later = 0
        for reservation in self._open:
            if reservation.sent_seq == sent_seq and not reservation.will_refund(meter):
                continue  # the provider has counted the call it answers
            amount = meter.charge(reservation.cost)
            everyone += amount
            later += amount if reservation.sent_seq > sent_seq else 0
        return Outstanding(everyone, later)
