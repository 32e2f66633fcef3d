"""Every engine of ours keeps the promises of an ExecutionEngine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables.config import ensure_config
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.graph import START as FIRST
from langgraph.graph import StateGraph
from langsmith import tracing_context
from langsmith.utils import tracing_is_enabled

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.testing import START, LoopClock, run_virtual
from smart_model_router_research.engine import (
    ExecutionEngine,
    KahnDAGEngine,
    KahnEngine,
    MemoryRunStore,
    RunLease,
    RunNotFound,
    RunState,
    RunStore,
    StaleLease,
    StepResult,
    StepState,
    StoreUnavailable,
    check_engine,
)
from smart_model_router_research.engine.engine_selector import ENGINES
from smart_model_router_research.workflow import Step, StepInput, StepLoop, WorkflowDefinition
from tests.conformance.engine_harness import Trace, passing, states
from tests.conformance.engine_loops import LoopContract
from tests.conformance.engines import EngineContract


class TestKahnEngine(EngineContract):
    """The engine without extras."""

    def engine(self, store: RunStore) -> ExecutionEngine:
        """Return one."""
        return check_engine(KahnEngine(store))

    @pytest.mark.parametrize(
        ("step", "lacking"),
        [
            (Step("b", Trace().work(), ("a",), loop=StepLoop("a", "false")), "cycles"),
        ],
    )
    def test_a_workflow_that_it_cannot_run_is_refused_before_anything_runs(self, step: Step, lacking: str) -> None:
        """The error names the capability; the run is not created."""
        trace = Trace()
        workflow = WorkflowDefinition("w", [Step("a", trace.work()), step])

        async def main() -> None:
            engine = KahnEngine()
            with pytest.raises(ConfigurationError, match=f"kahn.*{lacking}"):
                await engine.execute(workflow, self.context())
            with pytest.raises(RunNotFound):
                await engine.get_status("r")

        run_virtual(main())
        assert trace.began == []

    def test_a_run_that_was_taken_over_stops_and_writes_nothing(self) -> None:
        """Its steps are cancelled with the next heartbeat; the new holder's run is as it was."""
        trace = Trace()
        workflow = WorkflowDefinition("w", [Step("a", trace.work(60)), Step("b", trace.work(60))])

        async def main() -> None:
            store = MemoryRunStore(now=LoopClock().now, wall=LoopClock().now)
            task = asyncio.create_task(KahnEngine(store).execute(workflow, self.context()))
            await passing(1)
            holder = (await store.load("r")).owner
            first = RunLease(run_id="r", owner=holder, fence=1, seconds=0)
            await store.release(first)  # as after a pause of the process that was longer than its lease
            await store.lease("r", "other")
            before = await store.load("r")
            with pytest.raises(StaleLease):
                await task
            assert LoopClock().now() - START == 5
            assert trace.running == 0
            assert (await store.load("r")).steps == before.steps
            assert asyncio.all_tasks() == {asyncio.current_task()}

        run_virtual(main())

    def test_a_store_that_cannot_be_written_ends_the_run_with_its_error(self) -> None:
        """No step goes on whose result could not be kept."""

        class Full(MemoryRunStore):
            async def settle(self, lease: RunLease, step: str, result: StepResult, input_hash: str = "") -> Any:
                raise StoreUnavailable("runs.db", "the disk is full")

        trace = Trace()
        workflow = WorkflowDefinition("w", [Step("a", trace.work(1)), Step("b", trace.work(60))])

        async def main() -> None:
            with pytest.raises(StoreUnavailable, match="disk is full"):
                await KahnEngine(Full()).execute(workflow, self.context())
            assert asyncio.all_tasks() == {asyncio.current_task()}

        run_virtual(main())
        assert trace.running == 0

    def test_a_run_goes_on_within_the_time_that_it_had_left(self) -> None:
        """Breaking it off and taking it up again lengthens nothing."""
        workflow = WorkflowDefinition("w", [Step("a", Trace().work(60))])

        async def main() -> None:
            store = MemoryRunStore(now=LoopClock().now, wall=LoopClock().now)
            task = asyncio.create_task(KahnEngine(store).execute(workflow, self.context(deadline=START + 30)))
            await passing(10)
            task.cancel()
            await asyncio.wait((task,))
            result = await KahnEngine(store).execute(workflow, self.context())
            assert (result.status, result.steps["a"].state) == (RunState.FAILED, StepState.FAILED)
            assert LoopClock().now() - START == 30

        run_virtual(main())

    def test_a_store_of_the_context_stands_in_for_one_run(self) -> None:
        """While the run lasts the engine answers from it; observers that raised are counted."""
        workflow = WorkflowDefinition("w", [Step("a", Trace().work(1))])

        def broken(event: object) -> None:
            raise RuntimeError("no")

        async def main() -> None:
            engine, store = KahnEngine(), MemoryRunStore()
            context = self.context(store=store, observers=(broken,))
            task = asyncio.create_task(engine.execute(workflow, context))
            await passing(0.5)
            assert (await engine.get_status("r")).state is RunState.RUNNING
            await task
            assert engine.observer_failures == 4
            assert (await store.load("r")).state is RunState.COMPLETED
            with pytest.raises(RunNotFound):
                await engine.get_status("r")

        run_virtual(main())

    def test_a_chain_of_five_thousand_steps_needs_no_recursion(self) -> None:
        """It is one engine by two names."""
        work = Trace().work()
        steps = [Step(f"s{n}", work, (f"s{n - 1}",) if n else ()) for n in range(5_000)]
        assert self.run(WorkflowDefinition("w", steps)).status is RunState.COMPLETED
        assert KahnDAGEngine is KahnEngine


