"""What a process tells of the others that share its state: in metrics, in health, and on the dashboard."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from smart_model_router.observability.dashboard_history import DashboardHistory
from smart_model_router.observability.multiprocess import SharedMetrics
from smart_model_router.observability.registry import Sample
from smart_model_router_stats.memory import MemoryTables
from tests.unit.coordination.test_coordinator import LISTENED
from tests.unit.coordination.test_fleet_slots import Fleet
from tests.unit.coordination.test_membership import process
from tests.world import World, served_by, virtual, world

FLEET = ("smr_shared_reachable", "smr_fleet_members", "smr_shared_round_trip_seconds", "smr_shared_conflicts_total")


def told(made: World) -> dict[str, float]:
    """The figures of the fleet."""
    return {sample.name: sample.value for sample in made.router.monitor.samples() if sample.name in FLEET}


@virtual
async def test_metrics_tell_of_the_members_and_of_the_reach_of_the_state() -> None:
    """A router that shares nothing has none of them."""
    tables = MemoryTables()
    (one, store, _), (other, _, _) = process(tables), process(tables, "m2")
    for made in (one, other):
        await served_by(made)
    await asyncio.sleep(LISTENED)
    assert told(one) == {"smr_shared_reachable": 1.0, "smr_fleet_members": 2.0}
    store.failure = "the server is away"
    await asyncio.sleep(LISTENED)
    assert told(one)["smr_shared_reachable"] == 0.0
    assert told(world(["a/m"])) == {}
    for made in (one, other):
        await made.router.aclose()


@virtual
async def test_metrics_tell_of_the_traffic_of_a_server() -> None:
    """Its newest answer, and the writes that others came before."""
    fleet = Fleet(of_fleet=True)
    await served_by(fleet.made[0])
    figures = told(fleet.made[0])
    assert (figures["smr_shared_round_trip_seconds"], figures["smr_shared_conflicts_total"]) == (0.001, 0.0)
    await fleet.close()


@virtual
async def test_health_and_dashboard_tell_since_when_a_process_decides_alone() -> None:
    """And why; and which processes it knows."""
    made, store, _ = process(MemoryTables())
    await served_by(made)
    await asyncio.sleep(LISTENED)
    monitor = made.router.monitor
    history = DashboardHistory(wall=lambda: 1_700_000_100.0)
    assert monitor.alone_for is None
    assert (await monitor.painter(history).picture())["system"]["alone"] is None
    ((member, heard),) = monitor.members
    assert (member.machine, member.version) == ("m1", "0.1.0")
    assert heard == pytest.approx(LISTENED)
    store.failure = "the server is away"
    await asyncio.sleep(10.0)
    assert monitor.alone_for == pytest.approx(10.0, abs=0.2)
    alone = (await monitor.painter(history).picture())["system"]["alone"]
    assert alone["reason"] == "the server is away"
    assert alone["since"] == pytest.approx(1_700_000_090.0, abs=0.2)
    store.failure = ""
    await asyncio.sleep(2.0)
    assert monitor.alone_for is None
    await made.router.aclose()


def test_of_several_processes_the_one_that_is_cut_off_counts(tmp_path: Path) -> None:
    """A gateway whose workers do not all reach the state says so, whichever worker is asked."""
    path = tmp_path / "metrics.db"
    one, other = SharedMetrics(path), SharedMetrics(path)
    one.exchange([Sample("smr_shared_reachable", (), 1.0), Sample("smr_fleet_members", (), 2.0)])
    both = other.exchange([Sample("smr_shared_reachable", (), 0.0), Sample("smr_fleet_members", (), 3.0)])
    assert {sample.name: sample.value for sample in both} == {"smr_shared_reachable": 0.0, "smr_fleet_members": 3.0}
