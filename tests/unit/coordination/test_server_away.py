"""What becomes of limits and of clients' keys while the shared state is away: each process takes its part, no more."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest

from smart_model_router.coordination import Coordinator, SharedKeys
from smart_model_router.core.ratelimit import RateLimitTracker
from smart_model_router.domain.outcome import BucketReading, LimitReading
from smart_model_router.domain.shared_state.members import TELL_EVERY
from smart_model_router_stats.memory import MemoryTables
from tests.unit.coordination.test_coordinator import LISTENED, Store, here
from tests.unit.gateway.test_shared_keys import Worker, admitted, bill
from tests.world import World, served_by, virtual, world

MEMBERS = 4
RPM = 600
PART = RPM / MEMBERS
LOST = 0.6
"""Seconds in which every process finds out that the state is away."""
BACK = 3.0
"""Seconds after which every process shares again."""


class Server(Store):
    """A shared state that many machines have."""

    round_trip = 0.001
    conflicts = 0


class Fleet:
    """Machines of one process, which share the limit of one target: `RPM`, unless `limits` says otherwise."""

    def __init__(self, members: int = MEMBERS, *, processes: int = 1, machines: int = 0, **limits: Any) -> None:
        self.tables = MemoryTables()
        self.worlds: list[World] = []
        self.stores: list[Store] = []
        for number in range(members):
            made = world(
                ["a/m"],
                kinds={"a": {"bulkhead": 1000, **(limits or {"rpm": RPM})}},
                config={"routing": {"max_wait": 0}},
            )
            store = Server(self.tables)
            made.state.here = here
            made.state.coordinator = Coordinator(
                made.state,
                store,
                {"a/m": SharedKeys("a/m", "a", "a/m")},
                holder=f"p{number}".strip,
                machine=f"m{number}",
                processes=processes,
                machines=machines,
            )
            self.worlds.append(made)
            self.stores.append(store)

    @property
    def calls(self) -> list[int]:
        """The calls of each process so far."""
        return [made.calls("a") for made in self.worlds]

    def limits(self, number: int = 0) -> RateLimitTracker:
        """The limits as a process knows them."""
        return self.worlds[number].gate("a/m").limits

    async def ask(self, seconds: float, *, every: float = 0.2, processes: Sequence[int] | None = None) -> list[int]:
        """Ask each of the processes `every` so many seconds; return the calls that each made."""
        before, chosen = self.calls, range(len(self.worlds)) if processes is None else processes
        for _ in range(round(seconds / every)):
            for number in chosen:
                await served_by(self.worlds[number])
            await asyncio.sleep(every)
        return [after - was for was, after in zip(before, self.calls, strict=True)]

    async def meet(self) -> None:
        """Let every process know all others."""
        for made in self.worlds:
            await served_by(made)
        await asyncio.sleep(TELL_EVERY + LISTENED)

    def fail(self, reason: str = "the server is away", processes: Sequence[int] | None = None) -> None:
        """From now on the state cannot be reached ("": it can) by these processes, or by any."""
        for number, store in enumerate(self.stores):
            if processes is None or number in processes:
                store.failure = reason

    async def close(self) -> None:
        """End all processes."""
        for made in self.worlds:
            await made.router.aclose()


@virtual
async def test_each_process_takes_its_part_of_a_limit_while_the_state_is_away() -> None:
    """A quarter each of four, from nothing on: in a minute all of them together take the limit once."""
    fleet = Fleet()
    await fleet.meet()
    await fleet.ask(3.0)
    fleet.fail()
    await asyncio.sleep(LOST)
    taken = await fleet.ask(60.0)
    chunk = 0.02 * RPM
    assert all(0.95 * PART <= each <= PART + 2 * chunk for each in taken), taken
    await fleet.close()


@virtual
async def test_the_part_begins_with_what_the_process_had_leased_and_no_more() -> None:
    """What the others leased is not spent twice."""
    fleet = Fleet()
    await fleet.meet()
    await fleet.ask(3.0)
    fleet.fail()
    await asyncio.sleep(LOST)
    at_once = [sum([await served_by(made) is not None for _ in range(200)]) for made in fleet.worlds]
    chunk = 0.02 * RPM
    assert all(each <= 2 * chunk + LOST * PART / 60 for each in at_once), at_once
    await fleet.close()


@virtual
async def test_a_single_process_whose_state_is_away_keeps_the_whole_limit() -> None:
    """As without any shared state."""
    fleet = Fleet(1)
    await fleet.meet()
    fleet.fail()
    await asyncio.sleep(LOST)
    assert sum([await served_by(fleet.worlds[0]) is not None for _ in range(RPM + 100)]) >= RPM - 5
    await fleet.close()


@pytest.mark.parametrize(("numbers", "part"), [({"processes": 8}, RPM / 8), ({"machines": 10}, RPM / 10)])
@virtual
async def test_the_configured_numbers_make_the_part(numbers: dict[str, int], part: float) -> None:
    """`store.processes` where fewer were counted, `store.machines` whatever was counted."""
    fleet = Fleet(**numbers)
    await fleet.meet()
    fleet.fail()
    await asyncio.sleep(LOST)
    await fleet.ask(5.0)
    taken = await fleet.ask(60.0)
    assert all(0.95 * part <= each <= 1.05 * part for each in taken), taken
    await fleet.close()


@virtual
async def test_after_the_heal_the_fleet_has_one_limit_again() -> None:
    """What was taken meanwhile is missing: in the minute around the heal no more than the limit goes out."""
    fleet = Fleet()
    await fleet.meet()
    fleet.fail()
    await fleet.ask(60.0)
    before = sum(fleet.calls)
    await fleet.ask(30.0)
    fleet.fail("")
    await fleet.ask(30.0)
    around = sum(fleet.calls) - before
    chunk = 0.02 * RPM
    assert 0.9 * RPM <= around <= RPM + MEMBERS * chunk + RPM / 60
    assert 0.9 * RPM <= 3 * sum(await fleet.ask(20.0)) <= 1.1 * RPM
    await fleet.close()


@virtual
async def test_a_process_that_was_cut_off_alone_owes_what_it_took() -> None:
    """The others shared the limit all the time; once it is back, its calls are missing for all."""
    fleet = Fleet()
    await fleet.meet()
    await fleet.ask(10.0, every=0.05)  # nothing of a full bucket is left
    fleet.fail(processes=[0])
    cut = await fleet.ask(30.0)
    assert 0.9 * PART <= 2 * cut[0] <= 1.2 * PART
    assert sum(cut[1:]) <= 0.55 * RPM
    fleet.fail("")
    assert sum(await fleet.ask(20.0)) <= RPM / 3 - PART / 2 + MEMBERS * 0.02 * RPM
    await fleet.close()


@virtual
async def test_the_first_process_that_is_back_waits_for_what_the_others_owe() -> None:
    """Its own part goes on meanwhile."""
    fleet = Fleet()
    await fleet.meet()
    fleet.fail()
    await fleet.ask(60.0)
    fleet.fail("")
    first = await fleet.ask(1.0, every=0.01)
    assert sum(first) <= 2 * RPM / 60 + MEMBERS * 0.02 * RPM
    await fleet.close()


async def of_a_later_version(asks: Sequence[object]) -> tuple[None, ...]:
    """The answer where only later versions can read what is leased."""
    return (None,) * len(asks)


@virtual
async def test_a_limit_that_only_later_versions_can_read_is_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the state stays within reach for everything else."""
    fleet = Fleet()
    await fleet.meet()
    for store in fleet.stores:
        monkeypatch.setattr(store, "lease", of_a_later_version)
    await fleet.ask(3.0)
    taken = await fleet.ask(60.0)
    chunk = 0.02 * RPM
    assert all(0.95 * PART <= each <= PART + 2 * chunk for each in taken), taken
    assert [coordinator.reason for made in fleet.worlds if (coordinator := made.state.coordinator)] == [""] * MEMBERS
    await fleet.close()


