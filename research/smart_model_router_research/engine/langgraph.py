"""LangGraph under the protocol: a workflow is a StateGraph, its steps are nodes that do as `HeldRun` says.

Facts about the library that this is built on are tests (tests/conformance/test_langgraph_facts.py):

- A join over a list of nodes runs once, and only when all of them have run: so every node runs, and a step that is
  skipped is a node that does nothing. Separate edges of unequal length would run a join twice.
- A node that raises cancels the nodes beside it, twice: so no node raises; the graph is cancelled, once.
- The nodes of a superstep end together: a step may wait for others that it does not need. They begin in the order of
  their names: so these begin with numbers, and the steps begin in the order of `KahnEngine`.
- A graph that is invoked inside of another one would share its checkpoint saver, and one that is traced sends what it
  does to LangSmith: ours does neither. What steps do themselves is as they have it.

The truth about a run is what `HeldRun` has and the store keeps; the state of the graph are the states of steps by name.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import re
from contextvars import copy_context
from functools import partial
from graphlib import TopologicalSorter
from typing import Annotated, Any, TypedDict

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.engine.held_run import GraphState, HeldRun
from smart_model_router_research.engine.protocol import Capability
from smart_model_router_research.engine.states import PENDING, StepResult, StepState
from smart_model_router_research.engine.store_port import RunStore
from smart_model_router_research.engine.stored_engine import StoredEngine
from smart_model_router_research.workflow.definition import Step, WorkflowDefinition

MIN_VERSION = (1, 2)
BELOW_VERSION = (1, 3)
"""The versions of LangGraph that this was tried with, as the extra `langgraph` pins them."""
_INSTALL = "pip install 'smart-model-router[langgraph]'"
AGAIN = "again"
"""The state of the last step of a loop when another pass follows."""


class LangGraphEngine(StoredEngine):
    """The engine of the extra `langgraph`: all workflows, with loops. The library is imported with the first run.

    Raises ConfigurationError when the library is not installed, or in a version that was not tried.
    """

    name = "langgraph"
    capabilities = frozenset(Capability) - {Capability.WAVEFRONT, Capability.DISTRIBUTED}

    def __init__(self, store: RunStore | None = None) -> None:
        super().__init__(store)
        if (fault := version_fault()) is not None:
            raise ConfigurationError("engine", self.name, fault)

    async def _drive(self, run: HeldRun) -> None:
        await _Supersteps(run).to_the_end()


def version_fault() -> str | None:
    """Return what is wrong with the library, with the range of versions that is needed; None when it can be used."""
    low, high = (".".join(map(str, each)) for each in (MIN_VERSION, BELOW_VERSION))
    try:
        found = str(importlib.metadata.version("langgraph"))  # None where its metadata are broken
    except importlib.metadata.PackageNotFoundError:
        return f"langgraph >={low},<{high} is needed; the extra `langgraph` brings it: {_INSTALL}"
    numbers = tuple(int(each) for each in re.findall(r"\d+", found)[:2])
    if MIN_VERSION <= numbers < BELOW_VERSION:
        return None
    return (
        f"langgraph >={low},<{high} is needed, and {found} is installed; the extra `langgraph` brings one: {_INSTALL}"
    )


def _merged(old: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    """Return the states of all steps: the reducer of the one channel."""
    return {**old, **new}


class _GraphChannels(TypedDict):
    steps: Annotated[dict[str, str], _merged]


class _Supersteps:
    """One run as StateGraphs: that of the workflow, and one for each subgraph that was entered."""

    def __init__(self, run: HeldRun) -> None:
        self._run = run
        self._room = asyncio.Semaphore(run.max_concurrency)
        self._outside = copy_context()
        """The context that steps run in: in that of a node, a graph of their own would be a part of ours."""
        self._inner: dict[tuple[GraphState, str], GraphState] = {}
        """The subgraphs that have not been left."""
        self._paused: list[tuple[GraphState, Step]] = []
        self._asking = asyncio.Lock()
        self._decided = False
        """A decision was found that steps behind it may have been too early for."""
        self._failure: BaseException | None = None
        self._invoked: asyncio.Task[None] | None = None

    async def to_the_end(self) -> None:
        """Run all steps that can; return when no more can. Steps that are cancelled have ended then."""
        self._run.on_beat = self._ask_again
        while True:
            self._decided = False
            self._invoked = asyncio.create_task(self._invoke(self._run.root))
            try:
                await self._invoked
            except asyncio.CancelledError:
                if self._failure is None:
                    raise
            if self._failure is not None:
                raise self._failure
            await self._ask_again()
            if not self._decided:
                break
        async with self._asking:
            paused, self._paused = self._paused, []
        for graph, _ in paused:
            await self._run.pause(graph)

    async def _invoke(self, graph: GraphState) -> None:
        """Run a graph once: steps that have settled are nodes that do nothing, as are those behind a pause."""
        workflow = graph.workflow
        passes = {step.name: step.loop.max_passes for step in workflow.steps if step.loop is not None}
        most = sum(passes.get(workflow.loop_of.get(step.name, ""), 1) for step in workflow.steps)
        tracing_context, compiled = self._compiled(graph)
        with tracing_context(enabled=False):
            await compiled.ainvoke({"steps": {}}, {"recursion_limit": 4 * most + 16})

    def _compiled(self, graph: GraphState) -> tuple[Any, Any]:
        """Return the library's context of tracing, and a graph: a node for each step, and for the end of each loop."""
        try:  # half a second, for runs on this engine alone
            from langgraph.graph import START, StateGraph  # noqa: PLC0415
            from langsmith import tracing_context  # noqa: PLC0415
        except ImportError as error:
            expected = f"langgraph cannot be imported ({error}); install the extra `langgraph` again"
            raise ConfigurationError("engine", LangGraphEngine.name, expected) from error
        nodes = _nodes(graph.workflow)
        built: Any = StateGraph(_GraphChannels)
        for step in graph.workflow.steps:
            # Not a function: the library reads the bytecode of each, in search of graphs; half of a run's time.
            built.add_node(nodes[step.name], partial(self._visit, graph, step))
            if step.loop is not None:
                built.add_node(_end_of(nodes[step.name]), _nothing)
        for step in graph.workflow.steps:
            if step.loop is not None:
                _add_loop(built, step.name, nodes[step.name], nodes[step.loop.to])
            sources = _sources(graph.workflow, step, nodes)
            built.add_edge(sources or START, nodes[step.name])
        return tracing_context, built.compile(checkpointer=False)

    async def _visit(self, graph: GraphState, step: Step, _: _GraphChannels) -> _GraphChannels:
        """Be the node of a step. It never raises: an error that no step has ends the whole run."""
        if self._failure is not None:
            return {"steps": {}}
        task = asyncio.create_task(self._advance(graph, step), context=self._outside.copy())
        try:
            found = await task
        except Exception as error:  # noqa: BLE001 - of the store, or a bug
            self._failure = error
            if self._invoked is not None:
                self._invoked.cancel()
            return {"steps": {}}
        return {"steps": {step.name: found}}

    async def _advance(self, graph: GraphState, step: Step) -> str:
        """Bring a step as far as it gets: settled, paused, or pending behind a pause; returns its state."""
        known = graph.results.get(step.name)
        if known is None:
            if self._run.waits(graph, step):
                return PENDING.state.value
            known = await self._begun(graph, step)
        elif not known.state.settled and step.workflow is not None:
            known = await self._inside(self._inner[graph, step.name])
        if known.state.settled and self._run.repeat(graph, step):
            return AGAIN
        return known.state.value

    async def _begun(self, graph: GraphState, step: Step) -> StepResult:
        """Decide a step, and run it when it is ready; returns its result so far."""
        run = self._run
        found = await run.decide(graph, step)
        if found.state is not StepState.READY:
            return found
        if step.kind not in ("approval", "workflow"):
            async with self._room:
                found = await run.admit(graph, step)
                return await run.work(graph, step) if found.state is StepState.RUNNING else found
        if (found := await run.admit(graph, step)).state is not StepState.RUNNING:
            return found
        if step.kind == "approval":
            found = await run.ask(graph, step)
            if found.state is StepState.PAUSED:
                self._paused.append((graph, step))
            return found
        inner = await run.enter(graph, step)
        if not isinstance(inner, GraphState):
            return inner
        self._inner[graph, step.name] = inner
        return await self._inside(inner)

    async def _inside(self, inner: GraphState) -> StepResult:
        """Run a subgraph, and leave it when all of it has settled; returns the result of its step so far."""
        await self._invoke(inner)
        assert inner.outer is not None  # noqa: S101 - it is the subgraph of a step
        outer, step = inner.outer
        steps = inner.workflow.by_name
        if self._failure is None and all(inner.results.get(name, PENDING).state.settled for name in steps):
            await self._run.leave(inner)
            del self._inner[outer, step.name]
        return outer.results[step.name]

    async def _ask_again(self) -> None:
        """Look for decisions about what is paused."""
        async with self._asking:
            paused, self._paused = self._paused, []
            while paused:
                graph, step = paused.pop(0)
                if (await self._run.ask(graph, step)).state is StepState.PAUSED:
                    self._paused.append((graph, step))
                else:
                    self._decided = True
                    self._run.repeat(graph, step)


