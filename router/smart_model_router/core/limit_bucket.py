"""One limit as its provider enforces it: a bucket, what it counts, and what the provider's answers taught about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from smart_model_router.core.bucket import TokenBucket
from smart_model_router.core.own_part import OwnPart
from smart_model_router.domain.outcome import BucketReading, Usage
from smart_model_router.domain.shared_state import BucketAsk, ToldLimit, chunk_of, is_plenty

IDLE = 2.0
"""Seconds. Leased tokens that are not used go back after that."""
STOPPED = 2.0
"""Seconds without settling an account after which a process was stopped, and its leases are void."""
SETTLING = 1.75
"""Seconds in which every process that decided alone has told what it used: a little more than from one question that
most stores leave without an answer to the next."""
LONG_WINDOW = 3600.0
"""Seconds. Of a limit that refills in at least as many, what is left is divided; a shorter one is soon full again."""
LOOK_AGAIN = 0.25
"""Seconds. After a refusal the others are asked again then at the latest: meanwhile some may have given back."""
_EPSILON = 1e-6


class TokenLease:
    """Leased tokens of one limit. A `level` below 0 was taken on credit, and is owed. Pure: instants are arguments."""

    __slots__ = (
        "_asked_at",
        "_capacity",
        "_due",
        "_left",
        "_owed",
        "_settling_until",
        "_taken_at",
        "_wanted",
        "level",
        "part",
        "plenty",
        "suspended",
    )

    def __init__(self, capacity: float) -> None:
        self._capacity = capacity
        self.level = 0.0
        self.plenty = True
        """True when the limit had more than enough at the last settlement of any process, and before the first one.

        Then a chunk is taken first and leased afterwards.
        """
        self.suspended = False
        """True when the other processes cannot be asked: this one goes by its own count of the limit."""
        self.part: OwnPart | None = None
        """This process's part of the limit meanwhile; None where it is alone, and the limit its own."""
        self._due = self._settling_until = 0.0
        self._wanted = 0.0
        self._taken_at = -math.inf
        self._asked_at = math.inf
        self._left = math.inf
        """The tokens left for all when they were last heard of."""
        self._owed = 0.0
        """Tokens of the part that the others do not know of yet."""

    @property
    def chunk(self) -> float:
        """The number of tokens leased at a time."""
        return chunk_of(self._capacity)

    @property
    def short(self) -> bool:
        """True when more should be leased."""
        return not self.suspended and (self._wanted > 0 or self.level < self.chunk / 2)

    def is_settling(self, now: float) -> bool:
        """True while others that decided alone may not have told yet what they used."""
        return now < self._settling_until

    def due_at(self, amount: float, now: float) -> float:
        """The instant at which `amount` may be there; `now` when it is. What is missing is noted."""
        if self.suspended:
            return now if self.part is None else self.part.due_at(amount, now)
        self._outlive(now)
        has_credit = self.plenty and not self.is_settling(now)
        credit = max(self.chunk, amount) if has_credit else 0.0
        if self.level + credit + _EPSILON >= amount:
            return now
        self._wanted = max(self._wanted, amount - self.level)
        return self._due if self._due > now else now + LOOK_AGAIN

    def take(self, amount: float, now: float) -> None:
        """Take it; `due_at` was asked just now."""
        self._taken_at = now
        if not self.suspended:
            self.level -= amount
        elif self.part is not None:
            self.part.take(amount, now)

    def give_back(self, amount: float, now: float) -> None:
        """Refund, or (negative) charge."""
        if not self.suspended:
            self.level += amount
            self._wanted -= min(self._wanted, max(0.0, amount))
        elif self.part is not None:
            self.part.take(-amount, now)

    def account(self, capacity: float, now: float) -> tuple[float, float, float, float]:
        """The amounts to settle: (debt, back, want, least), each >= 0."""
        self._capacity = capacity
        if self.suspended:
            return 0.0, 0.0, 0.0, 0.0
        self._outlive(now)
        self._asked_at = now
        credit = max(0.0, -self.level)
        debt, wanted = self._owed + credit, self._wanted
        if wanted <= 0 and now - self._taken_at >= IDLE:
            return debt, max(0.0, self.level), 0.0, 0.0
        back = max(0.0, self.level - 2 * self.chunk)
        held = max(0.0, self.level)
        least = max(0.0, wanted - credit)
        lacks = least > 0 or held < self.chunk / 2
        want = max(least, self.chunk - held) if lacks and now >= self._due else 0.0
        return debt, back, want, min(want, least)

    def settled(self, debt: float, back: float, granted: float, left: float, due: float) -> None:
        """Take in a settlement: `granted` tokens came, `left` are left, and more are available at the instant `due`."""
        owed, self._owed = min(debt, self._owed), max(0.0, self._owed - debt)
        if self.suspended:
            return  # the answer came too late: what was leased is void
        self.level += debt - owed - back + granted
        self.hear(left)
        self._due = max(due, self._settling_until)
        self._wanted = 0.0 if granted or self.plenty else max(0.0, self._wanted - (debt - owed))

    def hear(self, left: float) -> None:
        """Take in how much was `left` for all processes at the last settlement of any of them."""
        self._left = left
        self.plenty = is_plenty(left, self._capacity)

    def see(self, left: float) -> None:
        """Take in an answer's word that at most `left` are left, including the leases of other processes."""
        self._left = min(left, self._left)
        self.plenty = self.plenty and is_plenty(left, self._capacity)

    def suspend(self, limit: TokenBucket, members: int, period: float, now: float) -> None:
        """Stop leasing: the others cannot be asked. Of `members` processes each takes its part of `limit` meanwhile.

        A single one takes all of it, by its own count. `period` is the time in which the limit refills.
        """
        if self.suspended:
            return
        self.suspended = True
        if members > 1:
            self._outlive(now)
            left = min(self._left, limit.level(now)) if period >= LONG_WINDOW else 0.0
            self.part = OwnPart(limit, members, now, held=self.level, used=self._owed, left=left)
        self.forget()
        self.plenty = False

    def resume(self, now: float) -> None:
        """Lease again. Others may have used up the limit meanwhile: nothing is taken before it was leased.

        What is left of the part is kept. It is owed, together with what was used; nothing is leased until the other
        processes have said the same, so that none takes what another one has used.
        """
        if not self.suspended:
            return
        self.suspended = False
        if self.part is not None:
            self.level, self._owed = self.part.settled(now)
            self._asked_at = now
            self._due = self._settling_until = now + SETTLING
            self.part = None

    def forget(self) -> None:
        """Drop the leases, which are void or belong to another process."""
        self.level = self._wanted = self._owed = 0.0

    def _outlive(self, now: float) -> None:
        """Drop the leases of a process that was stopped: the others count without them by now."""
        if now - self._asked_at > STOPPED:
            self.level = min(0.0, self.level)


