"""Routers that share their state, in virtual time: what one learns the others know, and none waits for the store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from smart_model_router.coordination import Coordinator, SharedKeys
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import Cost
from smart_model_router.domain.events import AttemptFinished, BreakerChanged, ProbeStarted, StoreChanged
from smart_model_router.domain.outcome import BucketReading, FailureClass, LimitReading, Refusal
from smart_model_router.domain.shared_state import (
    BreakerRow,
    BucketAsk,
    BucketGrant,
    BudgetAsk,
    Changes,
    Claim,
    ClockReading,
    SharedStateError,
    SharedView,
)
from smart_model_router.testing import FakeProvider, FakeReply
from smart_model_router_stats.memory import MemorySharedState, MemoryTables
from tests.world import BODY, DOWN, World, failing, limited, now, served_by, virtual, world

LISTENED = 0.3
"""Seconds after which everybody has heard."""


def here() -> ClockReading:
    """The clocks that all routers of this loop have in common."""
    return ClockReading("boot", now() + 5_000, now() + 1_700_000_000)


class Store(MemorySharedState):
    """A shared state that answers after `delay` seconds."""

    def __init__(self, tables: MemoryTables) -> None:
        super().__init__(tables, here)
        self.delay = 0.0

    async def poll(self) -> SharedView | None:
        await asyncio.sleep(self.delay)
        return await super().poll()

    async def claim(self, rows: Sequence[BreakerRow]) -> Claim:
        await asyncio.sleep(self.delay)
        return await super().claim(rows)

    async def publish(self, changes: Changes) -> SharedView:
        await asyncio.sleep(self.delay)
        return await super().publish(changes)

    async def lease(self, asks: Sequence[BucketAsk | BudgetAsk]) -> tuple[BucketGrant, ...]:
        await asyncio.sleep(self.delay)
        return await super().lease(asks)


def sharing(*ladder: Sequence[str], tables: MemoryTables, **given: Any) -> tuple[World, Store]:
    """A router that takes part, as one more process would. Nobody waits where another tier is free."""
    given.setdefault("config", {"routing": {"degrade_after": "1ms"}})
    made, store = world(*ladder, **given), Store(tables)
    made.state.here = here
    gates = made.state.fleet.gates
    owners = {
        name: SharedKeys(name, f"{gate.provider.name}@cafe0123", f"{name}@cafe0123") for name, gate in gates.items()
    }
    made.state.coordinator = Coordinator(made.state, store, owners, holder=lambda: f"router {id(made)}")
    return made, store


def pair(*ladder: Sequence[str], **given: Any) -> tuple[World, World]:
    """Two processes."""
    tables = MemoryTables()
    return sharing(*ladder, tables=tables, **given)[0], sharing(*ladder, tables=tables, **given)[0]


def fakes(*names: str, reply: FakeReply) -> Mapping[str, FakeProvider]:
    """Providers that all answer alike."""
    return {name: FakeProvider(reply) for name in names}


async def trip(w: World, provider: str = "a", calls: int = 5) -> None:
    """Open its breaker by failures (five do, the first time), and let everybody hear of it."""
    w.providers[provider].set(DOWN)
    await asyncio.gather(*(served_by(w) for _ in range(calls)))
    w.providers[provider].set(FakeReply())
    await asyncio.sleep(LISTENED)


@virtual
async def test_a_breaker_that_opened_in_one_process_is_open_in_all() -> None:
    """Within a quarter of a second, until the same instant, with one event that says where it comes from."""
    one, other = pair(["a/m"], ["b/m"])
    assert await served_by(other) == "a/m"
    await trip(one)
    assert await served_by(other) == "b/m"
    opened = other.gate("a/m").breakers["whole"].open_until
    assert opened == pytest.approx(one.gate("a/m").breakers["whole"].open_until)
    ((told),) = [event for event in other.sink.of(BreakerChanged) if event.owner == "a/m"]
    assert (told.to_state, told.reason) == ("open", "shared")
    assert other.calls("a") == 1
    await one.router.aclose()
    await other.router.aclose()


@virtual
async def test_one_process_probes_and_its_success_is_everybodys() -> None:
    """Both are asked at the same instant: one probe; afterwards both send again."""
    one, other = pair(["a/m"], ["b/m"], kinds={"a": {"bulkhead": 5}})
    await served_by(other)
    await trip(one)
    await asyncio.sleep(40)
    for w in (one, other):
        w.providers["a"].set(FakeReply(seconds=1.0))
    before = one.calls("a") + other.calls("a")
    asks = [served_by(w) for w in (one, other) for _ in range(4)]
    assert sorted(str(target) for target in await asyncio.gather(*asks)) == ["a/m"] + ["b/m"] * 7
    assert one.calls("a") + other.calls("a") == before + 1
    assert len(one.sink.of(ProbeStarted)) + len(other.sink.of(ProbeStarted)) == 1
    await asyncio.sleep(LISTENED)
    assert [await served_by(w) for w in (one, other)] == ["a/m", "a/m"]
    await one.router.aclose()
    await other.router.aclose()


@virtual
async def test_a_failed_probe_is_everybodys_too() -> None:
    """The longer open time holds for all."""
    one, other = pair(["a/m"], ["b/m"])
    await served_by(other)
    await trip(one)
    await asyncio.sleep(40)
    one.providers["a"].set(DOWN)
    await served_by(one)
    await asyncio.sleep(LISTENED)
    first, second = (w.gate("a/m").breakers["whole"] for w in (one, other))
    assert first.open_until == pytest.approx(second.open_until)
    assert first.backoff_index == second.backoff_index == 1
    await one.router.aclose()
    await other.router.aclose()


@virtual
async def test_a_long_probe_keeps_its_lease() -> None:
    """Renewed every 10 s: nobody else probes while it goes on, however long."""
    one, other = pair(["a/m"])
    await served_by(other)
    await trip(one)
    await asyncio.sleep(40)
    one.providers["a"].set(FakeReply(seconds=100.0))
    slow = asyncio.ensure_future(one.router.chat(BODY))
    await asyncio.sleep(1)
    calls = other.calls("a")
    for _ in range(9):
        assert await served_by(other, timeout=5.0) is None
        await asyncio.sleep(5)
    assert other.calls("a") == calls
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)
    await one.router.aclose()
    await other.router.aclose()


@virtual
async def test_a_probe_nobody_ended_is_anothers_after_its_lease() -> None:
    """A process that died while it probed (its lease is in the store, and it is not heard of again)."""
    tables = MemoryTables()
    one, _ = sharing(["a/m"], ["b/m"], tables=tables)
    await trip(one)
    await asyncio.sleep(40)
    one.providers["a"].set(FakeReply(seconds=1_000.0))
    dead = asyncio.ensure_future(served_by(one, timeout=900.0))
    await asyncio.sleep(0.1)
    assert one.state.coordinator is not None
    task = one.state.coordinator._task
    assert task is not None
    task.cancel()
    other, _ = sharing(["a/m"], ["b/m"], tables=tables)
    assert await served_by(other) == "b/m"
    await asyncio.sleep(30)
    assert await served_by(other) == "a/m"
    dead.cancel()
    await asyncio.gather(dead, return_exceptions=True)
    await other.router.aclose()


@virtual
async def test_a_wait_a_wall_and_a_switched_off_key_are_everybodys() -> None:
    """Exactly as long; and over for all when one of them saw them end."""
    for reply, reason in (
        (limited(20.0), "wait"),
        (failing(FailureClass.QUOTA, 402), "wall"),
        (failing(FailureClass.AUTH, 403), "off"),
    ):
        one, other = pair(["a/m"], ["b/m"])
        await served_by(other)
        one.providers["a"].set(reply)
        await served_by(one)
        await asyncio.sleep(LISTENED)
        mine, theirs = one.gate("a/m").cooldown.law(now()), other.gate("a/m").cooldown.law(now())
        assert mine is not None
        assert theirs is not None
        assert (mine.reason, theirs.reason) == (reason, reason)
        assert mine.retry_at == pytest.approx(theirs.retry_at)
        one.router.close("a/m")
        await asyncio.sleep(LISTENED)
        assert other.gate("a/m").cooldown.law(now()) is None
        assert await served_by(other) == "a/m"
        await one.router.aclose()
        await other.router.aclose()


@virtual
async def test_a_target_that_came_back_in_another_process_takes_its_load_step_by_step() -> None:
    """A call on probation ended the rest there: slow start and fresh throttles here, as if it had been ours."""
    one, other = pair(["a/m"], ["b/m"])
    await served_by(other)
    one.providers["a"].set(limited(20.0))
    await served_by(one)
    await asyncio.sleep(20.0 + LISTENED)
    other.providers["b"].set(FakeReply())
    assert await served_by(other, avoid=["a"]) == "b/m"
    gates = [w.gate("a/m") for w in (one, other)]
    assert [gate.cooldown.on_probation(now()) for gate in gates] == [True, True]
    for gate in gates:
        gate.count(False, now())
    one.providers["a"].set(FakeReply())
    assert await served_by(one) == "a/m"
    await asyncio.sleep(LISTENED)
    assert [gate.cooldown.returning for gate in gates] == [False, False]
    assert [gate.throttle.empty for gate in gates] == [True, True]
    leases = [gate.try_admit(Cost(0, 0), now(), 0.5) for gate in gates]
    assert [gate.refusal(Cost(0, 0), now()) for gate in gates] == [Refusal("slow_start")] * 2
    for lease in leases:
        assert isinstance(lease, Lease)
        lease.release(now())
    await one.router.aclose()
    await other.router.aclose()


@virtual
async def test_a_cooldown_is_everybodys() -> None:
    """Advice as well as law."""
    one, other = pair(["a/m"], ["b/m"])
    await served_by(other)
    one.providers["a"].set(DOWN)
    await served_by(one)
    await asyncio.sleep(LISTENED)
    assert await served_by(other) == "b/m"
    await one.router.aclose()
    await other.router.aclose()


@virtual
async def test_an_open_breaker_with_time_left_is_open_after_a_restart() -> None:
    """Until the same instant; and its target is known as failing."""
    tables = MemoryTables()
    before, _ = sharing(["a/m"], ["b/m"], tables=tables)
    await trip(before)
    until = before.gate("a/m").breakers["whole"].open_until
    await before.router.aclose()
    after, _ = sharing(["a/m"], ["b/m"], tables=tables)
    assert after.gate("a/m").breakers["whole"].open_until == pytest.approx(until)
    assert [status.state for status in after.router.targets()] == ["open", "closed"]
    assert after.state.book.snapshot("a/m", now()).success_rate == pytest.approx(4 / 10)
    assert after.router.stats().targets["a/m"].calls == 0
    await after.router.aclose()


@virtual
async def test_an_open_breaker_without_time_left_is_half_open_after_a_restart() -> None:
    """Never closed: one probe decides."""
    tables = MemoryTables()
    before, _ = sharing(["a/m"], ["b/m"], tables=tables)
    await trip(before)
    await before.router.aclose()
    await asyncio.sleep(500)
    after, _ = sharing(["a/m"], ["b/m"], tables=tables)
    assert after.router.targets()[0].state == "half_open"
    after.providers["a"].set(FakeReply(seconds=1.0))
    served = await asyncio.gather(*(served_by(after) for _ in range(5)))
    assert sorted(str(target) for target in served) == ["a/m"] + ["b/m"] * 4
    await after.router.aclose()


@virtual
async def test_what_recovered_before_the_restart_is_not_held_against_it_after() -> None:
    """Outcomes from before a recovery are gone for good; the last success comes back as an age."""
    tables = MemoryTables()
    before, _ = sharing(["a/m"], ["b/m"], tables=tables)
    await trip(before)
    await asyncio.sleep(40)
    assert await served_by(before) == "a/m"
    await asyncio.sleep(LISTENED)
    await before.router.aclose()
    after, _ = sharing(["a/m"], ["b/m"], tables=tables)
    snapshot = after.state.book.snapshot("a/m", now())
    assert (snapshot.successes, snapshot.outcomes) == (1, 1)
    assert snapshot.last_success_at is not None
    assert now() - snapshot.last_success_at == pytest.approx(LISTENED)
    await after.router.aclose()


@virtual
async def test_a_store_that_fails_is_told_and_each_process_decides_alone() -> None:
    """Requests are served, probes are made; when it is back, what was learned meanwhile is told."""
    tables = MemoryTables()
    one, store = sharing(["a/m"], ["b/m"], tables=tables)
    await served_by(one)
    store.failure = "the disk is gone"
    await trip(one)
    await asyncio.sleep(40)
    assert await served_by(one) == "a/m"
    await asyncio.sleep(15)
    await trip(one, calls=15)  # its own share of failures is a third by now: five are no proof any more
    assert [(e.store, e.degraded, e.reason) for e in one.sink.of(StoreChanged)] == [("state", True, "the disk is gone")]
    store.failure = ""
    await asyncio.sleep(2)
    assert [e.degraded for e in one.sink.of(StoreChanged)] == [True, False]
    assert [row.state for row in tables.breakers()] == ["open"]
    await one.router.aclose()


@virtual
async def test_calls_made_while_the_store_is_out_of_reach_are_told_later() -> None:
    """A restart after that knows of them: of those before the outage, and not of what a recovery has ended."""
    tables = MemoryTables()
    one, store = sharing(["a/m"], ["b/m"], tables=tables)
    await served_by(one)
    await asyncio.sleep(LISTENED)
    store.failure = "the disk is gone"
    one.state.begin_anew("a/m", now())
    for _ in range(3):
        assert await served_by(one) == "a/m"
        await asyncio.sleep(3)
    store.failure = ""
    await asyncio.sleep(2)
    await one.router.aclose()
    after, _ = sharing(["a/m"], ["b/m"], tables=tables)
    assert after.state.book.snapshot("a/m", now()).outcomes == 3
    await after.router.aclose()


@virtual
async def test_a_store_that_fails_at_the_start_is_told() -> None:
    """The router is made all the same."""
    tables = MemoryTables()
    made, store = world(["a/m"]), Store(tables)
    store.failure = "it is locked"
    made.state.here = here
    made.state.coordinator = Coordinator(made.state, store, {"a/m": SharedKeys("a/m", "a", "a/m")}, holder=lambda: "x")
    assert made.state.coordinator.reason == "it is locked"
    assert [event.degraded for event in made.sink.of(StoreChanged)] == [True]
    assert await served_by(made) == "a/m"
    await made.router.aclose()


@virtual
async def test_a_limit_is_used_up_while_the_store_is_out_of_reach() -> None:
    """From the start on, and a limit that is learned meanwhile too: nobody waits for tokens that nobody can lease."""
    tables = MemoryTables()
    made = world(["a/m"], ["b/m"], kinds={"a": {"rpm": 60}}, config={"routing": {"degrade_after": "1ms"}})
    store = Store(tables)
    store.failure = "it is locked"
    made.state.here = here
    made.state.coordinator = Coordinator(made.state, store, {"a/m": SharedKeys("a/m", "a", "a/m")}, holder=lambda: "x")
    assert [await served_by(made) for _ in range(30)] == ["a/m"] * 30
    learned = LimitReading(buckets=(BucketReading("searches", limit=600, remaining=600),))
    made.gate("a/m").limits.update(learned, 10_000, now())
    assert [await served_by(made) for _ in range(20)] == ["a/m"] * 20
    await made.router.aclose()


@virtual
async def test_a_request_waits_20_ms_for_a_slow_store_and_goes_on() -> None:
    """It is served elsewhere; a moment later the store counts as out of reach, and the process probes alone."""
    tables = MemoryTables()
    one, store = sharing(["a/m"], ["b/m"], tables=tables)
    await trip(one)
    await asyncio.sleep(40)
    store.delay = 2.0
    began = now()
    assert await served_by(one) == "b/m"
    assert now() - began == pytest.approx(0.02, abs=0.001)
    await asyncio.sleep(0.6)
    began = now()
    assert await served_by(one) == "a/m"
    assert now() == began
    assert [event.degraded for event in one.sink.of(StoreChanged)] == [True]
    store.delay = 0.0
    await one.router.aclose()


@virtual
async def test_who_has_nobody_else_waits_for_a_slow_store_half_a_second() -> None:
    """Then it probes alone."""
    one, store = sharing(["a/m"], tables=MemoryTables())
    await trip(one)
    await asyncio.sleep(40)
    store.delay = 2.0
    began = now()
    assert await served_by(one) == "a/m"
    assert now() - began <= 0.6
    store.delay = 0.0
    await one.router.aclose()


@virtual
async def test_a_probe_granted_late_is_the_next_requests() -> None:
    """After 100 ms the answer is there: nobody else probes, and it is not asked for again."""
    tables = MemoryTables()
    one, store = sharing(["a/m"], ["b/m"], tables=tables)
    await trip(one)
    await asyncio.sleep(40)
    store.delay = 0.1
    assert await served_by(one) == "b/m"
    await asyncio.sleep(0.1)
    began = now()
    assert await served_by(one) == "a/m"
    assert now() == began
    assert one.sink.of(StoreChanged) == []
    await one.router.aclose()


@virtual
async def test_a_lease_that_is_being_given_back_starts_no_probe() -> None:
    """It was granted late, and the others are just told that it is over: neither of the two processes probes on it."""
    tables = MemoryTables()
    one, store = sharing(["a/m"], ["b/m"], tables=tables)
    other, _ = sharing(["a/m"], ["b/m"], tables=tables)
    await trip(one)
    before = one.calls("a") + other.calls("a")
    await asyncio.sleep(40)
    for w in (one, other):
        w.providers["a"].set(FakeReply(seconds=1.0))
    store.delay = 0.1
    assert await served_by(one) == "b/m"
    await asyncio.sleep(0.1)
    assert one.state.coordinator is not None
    one.state.coordinator.changed()
    while not one.state.coordinator._breakers["a/m", "whole"].being_told:  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(0.01)
    here = asyncio.ensure_future(served_by(one))
    await asyncio.sleep(0.15)
    there = asyncio.ensure_future(served_by(other))
    assert list(await asyncio.gather(here, there)) == ["b/m", "b/m"]
    assert one.calls("a") + other.calls("a") == before
    store.delay = 0.0
    await asyncio.sleep(LISTENED)
    assert "a/m" in [await served_by(w) for w in (one, one, other)]
    for w in (one, other):
        await w.router.aclose()


@virtual
async def test_a_probe_is_made_with_a_permit_that_decides() -> None:
    """While a request waits for the grant another process moves the breaker: its next permit probes, and closes it."""
    one, store = sharing(["a/m"], ["b/m"], tables=MemoryTables())
    await trip(one)
    breaker = one.gate("a/m").breakers["whole"]
    await asyncio.sleep(40)
    store.delay = 0.01
    request = asyncio.ensure_future(served_by(one))
    await asyncio.sleep(0.005)
    breaker.adopt(now(), breaker.backoff_index, now(), reason="shared")
    assert await request == "a/m"
    assert breaker.is_closed
    await one.router.aclose()


@virtual
async def test_with_a_slow_store_no_request_is_slower() -> None:
    """Limits included: after half a second each process decides alone."""
    one, store = sharing(["a/m"], tables=MemoryTables(), kinds={"a": {"rpm": 6_000}})
    await served_by(one)
    store.delay = 2.0
    taken = []
    for _ in range(100):
        began = now()
        assert await served_by(one) == "a/m"
        taken.append(now() - began)
        await asyncio.sleep(0.05)
    assert sorted(taken)[98] == 0.0
    store.delay = 0.0
    await one.router.aclose()


@virtual
async def test_a_store_that_was_removed_is_told_everything_again() -> None:
    """By whoever still knows it."""
    tables = MemoryTables()
    one, _ = sharing(["a/m"], ["b/m"], tables=tables)
    await trip(one)
    one.providers["b"].set(limited(500.0))
    await served_by(one, timeout=1.0)
    await asyncio.sleep(LISTENED)
    version = tables.version
    MemoryTables.__init__(tables)
    tables.version = version + 1
    await asyncio.sleep(1)
    assert [row.owner for row in tables.breakers()] == ["a/m"]
    assert [row.owner for row in tables.rests()] == ["b/m"]
    await one.router.aclose()


@virtual
async def test_two_processes_share_one_limit() -> None:
    """Sixty a minute and 90 requests in a second: no more than the limit is sent by both together."""
    one, other = pair(["a/m"], kinds={"a": {"rpm": 60}}, config={"routing": {"max_wait": "1s"}})
    asks = [served_by(w) for _ in range(45) for w in (one, other)]
    served = await asyncio.gather(*asks)
    assert 58 <= one.calls("a") + other.calls("a") <= 63
    assert sum(target is not None for target in served) == one.calls("a") + other.calls("a")
    await one.router.aclose()
    await other.router.aclose()


@virtual
async def test_what_a_silent_process_holds_goes_back() -> None:
    """Two seconds after its last call, and at its end."""
    tables = MemoryTables()
    one, _ = sharing(["a/m"], tables=tables, kinds={"a": {"rpm": 600}})
    await served_by(one)
    await asyncio.sleep(0.5)
    assert one.gate("a/m").limits.stocks[0][2].level > 0
    await asyncio.sleep(3)
    assert one.gate("a/m").limits.stocks[0][2].level == 0
    row = tables.bucket("a/m@cafe0123 requests")
    assert row is not None
    assert row.level >= 599
    await one.router.aclose()


@virtual
async def test_a_process_that_begins_while_nothing_is_left_knows_it() -> None:
    """Before its first answer, and one that was there and silent too: what they hear of is theirs to wait for."""
    tables = MemoryTables()
    one, _ = sharing(["a/m"], tables=tables)
    silent, _ = sharing(["a/m"], tables=tables)
    await served_by(silent)
    nothing = LimitReading(buckets=(BucketReading("requests", limit=600, remaining=0),))
    one.gate("a/m").limits.update(nothing, 0, now())
    await served_by(one, timeout=1.0)
    await asyncio.sleep(LISTENED)
    late, _ = sharing(["a/m"], tables=tables)
    for w in (late, silent):
        refusal = w.gate("a/m").limits.refusal(Cost(0, 0), now())
        assert refusal is not None
        assert refusal.reason == "requests"
    for w in (one, silent, late):
        await w.router.aclose()


@virtual
async def test_a_cancelled_request_leaves_no_claim_behind() -> None:
    """It was about to probe: slot and place are free again at once."""
    one, store = sharing(["a/m"], tables=MemoryTables())
    await trip(one)
    await asyncio.sleep(40)
    store.delay = 0.1
    asking = asyncio.ensure_future(one.router.chat(BODY))
    await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    one.assert_idle()
    await asyncio.sleep(1)
    assert await served_by(one) == "a/m"
    await one.router.aclose()


@virtual
async def test_a_router_on_a_new_loop_goes_on_sharing() -> None:
    """What it observed is told by whichever loop it is used on."""
    one, _ = sharing(["a/m"], tables=MemoryTables())
    assert await served_by(one) == "a/m"
    sharing_ = one.state.coordinator
    assert sharing_ is not None
    task = sharing_._task
    assert task is not None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await served_by(one) == "a/m"
    assert sharing_._task is not task
    assert len(one.sink.of(AttemptFinished)) == 2
    await one.router.aclose()
    await sharing_.aclose()


def test_the_error_says_why() -> None:
    """For the log and the event."""
    assert SharedStateError("read-only").reason == str(SharedStateError("read-only")) == "read-only"
