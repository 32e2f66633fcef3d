"""Runs of research in virtual time, on both engines: sources that are slow, hang or fail, and cancelled runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.testing import LoopClock, run_virtual
from smart_model_router_research.deep import verify
from smart_model_router_research.engine import MemoryRunStore, StoredRun
from smart_model_router_research.pipeline.deep_research import ResearchResult
from smart_model_router_research.pipeline.run_inputs import ResearchBudget
from tests.research_worlds import ENGINES, EndlessSearch, ListedSearch, SlowSearch, inputs, research

TOPIC = "What is the capital of Arland? What is the capital of Borland? What is the capital of Corland?"
pytestmark = pytest.mark.parametrize("engine", ENGINES)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of a run: what it came to, after how many seconds, and what is left of it."""

    result: ResearchResult
    run: StoredRun
    seconds: float
    tasks: int
    beside: Sequence[str]

    @property
    def has_left_nothing(self) -> bool:
        """True when no task goes on, no process holds the run, and no half-written folder is there."""
        return not self.tasks and not self.run.owner and not self.beside


def run(folder: Path, engine: str, search: ListedSearch | EndlessSearch, **others: Any) -> Ended:
    """Run the topic in virtual time; `cancelled_after` are seconds after which it is cancelled."""
    after = others.pop("cancelled_after", None)

    async def main() -> tuple[ResearchResult, StoredRun, float, int]:
        clock, store = LoopClock(), MemoryRunStore()
        began = clock.now()
        runs = research(folder, engine, search, store, clock=clock)
        task = asyncio.create_task(runs.run(inputs(TOPIC, **others), "run"))
        if after is not None:
            await asyncio.sleep(after)
            await runs.cancel("run")
        result = await task
        return result, await store.load("run"), clock.now() - began, len(asyncio.all_tasks()) - 1

    result, stored, seconds, tasks = run_virtual(main())
    beside = [each.name for each in folder.iterdir() if each.name != "run"]
    return Ended(result=result, run=stored, seconds=seconds, tasks=tasks, beside=beside)


@pytest.mark.parametrize("hangs_at", [0, 2, 4])
def test_a_search_that_hangs_ends_with_its_run(tmp_path: Path, engine: str, hangs_at: int) -> None:
    """X11: the run ends before its deadline, with what was found by then; it is partial, also where the gate passes."""
    search = SlowSearch(hangs_at=hangs_at)
    found = run(tmp_path, engine, search)

    assert found.seconds <= 900.0
    assert (found.result.status, found.result.stop_reason) == ("partial", "passed" if hangs_at == 4 else "deadline")
    assert len(found.result.answers) == {0: 0, 2: 1, 4: 2}[hangs_at]
    assert "broken off" in " ".join(found.result.problems)
    assert (found.has_left_nothing, search.cancelled) == (True, 1)
    assert verify(tmp_path / "run").is_sound


def test_time_ends_searching_before_the_reserve(tmp_path: Path, engine: str) -> None:
    """X6: no search begins later, one that runs finishes, and the rest of the time is enough for a report."""
    search = SlowSearch(seconds=35.0)
    found = run(tmp_path, engine, search, budget=ResearchBudget(seconds=100.0, reserve=0.2))

    assert (found.result.status, found.result.stop_reason) == ("partial", "deadline")
    assert (len(search.texts), search.cancelled) == (2, 0)
    assert found.seconds == 70.0
    assert found.result.answers == ("Capital of Arland: Arville",)
    assert "searches not made: the time for them was over" in " ".join(found.result.problems)
    assert verify(tmp_path / "run").is_sound


def test_time_ends_rounds(tmp_path: Path, engine: str) -> None:
    """X6: a round that could not search any more does not begin."""

    class SlowEndless(EndlessSearch):
        async def search(self, text: str, most: int = 16) -> Any:
            await asyncio.sleep(100.0)
            return await super().search(text, most)

    found = run(tmp_path, engine, SlowEndless())

    assert (found.result.status, found.result.stop_reason) == ("partial", "deadline")
    assert found.seconds <= 900.0
    assert verify(tmp_path / "run").is_sound


@pytest.mark.parametrize("budget", [ResearchBudget(searches=0), ResearchBudget(fetches=0), ResearchBudget(searches=1)])
def test_a_run_that_may_not_search_is_partial(tmp_path: Path, engine: str, budget: ResearchBudget) -> None:
    """X6: of nothing there is a report, too, and it names the limit."""
    found = run(tmp_path, engine, ListedSearch(), budget=budget)

    assert (found.result.status, found.result.stop_reason) == ("partial", "budget")
    assert found.result.report
    assert "budget." in " ".join(found.result.problems)


@pytest.mark.parametrize("fails_at", [0, 2])
def test_a_search_that_fails_leaves_a_gap(tmp_path: Path, engine: str, fails_at: int) -> None:
    """X4: the run goes on with what was found, is partial, and says why; the error is no part of the report."""
    found = run(tmp_path, engine, SlowSearch(fails_at=fails_at))

    assert (found.result.status, found.result.stop_reason) == ("partial", "failed")
    assert len(found.result.answers) == fails_at // 2
    assert "failed: RuntimeError: the server answered 503" in " ".join(found.result.problems)
    assert "503" not in found.result.report
    assert found.result.report.startswith("# ")
    assert verify(tmp_path / "run").is_sound


def test_a_source_that_fails_takes_nothing_from_another(tmp_path: Path, engine: str) -> None:
    """The answers of the source that works are delivered."""

    async def main() -> ResearchResult:
        runs = research(tmp_path, engine, clock=LoopClock())
        both = type(runs)(
            store=MemoryRunStore(),
            corpora=[SlowSearch(fails_at=0), ListedSearch()],
            folder=tmp_path,
            engine=engine,
            clock=LoopClock(),
        )
        return await both.run(inputs(TOPIC), "run")

    found = run_virtual(main())

    assert len(found.answers) == 3
    assert (found.status, found.delivery) == ("completed", "full")


@pytest.mark.parametrize("after", [1.0, 1_000.0])
def test_a_run_that_goes_on_after_its_time_still_reports(tmp_path: Path, engine: str, after: float) -> None:
    """X6, X11: what it had found is delivered within its reserve, and the questions that were not asked are named."""

    async def main() -> tuple[ResearchResult, float]:
        clock = LoopClock()
        store = MemoryRunStore(now=clock.now)
        first = research(tmp_path, engine, SlowSearch(hangs_at=2), store, clock=clock)
        task = asyncio.create_task(first.run(inputs(TOPIC), "run"))
        await asyncio.sleep(100.0)
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(800.0 + after)
        began = clock.now()
        return await research(tmp_path, engine, store=store, clock=clock).resume("run"), clock.now() - began

    found, seconds = run_virtual(main())

    assert (found.status, found.stop_reason) == ("partial", "deadline")
    assert "## Not looked for" in found.report
    assert seconds <= ResearchBudget().seconds * ResearchBudget().reserve
    assert verify(tmp_path / "run").is_sound


@pytest.mark.parametrize("after", [0.0, 7.0, 33.0])
def test_a_run_that_is_cancelled_leaves_nothing(tmp_path: Path, engine: str, after: float) -> None:
    """X11: it has ended for good; no task goes on, no process holds it, and there is no folder."""
    search = SlowSearch(seconds=10.0, hangs_at=3)
    found = run(tmp_path, engine, search, cancelled_after=after)

    assert (found.result.status, found.result.report, found.result.delivery) == ("cancelled", "", "")
    assert (found.has_left_nothing, found.seconds) == (True, after)
    assert list(tmp_path.iterdir()) == []