Refill = Literal["continuous", "window"]
"""The refill of a provider's limit: all the time, or at once when a fixed window ends."""
Counted = Literal["requests", "total", "prompt", "output"]

ESTIMATES_ERR = 1.2
"""A text is refused only when its estimate is this many times the limit: an estimate alone refuses nothing for good."""
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0

_COUNTED: Mapping[str, Counted] = MappingProxyType(
    {"tokens": "total", "project_tokens": "total", "input_tokens": "prompt", "output_tokens": "output"}
)
"""The quantity that a bucket of this name counts; a bucket of any other name counts requests."""

_ROUNDING = 1.0
"""Seconds. Providers round a reset up to whole seconds, and none promises more."""
_TELLING = 5.0
"""Seconds by which the instant of being full must have had to move before it tells a window from a bucket."""
_MANY = 10
"""Calls (or tokens). Fewer may be used again soon after a window began anew."""
_MOVED = 0.45
"""The share of that which rounding (of the reset and of the answer's Date) and a slow answer may come to."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The estimate of one call in tokens. `media_tokens` are part of `prompt_tokens`."""

    prompt_tokens: int
    output_tokens: int
    media_tokens: int = 0

    @property
    def total(self) -> int:
        """The tokens that the token bucket is charged."""
        return self.prompt_tokens + self.output_tokens

    def of(self, counted: Counted) -> int:
        """The amount that a bucket which counts `counted` is charged."""
        match counted:
            case "requests":
                return 1
            case "total":
                return self.total
            case "prompt":
                return self.prompt_tokens
            case _:  # "output"
                return self.output_tokens


@dataclass(frozen=True, slots=True)
class Outstanding:
    """The estimated cost of the calls that are still open: of all, and of those sent after the answered one."""

    everyone: float = 0.0
    later: float = 0.0


@dataclass(frozen=True, slots=True)
class _Anchor:
    """An earlier reading: when the provider said it would be full, when it said so, and what was used then."""

    full_at: float
    at: float
    used: int
    latency: float


