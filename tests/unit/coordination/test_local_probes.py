"""The processes of one machine while their server is away: one probes at a time, and one an open time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

from smart_model_router.coordination import Coordinator, SharedKeys
from smart_model_router.coordination.local_probes import LocalProbes
from smart_model_router.coordination.shared_breakers import SharedBreaker, SharedBreakers
from smart_model_router.core.lease import Lease
from smart_model_router.domain.events import ProbeStarted
from smart_model_router.domain.shared_state import LEASE_SECONDS
from smart_model_router.rehearsal.simulation.simulated_server import Machine, SimulatedLocks
from smart_model_router.testing import FakeReply
from smart_model_router_stats.memory import MemoryTables
from tests.unit.coordination.test_coordinator import LISTENED, here, trip
from tests.unit.coordination.test_server_away import LOST, Server
from tests.world import DOWN, World, now, served_by, virtual, world


async def sharing(*machines: Machine) -> tuple[list[World], list[Server]]:
    """A process on each of these machines, and its way to the server; the breaker of `a/m` is open."""
    tables, worlds, stores = MemoryTables(), [], []
    for number, machine in enumerate(machines):
        made, store = world(["a/m"], ["b/m"], config={"routing": {"degrade_after": "1ms"}}), Server(tables)
        made.state.here = here
        made.state.coordinator = Coordinator(
            made.state,
            store,
            {"a/m": SharedKeys("a/m", "a", "a/m")},
            holder=f"p{number}".strip,
            machine=machine.name,
            locks=SimulatedLocks(machine),
        )
        worlds.append(made)
        stores.append(store)
        await served_by(made)
    await trip(worlds[0])
    await asyncio.sleep(LISTENED)
    return worlds, stores


async def cut_off(*machines: Machine) -> list[World]:
    """The same, and then the server is away."""
    worlds, stores = await sharing(*machines)
    for store in stores:
        store.delay = 1e6
    for made in worlds:
        await served_by(made)
    await asyncio.sleep(LOST)
    return worlds


async def close(*worlds: World) -> None:
    """Let the routers end."""
    for made in worlds:
        await made.router.aclose()


def due(made: World) -> float:
    """When the probe of `a/m` is due there."""
    return made.gate("a/m").breakers["whole"].open_until or 0.0


async def until(instant: float) -> None:
    """Wait for an instant."""
    await asyncio.sleep(instant + 0.01 - now())


def probes(*worlds: World) -> list[int]:
    """The number of probes of each process."""
    return [len(made.sink.of(ProbeStarted)) for made in worlds]


@virtual
async def test_one_process_of_a_machine_probes_at_a_time() -> None:
    """The other one serves elsewhere meanwhile, and probes once that one is over."""
    machine = Machine("m0")
    one, other = await cut_off(machine, machine)
    await until(due(one))
    one.providers["a"].set(FakeReply(seconds=1.0))
    probing = asyncio.create_task(served_by(one))
    await asyncio.sleep(0.5)
    assert await served_by(other) == "b/m"
    assert probes(one, other) == [1, 0]
    assert await probing == "a/m"
    await asyncio.sleep(LISTENED)
    assert await served_by(other) == "a/m"
    assert probes(one, other) == [1, 1]
    await close(one, other)


@virtual
async def test_the_open_time_after_a_probe_is_every_process_of_the_machines() -> None:
    """The second process is due as well, and does not probe before it."""
    machine = Machine("m0")
    one, other = await cut_off(machine, machine)
    await until(due(one))
    one.providers["a"].set(DOWN)
    assert await served_by(one) == "b/m"
    assert due(other) < now() < due(one)
    assert await served_by(other) == "b/m"
    assert probes(one, other) == [1, 0]
    assert due(other) == due(one)
    await until(due(one))
    assert await served_by(other) == "a/m"
    await close(one, other)


@virtual
async def test_a_probe_that_the_server_granted_is_known_to_who_is_cut_off_meanwhile() -> None:
    """The other one finds the lock while it is under way, and its open time once it failed."""
    machine = Machine("m0")
    (one, other), stores = await sharing(machine, machine)
    await until(due(one))
    one.providers["a"].set(replace(DOWN, seconds=5.0))
    probing = asyncio.create_task(served_by(one))
    await asyncio.sleep(0.1)
    for store in stores:
        store.delay = 1e6
    await served_by(other)
    await asyncio.sleep(LOST)
    assert await served_by(other) == "b/m"
    assert await probing == "b/m"
    assert await served_by(other) == "b/m"
    assert (probes(one, other), due(other)) == ([1, 0], due(one))
    await close(one, other)


@virtual
async def test_machines_that_are_cut_off_probe_each() -> None:
    """Nothing keeps one from it that another one does."""
    one, other = await cut_off(Machine("m0"), Machine("m1"))
    await until(due(one))
    assert [await served_by(made) for made in (one, other)] == ["a/m", "a/m"]
    assert probes(one, other) == [1, 1]
    await close(one, other)


@virtual
async def test_a_process_that_was_stopped_keeps_no_other_from_probing() -> None:
    """For longer than a lease lasts."""
    machine = Machine("m0")
    (one,) = await cut_off(machine)
    machine.locks.add("a")
    await until(due(one))
    assert await served_by(one) == "b/m"
    await asyncio.sleep(LEASE_SECONDS + 0.1)
    assert await served_by(one) == "a/m"
    await close(one)


@virtual
async def test_a_refusal_of_an_earlier_outage_lets_none_probe() -> None:
    """The lock of a process that probes is respected for as long as a lease lasts, each time anew."""
    machine, made = Machine("m0"), world(["a/m"])
    gate = made.gate("a/m")
    entry = SharedBreaker("a/m", "whole", gate.breakers["whole"], gate)
    probes, call = LocalProbes(SimulatedLocks(machine), SharedBreakers(made.state, {})), cast("Lease", None)
    machine.locks.add("a")
    assert not probes.may_probe(call, [entry], 0.0)
    assert probes.may_probe(call, [entry], LEASE_SECONDS + 1)
    probes.begin()
    assert not probes.may_probe(call, [entry], 2 * LEASE_SECONDS)
    await close(made)


@virtual
async def test_a_probe_whose_verdict_does_not_count_keeps_the_lock() -> None:
    """A late word of others moved the breaker meanwhile: the call is at the provider all the same."""
    machine = Machine("m0")
    one, other = await cut_off(machine, machine)
    await until(due(one))
    one.providers["a"].set(FakeReply(seconds=1.0))
    probing = asyncio.create_task(served_by(one))
    await asyncio.sleep(0.5)
    one.gate("a/m").breakers["whole"].adopt(now() + 0.1, 0, now(), reason="shared")
    assert [await served_by(made) for made in (one, other)] == ["b/m", "b/m"]
    assert machine.locks == {"a"}
    assert await probing == "a/m"
    assert machine.locks == set()
    await close(one, other)


@virtual
async def test_a_process_that_ends_leaves_its_lock() -> None:
    """Also while its probe is under way."""
    machine = Machine("m0")
    one, other = await cut_off(machine, machine)
    await until(due(one))
    one.providers["a"].set(FakeReply(seconds=1e6))
    probing = asyncio.create_task(served_by(one))
    await asyncio.sleep(0.1)
    assert machine.locks == {"a"}
    await one.router.aclose()
    assert machine.locks == set()
    await asyncio.sleep(LISTENED)
    assert await served_by(other) == "a/m"
    probing.cancel()
    await close(other)
