"""A router takes the place of another: what nothing changed for goes on, for the requests of both."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from typing import Any

import pytest

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.request import Target
from smart_model_router.testing import FakeProvider, FakeReply
from smart_model_router_stats.memory import MemoryTables
from tests.unit.coordination.test_coordinator import LISTENED, sharing, trip
from tests.world import DOWN, World, failing, limited, now, served_by, virtual, world

SLOW = FakeReply(seconds=3.0)
Tier = list[str]


def successor(before: World, *ladder: Tier, **changes: Any) -> World:
    """The router of a changed configuration in the place of another, with the same providers behind it."""
    names = {target.partition("/")[0] for tier in ladder for target in tier}
    same = {name: provider for name, provider in before.providers.items() if name in names}
    after = world(*ladder, replies=same, **changes)
    after.router.continue_from(before.router)
    return after


def refusals(w: World) -> dict[str, str | None]:
    """What each target would say to a call."""
    return {status.id: status.refusal for status in w.router.targets()}


async def asked(*worlds: World) -> list[asyncio.Task[str | None]]:
    """One request to each of these, in this order, all under way."""
    tasks = []
    for w in worlds:
        tasks.append(asyncio.ensure_future(served_by(w)))
        await asyncio.sleep(0.01)
    return tasks


@virtual
async def test_what_was_known_of_a_target_is_known_after_a_reload() -> None:
    """The operator's no, an OPEN breaker, a cooldown, a provider's own word: each as it was, to the instant."""
    targets = ["a/m", "b/m", "c/m", "d/m"]
    slow_down = FakeProvider(limited(20.0))
    w = world(targets, replies={"b": FakeProvider(DOWN), "c": FakeProvider(DOWN), "d": slow_down})
    w.router.isolate("a/m")
    await served_by(w, timeout=0.5)
    for _ in range(4):
        await served_by(w, timeout=0.5)
    before, calls = w.router.targets(), {name: w.calls(name) for name in w.providers}
    after = successor(w, targets)
    assert after.router.targets() == before
    assert refusals(after)["a/m"] == "isolated"
    assert refusals(after)["d/m"] == "wait"
    assert await served_by(after, timeout=0.5) is None
    assert after.calls("a") == calls["a"] == 0
    assert after.calls("d") == calls["d"] == 1


@virtual
async def test_a_dead_target_is_not_found_out_again() -> None:
    """Its breaker is OPEN: the next request goes to another one at once, and its probe is due when it was."""
    w = world(["a/m", "b/m"], replies={"a": FakeProvider(DOWN)})
    for _ in range(10):
        await served_by(w)
    w.gate("a/m").breakers["whole"].adopt(now() + 25.0, 0, now(), reason="test")
    dead = w.calls("a")
    after = successor(w, ["a/m", "b/m"])
    assert refusals(after)["a/m"] == "open"
    assert [await served_by(after) for _ in range(5)] == ["b/m"] * 5
    assert after.calls("a") == dead
    await asyncio.sleep(25.1)
    after.providers["a"].set(FakeReply())
    assert await served_by(after) == "a/m"


@virtual
async def test_what_was_learned_of_a_limit_is_not_learned_again() -> None:
    """A bucket that is empty is empty after the reload as well; with another `rpm` it begins anew."""
    kinds = {"a": {"rpm": 2}}
    w = world(["a/m"], ["b/m"], kinds=kinds)
    assert [await served_by(w) for _ in range(3)] == ["a/m", "a/m", "b/m"]
    same = successor(w, ["a/m"], ["b/m"], kinds=kinds)
    assert await served_by(same) == "b/m"
    more = successor(same, ["a/m"], ["b/m"], kinds={"a": {"rpm": 3}})
    assert [await served_by(more) for _ in range(4)] == ["a/m", "a/m", "a/m", "b/m"]


@virtual
async def test_two_routers_together_keep_to_the_slots_of_one() -> None:
    """Of calls to a provider with two slots two are in flight, whichever router has sent them (I10)."""
    kinds = {"a": {"bulkhead": 2}}
    w = world(["a/m"], replies={"a": FakeProvider(SLOW)}, kinds=kinds)
    tasks = await asked(w, w)
    after = successor(w, ["a/m"], kinds=kinds)
    tasks += await asked(after, after, w)
    assert w.providers["a"].in_flight == 2
    assert await asyncio.gather(*tasks) == ["a/m"] * 5
    assert w.providers["a"].max_in_flight == 2
    w.assert_idle()
    after.assert_idle()


@virtual
async def test_who_waits_is_served_in_the_order_of_arrival_across_a_reload() -> None:
    """One slot, and waiters of both routers: whose call frees it does not matter, who came first does."""
    kinds = {"a": {"bulkhead": 1}}
    w = world(["a/m"], replies={"a": FakeProvider(FakeReply(seconds=1.0))}, kinds=kinds)
    ended: list[str] = []

    async def one(name: str, where: World) -> None:
        assert await served_by(where) == "a/m"
        ended.append(name)

    tasks = []
    after = w
    for name in ("old 1", "old 2", "reload", "new 1", "old 3", "new 2"):
        if name == "reload":
            after = successor(w, ["a/m"], kinds=kinds)
            continue
        tasks.append(asyncio.ensure_future(one(name, w if name.startswith("old") else after)))
        await asyncio.sleep(0.01)
    assert w.state.wait_queue.waiting == after.state.wait_queue.waiting == 4
    await asyncio.gather(*tasks)
    assert ended == ["old 1", "old 2", "new 1", "old 3", "new 2"]
    w.assert_idle()
    after.assert_idle()


@virtual
async def test_a_waiter_for_what_only_one_of_them_has_is_woken_by_the_other() -> None:
    """A removed target and an added one share their provider's slot: neither router forgets the other's waiters."""
    kinds = {"a": {"bulkhead": 1}}
    w = world(["a/old"], replies={"a": FakeProvider(FakeReply(seconds=5.0))}, kinds=kinds)
    old = await asked(w, w)
    after = successor(w, ["a/new"], kinds=kinds)
    new = await asked(after)
    began = now()
    assert await asyncio.gather(*old, *new) == ["a/old", "a/old", "a/new"]
    assert now() - began < 15.1


@virtual
async def test_more_slots_are_there_for_those_who_wait() -> None:
    """A reload with another slot lets the next waiter of the old router in, at once."""
    w = world(["a/m"], replies={"a": FakeProvider(SLOW)}, kinds={"a": {"bulkhead": 1}})
    tasks = await asked(w, w)
    assert w.providers["a"].in_flight == 1
    successor(w, ["a/m"], kinds={"a": {"bulkhead": 2}})
    await asyncio.sleep(0.01)
    assert w.providers["a"].in_flight == 2
    await asyncio.gather(*tasks)


@virtual
async def test_the_alarms_of_those_who_stay_outlast_the_router_that_closes() -> None:
    """A waiter for an instant is woken at it, although the router that came before closed meanwhile."""
    w = world(["a/m"], replies={"a": FakeProvider(limited(5.0))})
    await served_by(w, timeout=0.1)
    w.providers["a"].set(FakeReply())
    after = successor(w, ["a/m"])
    began = now()
    [task] = await asked(after)
    await w.router.aclose()
    await w.router.aclose()
    assert w.state not in after.state.together
    assert await task == "a/m"
    assert now() - began < 5.1
    assert len(after.state.together) == 1


@virtual
async def test_a_changed_target_does_not_stand_behind_waiters_for_what_it_was() -> None:
    """The owner mends the address of a dead provider: new requests go there at once, old ones still wait."""
    w = world(["a/m"], replies={"a": FakeProvider(limited(30.0))})
    await served_by(w, timeout=0.1)
    [old] = await asked(w)
    w.providers["a"].set(FakeReply())
    after = successor(w, ["a/m"], kinds={"a": {"base_url": "http://mended.invalid/v1"}})
    began = now()
    assert await served_by(after) == "a/m"
    assert now() == began
    assert await old == "a/m"


@virtual
async def test_another_key_is_tried_at_once() -> None:
    """A credential that was refused is off for a quarter of an hour, or until there is another key."""
    refused = {"a": FakeProvider(failing(FailureClass.AUTH, 401))}
    w = world(["a/m"], ["b/m"], replies=refused, kinds={"a": {"api_key": "wrong"}})
    assert await served_by(w) == "b/m"
    w.providers["a"].set(FakeReply())
    same = successor(w, ["a/m"], ["b/m"], kinds={"a": {"api_key": "wrong"}})
    assert await served_by(same) == "b/m"
    mended = successor(same, ["a/m"], ["b/m"], kinds={"a": {"api_key": "right"}})
    assert await served_by(mended) == "a/m"


@virtual
async def test_a_removed_target_is_drained() -> None:
    """Its call goes on in the old router, gets its answer, and no new request goes there."""
    w = world(["a/m", "b/m"], replies={"a": FakeProvider(SLOW)})
    [task] = await asked(w)
    after = successor(w, ["b/m"])
    assert await served_by(after) == "b/m"
    assert "a/m" not in refusals(after)
    assert await task == "a/m"
    w.assert_idle()


@virtual
async def test_statistics_go_on_and_calls_of_the_old_router_are_among_them() -> None:
    """Figures are of the process, not of a configuration; those of a changed target say nothing of it now."""
    w = world(["a/m", "b/m"], replies={"a": FakeProvider(FakeReply(seconds=1.0))})
    await served_by(w)
    await served_by(w, avoid=["a"])
    [task] = await asked(w)
    after = successor(w, ["a/m", "b/m", "c/m"], kinds={"b": {"base_url": "http://moved.invalid/v1"}})
    await task
    await served_by(after, avoid=["a", "b"])
    figures = after.router.stats()
    assert {name: stats.calls for name, stats in figures.targets.items()} == {"a/m": 2, "b/m": 1, "c/m": 1}
    assert {name: stats.recent_successes for name, stats in figures.targets.items()} == {"a/m": 2, "b/m": 0, "c/m": 1}
    assert figures.models["m"].latency_ema is not None
    assert figures.providers["a"].latency_ema == 1.0
    assert w.router.stats().targets["a/m"].calls == 2
    assert set(w.router.stats().targets) == {"a/m", "b/m"}


@virtual
async def test_what_was_made_before_is_found_after() -> None:
    """A request that refers to an answer goes to the target that made it, whichever router asked for that."""
    w = world(["a/m", "b/m"])
    w.state.makers.note(Target("b/m", "b", "m"), "", ["resp_1"])
    after = successor(w, ["a/m", "b/m"])
    assert after.state.makers.of("resp_1") == Target("b/m", "b", "m")


@virtual
async def test_a_reload_makes_no_retries_affordable() -> None:
    """The budget of ten is that of the process; with other figures it begins anew."""
    w = world(["a/m"])
    w.state.budget.balance = 0.0
    after = successor(w, ["a/m"])
    assert after.state.budget.balance == 0.0
    other = successor(after, ["a/m"], config={"resilience": {"retry_budget": {"start": 3}}})
    assert other.state.budget.balance == 3.0


@virtual
async def test_hedges_are_paid_from_the_budget_of_before() -> None:
    """Where there was one, and its figures are the same."""
    hedging: Mapping[str, Any] = {"resilience": {"hedging": {"enabled": True}}}
    w = world(["a/m"])
    first = successor(w, ["a/m"], config=hedging)
    assert first.state.hedges is not None
    first.state.hedges.balance = 7.0
    second = successor(first, ["a/m"], config=hedging)
    assert second.state.hedges is first.state.hedges
    third = successor(second, ["a/m"], config={"resilience": {"hedging": {"enabled": True, "ratio": 0.01}}})
    assert third.state.hedges is not None
    assert third.state.hedges.balance == 0.0


@virtual
async def test_who_sheds_sheds_after_a_reload() -> None:
    """More than half of the providers are OPEN, and the next request that can wait is told so."""
    w = world(["a/m", "b/m"], replies={"a": FakeProvider(DOWN), "b": FakeProvider(DOWN)})
    for gate in w.state.fleet.gates.values():
        gate.breakers["whole"].adopt(now() + 20.0, 0, now(), reason="test")
    after = successor(w, ["a/m", "b/m"])
    assert after.state.shedding.active


@virtual
async def test_another_clock_begins_anew() -> None:
    """Monotonic seconds say nothing on the wall: no bucket, window or average is taken over, the operator's no is."""
    w = world(["a/m", "b/m"], replies={"a": FakeProvider(limited(20.0))})
    await served_by(w)
    w.router.isolate("b/m")
    after = successor(w, ["a/m", "b/m"], config={"resilience": {"measures": {"monotonic_clock": False}}})
    assert refusals(after) == {"a/m": None, "b/m": "isolated"}
    assert after.router.stats().targets["a/m"].calls == 0