def a_day(limit: int, remaining: int, reset: float) -> LimitReading:
    """An answer's word on a limit a day."""
    return LimitReading((BucketReading("requests", limit, remaining, reset, window_seconds=86_400.0),))


@virtual
async def test_the_part_of_a_long_window_is_what_was_left_divided_by_all() -> None:
    """A day's limit is not lost for the rest of the day, and not taken by all who could."""
    fleet = Fleet(bulkhead=1000)
    await fleet.meet()
    for number in range(MEMBERS):
        fleet.limits(number).update(a_day(1000, 400, 40_000.0), 0, here().boottime - 5_000)
    await fleet.ask(2.0, every=0.5)
    left = min(fleet.limits(number).buckets["requests/86400"].level(here().boottime - 5_000) for number in range(4))
    await asyncio.sleep(TELL_EVERY + LISTENED)
    fleet.fail()
    await asyncio.sleep(LOST)
    taken = await fleet.ask(20.0)
    assert all(each <= left / MEMBERS + 2 * 0.02 * 1000 + 1 for each in taken), (taken, left)
    assert sum(taken) >= 0.9 * left - 2 * 0.02 * 1000 * MEMBERS
    await fleet.close()


@virtual
async def test_an_idle_process_knows_what_the_others_left_of_a_long_window() -> None:
    """Every few seconds: its part is not that of a full window."""
    fleet = Fleet(bulkhead=1000)
    await fleet.meet()
    for number in range(MEMBERS):
        fleet.limits(number).update(a_day(1000, 1000, 40_000.0), 0, here().boottime - 5_000)
    await fleet.ask(40.0, every=0.05, processes=[0])
    used = fleet.calls[0]
    assert used >= 700
    await asyncio.sleep(TELL_EVERY + LISTENED)
    fleet.fail()
    await asyncio.sleep(LOST)
    taken = await fleet.ask(20.0, processes=[1, 2, 3])
    assert sum(taken) <= (1000 - used) + MEMBERS * 0.02 * 1000, (used, taken)
    await fleet.close()


