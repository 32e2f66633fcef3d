"""Routers that share the slots of a provider, in virtual time: never more calls than slots, none lost to the dead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from smart_model_router.coordination import Coordinator, SharedKeys
from smart_model_router.domain.outcome import Failure
from smart_model_router.domain.ports import PassedCall
from smart_model_router.domain.shared_state import ClockReading, SlotAsk, SlotGrant
from smart_model_router.domain.shared_state.members import TELL_EVERY
from smart_model_router.domain.shared_state.slots import SLOT_SECONDS
from smart_model_router.testing import FakeProvider, FakeReply
from smart_model_router_stats.memory import MemorySharedState, MemoryTables
from tests.unit.flow.test_passthrough import Passing, Reply, passage, read
from tests.world import World, now, served_by, virtual, world

SLOTS = 4
AT_ONCE = {"routing": {"degrade_after": "1ms"}}
"""Where another tier is free nobody waits."""


def here() -> ClockReading:
    """The clocks that all routers of this loop have in common."""
    return ClockReading("boot", now() + 5_000, now() + 1_700_000_000)


class Store(MemorySharedState):
    """A shared state that answers about slots after `delay` seconds."""

    def __init__(self, tables: MemoryTables) -> None:
        super().__init__(tables, here)
        self.delay = 0.0
        self.asked = 0
        self.of_a_later_version = False

    async def lease_slots(self, asks: Sequence[SlotAsk]) -> tuple[SlotGrant | None, ...]:
        """Answer when the delay is over."""
        self.asked += 1
        await asyncio.sleep(self.delay)
        return (None,) * len(asks) if self.of_a_later_version else await super().lease_slots(asks)


class Host:
    """The processes of a host, and how many calls of all of them were in flight at once at the provider `a`."""

    def __init__(self, seconds: float = 1.0, slots: int = SLOTS) -> None:
        self.slots = slots
        self.tables = MemoryTables()
        self.provider = FakeProvider(FakeReply(seconds=seconds))
        self.most = 0

    def process(self, *, spare: bool = False, config: Mapping[str, Any] = AT_ONCE) -> tuple[World, Store]:
        """One more; with `spare` there is a lower tier."""
        tiers = [["a/m"], ["b/m"]] if spare else [["a/m"]]
        made = world(*tiers, replies={"a": self.provider}, kinds={"a": {"bulkhead": self.slots}}, config=config)
        state, store = made.state, Store(self.tables)
        state.here = here
        owners = {name: SharedKeys(name, name, name, slots="a" if name == "a/m" else "") for name in state.fleet.gates}
        state.coordinator = Coordinator(state, store, owners, holder=lambda: f"process {id(made)}")
        return made, store

    async def watch(self) -> None:
        """Look, until it is cancelled."""
        while True:
            self.most = max(self.most, self.provider.in_flight)
            await asyncio.sleep(0.01)


def watched(test: Callable[[Host], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test on a host, and count."""

    @virtual
    async def run() -> None:
        host = Host()
        watching = asyncio.ensure_future(host.watch())
        try:
            await test(host)
        finally:
            watching.cancel()

    run.__doc__ = test.__doc__
    return run


def ask_of(holder: str, least: int, *, keeps: int = 0) -> SlotAsk:
    """What another process asks of the store."""
    return SlotAsk(key="a", holder=holder, slots=SLOTS, keeps=keeps, least=least, want=least)


def held(host: Host) -> int:
    """How many slots are leased."""
    return sum(row.held for row in host.tables.all_slots())


@watched
async def test_two_processes_have_the_slots_of_one(host: Host) -> None:
    """Twenty requests at each: four calls at once, and all are served; idle leases end soon."""
    processes = [host.process()[0] for _ in range(2)]
    began = now()
    assert await asyncio.gather(*(served_by(w) for w in processes for _ in range(20))) == ["a/m"] * 40
    assert host.most <= SLOTS
    assert now() - began <= 10.0 + 3.0  # 40 calls of a second on four slots, and what handing over takes
    await asyncio.sleep(21.0)
    assert held(host) == 0
    for made in processes:
        made.assert_idle()
        await made.router.aclose()