def _nodes(workflow: WorkflowDefinition) -> dict[str, str]:
    """Return the name of the node of each step."""
    order = TopologicalSorter({step.name: step.needs for step in workflow.steps}).static_order()
    return {name: f"{number:05} {name}" for number, name in enumerate(order)}


def _add_loop(built: Any, last: str, end: str, first: str) -> None:
    """Let the node `end` of the step `last` lead back to `first` while it says so, and then to the end of its loop."""

    def route(state: _GraphChannels) -> str:
        return first if state["steps"].get(last) == AGAIN else _end_of(end)

    built.add_conditional_edges(end, route, [first, _end_of(end)])


def _sources(workflow: WorkflowDefinition, step: Step, nodes: dict[str, str]) -> list[str]:
    """Return the nodes that a step joins: for one inside a loop that it stands behind, the end of the loop."""
    loops = workflow.loop_of
    own = loops.get(step.name)
    ends = (_end_of(nodes[loops[need]]) if loops.get(need, own) != own else nodes[need] for need in step.needs)
    return list(dict.fromkeys(ends))


def _end_of(last: str) -> str:
    """Return the name of the node behind the last one of a loop, which runs once, after the last pass."""
    return f"{last}#end"


async def _nothing(state: _GraphChannels) -> _GraphChannels:
    """Be a node that only joins."""
    del state
    return {"steps": {}}