@virtual
async def test_with_shared_state_each_router_has_its_own_part_in_it() -> None:
    """What processes share is found there; what they do not (slots, the operator's no) goes on here."""
    tables, kinds = MemoryTables(), {"c": {"bulkhead": 1}}
    replies = {"c": FakeProvider(FakeReply(seconds=2.0))}
    w, _ = sharing(["a/m"], ["b/m"], ["c/m"], tables=tables, kinds=kinds, replies=replies)
    await trip(w)
    w.router.isolate("b/m")
    tasks = await asked(w)
    after, _ = sharing(["a/m"], ["b/m"], ["c/m"], tables=tables, kinds=kinds, replies=w.providers)
    after.router.continue_from(w.router)
    assert refusals(after) == {"a/m": "open", "b/m": "isolated", "c/m": "bulkhead"}
    assert after.gate("a/m") is not w.gate("a/m")
    tasks += await asked(after)
    began = now()
    assert await asyncio.gather(*tasks) == ["c/m", "c/m"]
    assert now() - began < 4.1
    assert replies["c"].max_in_flight == 1
    await w.router.aclose()
    after.router.close("a/m")
    assert await served_by(after) == "a/m"
    await asyncio.sleep(LISTENED)
    assert after.router.stats().targets["a/m"].calls == 6
    await after.router.aclose()