@watched
async def test_idle_slots_go_to_who_waits_at_once(host: Host) -> None:
    """A process that comes while another one uses all gets its part as calls end."""
    one, other = (host.process()[0] for _ in range(2))
    busy = [asyncio.ensure_future(served_by(one)) for _ in range(40)]
    await asyncio.sleep(1.5)
    began = now()
    assert await asyncio.gather(*(served_by(other) for _ in range(2))) == ["a/m"] * 2
    assert now() - began <= 4.0
    assert host.most <= SLOTS
    assert await asyncio.gather(*busy) == ["a/m"] * 40
    for made in (one, other):
        await made.router.aclose()


@watched
async def test_the_slots_of_a_dead_process_come_back(host: Host) -> None:
    """After half a minute at the latest: who waits is served then."""
    dead, other = (host.process()[0] for _ in range(2))
    store = MemorySharedState(host.tables, here)
    await store.lease_slots([ask_of("dead", SLOTS)])
    began = now()
    assert await served_by(other, timeout=60.0) == "a/m"
    assert SLOT_SECONDS - 1.0 <= now() - began <= SLOT_SECONDS + 2.0
    for made in (dead, other):
        await made.router.aclose()


@watched
async def test_a_full_host_is_a_full_target(host: Host) -> None:
    """A request goes on elsewhere where there is another tier, and comes back when there is a slot."""
    one, other = (host.process(spare=True)[0] for _ in range(2))
    busy = [asyncio.ensure_future(served_by(one)) for _ in range(SLOTS)]
    await asyncio.sleep(0.1)
    assert await served_by(other) == "b/m"
    await asyncio.gather(*busy)
    await asyncio.sleep(1.0)
    assert await served_by(other) == "a/m"
    assert host.most <= SLOTS
    for made in (one, other):
        await made.router.aclose()


@pytest.mark.parametrize("trouble", ["slow", "away"])
@virtual
async def test_without_the_store_each_process_has_all_slots(trouble: str) -> None:
    """No request waits for it longer than half a second, and none is refused."""
    host = Host()
    made, store = host.process()
    if trouble == "slow":
        store.delay = 60.0
    else:
        store.failure = "the disk is on fire"
    began = now()
    assert await asyncio.gather(*(served_by(made) for _ in range(SLOTS))) == ["a/m"] * SLOTS
    assert now() - began <= 1.0 + 0.1 + 0.5 + 0.001  # the call, the first look at the store, and its answer
    store.delay, store.failure = 0.0, ""
    await asyncio.sleep(3.0)
    began = now()
    assert await served_by(made) == "a/m"
    assert now() - began <= 1.1  # although the first question is under way yet
    await made.router.aclose()
    assert held(host) == 0


@virtual
async def test_a_reload_counts_no_call_twice() -> None:
    """The router that takes the place of another one holds the slots of both."""
    host = Host(seconds=5.0)
    before, _ = host.process()
    busy = [asyncio.ensure_future(served_by(before)) for _ in range(3)]
    await asyncio.sleep(0.5)
    after, _ = host.process()
    after.router.continue_from(before.router)
    more = asyncio.ensure_future(served_by(after))
    await asyncio.sleep(1.0)
    assert held(host) == SLOTS
    assert await asyncio.gather(*busy, more) == ["a/m"] * SLOTS
    for made in (before, after):
        await made.router.aclose()
    assert held(host) == 0


@virtual
async def test_calls_one_after_the_other_ask_the_store_for_a_slot_once() -> None:
    """The slot is kept while it is used, renewed every ten seconds, and given back when it is not used any more."""
    host = Host(seconds=0.1)
    made, store = host.process()
    for _ in range(20):
        assert await served_by(made) == "a/m"
        await asyncio.sleep(0.3)
    assert store.asked == 1
    await asyncio.sleep(30.0)
    assert (store.asked, held(host)) == (3, 0)
    await made.router.aclose()


@virtual
async def test_calls_at_once_find_the_slots_of_the_burst_before() -> None:
    """All but the quarter that is left to others."""
    host = Host()
    made, store = host.process()
    for _ in range(2):
        assert await asyncio.gather(*(served_by(made) for _ in range(SLOTS - 1))) == ["a/m"] * (SLOTS - 1)
        await asyncio.sleep(0.5)
    assert (store.asked, held(host)) == (1, SLOTS - 1)
    other, _ = host.process()
    began = now()
    assert await served_by(other) == "a/m"
    assert now() - began <= 1.1
    for each in (made, other):
        await each.router.aclose()


