"""Virtual keys of gateways that share a state, in virtual time: one limit for all of them, and none without a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from smart_model_router.config import GatewayKeyConfig, Secret
from smart_model_router.coordination import Coordinator
from smart_model_router.coordination.client_leases import LEASE_WAIT
from smart_model_router.domain.outcome import Usage
from smart_model_router.domain.report import Attempt, RouteReport
from smart_model_router.domain.shared_state import BucketAsk, BucketGrant, BudgetAsk, ClockReading, SharedView
from smart_model_router.gateway.client_keys import ApiClient, KeyRing
from smart_model_router.http_api import ProblemError
from smart_model_router_stats.memory import MemorySharedState, MemoryTables
from tests.world import now, virtual, world

WORKERS = 4


def here() -> ClockReading:
    """The clocks that all workers have in common."""
    return ClockReading("boot", now() + 5_000, now() + 1_700_000_000)


class Store(MemorySharedState):
    """A shared state that answers a lease after `delay` seconds. `leases` counts them."""

    def __init__(self, tables: MemoryTables) -> None:
        super().__init__(tables, here)
        self.delay = 0.0
        self.leases = 0

    async def lease(self, asks: Sequence[BucketAsk | BudgetAsk]) -> tuple[BucketGrant, ...]:
        """Answer when the delay is over."""
        self.leases += 1
        await asyncio.sleep(self.delay)
        return await super().lease(asks)

    async def poll(self) -> SharedView | None:
        """A file that is slow for one question is slow for all."""
        await asyncio.sleep(self.delay)
        return await super().poll()


class Worker:
    """A process of the gateway."""

    def __init__(self, tables: MemoryTables, **limits: Any) -> None:
        self.world, self.store = world(["a/m"]), Store(tables)
        state = self.world.state
        state.here = here
        state.coordinator = self.coordinator = Coordinator(state, self.store, {}, holder=lambda: f"worker {id(self)}")
        self.api_client = self.ring(**limits).api_client({"x-api-key": "k"})

    def ring(self, **limits: Any) -> KeyRing:
        """Its keys: one, with these limits."""
        ring = KeyRing({"team": GatewayKeyConfig(key=Secret("k"), **limits)})
        ring.share(self.world.router.client_leases)
        return ring

    async def close(self) -> None:
        """End as told."""
        await self.world.router.aclose()


def workers(count: int = WORKERS, **limits: Any) -> list[Worker]:
    """So many of one host, with one key that has these limits."""
    tables = MemoryTables()
    return [Worker(tables, **limits) for _ in range(count)]


async def admitted(api_client: ApiClient, tokens: int = 0, usd: float = 0.0) -> bool:
    """Whether a question of the guest is let in."""
    try:
        await api_client.admit(tokens, usd)
    except ProblemError:
        return False
    return True


async def refused_for(api_client: ApiClient, usd: float = 0.0) -> float:
    """How long the guest has to wait."""
    with pytest.raises(ProblemError) as refused:
        await api_client.admit(0, usd)
    assert refused.value.problem.retry_after is not None
    return refused.value.problem.retry_after


def bill(usd: float) -> list[RouteReport]:
    """The reports of an answer that cost so much."""
    return [RouteReport("r", "smart", "frontier", attempts=[Attempt("a/m", 1.0, usage=Usage(5, 5), cost_usd=usd)])]


def over_workers(**limits: Any) -> Callable[[Callable[[list[Worker]], Coroutine[Any, Any, None]]], Callable[[], None]]:
    """Run a test over four workers, and close them."""

    def decorate(test: Callable[[list[Worker]], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        @virtual
        async def run() -> None:
            made = workers(**limits)
            await test(made)
            for worker in made:
                await worker.close()

        run.__doc__ = test.__doc__
        return run

    return decorate


@over_workers(rpm=60)
async def test_sixty_a_minute_are_sixty_over_all_workers(made: list[Worker]) -> None:
    """100 a second for 4 minutes: 60 +- 4 in every minute after the first, in which a full bucket goes out, too."""
    minutes, began = [0] * 4, now()
    for number in range(4 * 60 * 100):
        minutes[number // 6_000] += await admitted(made[number % WORKERS].api_client)
        await asyncio.sleep(began + (number + 1) / 100 - now())
    assert 116 <= minutes[0] <= 124
    assert all(56 <= minute <= 64 for minute in minutes[1:]), minutes
    assert sum(worker.store.leases for worker in made) <= 4 * 60 * 5 * WORKERS  # a refusal is known for a while


@over_workers(rpm=3)
async def test_three_a_minute_are_three_whichever_worker_is_asked(made: list[Worker]) -> None:
    """All three at once by one worker, or each by another: nothing lies about where it is not wanted."""
    assert [await admitted(made[0].api_client) for _ in range(4)] == [True] * 3 + [False]
    assert await refused_for(made[1].api_client) == pytest.approx(20.0)
    await asyncio.sleep(60.0)
    assert [await admitted(worker.api_client) for worker in made] == [True] * 3 + [False]
    for worker in made:
        await asyncio.sleep(20.0)
        assert await admitted(worker.api_client)


@over_workers(rpm=3)
async def test_requests_at_the_same_instant_share_what_there_is(made: list[Worker]) -> None:
    """Twelve of four workers: three."""
    asked = [admitted(worker.api_client) for worker in made for _ in range(3)]
    assert sum(await asyncio.gather(*asked)) == 3


@over_workers(tpm=6_000)
async def test_tokens_are_settled_with_everybody(made: list[Worker]) -> None:
    """What an answer did not use is another worker's within a second; what it used beyond its estimate is missing."""
    one, other = made[0].api_client, made[1].api_client
    visit = await one.admit(6_000, 0.0)
    assert not await admitted(other, 5_000)
    visit.settle([], now())
    await asyncio.sleep(1.0)
    visit = await other.admit(5_000, 0.0)
    visit.settle([RouteReport("r", "smart", "frontier", attempts=[Attempt("a/m", 1.0, usage=Usage(5_900, 0))])], now())
    await asyncio.sleep(1.0)
    assert not await admitted(one, 1_000)


