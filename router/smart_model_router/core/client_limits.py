"""One process's share of the limits of a gateway's client: requests and tokens a minute, and USD a day.

The processes that share a store have one limit together. Each takes what it needs on demand, and of a large limit a
chunk ahead; without a store, or while it is out of reach, each decides alone by its own count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from smart_model_router.core.bucket import TokenBucket
from smart_model_router.core.checked_options import DAY
from smart_model_router.core.limit_bucket import IDLE, LOOK_AGAIN, SETTLING, STOPPED
from smart_model_router.core.own_part import OwnPart
from smart_model_router.domain.shared_state import BucketAsk, BucketGrant, BudgetAsk, chunk_of

_LEAST_WAIT = 0.001
_MINUTE = 60.0
_MICRO = 1e6
_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class UsageQuestion:
    """A question to the other processes. `answered` takes the answer and its instant, `lost` says that none came."""

    ask: BucketAsk | BudgetAsk
    answered: Callable[[BucketGrant, float], None]
    lost: Callable[[], None]


class _Refused:
    """The newest refusal of the others: `amount` is there at `due_at`; before `look_at` asking again is no use."""

    __slots__ = ("amount", "due_at", "look_at")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.amount, self.due_at, self.look_at = math.inf, -math.inf, -math.inf

    def note(self, amount: float, due_in: float, now: float) -> None:
        due_in = max(due_in, _LEAST_WAIT)
        self.amount, self.due_at, self.look_at = amount, now + due_in, now + min(due_in, LOOK_AGAIN)

    def until(self, amount: float, now: float) -> float | None:
        """The instant at which `amount` may be there; None when the others have to be asked."""
        return self.due_at if now < self.look_at and amount >= self.amount else None


class ClientRate:
    """`capacity` requests or tokens a minute. Pure: instants are arguments, in seconds. Not thread-safe.

    `alone` says that the other processes cannot be asked, or that there are none.
    """

    __slots__ = (
        "_ahead_at",
        "_asked_at",
        "_bucket",
        "_chunk",
        "_given_back",
        "_held",
        "_owed",
        "_part",
        "_refused",
        "_returning",
        "_settling_until",
        "_used_at",
        "alone",
        "capacity",
        "key",
    )

    def __init__(self, key: str, capacity: float) -> None:
        self.key = key
        self.capacity = capacity
        self.alone = True
        self._chunk = chunk_of(capacity)
        self._bucket = TokenBucket(capacity, capacity / _MINUTE)
        self._held = 0.0
        """Leased and not used; below 0 it was used without a lease."""
        self._given_back = 0.0
        self._refused = _Refused()
        self._returning = False
        self._used_at = -math.inf
        self._ahead_at = -math.inf
        """When a chunk may be asked for again, after there was none to spare."""
        self._asked_at = math.inf
        self._part: OwnPart | None = None
        """The part of this process while it is one of several that decide alone."""
        self._owed = 0.0
        """Taken from the part, and not known to the others yet."""
        self._settling_until = -math.inf

    @property
    def short(self) -> bool:
        """True when more should be leased ahead: a small limit is leased on demand only."""
        return not self.alone and self._chunk > 1 and self._held < self._chunk / 2

    def ready_at(self, amount: float, now: float) -> float | None:
        """The instant at which `amount` is there: `now` when it is. None when the others have to be asked."""
        if self.alone:
            return self.alone_at(amount, now)
        self._outlive(now)
        if now < self._settling_until and self._held + _EPSILON < amount:
            return self._settling_until
        return now if self._held + _EPSILON >= amount else self._refused.until(amount, now)

    def alone_at(self, amount: float, now: float) -> float:
        """The same by what this process knows itself: the others did not answer in time."""
        return self._bucket.due_at(amount, now) if self._part is None else self._part.due_at(amount, now)

    def hear(self, left: float, now: float) -> None:
        """So much was left for all processes when this one looked."""
        self._bucket.refill_from_headers(left + self._held, now)

    def take(self, amount: float, now: float) -> None:
        """Take it; what was not leased is owed."""
        self._bucket.take(amount, now)
        self._used_at = now
        if not self.alone:
            self._held -= amount
        elif self._part is not None:
            self._part.take(amount, now)

    def settle(self, reserved: float, used: float, now: float) -> None:
        """Correct the `reserved` amount of a request to the `used` one."""
        self._bucket.give_back(reserved - used, now)
        if not self.alone:
            self._held += reserved - used
        elif self._part is not None:
            self._part.take(used - reserved, now)

    def release(self, amount: float) -> None:
        """It was leased for a request that does not take it: it goes back at once."""
        if not self.alone:
            self._held -= amount
            self._given_back += amount

    def request(self, amount: float) -> UsageQuestion:
        """Ask for this much on behalf of a request."""
        ask = replace(self._ask(), want=amount, least=amount)
        return UsageQuestion(ask, partial(self._answered, ask), _nothing)

    def account(self, now: float, *, ending: bool = False) -> UsageQuestion | None:
        """Settle the account with the others, None when there is nothing to settle. `ending` gives everything back."""
        if self.alone:
            return None
        self._outlive(now)
        self._asked_at = now
        held = max(0.0, self._held)
        debt, back, ahead = max(0.0, -self._held), self._given_back, 0.0
        if ending or now - self._used_at >= IDLE:
            back += held
        else:
            back += max(0.0, held - 2 * self._chunk)
            ahead = self._chunk - held if self.short and now >= max(self._ahead_at, self._settling_until) else 0.0
        if not (debt or back or ahead or self._owed or self._returning):
            return None
        most = self._bucket.level(now) - held if self._returning else self.capacity
        self._held -= back - self._given_back - debt
        debt += self._owed
        self._given_back, self._owed, self._returning = 0.0, 0.0, False
        ask = replace(self._ask(), most=most, debt=debt, back=back, want=ahead)
        return UsageQuestion(ask, partial(self._answered, ask), partial(self._lost, ask))

    def _lost(self, ask: BucketAsk) -> None:
        if self.alone:
            return
        self._held -= ask.debt
        self._given_back += ask.back

    def _answered(self, ask: BucketAsk, grant: BucketGrant, now: float) -> None:
        if self.alone:
            return
        self._held += grant.granted
        self.hear(grant.left, now)
        if ask.want and not grant.granted:
            self._ahead_at = now + LOOK_AGAIN
            if ask.least:
                self._refused.note(ask.least, grant.due_in, now)
        elif ask.least >= self._refused.amount:
            self._refused.forget()

    def suspend(self, members: int, now: float) -> None:
        """The others cannot be asked: of `members` processes each takes its part meanwhile, a single one everything."""
        if self.alone:
            return
        self.alone = True
        if members > 1:
            self._outlive(now)
            self._part = OwnPart(self._bucket, members, now, held=self._held, used=self._owed)
        self.forget()

    def resume(self, now: float) -> None:
        """The others can be asked again.

        This process says what can be left at all, as far as it knows. What is left of its part is kept, and owed
        together with what was used; nothing more is leased until the others have said the same.
        """
        if not self.alone:
            return
        self.forget()
        self.alone, self._returning = False, True
        if self._part is not None:
            self._held, self._owed = self._part.settled(now)
            self._asked_at, self._settling_until = now, now + SETTLING
            self._part = None

    def forget(self) -> None:
        """Drop the leases, which are void or belong to another process."""
        self._held = self._given_back = self._owed = 0.0
        self._refused.forget()

    def _outlive(self, now: float) -> None:
        """Drop the leases of a process that was stopped: the others count without them by now."""
        if now - self._asked_at > STOPPED:
            self._held = min(0.0, self._held)

    @property
    def idle(self) -> bool:
        """True when there is nothing to settle before the next use."""
        return not (self._held or self._given_back or self._owed or self._returning)

    def _ask(self) -> BucketAsk:
        return BucketAsk(key=self.key, capacity=self.capacity, rate=self._bucket.rate, most=self.capacity, ours=True)


class ClientBudget:
    """A budget in micro-dollars, of `period` seconds from its first use. Pure and not thread-safe, as `ClientRate`.

    Nothing is leased ahead: what a request will probably cost is reserved before it is sent.
    """

    __slots__ = (
        "_ends_at",
        "_held",
        "_members",
        "_others",
        "_refused",
        "_reserved",
        "_settled",
        "_spent",
        "_used",
        "alone",
        "capacity",
        "key",
        "period",
    )

    short = False

    def __init__(self, key: str, usd: float, period: float = DAY) -> None:
        self.key = key
        self.capacity = max(1, micro_dollars(usd))
        self.period = period
        self.alone = True
        self._used = 0
        self._ends_at = -math.inf
        self._held = 0
        """Reserved with the others, and taken by no request yet."""
        self._reserved = self._settled = self._spent = 0
        """Changes that the other processes do not know yet."""
        self._refused = _Refused()
        self._members = 1
        self._others = 0
        """The part of what is left that other processes may spend while none can ask the others."""

    def ready_at(self, amount: float, now: float) -> float | None:
        """As that of `ClientRate`."""
        if self.alone:
            return self.alone_at(amount, now)
        return now if self._held >= amount else self._refused.until(amount, now)

    def alone_at(self, amount: float, now: float) -> float:
        """As that of `ClientRate`; however much is wanted, anything that is left is enough."""
        del amount
        if now >= self._ends_at:
            return now
        return now if self._used < self.capacity - self._others else self._ends_at

    def left(self, now: float) -> float:
        """Return the USD that are left, as far as this process knows."""
        return (self.capacity if now >= self._ends_at else max(0, self.capacity - self._used)) / _MICRO

    def hear(self, left: float, ends_in: float, now: float) -> None:
        """So much was left for all processes when this one looked, of a period that ends in so many seconds."""
        unknown = self._reserved + self._spent - self._settled
        self._used = max(0, self.capacity - int(left) + unknown)
        self._ends_at = now + ends_in

    def take(self, amount: float, now: float) -> None:
        """Take a reservation, or make one without asking."""
        taken = int(amount)
        if not self.alone and self._held >= taken:
            self._held -= taken
            return
        self._begin(now)
        self._used += taken
        self._reserved += taken

    def settle(self, reserved: float, used: float, now: float) -> None:
        """The request for which so much was reserved has cost `used`."""
        self._begin(now)
        self._used = max(0, self._used + int(used) - int(reserved))
        self._settled += int(reserved)
        self._spent += int(used)

    def release(self, amount: float) -> None:
        """It was reserved for a request that does not take it."""
        self._held -= int(amount)
        self._used = max(0, self._used - int(amount))
        self._settled += int(amount)

    def request(self, amount: float) -> UsageQuestion:
        """As that of `ClientRate`."""
        ask = replace(self._ask(), want=int(amount))
        return UsageQuestion(ask, partial(self._answered, ask), _nothing)

    def account(self, now: float, *, ending: bool = False) -> UsageQuestion | None:
        """As that of `ClientRate`."""
        del now, ending
        if self.alone or self.idle:
            return None
        ask = replace(self._ask(), reserved=self._reserved, settled=self._settled, spent=self._spent)
        self._reserved = self._settled = self._spent = 0
        return UsageQuestion(ask, partial(self._answered, ask), partial(self._lost, ask))

    def _lost(self, ask: BudgetAsk) -> None:
        self._reserved += ask.reserved
        self._settled += ask.settled
        self._spent += ask.spent

    def _answered(self, ask: BudgetAsk, grant: BucketGrant, now: float) -> None:
        self._held += int(grant.granted)
        self.hear(grant.left, grant.ends_in, now)
        if ask.want and not grant.granted:
            self._refused.note(0.0, grant.due_in, now)
        elif ask.want:
            self._refused.forget()

    def suspend(self, members: int, now: float) -> None:
        """The others cannot be asked: of `members` processes each may spend its part of what is left."""
        if self.alone:
            return
        self.alone, self._members = True, members
        self._leave(0 if now >= self._ends_at else self._used)
        self._refused.forget()

    def resume(self, now: float) -> None:
        """The others can be asked again. What was spent meanwhile is told then."""
        del now
        self.alone, self._members, self._others = False, 1, 0
        self._refused.forget()

    def _leave(self, used: int) -> None:
        """Leave to the other processes their parts of what is left."""
        left = max(0, self.capacity - used)
        self._others = left - math.ceil(left / self._members)

    def forget(self) -> None:
        """Drop the reservations, which another process settles."""
        self._held = self._reserved = self._settled = self._spent = 0

    @property
    def idle(self) -> bool:
        """As that of `ClientRate`."""
        return not (self._reserved or self._settled or self._spent)

    def _begin(self, now: float) -> None:
        if now >= self._ends_at:
            self._used, self._ends_at = 0, now + self.period
            self._leave(0)

    def _ask(self) -> BudgetAsk:
        return BudgetAsk(key=self.key, capacity=self.capacity, period=self.period)


def _nothing() -> None:
    """A request whose question was lost decides by itself."""


ClientLimit = ClientRate | ClientBudget


def micro_dollars(usd: float) -> int:
    """Rounded up, for what is to be reserved or was spent."""
    return math.ceil(usd * _MICRO - _EPSILON)
