"""Rate limits that processes share: each leases tokens ahead, and settles (core/limit_bucket.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from smart_model_router.core.limit_bucket import LOOK_AGAIN, LimitBucket, TokenLease
from smart_model_router.core.ratelimit import RateLimitTracker
from smart_model_router.domain.ports import SharedState
from smart_model_router.domain.shared_state import BucketAsk, BucketGrant, BucketRow, ClockReading, SharedKeys, told

if TYPE_CHECKING:
    from smart_model_router.coordination.local_router import LocalRouter


class TokenLeases:
    """The limits of all targets that take part, among `members`. Not thread-safe: it belongs to the router's loop."""

    def __init__(
        self, state: LocalRouter, shared: SharedState, owners: Mapping[str, SharedKeys], members: Callable[[], int]
    ) -> None:
        self._state = state
        self._shared = shared
        self._owners = owners
        self._members = members
        self.due_at: float | None = None
        """When tokens that were refused may be available; None when none were."""

    def suspend(self) -> None:
        """Decide alone while the shared state is out of reach."""
        now = self._state.clock.now()
        for tracker in self._trackers().values():
            tracker.suspend(self._members(), now)

    def resume(self) -> None:
        """Share again."""
        now = self._state.clock.now()
        for tracker in self._trackers().values():
            tracker.resume(now)

    def forget(self) -> None:
        """Drop all leases after a fork: they belong to the parent process."""
        self.due_at = None
        for _, stock in self._accounts().values():
            stock.forget()

    def take(self, rows: Sequence[BucketRow], now: float, here: ClockReading) -> None:
        """Take in the limits that other processes know."""
        trackers = self._trackers()
        for row in rows:
            owner, _, name = row.key.rpartition(" ")
            limit = told(row, here)
            if owner in trackers and limit is not None:
                trackers[owner].hear(name, limit, now)

    async def settle(self, *, ending: bool = False) -> None:
        """Settle the accounts of every limit that was used lately. `ending` gives back all leases.

        Decide alone on a limit that only later versions can read.
        """
        now = self._state.clock.now()
        accounts = self._accounts()
        asks = [meter.ask(key, stock, now) for key, (meter, stock) in accounts.items()]
        if ending:
            asks = [replace(ask, want=0.0, least=0.0, back=max(0.0, accounts[ask.key][1].level)) for ask in asks]
        asks = [ask for ask in asks if ask.debt or ask.back or ask.want]
        self.due_at = None
        if not asks:
            return
        grants = await self._shared.lease(asks)
        dues = []
        for ask, grant in zip(asks, grants, strict=True):
            if grant is None:
                accounts[ask.key][0].suspend(self._members(), now)
                continue
            due = now + self._pause(ask, grant)
            accounts[ask.key][1].settled(ask.debt, ask.back, grant.granted, grant.left, due)
            if not grant.granted and ask.want:
                dues.append(due)
        self.due_at = min(dues, default=None)
        if any(grant and grant.granted for grant in grants):
            self._state.pump(None)

    def _pause(self, ask: BucketAsk, grant: BucketGrant) -> float:
        """Seconds until more is asked for. All others may wait for the tokens that come next, and one has each."""
        if grant.granted:
            return 0.0
        one = max(grant.due_in, 1.0 / ask.rate)
        return max(grant.due_in, min(LOOK_AGAIN, one * (self._members() - 1)))

    def _accounts(self) -> dict[str, tuple[LimitBucket, TokenLease]]:
        """Every shared limit by its name among processes."""
        return {
            f"{owner} {name}": (meter, stock)
            for owner, limits in self._trackers().items()
            for name, meter, stock in limits.stocks
        }

    def _trackers(self) -> dict[str, RateLimitTracker]:
        """By owner; targets of one credential may have theirs in common."""
        gates = self._state.fleet.gates
        return {owners.limits: gates[target].limits for target, owners in self._owners.items() if target in gates}
