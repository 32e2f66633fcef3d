"""router.guard: anything awaitable behind the same breaker, cooldown, bucket and bulkhead."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from smart_model_router import AllTargetsFailed, ConfigurationError, FailureClass, GuardLimits
from smart_model_router.core.breaker import BreakerState
from smart_model_router.domain.events import AttemptFinished, GuardsExpired
from smart_model_router.observability.dashboard_history import DashboardHistory
from smart_model_router.testing import FakeDice
from tests.world import BODY, DOWN, World, now, swallow, timers, virtual, world


def classes(w: World) -> list[FailureClass | None]:
    """What came of every guarded block."""
    return [event.failure_class for event in w.sink.of(AttemptFinished) if event.target == "search"]


async def hold(w: World, seconds: float, limits: GuardLimits | None = None) -> float:
    """Hold the resource for a while; the instant at which it was admitted."""
    async with w.router.guard("search", limits):
        began = now()
        await asyncio.sleep(seconds)
    return began


async def fail(w: World, error: BaseException) -> None:
    """Fail inside a guarded block, a moment after it began."""
    async with w.router.guard("search"):
        await asyncio.sleep(0.1)
        raise error


@virtual
async def test_a_block_that_ends_well_is_a_success() -> None:
    """The block runs, its success is counted, nothing is kept."""
    w = world(["a/big"])
    await hold(w, 1.0)
    assert classes(w) == [None]
    assert w.router.stats().targets["search"].successes == 1
    w.assert_idle()


@virtual
async def test_an_exception_passes_and_counts_against_the_resource() -> None:
    """Five timeouts in a row and its breaker is open: the sixth is refused, with the time until the next probe."""
    w = world(["a/big"], config={"routing": {"max_wait": "500ms"}})
    ended = await asyncio.gather(*(fail(w, TimeoutError("slow")) for _ in range(5)), return_exceptions=True)
    assert [type(error) for error in ended] == [TimeoutError] * 5
    assert classes(w) == [FailureClass.TIMEOUT] * 5
    assert w.gate("search").breakers["whole"].state(now()) is BreakerState.OPEN
    with pytest.raises(AllTargetsFailed, match="open") as caught:
        await hold(w, 1.0)
    assert caught.value.retry_after is not None
    assert 0.5 < caught.value.retry_after <= 1.2
    await asyncio.sleep(caught.value.retry_after)
    await hold(w, 1.0)
    assert w.gate("search").breakers["whole"].state(now()) is BreakerState.CLOSED
    w.assert_idle()


@virtual
async def test_a_block_waits_for_the_probe_of_a_resource_that_is_down() -> None:
    """Nothing else can stand in for it: the probe is due after a second, not after the open time."""
    w = world(["a/big"])
    await asyncio.gather(*(fail(w, TimeoutError("slow")) for _ in range(5)), return_exceptions=True)
    began = now()
    assert 0.8 <= await hold(w, 1.0) - began <= 1.2
    w.assert_idle()


@virtual
async def test_a_failure_without_an_exception_can_be_told() -> None:
    """`lease.fail` is for answers that are wrong although nothing was raised."""
    w = world(["a/big"])
    async with w.router.guard("search") as lease:
        lease.fail(FailureClass.EMPTY, "no results")
    assert classes(w) == [FailureClass.EMPTY]
    w.assert_idle()


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit()])
@virtual
async def test_who_leaves_says_nothing_about_the_resource(error: BaseException) -> None:
    """Cancelled, interrupted, closed: everything is given back and nobody is praised or blamed."""
    w = world(["a/big"])
    with pytest.raises(type(error)):
        await fail(w, error)
    assert classes(w) == [FailureClass.CANCELLED]
    w.assert_idle()


@virtual
async def test_slots_are_waited_for_in_order() -> None:
    """One slot, three blocks of a second: one after the other."""
    w = world(["a/big"])
    began = now()
    limits = GuardLimits(slots=1)
    assert await asyncio.gather(*(hold(w, 1.0, limits) for _ in range(3))) == [began, began + 1.0, began + 2.0]
    w.assert_idle()


@virtual
async def test_a_rate_is_kept() -> None:
    """Two a minute: the third block waits half a minute."""
    w = world(["a/big"])
    began, limits = now(), GuardLimits(rpm=2)
    admitted = [await hold(w, 0.0, limits) - began for _ in range(3)]
    assert admitted == [0.0, 0.0, pytest.approx(30.0, abs=1e-3)]


@virtual
@pytest.mark.parametrize(("routing", "seconds"), [({"max_wait": "60s"}, 60.0), ({}, 600.0)])
async def test_nobody_waits_longer_than_max_wait(routing: dict[str, str], seconds: float) -> None:
    """A slot that does not become free: refused after `max_wait`; without one after `timeouts.total`."""
    w = world(["a/big"], config={"routing": routing})
    task = asyncio.ensure_future(hold(w, 5_000.0, GuardLimits(slots=1)))
    await asyncio.sleep(0)
    began = now()
    with pytest.raises(AllTargetsFailed, match="bulkhead"):
        await hold(w, 1.0)
    assert now() - began == pytest.approx(seconds)
    await swallow(task)
    w.assert_idle()


@virtual
async def test_more_slots_let_waiters_in_at_once() -> None:
    """Limits given later resize the slots, and who waits hears of it."""
    w = world(["a/big"])
    holder = asyncio.ensure_future(hold(w, 50.0, GuardLimits(slots=1)))
    await asyncio.sleep(1.0)
    waiter = asyncio.ensure_future(hold(w, 1.0))
    await asyncio.sleep(1.0)
    began = now()
    other = asyncio.ensure_future(hold(w, 1.0, GuardLimits(slots=3)))
    assert await waiter == began
    assert await other == began
    await holder
    w.assert_idle()


@virtual
async def test_a_toss_that_was_lost_is_repeated_once_a_second_later() -> None:
    """A resource that answers less than a fifth has one block at a time; the next one is tossed once a second."""
    never = {"breaker": {"consecutive_failures": 1000}, "cooldown": {"odds": 1_000_000_000}}
    w = world(["a/big"], config={"resilience": never, "routing": {"max_wait": "1s"}})
    for _ in range(30):
        with pytest.raises(TimeoutError):
            await fail(w, TimeoutError("slow"))
    first = asyncio.ensure_future(hold(w, 5.0))
    await asyncio.sleep(0.1)
    throttle = w.gate("search").throttle
    w.state.dice = FakeDice(0.0)
    began, counted = now(), throttle._requests
    with pytest.raises(AllTargetsFailed, match="throttle"):
        await hold(w, 1.0)
    assert now() - began == pytest.approx(1.0)
    assert throttle._requests - counted == 2
    await first
    w.assert_idle()


@virtual
async def test_a_cancelled_waiter_leaves_no_place_behind() -> None:
    """Cancelled before it was admitted: the next one is."""
    w = world(["a/big"])
    holder = asyncio.ensure_future(hold(w, 5.0, GuardLimits(slots=1)))
    await asyncio.sleep(0)
    waiter = asyncio.ensure_future(hold(w, 1.0))
    await asyncio.sleep(1.0)
    await swallow(waiter)
    await holder
    await hold(w, 1.0)
    w.assert_idle()


@virtual
async def test_a_target_is_no_name_for_a_guard() -> None:
    """Two meanings of one name would share one breaker."""
    w = world(["a/big"])
    with pytest.raises(ConfigurationError, match="a name that is not that of a target"):
        async with w.router.guard("a/big"):
            pass


@virtual
async def test_the_operator_can_isolate_a_guarded_resource() -> None:
    """isolate refuses at once, close lets in again."""
    w = world(["a/big"])
    await hold(w, 0.0)
    w.router.isolate("search")
    with pytest.raises(AllTargetsFailed, match="isolated"):
        await hold(w, 0.0)
    w.router.close("search")
    await hold(w, 0.0)
    w.assert_idle()


def test_nonsense_limits_are_refused_by_name() -> None:
    """Zero slots would never admit anybody."""
    with pytest.raises(ConfigurationError, match=r"GuardLimits\.slots"):
        GuardLimits(slots=0)


async def targets(w: World) -> set[str]:
    """Every name that stands anywhere where people look: targets, statistics, metrics, dashboard."""
    painter = w.router.monitor.painter(DashboardHistory())
    samples = {value for sample in w.router.monitor.samples() for label, value in sample.labels if label == "target"}
    view = w.router.stats()
    return {
        *(status.id for status in w.router.targets()),
        *view.targets,
        *view.models,
        *view.providers,
        *samples,
        *(target["id"] for target in (await painter.picture())["targets"]),
    } - {"a", "big"}


@virtual
async def test_a_name_unused_for_an_hour_is_forgotten() -> None:
    """Within a minute gate, statistics, metrics and the dashboard's row go, unasked; the configured target stays."""
    w = world(["a/big"])
    for name in ("search", "database"):
        async with w.router.guard(name):
            await asyncio.sleep(0.1)
    await asyncio.sleep(1800.0)
    await hold(w, 1.0)
    assert await targets(w) == {"a/big", "search", "database"}
    await asyncio.sleep(1870.0)
    assert await targets(w) == {"a/big", "search"}
    assert [event.names for event in w.sink.of(GuardsExpired)] == [{"database"}]
    await asyncio.sleep(1800.0)
    assert await targets(w) == {"a/big"}
    assert not timers()
    await hold(w, 1.0)
    assert w.router.stats().targets["search"].successes == 1
    await w.router.aclose()
    assert not timers()