@over_workers(rpm=60_000)
async def test_a_large_limit_is_leased_in_chunks(made: list[Worker]) -> None:
    """A thousand requests ask the others a few times, and what is not used goes back."""
    worker = made[0]
    for _ in range(1_000):
        assert await admitted(worker.api_client)
        await asyncio.sleep(0.001)
    assert worker.store.leases <= 10
    await asyncio.sleep(5.0)
    (grant,) = await worker.store.lease([BucketAsk(key=KEY, capacity=60_000, rate=1_000, most=60_000, ours=True)])
    assert grant.left == 60_000


KEY = f"guest {KeyRing({'k': GatewayKeyConfig(key=Secret('k'))})._clients[0][0].hex()[:8]} requests"


@over_workers(rpm=60, tpm=100)
async def test_a_request_that_is_refused_gives_back_what_was_leased_for_it(made: list[Worker]) -> None:
    """It lacks tokens: its request is another's at once."""
    assert await admitted(made[0].api_client, 100)
    for _ in range(80):
        assert not await admitted(made[0].api_client, 100)
        await asyncio.sleep(0.3)
    assert [await admitted(made[1].api_client, 0) for _ in range(59)] == [True] * 59


@over_workers(usd_per_day=1.0)
async def test_a_days_money_is_reserved_before_and_settled_after(made: list[Worker]) -> None:
    """By whichever worker; the last question may exceed the budget by its own cost."""
    visits = [await worker.api_client.admit(0, 0.4) for worker in made[:3]]
    assert await refused_for(made[3].api_client, 0.4) <= 5.0
    for visit in visits:
        visit.settle(bill(0.1), now())
    await asyncio.sleep(1.0)
    visit = await made[3].api_client.admit(0, 0.4)
    visit.settle(bill(0.9), now())
    await asyncio.sleep(1.0)
    assert await refused_for(made[0].api_client, 0.01) == pytest.approx(86_398.0, abs=0.1)


