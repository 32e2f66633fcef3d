"""SqliteStore: what is in the file is what was observed, by the rules of the book, whoever wrote it."""

from __future__ import annotations

import math
import random
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest

from smart_model_router.domain.events import AttemptFinished, BreakerChanged, RequestFinished, TargetRefused
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router_stats.book import StatsBook
from smart_model_router_stats.figures import ModelStats
from smart_model_router_stats.reading import read_store
from smart_model_router_stats.sqlite import SqliteStore
from tests.store_files import attempt, calls, one, rows

EXACT = [
    "calls", "successes", "failures", "recent_successes", "recent_outcomes", "success_rate", "prompt_tokens",
    "cached_prompt_tokens", "completion_tokens", "cost_usd", "latency_15_min", "latency_all_time",
    "ttft_15_min", "ttft_all_time",
]  # fmt: skip


def some_attempts(count: int, seed: int = 1) -> list[AttemptFinished]:
    """Calls of every kind at six targets of three models at two providers, fewer a target than its window holds."""
    dice = random.Random(seed)
    made = []
    nonsense = [Usage(-1, 5), Usage(9, 5, 10), Usage(9, 5, -1)]
    for number in range(count):
        failure = dice.choice([*FailureClass, *[None] * 40])
        made.append(
            attempt(
                f"p{number % 2}/m{number % 3}",
                failure,
                seconds=dice.lognormvariate(1.0, 0.6),
                ttft=dice.lognormvariate(-1.0, 0.6) if dice.random() < 0.5 else None,
                usage=dice.choice([None, Usage(dice.randint(300, 900), 5, dice.randint(0, 300)), *nonsense]),
            )
        )
    return made


async def written(path: Path, *observations: AttemptFinished) -> SqliteStore:
    """A store that has seen these and was closed."""
    store = SqliteStore(path)
    for observation in observations:
        store.observe(observation)
    await store.aclose()
    return store


@pytest.mark.asyncio
async def test_the_file_says_what_the_book_says(tmp_path: Path) -> None:
    """Counts, tokens and percentiles of targets, models and providers are those of `router.stats()`, name by name."""
    observations = some_attempts(250)
    book = StatsBook((), wall=lambda: 0.0)
    for observation in observations:
        book.observe(observation)
    await written(tmp_path / "s.db", *observations)
    ours, theirs = book.figures(time.monotonic()), read_store(tmp_path / "s.db").figures
    for level in ("targets", "models", "providers"):
        mine, stored = getattr(ours, level), getattr(theirs, level)
        assert mine.keys() == stored.keys()
        for name, stats in mine.items():
            assert [getattr(stored[name], field) for field in EXACT] == [getattr(stats, field) for field in EXACT]


@pytest.mark.asyncio
async def test_one_schema_each_with_its_scope(tmp_path: Path) -> None:
    """`router.stats()` and the store give the same keys at every depth; only `scope` tells them apart."""
    book = StatsBook((), wall=lambda: 0.0)
    book.observe(attempt())
    await written(tmp_path / "s.db", attempt())
    ours, theirs = book.figures(time.monotonic()).to_dict(), read_store(tmp_path / "s.db").figures.to_dict()
    assert (ours.pop("scope"), theirs.pop("scope")) == ("process", "store")
    assert ours.keys() == theirs.keys()
    assert ours["targets"]["a/big"].keys() == theirs["targets"]["a/big"].keys()


@pytest.mark.asyncio
@pytest.mark.parametrize("level", ["target", "model", "provider"])
async def test_a_view_has_a_column_for_every_figure(tmp_path: Path, level: str) -> None:
    """The views name every figure as ModelStats does; a figure of percentiles is a column for each of them."""
    await written(tmp_path / "s.db", attempt())
    columns = {name for _, name, *_ in rows(tmp_path / "s.db", f"PRAGMA table_info(v_{level}_now)")}
    spread = [field.name for field in fields(ModelStats) if "_min" in field.name or "_time" in field.name]
    plain = {field.name for field in fields(ModelStats)} - set(spread)
    figures = plain | {f"{name}_{part}" for name in spread for part in ("count", "p50", "p75", "p90", "p95", "p99")}
    assert columns >= figures | {"scope", level}


