"""The cost of workflows: steps on both engines, checkpoints in a file, how soon a run goes on, and many at once."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, TypedDict

from benchmarks._measure import Figure, report

from smart_model_router.testing import LoopClock, run_virtual
from smart_model_router_research.engine import (
    ExecutionContext,
    KahnEngine,
    LangGraphEngine,
    NewRun,
    RunState,
    SqliteRunStore,
    StepResult,
    StepState,
)
from smart_model_router_research.workflow import Costs, Step, StepInput, WorkflowDefinition

STEPS = 1_000
KEPT = 300
"""Steps whose checkpoints are measured: each is on the disk three times before the next one begins."""
RUNS = 7
ANSWER = "an answer " * 50
DONE = StepResult(state=StepState.SUCCEEDED, outputs={"text": ANSWER}, attempts=1, costs=Costs(100, 0.01, 2.0, 1))


async def nothing(_: StepInput) -> Mapping[str, Any]:
    """Do no work."""
    return {}


def chains(count: int, wide: int = 10) -> WorkflowDefinition:
    """Make a workflow of so many steps in ten chains."""
    return WorkflowDefinition(
        "w", [Step(f"s{n}", nothing, (f"s{n - wide}",) if n >= wide else ()) for n in range(count)]
    )


def kahn() -> Figure:
    """CPU of 1,000 empty steps in memory, against graphlib's sorter alone."""
    workflow = chains(STEPS)
    taken, bare = [], []

    async def run(name: str) -> RunState:  # asyncio.run takes long over a large result: it makes a text of it, twice
        return (await KahnEngine().execute(workflow, ExecutionContext(run_id=name))).status

    for number in range(RUNS):
        start = time.process_time()
        state = asyncio.run(run(f"r{number}"))
        taken.append(1e3 * (time.process_time() - start))
        assert state is RunState.COMPLETED
        start = time.process_time()
        sorter = TopologicalSorter({step.name: step.needs for step in workflow.steps})
        sorter.prepare()
        while sorter.is_active():
            sorter.done(*sorter.get_ready())
        bare.append(1e3 * (time.process_time() - start))
    name = f"Kahn, {STEPS:,} empty steps in memory"
    return Figure(name, statistics.median(taken), "ms", statistics.median(bare), "the sorter alone", 60.0)


class Channels(TypedDict):
    """The state of a graph that is written by hand: one channel for all steps."""

    steps: Annotated[dict[str, str], lambda old, new: {**old, **new}]


def by_hand(workflow: WorkflowDefinition) -> Any:
    """Make the graph that a user of LangGraph would write for a workflow, with the same joins."""
    # Not before: whatever a process has imported makes its garbage collections longer, also those of other figures.
    from langgraph.graph import START, StateGraph  # noqa: PLC0415

    built = StateGraph(Channels)

    def node(name: str) -> Any:
        async def done(state: Channels) -> Channels:
            del state
            return {"steps": {name: "succeeded"}}

        return done

    for step in workflow.steps:
        built.add_node(step.name, node(step.name))
    for step in workflow.steps:
        built.add_edge(list(step.needs) or START, step.name)
    return built.compile()


def langgraph(count: int) -> Figure:
    """CPU of empty steps on LangGraph's engine in memory, against the library itself with a graph by hand."""
    workflow = chains(count, 5)
    taken, bare = [], []

    async def run(name: str) -> RunState:
        return (await LangGraphEngine().execute(workflow, ExecutionContext(run_id=name))).status

    async def alone() -> int:
        found = await by_hand(workflow).ainvoke({"steps": {}}, {"recursion_limit": 4 * count + 16})
        return len(found["steps"])

    for number in range(2 * RUNS + 1):
        start = time.process_time()
        state = asyncio.run(run(f"r{number}"))
        taken.append(1e3 * (time.process_time() - start))
        start = time.process_time()
        found = asyncio.run(alone())
        bare.append(1e3 * (time.process_time() - start))
        assert (state, found) == (RunState.COMPLETED, count)
    # The first of each imports and warms up.
    cost, base = statistics.median(taken[1:]), statistics.median(bare[1:])
    return Figure(f"LangGraph, {count} empty steps in memory", cost, "ms", base, "a StateGraph by hand", 1.5 * base)