class TestLangGraphEngine(EngineContract, LoopContract):
    """The engine of the extra."""

    def engine(self, store: RunStore) -> ExecutionEngine:
        """Return one."""
        return check_engine(ENGINES["langgraph"](store))

    def test_a_store_that_cannot_be_written_ends_the_run_with_its_error(self) -> None:
        """In a subgraph, too; a step that cleans up is cancelled once, and waited for."""
        trace, cleaned = Trace(), list[str]()

        class Full(MemoryRunStore):
            async def settle(self, lease: RunLease, step: str, result: StepResult, input_hash: str = "") -> Any:
                raise StoreUnavailable("runs.db", "the disk is full")

        async def cleans(step: StepInput) -> Mapping[str, Any]:
            try:
                await passing(60)
            finally:
                await passing(1)
                cleaned.append(step.step)
            return {}

        inner = WorkflowDefinition("v", [Step("a", trace.work(1)), Step("c", cleans)])
        workflow = WorkflowDefinition("w", [Step("sub", kind="workflow", workflow=inner), Step("b", cleans)])

        async def main() -> None:
            with pytest.raises(StoreUnavailable, match="disk is full"):
                await self.engine(Full()).execute(workflow, self.context())
            assert asyncio.all_tasks() == {asyncio.current_task()}

        run_virtual(main())
        assert sorted(cleaned) == ["b", "sub.c"]

    def test_a_step_that_runs_a_graph_of_its_own_is_no_part_of_ours(self) -> None:
        """Its graph has no parent, and an interrupt in it is a failure of that step alone."""
        seen: list[Any] = []

        async def own(step: StepInput) -> Mapping[str, Any]:
            seen.append(ensure_config().get("configurable"))
            return {}

        async def interrupted(step: StepInput) -> Mapping[str, Any]:
            raise GraphInterrupt

        workflow = WorkflowDefinition("w", [Step("a", own), Step("b", interrupted), Step("c", own, ("a",))])
        result = self.run(workflow)
        assert states(result) == {"a": "succeeded", "b": "failed", "c": "succeeded"}
        assert seen == [{}, {}]

    def test_a_run_is_not_traced_by_langsmith(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """LANGSMITH_TRACING sends nothing of our graph; whether a step traces what it does is its own matter."""
        made, seen = [], []

        class Tracer(BaseCallbackHandler):
            def __init__(self, **options: Any) -> None:
                made.append(options)

        async def own(step: StepInput) -> Mapping[str, Any]:
            seen.append(tracing_is_enabled())
            return {}

        inner = WorkflowDefinition("v", [Step("a", own)])
        steps = [Step("a", own), Step("b", kind="workflow", workflow=inner, needs=("a",)), Step("c", own, ("b",))]
        monkeypatch.setattr("langchain_core.tracers.langchain.LangChainTracer", Tracer)
        with tracing_context(enabled=True):
            result = self.run(WorkflowDefinition("w", steps))
        assert (result.status, made, seen) == (RunState.COMPLETED, [], [True] * 3)

    def test_a_run_inside_a_graph_of_others_keeps_nothing_in_its_saver(self) -> None:
        """The checkpoints there are those of their graph."""
        saver, workflow = InMemorySaver(), WorkflowDefinition("w", [Step("a", Trace().work())])

        async def node(state: dict[str, str]) -> dict[str, str]:
            result = await self.engine(self.store()).execute(workflow, self.context())
            return {**state, "status": result.status.value}

        async def main() -> None:
            of_dict: Any = dict
            built: Any = StateGraph(of_dict)
            built.add_node("n", node)
            built.add_edge(FIRST, "n")
            found = await built.compile(checkpointer=saver).ainvoke({}, {"configurable": {"thread_id": "t"}})
            assert found == {"status": "completed"}

        run_virtual(main())
        assert {each.config.get("configurable", {})["checkpoint_ns"] for each in saver.list(None)} == {""}

    def test_a_library_that_cannot_be_imported_is_named_and_the_run_goes_on_elsewhere(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The error says what to install; nothing ran, and another engine can go on with the run."""
        trace = Trace()
        workflow = WorkflowDefinition("w", [Step("a", trace.work())])
        monkeypatch.setitem(sys.modules, "langgraph.graph", None)

        async def main() -> None:
            store = self.store()
            with pytest.raises(ConfigurationError, match=r"cannot be imported.*extra `langgraph`"):
                await self.engine(store).execute(workflow, self.context())
            assert trace.began == []
            assert (await KahnEngine(store).resume(workflow, self.context())).status is RunState.COMPLETED

        run_virtual(main())