@virtual
async def test_a_days_money_outlives_the_process() -> None:
    """What was reserved by one that died stays spent; a new process knows of it before its first answer."""
    tables = MemoryTables()
    dead = Worker(tables, usd_per_day=1.0)
    for _ in range(2):
        await dead.api_client.admit(0, 0.5)
    again = Worker(tables, usd_per_day=1.0)
    assert await refused_for(again.api_client) <= 5.0
    slow = Worker(tables, usd_per_day=1.0)
    slow.store.delay = 0.1
    assert await refused_for(slow.api_client) > 80_000.0
    for worker in (again, slow):
        await worker.close()


@virtual
async def test_a_new_process_knows_what_is_left_before_the_store_has_answered() -> None:
    """It decides by that while the store is slow."""
    tables = MemoryTables()
    one, other = (Worker(tables, rpm=3) for _ in range(2))
    assert [await admitted(one.api_client) for _ in range(2)] == [True] * 2
    slow = Worker(tables, rpm=3)
    slow.store.delay = 0.1
    assert [await admitted(slow.api_client) for _ in range(2)] == [True, False]
    for worker in (one, other, slow):
        await worker.close()


@virtual
async def test_a_store_that_cannot_be_asked_fails_no_request() -> None:
    """Each worker decides alone by what it knows; what it spent meanwhile is told as soon as the store is back."""
    one, other = workers(2, rpm=60, usd_per_day=1.0)
    await one.api_client.admit(0, 0.1)
    one.store.failure = "the disk is on fire"
    visits = [await one.api_client.admit(0, 0.1) for _ in range(9)]
    assert not await admitted(one.api_client)
    for visit in visits:
        visit.settle(bill(0.2), now())
    one.store.failure = ""
    await asyncio.sleep(3.0)
    assert await refused_for(other.api_client) > 5.0
    for worker in (one, other):
        await worker.close()


@virtual
async def test_a_slow_store_costs_a_request_20_ms_and_is_told_afterwards() -> None:
    """No request waits longer, or is refused for it; what each worker took is missing for all."""
    one, other = workers(2, rpm=60)
    one.store.delay = other.store.delay = 0.1
    before = now()
    for _ in range(30):
        assert await admitted(one.api_client)
        assert await admitted(other.api_client)
    assert now() - before <= 60 * LEASE_WAIT + 0.001
    await asyncio.sleep(1.0)
    more = sum([await admitted(worker.api_client) for _ in range(20) for worker in (one, other)])
    assert more <= 2 + 0.02 * 40 + 2  # what came back meanwhile, and one that each worker did not know of
    for worker in (one, other):
        await worker.close()


@virtual
async def test_a_client_that_leaves_while_it_waits_takes_nothing() -> None:
    """What is granted after it left goes back."""
    one, other = workers(2, rpm=3)
    one.store.delay = 0.01
    leaving = asyncio.ensure_future(one.api_client.admit(0, 0.0))
    await asyncio.sleep(0.005)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await asyncio.sleep(1.0)
    assert [await admitted(other.api_client) for _ in range(4)] == [True] * 3 + [False]
    for worker in (one, other):
        await worker.close()


@virtual
async def test_a_reload_gives_nobody_a_new_minute() -> None:
    """Neither of the same limit nor of a larger one; a limit of another key is another one."""
    (worker,) = workers(1, rpm=3)
    assert [await admitted(worker.api_client) for _ in range(4)] == [True] * 3 + [False]
    for limits in ({"rpm": 3}, {"rpm": 60}):
        assert not await admitted(worker.ring(**limits).api_client({"x-api-key": "k"}))
    await worker.close()
