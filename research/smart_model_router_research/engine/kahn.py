"""Kahn's algorithm over asyncio tasks: a step starts when the last step that it needs has settled."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from graphlib import TopologicalSorter
from typing import Any

from smart_model_router_research.engine.held_run import GraphState, HeldRun
from smart_model_router_research.engine.protocol import Capability
from smart_model_router_research.engine.states import StepResult, StepState
from smart_model_router_research.engine.stored_engine import StoredEngine
from smart_model_router_research.workflow.definition import Step


class KahnEngine(StoredEngine):
    """The engine that needs no extra: all workflows without loops."""

    name = "kahn"
    capabilities = frozenset(Capability) - {Capability.CYCLES, Capability.DISTRIBUTED}

    async def _drive(self, run: HeldRun) -> None:
        await Schedule(run, run.work).to_the_end()


KahnDAGEngine = KahnEngine
"""The founding name."""


class Schedule:
    """The order of one run: which steps wait for others, for room, or for a decision, and which run.

    `work` runs a step that was admitted, until it has settled.
    """

    def __init__(self, run: HeldRun, work: Callable[[GraphState, Step], Coroutine[Any, Any, StepResult]]) -> None:
        self._run = run
        self._work = work
        self._sorters: dict[GraphState, TopologicalSorter[str]] = {}
        self._undecided: deque[tuple[GraphState, Step]] = deque()
        """The steps whose needs have settled."""
        self._ready: deque[tuple[GraphState, Step]] = deque()
        """The steps that wait for room, in the order in which they became ready."""
        self._tasks: dict[asyncio.Task[StepResult], tuple[GraphState, Step]] = {}
        self._paused: list[tuple[GraphState, Step]] = []
        self._news: asyncio.Queue[asyncio.Task[StepResult] | None] = asyncio.Queue()
        """The tasks that have ended; None with each heartbeat."""

    async def to_the_end(self) -> bool:
        """Run all steps that can; returns, when no more can, whether all have settled: some may wait for decisions.

        Steps that are cancelled have ended then.
        """
        self._run.on_beat = lambda: self._news.put(None)
        self._begin(self._run.root)
        try:
            while True:
                while self._undecided:
                    await self._decide(*self._undecided.popleft())
                await self._start()
                if self._undecided:
                    continue
                task = await self._news.get() if self._tasks else None
                if task is not None:
                    graph, step = self._tasks.pop(task)
                    task.result()
                    await self._settled(graph, step)
                elif not await self._ask_again() and not self._tasks:
                    break
        finally:
            await self._stop()
        for graph, _ in self._paused:
            await self._run.pause(graph)
        return not self._paused

    def _begin(self, graph: GraphState) -> None:
        """Take in the steps of a graph that need nothing."""
        sorter = self._sorters[graph] = TopologicalSorter({step.name: step.needs for step in graph.workflow.steps})
        sorter.prepare()
        self._take(graph, sorter)

    def _take(self, graph: GraphState, sorter: TopologicalSorter[str]) -> None:
        self._undecided.extend((graph, graph.workflow.by_name[name]) for name in sorter.get_ready())

    async def _settled(self, graph: GraphState, step: Step) -> None:
        """Go on with the steps that needed one which has settled, and leave the subgraphs that are over by it."""
        while True:
            sorter = self._sorters[graph]
            sorter.done(step.name)
            self._take(graph, sorter)
            if sorter.is_active() or graph.outer is None:
                return
            del self._sorters[graph]
            graph, step = await self._run.leave(graph)

    async def _decide(self, graph: GraphState, step: Step) -> None:
        """Decide a step: it waits for room, begins at once where it takes none, or has settled by that."""
        known = step.name in graph.results  # it had settled before this process took the run
        if known or (await self._run.decide(graph, step)).state is not StepState.READY:
            await self._settled(graph, step)
        elif step.kind not in ("approval", "workflow"):
            self._ready.append((graph, step))
        elif (await self._run.admit(graph, step)).state is not StepState.RUNNING:
            await self._settled(graph, step)
        elif step.kind == "approval":
            await self._ask(graph, step)
        elif isinstance(inner := await self._run.enter(graph, step), GraphState):
            self._begin(inner)
        else:
            await self._settled(graph, step)

    async def _ask(self, graph: GraphState, step: Step) -> None:
        """Ask for a decision: the step is paused, or has settled."""
        if (await self._run.ask(graph, step)).state is StepState.PAUSED:
            self._paused.append((graph, step))
        else:
            await self._settled(graph, step)

    async def _start(self) -> None:
        """Start the steps that there is room for."""
        while self._ready and len(self._tasks) < self._run.max_concurrency:
            graph, step = self._ready.popleft()
            if (await self._run.admit(graph, step)).state is not StepState.RUNNING:
                await self._settled(graph, step)
                continue
            task = asyncio.create_task(self._work(graph, step))
            self._tasks[task] = graph, step
            task.add_done_callback(self._news.put_nowait)

    async def _ask_again(self) -> bool:
        """Look for decisions about what is paused; returns whether there were any."""
        paused, self._paused = self._paused, []
        for graph, step in paused:
            await self._ask(graph, step)
        return len(self._paused) < len(paused)

    async def _stop(self) -> None:
        """Cancel the steps under way, and return when they have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)  # the first failure is raised already
