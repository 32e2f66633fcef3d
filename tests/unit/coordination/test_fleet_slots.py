"""Slots of a bulkhead over many machines: those of each machine, or of all of them together."""

from __future__ import annotations

import asyncio

import pytest

from smart_model_router.coordination import Coordinator, SharedKeys
from smart_model_router.domain.shared_state.members import TELL_EVERY
from smart_model_router.testing import FakeProvider, FakeReply
from smart_model_router_stats.memory import MemoryTables
from tests.unit.coordination.test_slot_leases import Store, here
from tests.world import World, served_by, virtual, world

SLOTS = 4
MACHINES = 3


class Server(Store):
    """A shared state that many machines have."""

    round_trip = 0.001
    conflicts = 0


class Fleet:
    """Machines of two processes, which all call one provider."""

    def __init__(self, *, of_fleet: bool, store: type[Store] = Server) -> None:
        self.tables = MemoryTables()
        self.provider = FakeProvider(FakeReply(seconds=1.0))
        self.made: list[World] = []
        self.stores: list[Store] = []
        for number in range(2 * MACHINES):
            made = world(["a/m"], replies={"a": self.provider}, kinds={"a": {"bulkhead": SLOTS}})
            state, shared = made.state, store(self.tables)
            state.here = here
            owners = {"a/m": SharedKeys("a/m", "a", "a/m", slots="a", slots_of_fleet=of_fleet)}
            state.coordinator = Coordinator(
                state, shared, owners, holder=f"process {number}".strip, machine=f"m{number % MACHINES}"
            )
            self.made.append(made)
            self.stores.append(shared)

    async def most(self) -> int:
        """Send twenty requests at once to each process; return the most calls that were in flight together."""
        calls = [asyncio.ensure_future(served_by(made)) for made in self.made for _ in range(20)]
        most = 0
        while not all(call.done() for call in calls):
            most = max(most, self.provider.in_flight)
            await asyncio.sleep(0.05)
        return most

    async def close(self) -> None:
        """End all processes."""
        for made in self.made:
            await made.router.aclose()


@pytest.mark.parametrize(
    ("of_fleet", "store", "most"),
    [(True, Server, SLOTS), (False, Server, MACHINES * SLOTS), (False, Store, SLOTS), (True, Store, SLOTS)],
    ids=["fleet", "host", "host on a file", "fleet on a file"],
)
@virtual
async def test_the_slots_are_those_of_the_fleet_or_of_each_machine(
    of_fleet: bool, store: type[Store], most: int
) -> None:
    """A file is one host's, whatever names its containers have."""
    fleet = Fleet(of_fleet=of_fleet, store=store)
    assert await fleet.most() == most
    await fleet.close()


@pytest.mark.parametrize(("of_fleet", "alone"), [(True, 2 * MACHINES * 1), (False, 2 * MACHINES * SLOTS // 2)])
@virtual
async def test_while_the_server_is_away_each_process_has_its_part(of_fleet: bool, alone: int) -> None:
    """Of the machine's slots, or of the fleet's; one at least."""
    fleet = Fleet(of_fleet=of_fleet)
    for made in fleet.made:
        await served_by(made)
    await asyncio.sleep(30.0 + TELL_EVERY)  # idle leases are over
    for store in fleet.stores:
        store.failure = "the server is away"
    await asyncio.sleep(1.0)
    assert await fleet.most() == alone
    await fleet.close()
