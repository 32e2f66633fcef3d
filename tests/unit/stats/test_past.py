"""What survives a restart through the statistics file: percentiles and averages, each sample once."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from pathlib import Path

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router.domain.request import Target
from smart_model_router.testing import FakeProvider
from smart_model_router_stats.book import StatsBook
from smart_model_router_stats.open_db import open_store
from smart_model_router_stats.reading import Past, read_past
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.sqlite import SqliteStore
from tests.e2e.eventually import becomes
from tests.store_files import attempt, calls

BIG = Target("a/big", "a", "big")
WALL = 1_700_000_000.0
NOW = 50_000.0
BODY = {"model": "smart", "messages": [{"role": "user", "content": "hello"}]}


async def written(path: Path, *ages: float, seconds: float = 2.0, ttft: float | None = None) -> None:
    """A process that ended: one answer of 100 tokens so many seconds before NOW each."""
    store = SqliteStore(path, wall=lambda: WALL, monotonic=lambda: NOW)
    for age in sorted(ages, reverse=True):
        store.observe(attempt(at=NOW - age, seconds=seconds, ttft=ttft, usage=Usage(10, 100)))
    await store.aclose()


def past_of(path: Path, *, wall: float = WALL, now: float = NOW) -> Past:
    """What is known of a/big."""
    with closing(open_store(path, STATS_MIGRATIONS)) as connection:
        (found,) = read_past(connection, wall, now)
    return found


def book() -> StatsBook:
    """One that knows nothing yet."""
    return StatsBook([BIG], wall=lambda: WALL)


@pytest.mark.asyncio
async def test_percentiles_of_the_quarter_of_an_hour_and_of_all_time_come_back(tmp_path: Path) -> None:
    """More calls than any list of the newest keeps; and they leave when they are 15 minutes old."""
    path = tmp_path / "s.db"
    await written(path, *(float(age) for age in range(200)), seconds=2.0)
    await written(path, 3_600.0, 7_200.0, seconds=9.0)
    known = book()
    known.remember(past_of(path), NOW)
    figures = known.figures(NOW).targets["a/big"]
    assert (figures.latency_15_min.count, figures.latency_all_time.count, figures.calls) == (200, 202, 0)
    assert known.snapshot("a/big", NOW).latency_p99 == pytest.approx(2.0, rel=0.01)
    assert known.snapshot("a/big", NOW + 14 * 60 - 200).latency_p99 == pytest.approx(2.0, rel=0.01)
    assert known.snapshot("a/big", NOW + 15 * 60).latency_p99 is None
    assert known.figures(NOW + 15 * 60).targets["a/big"].latency_all_time.count == 202


@pytest.mark.asyncio
async def test_averages_come_back_and_age(tmp_path: Path) -> None:
    """Of the last five minutes; unknown again five minutes after the newest minute with a call."""
    path = tmp_path / "s.db"
    await written(path, 100.0, seconds=3.0)
    await written(path, 100.0, seconds=5.0, ttft=0.5)
    await written(path, 1_000.0, seconds=99.0)
    known = book()
    known.remember(past_of(path), NOW)
    snapshot = known.snapshot("a/big", NOW)
    assert snapshot.latency_ema == pytest.approx(3.0)
    assert snapshot.ttft_ema == pytest.approx(0.5)
    assert snapshot.seconds_per_100_tokens == pytest.approx(4.0)
    assert known.snapshot("a/big", NOW + 300).latency_ema is None


@pytest.mark.asyncio
async def test_what_is_known_better_stays(tmp_path: Path) -> None:
    """A moving average of single calls is not replaced, and a target that began anew gets no old average."""
    path = tmp_path / "s.db"
    await written(path, 100.0, seconds=3.0)
    called, anew = book(), book()
    called.observe(attempt(at=NOW, seconds=8.0))
    anew.reset_window("a/big", NOW)
    for known in (called, anew):
        known.remember(past_of(path), NOW)
    assert called.snapshot("a/big", NOW).latency_ema == 8.0
    assert anew.snapshot("a/big", NOW).latency_ema is None
    assert called.figures(NOW).targets["a/big"].latency_all_time.count == 2


@pytest.mark.asyncio
async def test_calls_that_came_back_one_by_one_count_once(tmp_path: Path) -> None:
    """Those of before that the shared state has kept as well; outcomes and completions stay as they are."""
    path = tmp_path / "s.db"
    ages = [float(age) for age in range(0, 1_200, 20)]
    await written(path, *ages)
    known = book()
    for age in sorted(ages, reverse=True)[-50:]:
        known.restore(attempt(at=NOW - age, usage=Usage(0, 100)))
    known.observe(attempt(at=NOW, seconds=8.0))
    known.remember(past_of(path), NOW)
    figures = known.figures(NOW).targets["a/big"]
    assert figures.latency_all_time.count == len(ages) + 1
    assert figures.latency_all_time.p99 == pytest.approx(8.0, rel=0.01)
    snapshot = known.snapshot("a/big", NOW)
    assert snapshot.outcomes == 16
    assert snapshot.completion_tokens_p95 == pytest.approx(100, rel=0.01)


@pytest.mark.asyncio
async def test_a_file_that_was_begun_anew_takes_nothing_away(tmp_path: Path) -> None:
    """It knows of fewer calls than the shared state has kept: those stay."""
    path = tmp_path / "s.db"
    await written(path, 10.0)
    known = book()
    for age in range(50, 0, -1):
        known.restore(attempt(at=NOW - age))
    known.remember(past_of(path), NOW)
    assert known.figures(NOW).targets["a/big"].latency_all_time.count == 50


@pytest.mark.asyncio
@pytest.mark.parametrize("wall", [0.0, WALL - 86_400.0, WALL + 86_400.0], ids=["1970", "back", "forward"])
async def test_a_clock_that_was_set_leaves_nothing_recent(tmp_path: Path, wall: float) -> None:
    """In 1970, a day back or a day on: the figures of all time are there, recent ones and averages are not."""
    path = tmp_path / "s.db"
    await written(path, *(float(age) for age in range(100)))
    known = book()
    known.remember(past_of(path, wall=wall), NOW)
    figures = known.figures(NOW).targets["a/big"]
    assert (figures.latency_15_min.count, figures.latency_all_time.count) == (0, 100)
    assert figures.latency_ema is None


@pytest.mark.asyncio
async def test_failures_alone_are_a_past_without_samples(tmp_path: Path) -> None:
    """Nothing is known of a latency that nobody measured."""
    path = tmp_path / "s.db"
    store = SqliteStore(path, wall=lambda: WALL, monotonic=lambda: NOW)
    store.observe(attempt(at=NOW, failure=FailureClass.SERVER_ERROR))
    await store.aclose()
    known = book()
    known.remember(past_of(path), NOW)
    known.remember(
        Past(target="nobody/here", latency=past_of(path).latency, ttft=past_of(path).ttft, averaged_at=0), NOW
    )
    assert known.snapshot("a/big", NOW).latency_p99 is None
    assert known.snapshot("a/big", NOW).latency_ema is None


@pytest.mark.asyncio
@pytest.mark.parametrize("shared", [True, False], ids=["shared state", "file alone"])
async def test_a_router_that_starts_again_knows_its_percentiles(tmp_path: Path, shared: bool) -> None:
    """Before its first request, each call once, those it makes itself included."""
    path = tmp_path / "stats.db"
    config = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": "http://fake.invalid"}},
        "models": {"smart": {"tiers": [{"targets": ["a/big"]}], "last_resort": []}},
        "store": {"path": str(path), "shared_state": shared},
    }

    def count(router: SmartModelRouter) -> int:
        return router.stats().targets["a/big"].latency_all_time.count

    async with SmartModelRouter.from_config(config, providers={"a": FakeProvider()}) as router:
        for _ in range(80):
            await router.chat(BODY)
        assert count(router) == 80
    async with SmartModelRouter.from_config(config, providers={"a": FakeProvider()}) as router:
        assert await becomes(lambda: count(router) == 80)
        await router.chat(BODY)
        assert await becomes(lambda: calls(path) == 81)
        assert count(router) == 81
        assert router.stats().targets["a/big"].calls == 1


@pytest.mark.asyncio
async def test_two_hundred_targets_hold_no_request_up(tmp_path: Path) -> None:
    """A turn of the loop takes in the past of one target, of at most forty latencies here: others run in between."""
    path = tmp_path / "s.db"
    names = [f"a/m{number}" for number in range(200)]
    first = SqliteStore(path)
    for name in names:
        for place in range(1, 41):
            first.observe(attempt(name, seconds=0.05 * place))
    await first.aclose()
    known = StatsBook([Target(name, "a", name.removeprefix("a/")) for name in names], wall=lambda: WALL)
    told: list[str] = []
    others: list[int] = []

    def remember(past: Past) -> None:
        known.remember(past, time.monotonic())
        assert len(others) == len(told)
        told.append(past.target)
        asyncio.get_running_loop().call_soon(others.append, len(told))

    second = SqliteStore(path)
    second.on_past(remember)
    assert await becomes(lambda: len(told) == 200, within=30)
    await second.aclose()
    assert sorted(told) == sorted(names)
    assert known.figures(time.monotonic()).targets["a/m199"].latency_all_time.count == 40