@pytest.mark.asyncio
async def test_writers_add_up(tmp_path: Path) -> None:
    """Two writers that write by turns give exactly the sum of what each of them observed."""
    path = tmp_path / "s.db"
    one_store, other = SqliteStore(path), SqliteStore(path)
    for _ in range(20):
        for store in (one_store, other):
            store.observe(attempt())
            store.observe(attempt("b/small", FailureClass.TIMEOUT))
            assert await store.flush()
    await one_store.aclose()
    await other.aclose()
    assert rows(path, "SELECT target, calls, successes FROM v_target_now") == [("a/big", 40, 40), ("b/small", 40, 0)]


@pytest.mark.asyncio
async def test_percentiles_are_within_a_percent(tmp_path: Path) -> None:
    """Read off the merged buckets of two writers, each percentile is at most 1 % off the nearest-rank one."""
    dice = random.Random(3)
    samples = [dice.lognormvariate(0.0, 1.0) for _ in range(2_000)]
    await written(tmp_path / "s.db", *(attempt(seconds=seconds) for seconds in samples[:700]))
    await written(tmp_path / "s.db", *(attempt(seconds=seconds) for seconds in samples[700:]))
    samples.sort()
    latency = read_store(tmp_path / "s.db").figures.targets["a/big"].latency_15_min
    for percent in (50, 75, 90, 95, 99):
        exact = samples[math.ceil(percent * len(samples) / 100) - 1]
        assert getattr(latency, f"p{percent}") == pytest.approx(exact, rel=0.01)


@pytest.mark.asyncio
async def test_the_averages_favour_the_newest_minute(tmp_path: Path) -> None:
    """An average weighs a minute half as much as the one after it, and knows nothing of what is 5 minutes old."""
    now = time.monotonic()
    long_ago = [attempt(seconds=100.0, at=now - 400) for _ in range(5)]
    before = [attempt(seconds=1.0, at=now - 60) for _ in range(5)]
    await written(tmp_path / "s.db", *long_ago, *before, attempt(seconds=4.0, at=now))
    average = read_store(tmp_path / "s.db").figures.targets["a/big"].latency_ema
    assert average == pytest.approx((5 * 1.0 * 0.5 + 4.0) / (5 * 0.5 + 1))


@pytest.mark.asyncio
async def test_the_last_success_is_the_latest_whoever_writes_last(tmp_path: Path) -> None:
    """A writer that brings an older success, or a newer failure, moves neither back."""
    path = tmp_path / "s.db"
    now = time.monotonic()
    await written(path, attempt(at=now - 50), attempt("a/big", FailureClass.TIMEOUT, at=now - 90))
    await written(path, attempt(at=now - 10))
    await written(path, attempt(at=now - 70), attempt("a/big", FailureClass.TIMEOUT, at=now - 30))
    stats = read_store(path).figures.targets["a/big"]
    since = time.monotonic() - now
    assert stats.last_success_age is not None
    assert stats.last_failure_age is not None
    assert 9 <= stats.last_success_age <= since + 11
    assert 29 <= stats.last_failure_age <= since + 31


@pytest.mark.asyncio
async def test_minutes_are_told_apart(tmp_path: Path) -> None:
    """The views by minute have a row for each target (or model) and minute, with its own percentiles."""
    now = time.monotonic()
    early = [
        attempt("a/big", seconds=1.0, at=now - 120, usage=Usage(10, 1, 4)),
        attempt("b/big", FailureClass.TIMEOUT, at=now - 120),
    ]
    await written(tmp_path / "s.db", *early, attempt("a/big", seconds=3.0, at=now))
    path = tmp_path / "s.db"
    of_target = rows(
        path, "SELECT calls, round(latency_p50) FROM v_target_minute WHERE target = 'a/big' ORDER BY minute"
    )
    of_model = rows(path, "SELECT calls, successes, failures FROM v_model_minute ORDER BY minute")
    for view in ("v_target_minute WHERE target = 'a/big'", "v_model_minute"):
        assert rows(path, f"SELECT prompt_tokens, cached_prompt_tokens FROM {view}") == [(10, 4), (0, 0)]
    assert of_target == [(1, 1.0), (1, 3.0)]
    assert of_model == [(2, 1, '{"TIMEOUT":1}'), (1, 1, "{}")]


