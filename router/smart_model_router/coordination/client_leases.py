"""The limits of the gateway's clients that processes share: requests wait for a lease, accounts are settled behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from smart_model_router.coordination.probe_leases import PROBE_SECONDS
from smart_model_router.coordination.store_health import StoreReachability
from smart_model_router.core.client_limits import ClientBudget, ClientLimit, ClientRate, UsageQuestion
from smart_model_router.domain.ports import SharedState
from smart_model_router.domain.shared_state import (
    BucketGrant,
    ClockReading,
    SharedStateError,
    SharedView,
    remaining,
    told,
)

LEASE_WAIT = PROBE_SECONDS
"""Seconds that a request waits to hear whether a limit has something left for it."""


@dataclass(eq=False, slots=True)
class _Order:
    """The amounts that one request needs. `left` is set when it did not wait for the answer."""

    needs: Sequence[tuple[ClientLimit, float]]
    answered: asyncio.Future[None]
    answered_at: float | None = None
    granted: list[tuple[ClientLimit, float]] = field(default_factory=list)
    left: bool = False


class ClientLeases:
    """Asks the shared state for many requests at a time, one question after the other.

    Not thread-safe: it belongs to the router's loop. Instants are the loop's.
    """

    def __init__(
        self,
        shared: SharedState,
        reach: StoreReachability,
        touch: Callable[[], object],
        here: Callable[[], ClockReading],
        members: Callable[[], int],
    ) -> None:
        self._shared = shared
        self._reach = reach
        self._here = here
        self._found: SharedView | None = None
        self._touch = touch
        self._limits: dict[str, ClientLimit] = {}
        self._busy: dict[ClientLimit, None] = {}
        """The limits with a lease or an account to settle."""
        self._orders: list[_Order] = []
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self._members = members

    def register(self, limit: ClientLimit) -> None:
        """Share a limit with the other processes from now on; one of the same key takes the place of another."""
        self._limits[limit.key] = limit
        if self._reach.reason:
            limit.suspend(self._members(), _loop_time())
        else:
            limit.resume(_loop_time())

    def restore(self, view: SharedView) -> None:
        """Take in the usage of other processes before this one began."""
        self._found = view

    async def lease(self, needs: Sequence[tuple[ClientLimit, float]], seconds: float) -> float | None:
        """Lease all of `needs`. Returns the instant of the answer; None when none came within `seconds`."""
        self._touch()
        self._hear_found()
        if self._reach.reason:
            return None
        order = _Order(needs, asyncio.get_running_loop().create_future())
        self._orders.append(order)
        self._start()
        try:
            async with asyncio.timeout(seconds):
                await order.answered
        except TimeoutError:
            order.left = True
        except asyncio.CancelledError:
            order.left = True
            self.release(order.granted)
            raise
        return None if order.left else order.answered_at

    def release(self, needs: Sequence[tuple[ClientLimit, float]]) -> None:
        """Give back amounts that were leased for a request which does not take them: others may need them."""
        for limit, amount in needs:
            limit.release(amount)
            self._busy[limit] = None
        self.settle()

    def changed(self, limit: ClientLimit) -> None:
        """Settle this limit soon, and at once where little is left of its lease."""
        self._busy[limit] = None
        if limit.short:
            self.settle()

    def settle(self) -> None:
        """Settle the accounts that are due, without waiting for it."""
        if self._busy and not self._reach.reason:
            self._again = True
            self._start()

    async def settle_all(self) -> None:
        """Settle everything, and give back all leases."""
        if self._task is not None:
            await asyncio.wait({self._task})
        await self._round([], ending=True)

    def suspend(self) -> None:
        """Decide alone while the shared state is out of reach."""
        for limit in self._limits.values():
            limit.suspend(self._members(), _loop_time())
        self._busy.update(dict.fromkeys(self._limits.values()))

    def resume(self) -> None:
        """Share again."""
        for limit in self._limits.values():
            limit.resume(_loop_time())
        self._busy.update(dict.fromkeys(self._limits.values()))

    def forget(self) -> None:
        """Drop the task and the requests that wait for it: they belong to another loop."""
        self._task = None
        self._orders.clear()

    def forked(self) -> None:
        """Drop all leases after a fork: they belong to the parent process."""
        self.forget()
        for limit in self._limits.values():
            limit.forget()

    def _hear_found(self) -> None:
        """Pass on the restored usage at the first use: its instants are the loop's, which did not run before."""
        if self._found is None:
            return
        view, self._found = self._found, None
        self.hear(view)

    def hear(self, view: SharedView) -> None:
        """Take in what is left for all processes, of limits whose account is settled: that of others is under way."""
        now, here = asyncio.get_running_loop().time(), self._here()
        for row in view.limits:
            limit, known = self._limits.get(row.key), told(row, here)
            if isinstance(limit, ClientRate) and limit not in self._busy and known is not None:
                limit.hear(known.left, now)
        for budget in view.budgets:
            limit = self._limits.get(budget.key)
            if isinstance(limit, ClientBudget) and limit not in self._busy:
                ends_in = remaining(budget.until, here, limit.period)
                limit.hear(limit.capacity - budget.used, ends_in, now)

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._orders or self._again:
            orders, self._orders = self._orders, []
            self._again = False
            try:
                await self._round(orders)
            finally:
                for order in orders:
                    if not order.answered.done():
                        order.answered.set_result(None)

    async def _round(self, orders: Sequence[_Order], *, ending: bool = False) -> None:
        now = asyncio.get_running_loop().time()
        self._busy.update(dict.fromkeys(limit for order in orders for limit, _ in order.needs))
        accounts = [account for limit in self._busy if (account := limit.account(now, ending=ending)) is not None]
        requests = [(order, limit, limit.request(amount)) for order in orders for limit, amount in order.needs]
        questions = [*accounts, *(question for *_, question in requests)]
        if questions and (grants := await self._ask(questions)):
            now = asyncio.get_running_loop().time()
            for question, grant in zip(questions, grants, strict=True):
                if grant is not None:
                    question.answered(grant, now)
                    continue
                question.lost()  # only later versions can read this limit: it is decided alone
                self._limits[question.ask.key].suspend(self._members(), now)
            for order in orders:
                order.answered_at = now
            for (order, limit, _), grant in zip(requests, grants[len(accounts) :], strict=True):
                if grant is None or not grant.granted:
                    continue
                if order.left:
                    limit.release(grant.granted)
                    self._again = True
                else:
                    order.granted.append((limit, grant.granted))
        self._busy = {limit: None for limit in self._busy if not limit.idle}

    async def _ask(self, questions: Sequence[UsageQuestion]) -> tuple[BucketGrant | None, ...]:
        """The answers, none when the shared state cannot be asked."""
        with self._reach.patience():
            try:
                return await self._shared.lease([question.ask for question in questions])
            except Exception as error:  # noqa: BLE001 - whatever a store does, requests go on
                for question in questions:
                    question.lost()
                reason = error.reason if isinstance(error, SharedStateError) else f"{type(error).__name__}: {error}"
                self._reach.lose(reason)
        return ()


def _loop_time() -> float:
    """The running loop's time; that of any loop where none runs."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()
