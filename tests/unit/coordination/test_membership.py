"""Processes know of each other: each writes a row of its own, and those that wrote lately count."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from smart_model_router.coordination import Coordinator, SharedKeys
from smart_model_router.coordination.membership import Members
from smart_model_router.domain.shared_state import Changes, ClockReading, MemberRow
from smart_model_router.domain.shared_state.members import FORGET_SECONDS, MEMBER_SECONDS, TELL_EVERY
from smart_model_router_stats.memory import MemoryTables
from tests.unit.coordination.test_coordinator import LISTENED, Store, here
from tests.world import World, served_by, virtual, world


def process(tables: MemoryTables, machine: str = "m1") -> tuple[World, Store, Coordinator]:
    """A router that takes part, on a machine."""
    made, store = world(["a/m"]), Store(tables)
    made.state.here = here
    owners = {"a/m": SharedKeys("a/m", "a", "a/m")}
    coordinator = Coordinator(
        made.state, store, owners, holder=lambda: f"{machine} {id(made)}", machine=machine, version="0.1.0"
    )
    made.state.coordinator = coordinator
    return made, store, coordinator


@virtual
async def test_processes_count_each_other_while_they_write() -> None:
    """One that ends counts no longer at once, one that died 15 seconds after its last word."""
    tables = MemoryTables()
    made = [process(tables, machine) for machine in ("m1", "m1", "m2")]
    for w, _, coordinator in made:
        assert coordinator.members.count == 1
        await served_by(w)
    await asyncio.sleep(TELL_EVERY + LISTENED)
    first = made[0][2].members
    assert [each[2].members.count for each in made] == [3, 3, 3]
    assert sorted(row.machine for row in first.living()) == ["m1", "m1", "m2"]
    assert {row.version for row in first.living()} == {"0.1.0"}
    await made[1][0].router.aclose()
    await asyncio.sleep(TELL_EVERY + LISTENED)
    assert first.count == 2
    made[2][1].failure = "cut off"
    await asyncio.sleep(MEMBER_SECONDS + TELL_EVERY + LISTENED)
    assert first.count == 1
    assert made[2][2].members.count == 2, "it goes by what it heard last"
    for w, _, _ in made:
        await w.router.aclose()


@virtual
async def test_a_new_process_knows_the_others_when_it_begins() -> None:
    """Before its first request."""
    tables = MemoryTables()
    one, _, _ = process(tables)
    await served_by(one)
    await asyncio.sleep(LISTENED)
    assert process(tables)[2].members.count == 2
    await one.router.aclose()


@virtual
async def test_a_reloaded_router_stays_the_same_member() -> None:
    """The router before it neither writes nor leaves in its name."""
    tables = MemoryTables()
    before, _, old = process(tables)
    await served_by(before)
    await asyncio.sleep(LISTENED)
    after, _, new = process(tables)
    new.continue_from(old)
    await served_by(after)
    await before.router.aclose()
    await asyncio.sleep(TELL_EVERY + LISTENED)
    assert [row.holder for row in tables.members()] == [f"m1 {id(before)}"]
    assert new.members.count == 1
    await after.router.aclose()
    assert list(tables.members()) == []


def heard(members: Members, *rows: MemberRow) -> int:
    """Return the count once these rows were heard."""
    members.take(rows, NOW)
    return members.count


NOW = ClockReading("boot", 1_000.0, 1_700_000_000.0)


def member(number: int, machine: str = "m1", ago: float = 0.0, boot: str = "boot") -> MemberRow:
    """A process that wrote so many seconds ago."""
    at = ClockReading(boot, NOW.boottime - ago, NOW.wall - ago)
    return MemberRow(holder=f"p{number}", machine=machine, version="0.1.0", pid=number, at=at)


@pytest.mark.parametrize(
    ("processes", "machines", "count"), [(1, 0, 4), (6, 0, 6), (1, 5, 15), (4, 5, 20), (1, 1, 3), (2, 2, 6)]
)
def test_the_configured_numbers_are_the_least_and_those_of_machines_count_instead(
    processes: int, machines: int, count: int
) -> None:
    """`processes` are there at least; with `machines`, each has as many processes as this one."""
    members = Members(lambda: NOW, "m1", "0.1.0", processes=processes, machines=machines, many_machines=True)
    members.begin("p1")
    rows = [member(number) for number in (1, 2, 3)]
    assert heard(members, *rows, member(4, "m2")) == count


def test_rows_from_long_ago_from_another_boot_and_without_an_instant_do_not_count() -> None:
    """Nor do they make the parts of those that live smaller."""
    members = Members(lambda: NOW, "m1", "0.1.0", processes=1, machines=0, many_machines=True)
    members.begin("p1")
    nan = float("nan")
    old = [member(2, ago=MEMBER_SECONDS + 1), member(3, boot="", ago=20.0), member(4, ago=nan)]
    assert heard(members, member(1), *old) == 1
    assert heard(members, member(1), *old, member(5, boot="before", ago=3.0), member(6, ago=-0.2)) == 3


def test_a_server_that_lost_its_rows_loses_no_process() -> None:
    """Those known before count for as long as they may be silent; this one tells of itself again at once."""
    present = [NOW]
    members = Members(lambda: present[0], "m1", "0.1.0", processes=1, machines=0, many_machines=True)
    members.begin("p1")
    members.written(0.0, [member(1), member(2, ago=6.0), member(3, ago=4.0)])
    assert (members.count, members.row(1.0, ending=False)) == (3, ())
    present[0] = ClockReading("boot of another", 7.0, NOW.wall + 1.0)
    members.take([], present[0])
    assert members.count == 3
    assert [row.at for row in members.row(1.0, ending=False)] == present
    members.written(1.0, [replace(member(2), at=present[0])])
    assert (members.count, members.row(2.0, ending=False)) == (3, ())
    present[0] = ClockReading("boot of another", 18.5, NOW.wall + 12.5)
    members.take([], present[0])
    assert members.count == 1


def test_without_a_server_all_processes_are_of_one_machine() -> None:
    """Containers that share a file have names of their own."""
    counts = []
    for many_machines in (True, False):
        members = Members(lambda: NOW, "m1", "0.1.0", processes=1, machines=0, many_machines=many_machines)
        members.begin("p1")
        members.take([member(1), member(2, "m2"), member(3, "m3")], NOW)
        counts.append((members.count, members.on_this_machine))
    assert counts == [(3, 1), (3, 3)]


@virtual
async def test_rows_of_the_dead_go_after_a_while() -> None:
    """With any later write, also one whose instant is no number."""
    store = Store(tables := MemoryTables())
    row = member(1)
    await store.publish(Changes(members=(replace(row, at=here()),)))
    await store.publish(Changes(members=(replace(row, holder="hand", at=ClockReading("boot", float("nan"), 0.0)),)))
    await asyncio.sleep(FORGET_SECONDS + 1)
    await store.publish(Changes(members=(replace(row, holder="p2", at=here()),)))
    assert [each.holder for each in tables.members()] == ["p2"]