@pytest.mark.asyncio
async def test_nothing_is_kept_of_what_people_wrote(tmp_path: Path) -> None:
    """An error may quote a prompt or a key: no text of one is in the file, and a model's name is cut short."""
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    store.observe(attempt())
    store.emit(
        RequestFinished(
            at=time.monotonic(), request_id="req-1", dialect="chat", model="x" * 5_000 + "\ud800", outcome="failed",
            target=None, requested_tier="frontier", actual_tier=None, degraded=False, last_resort=False, attempts=1,
            refusals=0, seconds=1.5, waited_seconds=0.5, error="401: the key sk-secret-words is unknown",
        )
    )  # fmt: skip
    await store.aclose()
    assert rows(path, "SELECT request_id, outcome, length(model), seconds FROM v_requests") == [
        ("req-1", "failed", 200, 1.5)
    ]
    assert b"secret-words" not in path.read_bytes()


@pytest.mark.asyncio
async def test_a_request_is_kept_with_its_notes_and_if_its_answer_was_complete(tmp_path: Path) -> None:
    """As in the report."""
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    event = RequestFinished(
        at=time.monotonic(), request_id="req-1", dialect="chat", model="m", outcome="ok", target="a/big",
        requested_tier="frontier", actual_tier="frontier", degraded=False, last_resort=False, attempts=1, refusals=0,
        seconds=1.5, waited_seconds=0.5, complete=True,
    )  # fmt: skip
    store.emit(event)
    store.emit(replace(event, request_id="req-2", complete=False, notes=("a byte", 'is "not" UTF-8')))
    await store.aclose()
    assert rows(path, "SELECT request_id, complete, notes FROM v_requests") == [
        ("req-2", 0, '["a byte", "is \\"not\\" UTF-8"]'),
        ("req-1", 1, "[]"),
    ]


@pytest.mark.asyncio
async def test_state_changes_are_events(tmp_path: Path) -> None:
    """What changed is kept with its subject and as a duration; refusals, of which there are too many, are not."""
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    now = time.monotonic()
    store.emit(TargetRefused(at=now, request_id="req-1", target="a/big", reason="open", retry_after=3.0))
    store.emit(
        BreakerChanged(
            at=now,
            owner="a/big",
            kind="whole",
            from_state="closed",
            to_state="open",
            reason="ratio",
            open_until=now + 30,
        )
    )
    assert await store.flush()
    await store.aclose()
    query = "SELECT kind, subject, json_extract(detail, '$.to_state'), round(json_extract(detail, '$.open_seconds')) "
    assert rows(path, query + "FROM v_events") == [("BreakerChanged", "a/big", "open", 30.0)]


@pytest.mark.asyncio
async def test_a_figure_that_is_none_is_dropped_and_counted(tmp_path: Path) -> None:
    """An observation with an infinite duration would poison every sum: it is counted as dropped, the rest is kept."""
    store = await written(tmp_path / "s.db", attempt(seconds=math.inf), attempt())
    assert store.stats_dropped == 1
    assert calls(tmp_path / "s.db") == 1


@pytest.mark.asyncio
async def test_a_clock_in_1970_does_no_harm(tmp_path: Path) -> None:
    """A machine without a clock counts as any other; its minutes are those of 1970, and not before."""
    path = tmp_path / "s.db"
    store = SqliteStore(path, wall=lambda: 5.0)
    store.observe(attempt(at=time.monotonic() - 3_600))
    await store.aclose()
    assert calls(path) == 1
    assert one(path, "SELECT min(minute) FROM v_target_minute") == 0