@virtual
async def test_a_refusal_that_comes_too_late_binds_nobody() -> None:
    """The process decides alone by then, and has its part of the slots."""
    host = Host(seconds=5.0)
    others = MemorySharedState(host.tables, here)
    await others.lease_slots([ask_of("b", SLOTS)])
    made, store = host.process()
    store.delay = 0.8
    first = asyncio.ensure_future(served_by(made))
    await asyncio.sleep(0.9)
    bulkhead = made.state.fleet.gates["a/m"].provider.bulkhead
    assert (bulkhead.in_flight, bulkhead.granted) == (1, SLOTS // 2)
    assert await first == "a/m"
    store.delay = 0.0
    await made.router.aclose()


async def idle_slots(host: Host) -> World:
    """A process that was busy a moment ago and keeps three of the four slots."""
    made, _ = host.process()
    assert await asyncio.gather(*(served_by(made) for _ in range(SLOTS - 1))) == ["a/m"] * (SLOTS - 1)
    assert held(host) == SLOTS - 1
    return made


@watched
async def test_a_process_gets_the_idle_slots_of_others_within_a_quarter_of_a_second(host: Host) -> None:
    """A request for each slot: all are under way before a call of the other process could have ended."""
    idle = await idle_slots(host)
    made, _ = host.process()
    calls = [asyncio.ensure_future(served_by(made)) for _ in range(SLOTS)]
    await asyncio.sleep(0.25)
    assert (host.provider.in_flight, held(host)) == (SLOTS, SLOTS)
    assert await asyncio.gather(*calls) == ["a/m"] * SLOTS
    for each in (idle, made):
        await each.router.aclose()


@pytest.mark.parametrize("phase", [0.31, 0.34, 0.37, 0.4])
@virtual
async def test_a_slot_is_used_by_the_waiting_process_as_soon_as_a_call_ends(phase: float) -> None:
    """Whenever it began to wait; the process whose call ended has more requests."""
    host = Host()
    began = now()
    one, other = (host.process()[0] for _ in range(2))
    busy = [asyncio.ensure_future(served_by(one)) for _ in range(3 * SLOTS)]
    await asyncio.sleep(phase)
    assert await served_by(other) == "a/m"
    assert now() - began <= 1.0 + 0.03 + 1.0
    await asyncio.gather(*busy)
    for each in (one, other):
        await each.router.aclose()


@watched
async def test_no_request_takes_a_lower_tier_while_slots_are_idle_elsewhere(host: Host) -> None:
    """With the default of `degrade_after`, although calls take so long that a full target would not be waited for."""
    made, _ = host.process(spare=True, config={})
    host.provider.set(FakeReply(seconds=20.0))
    assert await served_by(made, timeout=300.0) == "a/m"
    host.provider.set(FakeReply(seconds=1.0))
    idle = await idle_slots(host)
    assert await asyncio.gather(*(served_by(made) for _ in range(SLOTS))) == ["a/m"] * SLOTS
    for each in (idle, made):
        await each.router.aclose()


@virtual
async def test_a_full_host_is_waited_for_once_in_a_while() -> None:
    """Every slot has a long call: the first request looks for idle ones for 0.25 s, the next ones go on at once."""
    host = Host(seconds=20.0)
    one, _ = host.process()
    other, _ = host.process(spare=True, config={})
    assert await served_by(other, timeout=300.0) == "a/m"  # now it is known how long calls take
    busy = [asyncio.ensure_future(served_by(one, timeout=300.0)) for _ in range(SLOTS)]
    await asyncio.sleep(0.5)
    waits = []
    for _ in range(4):
        began = now()
        assert await served_by(other) == "b/m"
        waits.append(now() - began)
        await asyncio.sleep(0.3)
    assert waits[0] == pytest.approx(0.25, abs=0.05)
    assert max(waits[1:]) < 0.05
    await asyncio.gather(*busy)
    for each in (one, other):
        await each.router.aclose()


@virtual
async def test_more_processes_than_slots_take_turns() -> None:
    """Five processes with ten requests each on two slots: none is far behind, and no slot is idle for long."""
    host = Host(slots=2)
    watching = asyncio.ensure_future(host.watch())
    processes = [host.process()[0] for _ in range(5)]
    served = dict.fromkeys(range(5), 0)
    spread = 0

    async def ask(number: int) -> None:
        nonlocal spread
        assert await served_by(processes[number], timeout=300.0) == "a/m"
        served[number] += 1
        spread = max(spread, max(served.values()) - min(served.values()))

    began = now()
    await asyncio.gather(*(ask(number) for number in range(5) for _ in range(10)))
    assert now() - began <= 1.1 * 50 / 2
    assert spread <= 3
    assert host.most == 2
    watching.cancel()
    for made in processes:
        await made.router.aclose()


@watched
async def test_without_the_store_a_process_keeps_to_its_part(host: Host) -> None:
    """A process that held more keeps as many; the others have an equal part: nobody is without a slot."""
    (one, store_of_one), (other, store_of_other) = (host.process() for _ in range(2))
    calls = [asyncio.ensure_future(served_by(one)) for _ in range(SLOTS - 1)]
    calls.append(asyncio.ensure_future(served_by(other)))
    await asyncio.sleep(0.5)
    for _ in range(4):  # a word of another process: both hear who has slots
        await asyncio.sleep(0.1)
        host.tables.version += 1
    store_of_one.failure = store_of_other.failure = "the disk is on fire"
    await asyncio.gather(*calls)
    await asyncio.sleep(0.5)
    bulkheads = [made.state.fleet.gates["a/m"].provider.bulkhead for made in (one, other)]
    assert [bulkhead.free for bulkhead in bulkheads] == [SLOTS - 1, SLOTS // 2]
    store_of_one.failure = store_of_other.failure = ""
    await asyncio.sleep(2.0)
    assert [bulkhead.free for bulkhead in bulkheads] == [SLOTS] * 2
    for each in (one, other):
        await each.router.aclose()


@watched
async def test_slots_that_only_later_versions_can_read_are_taken_in_parts(host: Host) -> None:
    """Each process has its part of them, is not kept waiting, and asks for the others no more."""
    processes = [host.process() for _ in range(2)]
    for made, store in processes:
        await served_by(made)
        store.of_a_later_version = True
    await asyncio.sleep(TELL_EVERY + 1.0)
    before = sum(store.asked for _, store in processes)
    assert await asyncio.gather(*(served_by(made) for made, _ in processes for _ in range(20))) == ["a/m"] * 40
    assert host.most == SLOTS
    assert [made.state.coordinator.reason for made, _ in processes if made.state.coordinator] == [""] * 2
    assert sum(store.asked for _, store in processes) - before <= 2
    for made, _ in processes:
        await made.router.aclose()


@virtual
async def test_a_call_without_a_slot_waits_for_the_answer_of_the_store() -> None:
    """The store takes a tenth of a second. Another process has all slots but one until it gives them back."""
    host = Host(seconds=1.0)
    others = MemorySharedState(host.tables, here)
    made, store = host.process()
    assert await served_by(made) == "a/m"
    store.delay = 0.1
    await others.lease_slots([ask_of("b", SLOTS - 1)])
    calls = [asyncio.ensure_future(served_by(made)) for _ in range(2)]
    await asyncio.sleep(0.5)
    assert host.provider.in_flight == 1
    await others.lease_slots([ask_of("b", 0)])
    await asyncio.sleep(0.4)
    assert host.provider.in_flight == 2
    assert await asyncio.gather(*calls) == ["a/m"] * 2
    await made.router.aclose()


@watched
async def test_no_call_begins_on_a_slot_that_is_being_given_back(host: Host) -> None:
    """The store takes a tenth of a second to hear of it; new calls wait for what is left of the host."""
    (one, slow), (other, _) = (host.process() for _ in range(2))
    assert await asyncio.gather(*(served_by(one) for _ in range(SLOTS - 1))) == ["a/m"] * (SLOTS - 1)
    slow.delay = 0.1
    calls = [asyncio.ensure_future(served_by(other)) for _ in range(SLOTS)]
    await asyncio.sleep(0.15)  # `one` has heard that the other one waits, and gives back
    calls += [asyncio.ensure_future(served_by(one)) for _ in range(SLOTS)]
    assert await asyncio.gather(*calls) == ["a/m"] * (2 * SLOTS)
    assert host.most == SLOTS
    for made in (one, other):
        await made.router.aclose()


@virtual
async def test_a_caller_that_leaves_while_its_slot_is_waited_for_leaves_nothing() -> None:
    """The store is slow, and two callers leave: their slots are free at once, and the next request is served."""
    host = Host(slots=2)
    w, store = host.process()
    store.delay = 0.3
    for _ in range(2):
        caller = asyncio.create_task(served_by(w))
        await asyncio.sleep(0.1)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        w.assert_idle()
    assert await served_by(w) == "a/m"
    await w.router.aclose()


@virtual
async def test_what_passes_through_needs_slots_of_the_host_as_well() -> None:
    """Three processes pass twelve uploads through: four at once, and all are served."""
    at_once = [0, 0]

    class Slow(Passing):
        async def pass_through(self, call: PassedCall) -> Reply | Failure:
            at_once[0] += 1
            at_once[1] = max(at_once)
            try:
                return await super().pass_through(call)
            finally:
                at_once[0] -= 1

    host, passing = Host(), Slow(*(Reply() for _ in range(12)), waits=1.0)
    host.provider = passing
    routes = {"/v1/audio/speech": ["a"]}
    processes = [host.process(config={"gateway": {"passthrough": {"routes": routes}}})[0] for _ in range(3)]
    answers = await asyncio.gather(*(read(passage(w)) for w in processes for _ in range(4)))
    assert answers == [b"spoken"] * 12
    assert at_once[1] <= SLOTS
    for made in processes:
        made.assert_idle()
        await made.router.aclose()


@virtual
async def test_a_request_waits_for_its_slot_no_longer_than_it_has_time() -> None:
    """A deadline of 0.2 s, and a store that takes 0.4 s."""
    host = Host()
    made, store = host.process()
    store.delay = 0.4
    began = now()
    assert await served_by(made, timeout=0.2) is None
    assert now() - began <= 0.25
    assert host.provider.in_flight == 0
    await made.router.aclose()


@pytest.mark.parametrize("slots", [8, 3])
@virtual
async def test_each_of_eight_processes_that_want_every_slot_has_its_part(slots: int) -> None:
    """One was there first and has all slots. With a slot for each, no call asks the store any more."""
    host = Host(slots=slots)
    watching = asyncio.ensure_future(host.watch())
    made = [host.process() for _ in range(8)]
    served = [0] * 8

    async def work(number: int) -> None:
        while True:
            assert await served_by(made[number][0], timeout=900.0) == "a/m"
            served[number] += 1

    tasks = [asyncio.ensure_future(work(0)) for _ in range(slots)]
    await asyncio.sleep(5.5)
    tasks += [asyncio.ensure_future(work(number)) for number in range(1, 8) for _ in range(slots)]
    await asyncio.sleep(20.0)
    before, asked, seconds = served.copy(), sum(store.asked for _, store in made), 120
    await asyncio.sleep(seconds)
    shares = [count - earlier for count, earlier in zip(served, before, strict=True)]
    assert min(shares) >= 0.75 * slots * seconds / 8
    assert sum(shares) >= 0.9 * slots * seconds
    assert host.most == slots
    if slots == 8:
        assert (
            sum(store.asked for _, store in made) - asked <= 8 * seconds
        )  # as each writes once a second that it waits
    for task in (*tasks, watching):
        task.cancel()
    await asyncio.gather(*tasks, watching, return_exceptions=True)
    for world_of, _ in made:
        await world_of.router.aclose()


@virtual
async def test_a_reload_that_makes_slots_those_of_each_process_frees_them() -> None:
    """Slots that other processes had are the process's own again."""
    host = Host(seconds=5.0)
    others = MemorySharedState(host.tables, here)
    await others.lease_slots([ask_of("b", SLOTS)])
    before, _ = host.process()
    waiting = asyncio.ensure_future(served_by(before, timeout=60.0))
    await asyncio.sleep(0.5)
    bulkhead = before.state.fleet.gates["a/m"].provider.bulkhead
    assert bulkhead.free == 0
    after = world(["a/m"], replies={"a": host.provider}, kinds={"a": {"bulkhead": SLOTS}})
    after.state.here = here
    after.state.coordinator = Coordinator(
        after.state,
        Store(host.tables),
        {name: SharedKeys(name, name, name) for name in after.state.fleet.gates},
        holder=lambda: "after",
    )
    after.router.continue_from(before.router)
    assert bulkhead.free == SLOTS
    assert await waiting == "a/m"
    for each in (before, after):
        await each.router.aclose()