def unequal() -> Sequence[Figure]:
    """Virtual time of two chains of unequal steps on each engine, against the longer of the chains."""
    times = {"a": (0.5, 0.05, 0.5), "b": (0.05, 0.5, 0.05)}

    def waits(seconds: float) -> Callable[[StepInput], Awaitable[Mapping[str, Any]]]:
        async def run(_: StepInput) -> Mapping[str, Any]:
            await asyncio.sleep(seconds)
            return {}

        return run

    steps = [
        Step(f"{chain}{n}", waits(seconds), (f"{chain}{n - 1}",) if n else ())
        for chain, each in times.items()
        for n, seconds in enumerate(each)
    ]
    longest = max(map(sum, times.values()))

    async def run(engine: KahnEngine | LangGraphEngine) -> float:
        clock = LoopClock()
        context = ExecutionContext(run_id="r", clock=clock)
        start = clock.now()
        await engine.execute(WorkflowDefinition("w", steps), context)
        return clock.now() - start

    engines = (("Kahn", KahnEngine(), 1.02 * longest), ("LangGraph", LangGraphEngine(), 1.5))
    name = "two unequal chains on {}, virtual time"
    return [
        Figure(name.format(each), run_virtual(run(engine)), "s", longest, "the longer one", most)
        for each, engine, most in engines
    ]


def checkpoints(folder: Path) -> Figure:
    """CPU of all that a step writes to a file (its start, its costs, its result), against one plain insert."""

    async def kept(path: Path) -> float:
        store = SqliteRunStore(path)
        new = NewRun(run_id="r", workflow="w", workflow_hash="h", step_hashes={}, inputs={}, engine="kahn")
        await store.create(new)
        lease = await store.lease("r", "one")
        start = time.process_time()
        for number in range(KEPT):
            await store.begin(lease, f"s{number}", 1, "i")
            await store.charge(lease, f"s{number}", DONE.costs)
            await store.settle(lease, f"s{number}", DONE, "i")
        taken = time.process_time() - start
        await store.aclose()
        return 1e3 * taken / KEPT

    def inserted(path: Path) -> float:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("CREATE TABLE t (run TEXT, step TEXT, result TEXT, PRIMARY KEY (run, step))")
            start = time.process_time()
            for number in range(KEPT):
                connection.execute("INSERT INTO t VALUES ('r', ?, ?)", (f"s{number}", ANSWER))
            return 1e3 * (time.process_time() - start) / KEPT

    pairs = [
        (asyncio.run(kept(folder / f"runs-{number}.db")), inserted(folder / f"bare-{number}.db")) for number in range(3)
    ]
    cost, bare = (statistics.median(each) for each in zip(*pairs, strict=True))
    return Figure("checkpoint of a step in a file", cost, "ms", bare, "one plain insert", 2.0)


def resumes(folder: Path) -> Figure:
    """Time from taking up a run with 1,000 settled steps to the work of its next step, against reading the run."""

    async def resumed(path: Path) -> tuple[float, float]:
        began: asyncio.Queue[float] = asyncio.Queue()

        async def final(_: StepInput) -> Mapping[str, Any]:
            began.put_nowait(time.perf_counter())
            await asyncio.sleep(3_600)
            return {}

        steps = [*chains(STEPS).steps, Step("final", final, tuple(f"s{n}" for n in range(STEPS)))]
        workflow = WorkflowDefinition("w", steps)
        moments, reads = [0.0], [0.0]
        for _ in range(2):  # the first one runs the steps, the second one goes on
            store = SqliteRunStore(path)
            start = time.perf_counter()
            task = asyncio.create_task(KahnEngine(store).execute(workflow, ExecutionContext(run_id="r")))
            moments.append(1e3 * (await began.get() - start))
            task.cancel()
            await asyncio.wait((task,))
            start = time.perf_counter()
            await store.load("r")
            reads.append(1e3 * (time.perf_counter() - start))
            await store.aclose()
        return moments[-1], reads[-1]

    moment, read = asyncio.run(resumed(folder / "resumed.db"))
    return Figure(f"resume behind {STEPS:,} steps, to the next one", moment, "ms", read, "reading the run", 1_000.0)


def many(folder: Path) -> Figure:
    """CPU of a step of 100 runs at once in one process and one file, against the same runs one after another."""
    workflow = chains(12, 3)

    async def run(path: Path, at_once: int) -> float:
        store = SqliteRunStore(path)
        engine, gate = KahnEngine(store), asyncio.Semaphore(at_once)

        async def one(number: int) -> RunState:
            async with gate:
                return (await engine.execute(workflow, ExecutionContext(run_id=f"r{number}"))).status

        start = time.process_time()
        states = await asyncio.gather(*(one(number) for number in range(100)))
        taken = time.process_time() - start
        assert set(states) == {RunState.COMPLETED}
        await store.aclose()
        return 1e3 * taken / (100 * len(workflow.steps))

    together, apart = (asyncio.run(run(folder / f"many-{most}.db", most)) for most in (100, 1))
    return Figure("a step of 100 runs at once in one file", together, "ms", apart, "one run after another", 3.0)


def main() -> int:
    """Measure, print, and say by the exit code whether the limits hold."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graphs = [langgraph(29), langgraph(200), *unequal()]
        code: int = report(kahn(), *graphs, checkpoints(folder), resumes(folder), many(folder))
        return code


if __name__ == "__main__":
    sys.exit(main())