@virtual
async def test_the_stock_of_a_process_that_was_stopped_is_void() -> None:
    """Tokens that were leased longer than 2 s ago and not asked for since are the others' by now."""
    fleet = Fleet(1)
    await fleet.meet()
    await fleet.ask(1.0, every=0.02)
    ((_, _, stock),) = fleet.limits().stocks
    assert stock.level > 0
    assert stock.due_at(1.0, here().boottime - 5_000) == here().boottime - 5_000
    stock.plenty = False
    later = here().boottime - 5_000 + 60.0
    assert stock.due_at(1.0, later) > later
    assert stock.level <= 0
    await fleet.close()


KEY_RPM = 120


def keys(**limits: Any) -> list[Worker]:
    """The gateways of a fleet, with one key that has these limits."""
    tables = MemoryTables()
    return [Worker(tables, **limits) for _ in range(MEMBERS)]


async def away(made: Sequence[Worker]) -> None:
    """Let all processes know each other, then take the state away."""
    for worker in made:
        await admitted(worker.api_client, 1)
    await asyncio.sleep(TELL_EVERY + LISTENED)
    for worker in made:
        worker.store.failure = "the server is away"
    await asyncio.sleep(LOST)


async def asked(made: Sequence[Worker], seconds: float, tokens: int = 0) -> list[int]:
    """Ask each process twenty times a second; return what each admitted."""
    counts = [0] * len(made)
    for _ in range(round(seconds * 20)):
        for number, worker in enumerate(made):
            counts[number] += await admitted(worker.api_client, tokens)
        await asyncio.sleep(0.05)
    return counts


@virtual
async def test_a_keys_requests_are_a_part_each_while_the_state_is_away() -> None:
    """And one limit again afterwards."""
    made = keys(rpm=KEY_RPM)
    await away(made)
    counts = await asked(made, 60.0)
    assert all(0.9 * KEY_RPM / MEMBERS <= each <= KEY_RPM / MEMBERS + 4 for each in counts), counts
    for worker in made:
        worker.store.failure = ""
    assert sum(await asked(made, 60.0)) <= KEY_RPM + 2 * MEMBERS
    for worker in made:
        await worker.close()


@virtual
async def test_a_keys_tokens_are_a_part_each_while_the_state_is_away() -> None:
    """Also those of requests that are larger than a part: what they exceed it by is owed."""
    made = keys(tpm=12_000)
    await away(made)
    counts = await asked(made, 180.0, tokens=4_000)
    assert all(2 <= each <= 3 for each in counts), counts
    for worker in made:
        await worker.close()


@virtual
async def test_a_keys_money_left_is_divided_while_the_state_is_away() -> None:
    """Each process may spend its part of what is left, up to one answer more; what it spent is told afterwards."""
    made = keys(usd_per_day=1.0)
    visit = await made[0].api_client.admit(0, 0.2)
    visit.settle(bill(0.2), 0.0)
    await away(made)
    spent = [0.0] * MEMBERS
    for number, worker in enumerate(made):
        while await admitted(worker.api_client, 0):
            visit = await worker.api_client.admit(0, 0.05)
            visit.settle(bill(0.05), 0.0)
            spent[number] += 0.05
            assert spent[number] < 1.0
    assert all(math.isclose(each, 0.2, abs_tol=0.051) for each in spent), spent
    for worker in made:
        worker.store.failure = ""
    await asyncio.sleep(BACK)
    assert [await admitted(worker.api_client) for worker in made] == [False] * MEMBERS
    for worker in made:
        await worker.close()


@virtual
async def test_a_single_gateway_whose_state_is_away_keeps_the_whole_limit_of_a_key() -> None:
    """As without any shared state."""
    worker = Worker(MemoryTables(), rpm=KEY_RPM, usd_per_day=1.0)
    await away([worker])
    assert sum([await admitted(worker.api_client) for _ in range(KEY_RPM + 20)]) >= KEY_RPM - 2
    await worker.close()


@pytest.mark.parametrize(
    ("limits", "usd", "most"), [({"rpm": KEY_RPM}, 0.0, KEY_RPM / MEMBERS), ({"usd_per_day": 2.0}, 0.05, 10)]
)
@virtual
async def test_a_key_that_only_later_versions_can_read_has_a_part_at_each_process(
    limits: dict[str, Any], usd: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the state stays within reach for everything else."""
    made = keys(**limits)
    for worker in made:
        await admitted(worker.api_client, 1)
    await asyncio.sleep(TELL_EVERY + LISTENED)
    for worker in made:
        monkeypatch.setattr(worker.store, "lease", of_a_later_version)
    counts = [0] * MEMBERS
    for _ in range(60 * 20):
        for number, worker in enumerate(made):
            counts[number] += await admitted(worker.api_client, 0, usd)
        await asyncio.sleep(0.05)
    assert all(0.9 * most <= each <= most + 4 for each in counts), counts
    assert [worker.coordinator.reason for worker in made] == [""] * MEMBERS
    for worker in made:
        await worker.close()