@virtual
async def test_a_name_in_use_is_not_forgotten() -> None:
    """While a block runs, waits, or the operator has said no, the name stays, however long that is."""
    w = world(["a/big"])
    await asyncio.gather(hold(w, 10_000.0, GuardLimits(slots=1)), waits_for(w, 8_000.0))
    async with w.router.guard("database"):
        pass
    w.router.isolate("database")
    await asyncio.sleep(7300.0)
    assert await targets(w) == {"a/big", "database"}
    with pytest.raises(AllTargetsFailed, match="isolated"):
        async with w.router.guard("database"):
            raise AssertionError


async def waits_for(w: World, seconds: float) -> None:
    """Wait in vain for a slot, again and again."""
    until = now() + seconds
    while now() < until:
        with pytest.raises(AllTargetsFailed):
            await hold(w, 0.0)


@virtual
async def test_thousands_of_names_are_not_kept() -> None:
    """A name for each user, each used once: only those of the last hour are known, give or take a minute."""
    w = world(["a/big"])
    for number in range(3000):
        async with w.router.guard(f"user-{number}"):
            pass
        await asyncio.sleep(3.6)
    assert len(w.state.fleet.gates) <= 1020
    assert len(w.router.targets()) <= 1020
    await asyncio.sleep(3700.0)
    assert len(w.state.fleet.gates) == len(w.router.stats().targets) == len(w.router.stats().models) == 1


