"""A limit that processes share is used up and not run into, whenever each of them begins: in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.coordination import Coordinator, SharedKeys
from smart_model_router.domain.shared_state import BucketAsk, BucketGrant, BudgetAsk, ClockReading
from smart_model_router.testing import LoopClock
from smart_model_router_providers.fault import Fault, ScriptedProvider
from smart_model_router_providers.fault.effects import LimitKind
from smart_model_router_stats.memory import MemorySharedState, MemoryTables
from tests.world import now, virtual

LIMIT = 600
WORKERS = 2


def here() -> ClockReading:
    """The clocks that all processes have in common."""
    return ClockReading("boot", now() + 5_000, now() + 1_700_000_000)


class Store(MemorySharedState):
    """A store that takes its time, as a file that others write to does."""

    def __init__(self, tables: MemoryTables, chance: random.Random) -> None:
        super().__init__(tables, here)
        self._chance = chance
        self.asked = 0

    async def lease(self, asks: Sequence[BucketAsk | BudgetAsk]) -> tuple[BucketGrant, ...]:
        """Lease tokens; the answer is on its way for a while as well."""
        self.asked += 1
        await asyncio.sleep(self._chance.expovariate(100))
        grants = await super().lease(asks)
        await asyncio.sleep(self._chance.expovariate(100))
        return grants


class Used(NamedTuple):
    """The calls that were granted, those refused in the unluckiest process, the fewest granted of one, questions."""

    granted: int
    refused: int
    fewest: int
    questions: int


async def use_up(refill: LimitKind, burst: float | None, begins: Sequence[float], seconds: float) -> Used:
    """Two workers in each process from the instant it `begins`."""
    chance, tables, until = random.Random(1), MemoryTables(), now() + seconds
    limit = Fault.limit(rpm=LIMIT, kind=refill, headers="openai", burst=burst)
    script = [limit, Fault.delay(first=0.05)]
    stores: list[Store] = []
    provider = ScriptedProvider(script, clock=LoopClock(), kind="openai", api_keys=["k"], keep_requests=100_000)

    async def process(number: int, begins: float) -> None:
        await asyncio.sleep(begins)
        tree = {
            "version": 1,
            "providers": {"p": {"kind": "openai", "base_url": "http://p.invalid/v1", "api_key": "k", "bulkhead": 100}},
            "routing": {"max_wait": "120s"},
            "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
        }
        router = SmartModelRouter.from_config(tree, clock=LoopClock(), seed=number, providers={"p": provider})
        owners = {"p/m": SharedKeys("p/m", "p", "p/m")}
        state = router._state
        state.here = here
        stores.append(Store(tables, chance))
        state.coordinator = Coordinator(state, stores[-1], owners, holder=lambda: f"process {number}")

        async def worker() -> None:
            body = {"model": "smart", "messages": [{"role": "user", "content": "hello"}], "user": str(number)}
            while now() < until:
                await asyncio.sleep(0.1 * chance.random())
                await router.chat(body)

        await asyncio.gather(*(worker() for _ in range(WORKERS)))
        await router.aclose()

    await asyncio.gather(*(process(number, later) for number, later in enumerate(begins)))
    refused = Counter(request.body["user"] for request in provider.requests if request.status == 429)
    granted = Counter(request.body["user"] for request in provider.requests if request.status == 200)
    in_time = sum(request.status == 200 and request.at < until for request in provider.requests)
    return Used(in_time, max(refused.values(), default=0), min(granted.values()), sum(store.asked for store in stores))


@pytest.mark.parametrize(
    ("refill", "burst", "due"),
    [
        ("continuous", None, LIMIT + LIMIT),
        ("continuous", LIMIT / 60, LIMIT / 60 + LIMIT),
        ("window", None, LIMIT),
    ],
    ids=["continuous", "a second at once", "window"],
)
@pytest.mark.parametrize("begins", [(0.0, 0.0, 0.0, 0.0), (0.0, 0.3, 2.9, 16.0)], ids=["at once", "one by one"])
@virtual
async def test_four_processes_use_a_limit_up(
    refill: LimitKind, burst: float | None, due: float, begins: Sequence[float]
) -> None:
    """Also when the last begins where nothing is left: 95 % is granted, and nothing refused."""
    used = await use_up(refill, burst, begins, 59.0)
    assert used.granted >= 0.95 * due
    assert used.refused == 0


@virtual
async def test_a_process_that_begins_late_does_not_end_everybodys_window() -> None:
    """It has never seen one; the next window is used up by all of them."""
    used = await use_up("window", None, (0.0, 0.3, 19.6, 28.3), 90.0)
    assert used.granted >= 0.95 * 2 * LIMIT
    assert used.refused == 0


@virtual
async def test_of_eight_processes_that_wait_none_is_left_out_and_none_asks_all_the_time() -> None:
    """Of a limit without a reserve each has half of its part at least, and asks four times a second and to settle."""
    used = await use_up("continuous", LIMIT / 60, [0.01 * number for number in range(8)], 30.0)
    assert used.granted >= 0.95 * LIMIT / 2
    assert used.fewest >= LIMIT / 2 / 8 / 2
    assert used.questions <= 8 * 30 * 5