class LimitBucket:
    """A bucket of `per_minute` a minute, or of the size that the provider states.

    An owner's own figure (`per_minute`) is never exceeded, whatever the provider would allow. `share` is the part of
    the limit that this process may use. Pure: instants are arguments. Not thread-safe.
    """

    __slots__ = (
        "_anchor",
        "_configured",
        "_newest",
        "_share",
        "_steady",
        "_taken",
        "_taken_since",
        "_theirs",
        "bucket",
        "counted",
        "name",
        "stock",
        "window",
    )

    def __init__(
        self, name: str, capacity: float, window: float = MINUTE, *, configured: bool = False, share: float = 1.0
    ) -> None:
        self.name = name
        self.counted: Counted = _COUNTED.get(name, "requests")
        capacity *= share
        self.bucket = TokenBucket(capacity, capacity / window)
        self.window = window
        self.stock: TokenLease | None = None
        """The leases of this process, when several share the limit."""
        self._share = share
        self._configured = capacity if configured else None
        self._theirs = not configured and share == 1.0
        self._newest = -1
        self._steady = False
        self._anchor: _Anchor | None = None
        self._taken = 0
        self._taken_since = 0.0

    def take(self, cost: Cost, now: float) -> int:
        """Charge a call of this cost; return the amount."""
        amount = self.charge(cost)
        self.bucket.take(amount, now)
        if self.stock is not None:
            self.stock.take(amount, now)
        if now >= self._taken_since + self.window:
            self._taken_since, self._taken = now, 0
        self._taken += amount
        return amount

    def give_back(self, amount: float, now: float) -> None:
        """Refund (or, negative, charge) what a call took."""
        self.bucket.give_back(amount, now)
        if self.stock is not None:
            self.stock.give_back(amount, now)

    def due_at(self, amount: float, now: float) -> float:
        """The instant at which `amount` is there, for this process: `now` when it is."""
        due = self.bucket.due_at(amount, now)
        return due if due > now or self.stock is None else self.stock.due_at(amount, now)

    def ask(self, key: str, stock: TokenLease, now: float) -> BucketAsk:
        """This process's account of the limit, to be settled with the others."""
        bucket, window = self.bucket, self.bucket.window
        level = bucket.level(now)
        debt, back, want, least = stock.account(bucket.capacity, now)
        most = level - max(0.0, stock.level) + back
        return BucketAsk(
            key=key,
            capacity=bucket.capacity,
            rate=bucket.rate,
            # The provider's word includes what others used alone: it would count twice when they tell it.
            most=bucket.capacity if stock.is_settling(now) else most,
            window=window,
            steady=self._steady,
            resets_in=0.0 if bucket.resets_at is None else bucket.resets_at - now,
            held_for=max(0.0, bucket.held_until - now),
            debt=debt,
            back=back,
            want=want,
            least=least,
        )

    def hear(self, told: ToldLimit, now: float) -> None:
        """Take in what another process knows: a window not seen here yet, and whether there is more than enough."""
        bucket = self.bucket
        if told.window is not None and bucket.window is None and not self._steady:
            bucket.refills_at(now + told.resets_in, told.window, now)
            bucket.refill_from_headers(max(bucket.level(now), told.left), now)
        if self.stock is not None:
            self.stock.hear(told.left)

    def suspend(self, members: int, now: float) -> None:
        """The other `members` cannot be asked: take this process's part meanwhile."""
        if self.stock is not None:
            self.stock.suspend(self.bucket, members, self.window, now)

    def refused_until(self, instant: float, cost: Cost, now: float) -> None:
        """Hold the bucket until the instant that a provider named when it refused a call of this cost.

        When all of the capacity was taken within one window, and the wait is far longer than a bucket that refills
        all the time would need for one call, then it is a fixed window that ends at the instant.
        """
        amount, wait = self.charge(cost), instant - now
        used_up = self._taken >= self.bucket.capacity and self.counted == "requests"
        if used_up and 2 / self.bucket.rate + _ROUNDING < wait <= self.window + _ROUNDING:
            self.bucket.refills_at(instant, self.window, now)
        self.bucket.empty_until(instant, now, keep=amount)

    def charge(self, cost: Cost) -> int:
        """The charge of a call of this cost. One larger than the bucket takes all it can hold; the rest is debt."""
        wanted = cost.of(self.counted)
        return wanted if self.counted == "requests" else min(wanted, int(self.bucket.capacity))

    def used(self, usage: Usage) -> int:
        """The real charge of a call."""
        return Cost(usage.prompt_tokens, usage.completion_tokens).of(self.counted)

    def too_small_for(self, cost: Cost) -> bool:
        """True for a text that is larger than the bucket beyond the error of an estimate.

        A smaller one, and any prompt with media, goes out when the bucket is full: the provider's word decides.
        """
        if self.counted not in ("total", "prompt") or cost.media_tokens:
            return False
        return cost.prompt_tokens > ESTIMATES_ERR * self.bucket.capacity

    def begin(self, reading: BucketReading, open_calls: Outstanding, refill: Refill, now: float) -> None:
        """Set a new bucket by its first reading: the tokens left, less those of all calls that are still under way."""
        if refill == "window":
            reset = self.window if reading.reset_seconds is None else reading.reset_seconds
            self.bucket.refills_at(now + reset, self.window, now)
        if reading.remaining is not None:
            self.bucket.refill_from_headers(reading.remaining - open_calls.everyone, now)

    def owe(self, amount: float, now: float) -> None:
        """Charge the calls that were sent before this limit was known, and so without a lease."""
        if self.stock is not None:
            self.stock.take(amount, now)
            self.stock.see(self.bucket.level(now))

    def learn(
        self, reading: BucketReading, open_calls: Outstanding, *, sent_seq: int, sent_at: float, now: float
    ) -> None:
        """Take in the limits of an answer. `sent_seq` and `sent_at` are the answered call's.

        The level becomes the least of our own count and theirs (remaining, less what was sent after the answered
        call, plus what came back since); only the newest call's answer can raise it, and then to what is certain:
        remaining, less everything still open. An older answer never resurrects capacity.
        """
        newest = sent_seq >= self._newest
        self._newest = max(self._newest, sent_seq)
        if reading.limit is not None:
            self._resize(reading.limit, reading, now)
            if newest and reading.remaining is not None and reading.reset_seconds is not None:
                self._watch(reading.limit - reading.remaining, reading.reset_seconds, now, now - sent_at)
        bucket, level = self.bucket, self.bucket.level(now)
        if bucket.resets_at is not None:
            ends_in = self.window if reading.reset_seconds is None else reading.reset_seconds
            if sent_at < bucket.resets_at - self.window or sent_at + ends_in <= now:
                return  # about a window that is over, or may be
            if newest and reading.reset_seconds is not None:
                self._begin_window(now + ends_in, sent_at + ends_in, bucket.resets_at, now)
        if reading.remaining is None:
            return
        came_back = 0.0 if bucket.window is not None else bucket.rate * (now - sent_at)
        most = reading.remaining - open_calls.later + came_back
        least = reading.remaining - open_calls.everyone
        if level > most:
            bucket.refill_from_headers(most, now)
            if self.stock is not None:
                self.stock.see(most)
        elif newest and self._theirs and level < least:
            bucket.refill_from_headers(least, now)

    def _resize(self, limit: int, reading: BucketReading, now: float) -> None:
        window = reading.window_seconds or max(self.window, window_of(limit, reading))
        self._theirs = self._share == 1.0 and (self._configured is None or limit <= self._configured)
        capacity = limit * self._share if self._configured is None else min(limit * self._share, self._configured)
        if capacity != self.bucket.capacity or window != self.window:
            self.bucket.resize(capacity, capacity / window, now)
            self.window = window

    def _watch(self, used: int, reset_seconds: float, now: float, latency: float) -> None:
        """Find out whether it refills all the time or in windows.

        The instant of being full stands still in a window. In a bucket it moves on: with time, and by what each call
        takes. Once it should have moved by more than rounding, the two are told apart.
        """
        here = _Anchor(now + reset_seconds, now, used, latency)
        before = self._anchor
        if before is None or now >= before.full_at:
            self._anchor = here
            if before is not None and _MANY <= before.used <= used and now - latency >= before.full_at:
                self._refills_steadily(now)  # a window would have begun anew
            return
        expected = (now - before.at) + (used - before.used) * self.window / self.bucket.capacity
        if expected < max(_TELLING, 4 * latency, 4 * before.latency):
            return
        self._anchor = here
        moved = here.full_at - before.full_at
        if moved > _MOVED * expected:
            if abs(moved - self.window) > _ROUNDING:  # else the next window began
                self._refills_steadily(now)
        elif self.bucket.window is None:
            self._steady = False
            self.bucket.refills_at(here.full_at, self.window, now)

    def _refills_steadily(self, now: float) -> None:
        self._steady = True
        self.bucket.refills_steadily(now)

    def _begin_window(self, latest: float, earliest: float, known: float, now: float) -> None:
        """The window ends between two instants: the answer says when, but not when it was written."""
        if known > latest or known < earliest - _ROUNDING:
            self.bucket.refills_at(latest, self.window, now)


def window_of(limit: int, reading: BucketReading) -> float:
    """The seconds in which a whole limit refills: as the reading says, else a minute, an hour or a day.

    (limit - remaining) / reset is the rate of a bucket that refills all the time. It is not taken as it is: it is
    rounded, and means nothing in a fixed window; but a reset of more than a minute belongs to a longer window.
    """
    if reading.window_seconds:
        return reading.window_seconds
    reset, remaining = reading.reset_seconds, reading.remaining
    if reset is None or remaining is None or remaining >= limit or reset <= MINUTE + _ROUNDING:
        return MINUTE
    return HOUR if reset * limit / (limit - remaining) <= 5 * HOUR else DAY