@virtual
async def test_a_reload_does_not_keep_what_is_unused() -> None:
    """Names of the router before are forgotten by the one in its place, unless it has a target of that name."""
    w = world(["a/big"])
    await hold(w, 1.0)
    other = world(["a/big"])
    other.router.continue_from(w.router)
    await w.router.aclose()
    assert await targets(other) == {"a/big", "search"}
    await asyncio.sleep(3601.0)
    assert await targets(other) == {"a/big"}
    assert not timers()


@virtual
async def test_a_router_that_is_dropped_is_not_kept_for_its_guards() -> None:
    """The timer that forgets them holds no router."""
    w = world(["a/big"])
    await hold(w, 1.0)
    state = weakref.ref(w.state)
    del w
    gc.collect()
    assert state() is None
    await asyncio.sleep(3601.0)


@virtual
async def test_a_guard_may_bear_the_name_of_a_provider() -> None:
    """Each has its own state: blocks wait for their slot, calls are made, and the provider outlasts the guard."""
    w = world(["a/big"], ["b/small"])
    began = now()
    ask = asyncio.ensure_future(w.router.chat(BODY))

    async def guarded() -> float:
        async with w.router.guard("a", GuardLimits(slots=1)):
            admitted = now() - began
            await asyncio.sleep(1.0)
        return admitted

    assert list(await asyncio.gather(guarded(), guarded(), guarded())) == [0.0, 1.0, 2.0]
    assert (await ask).report.target == "a/big"
    await asyncio.sleep(3700.0)
    assert [event.names for event in w.sink.of(GuardsExpired)] == [{"a"}]
    w.providers["a"].set(DOWN)
    assert (await w.router.chat(BODY)).report.target == "b/small"
    assert w.router.system_health().open_ratio == 0.0
    assert {status.id for status in w.router.targets()} == {"a/big", "b/small"}