# The operator's word -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"config": {"resilience": {"slow_start": "3s"}}},
        {"kinds": {"a": {"api_key": "new"}}},
        {"kinds": {"a": {"base_url": "http://there.invalid/v1"}}},
        {"kinds": {"a": {"rpm": 60}}},
    ],
    ids=["nothing", "rules", "key", "place", "limits"],
)
def test_an_isolated_target_stays_isolated_whatever_changed(changed: dict[str, Any], shared: bool) -> None:
    """Only the operator's own word ends it; by whom it was said and why is known on. Nothing else is isolated."""

    @virtual
    async def reload() -> None:
        tables = MemoryTables()
        make = (
            functools.partial(sharing, tables=tables) if shared else lambda *args, **given: (world(*args, **given), 0)
        )
        before, _ = make(["a/m", "a/n", "b/m"])
        before.router.isolate("a/m", by="ada", why="it lies")
        before.router.isolate("b/m")
        after, _ = make(["a/m", "a/n", "b/n"], **changed)
        after.router.continue_from(before.router)
        assert refusals(after) == {"a/m": "isolated", "a/n": None, "b/n": None}
        isolated = after.router.targets()[0].isolated
        assert isolated is not None
        assert isolated.told == "by ada: it lies"
        after.router.close("a/m")
        assert refusals(after)["a/m"] is None
        for w in (before, after):
            await w.router.aclose()

    reload()


@virtual
async def test_a_reload_takes_the_later_word() -> None:
    """What another process has said and this one has not heard, and what was said here and nobody has heard."""
    tables = MemoryTables()
    before, store = sharing(["a/m", "b/m"], tables=tables)
    other, _ = sharing(["a/m", "b/m"], tables=tables)
    before.router.isolate("a/m")
    await other.router.listen()
    await asyncio.sleep(LISTENED)
    store.failure = "it is away"
    await before.router.listen()
    await asyncio.sleep(1)
    other.router.close("a/m")
    await asyncio.sleep(LISTENED)
    before.router.isolate("b/m")
    after, _ = sharing(["a/m", "b/m"], tables=tables)
    after.router.continue_from(before.router)
    assert refusals(after) == {"a/m": None, "b/m": "isolated"}
    await after.router.listen()
    await asyncio.sleep(LISTENED)
    assert refusals(after) == refusals(other) == {"a/m": None, "b/m": "isolated"}
    for w in (before, after, other):
        await w.router.aclose()
