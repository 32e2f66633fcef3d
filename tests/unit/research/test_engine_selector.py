"""The selector of engines: which engine a workflow gets, why, and what is refused; and tasks that go through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.testing import LoopClock, run_virtual
from smart_model_router_research.engine import (
    Capability,
    CheckpointRef,
    ExecutionContext,
    ExecutionResult,
    KahnEngine,
    MemoryRunStore,
    RunState,
    RunStatus,
    execute_as_dag,
    select_engine,
)
from smart_model_router_research.engine.engine_selector import ENGINES
from smart_model_router_research.engine.orchestrator import Task
from smart_model_router_research.workflow import Step, StepInput, StepLoop, WorkflowDefinition, WorkflowError


async def work(step: StepInput) -> Mapping[str, Any]:
    """Say which step it is, and what it read."""
    return {"of": step.step, "read": dict(step.steps)}


A = Step("a", work)
DAG = WorkflowDefinition("w", [A])
CYCLIC = WorkflowDefinition("w", [A, Step("b", work, ("a",), loop=StepLoop("a", "false"))])
HITL = WorkflowDefinition("w", [A, Step("ok", kind="approval")])
CHECKPOINTED = WorkflowDefinition("w", [A], checkpoint="required")
STREAMED = WorkflowDefinition("w", [A], stream="required")
FIVE = {"pure": DAG, "cyclic": CYCLIC, "hitl": HITL, "checkpoint": CHECKPOINTED, "stream": STREAMED}
WHY = {
    "pure": "is acyclic and requires nothing more",
    "cyclic": "has a loop",
    "hitl": "waits for decisions",
    "checkpoint": "requires checkpoints",
    "stream": "requires a stream",
}


class Everything(KahnEngine):
    """An engine that says it can do everything, as the one of the extra does."""

    name = "langgraph"
    capabilities = frozenset(Capability)


BOTH = {**ENGINES, "langgraph": Everything}


@pytest.mark.parametrize("kind", [kind for kind in FIVE if kind != "cyclic"])
def test_without_the_extra_kahn_serves_all_but_cycles(kind: str) -> None:
    """The reason is one sentence that names the requirement which decided."""
    selected = select_engine(FIVE[kind])
    assert selected.engine.name == "kahn"
    assert selected.reason == f"the workflow {WHY[kind]}, and kahn is the first engine that can run it"


@pytest.mark.parametrize("kind", FIVE)
def test_with_the_extra_what_needs_more_than_order_goes_to_it(kind: str) -> None:
    """A pure DAG stays with Kahn, whose steps wait for no others."""
    selected = select_engine(FIVE[kind], available=BOTH)
    assert selected.engine.name == ("kahn" if kind == "pure" else "langgraph")
    assert selected.reason.startswith(f"the workflow {WHY[kind]}, and {selected.engine.name}")


@pytest.mark.parametrize("asked", ["auto", "kahn"])
def test_a_loop_is_refused_with_the_extra_that_brings_an_engine(asked: str) -> None:
    """Whichever way the engine is asked for."""
    with pytest.raises(ConfigurationError, match=r"with cycles is needed.*extra `langgraph` brings one") as error:
        select_engine(CYCLIC, asked)
    assert (error.value.key, error.value.value) == ("engine", asked)


def test_the_needs_of_subgraphs_decide_as_well() -> None:
    """A loop inside is a loop."""
    outer = WorkflowDefinition("o", [Step("s", kind="workflow", workflow=CYCLIC)])
    with pytest.raises(ConfigurationError, match="has a loop"):
        select_engine(outer)
    assert select_engine(WorkflowDefinition("o", [Step("s", kind="workflow", workflow=DAG)])).engine.name == "kahn"


def test_an_engine_that_is_asked_for_is_taken_where_it_can() -> None:
    """Without a look at preferences; an unknown name has its nearest."""
    selected = select_engine(HITL, "kahn", BOTH)
    assert (selected.engine.name, selected.reason) == (
        "kahn",
        "kahn was asked for, and the workflow waits for decisions",
    )
    with pytest.raises(ConfigurationError, match="did you mean 'kahn'"):
        select_engine(DAG, "khan")


def test_an_engine_without_what_it_declares_is_refused() -> None:
    """A method that is not there, or takes other parameters: before anything runs, named."""

    class Short(Everything):
        async def history(self) -> Sequence[CheckpointRef]:  # type: ignore[override]  # the fault of this test
            return ()

    with pytest.raises(ConfigurationError, match=r"engine langgraph\.history"):
        select_engine(HITL, available={"langgraph": Short})

    class Bare:
        name = "bare"
        capabilities = frozenset({Capability.STREAM})

        def __init__(self, store: object = None) -> None:
            del store

        async def execute(self, workflow: WorkflowDefinition, context: ExecutionContext) -> ExecutionResult:
            raise AssertionError

        async def checkpoint(self, run_id: str) -> CheckpointRef:
            raise AssertionError

        async def get_status(self, run_id: str) -> RunStatus:
            raise AssertionError

    with pytest.raises(ConfigurationError, match=r"engine bare.stream.*the capability stream needs stream"):
        select_engine(STREAMED, available={"bare": Bare})


def test_an_engine_of_others_is_asked_last() -> None:
    """One that no preference names serves what no other can."""

    class Other(Everything):
        name = "other"

    available = {**ENGINES, "other": Other}
    assert select_engine(HITL, available=available).engine.name == "kahn"
    assert select_engine(CYCLIC, available=available).engine.name == "other"


def test_the_engine_keeps_its_runs_in_the_store_it_is_given() -> None:
    """And tells of the choice, in an event and in the result."""

    async def main() -> None:
        store = MemoryRunStore(now=LoopClock().now, wall=LoopClock().now)
        selected = select_engine(DAG, store=store)
        context = ExecutionContext(run_id="r", clock=LoopClock(), engine_reason=selected.reason)
        result = await selected.engine.execute(DAG, context)
        assert (result.engine, result.engine_reason) == ("kahn", selected.reason)
        (told,) = [event.data for event in await store.events_since("r") if event.kind == "engine_selected"]
        assert told == {"engine": "kahn", "reason": selected.reason}

    run_virtual(main())


# ------------------------------------------------------------------------------------------------ tasks


def test_tasks_run_as_a_workflow() -> None:
    """Each after those that it needs, whose outputs it reads; a failure skips what needs it."""

    async def bad(step: StepInput) -> Mapping[str, Any]:
        raise RuntimeError("no")

    async def main() -> None:
        tasks: dict[str, Task] = {"b": (work, ["a"]), "a": work, "bad": bad, "c": (work, ("b", "bad"))}
        result = await execute_as_dag(tasks, ExecutionContext(run_id="r", clock=LoopClock()))
        assert result.steps["b"].outputs == {"of": "b", "read": {"a": {"of": "a", "read": {}}}}
        assert (result.status, result.steps["c"].skip_reason) == (RunState.FAILED, "dependency_failed")
        assert result.engine_reason.startswith("the workflow is acyclic")

    run_virtual(main())


def test_tasks_need_no_context_and_have_runs_of_their_own() -> None:
    """Two calls are two runs; cycles are refused, and so is an engine that is not there."""

    async def main() -> None:
        first, second = await execute_as_dag({"a": work}), await execute_as_dag({"a": work})
        assert first.run_id != second.run_id
        assert first.status is RunState.COMPLETED
        with pytest.raises(WorkflowError, match=r"a -> b -> a|b -> a -> b"):
            await execute_as_dag({"a": (work, ["b"]), "b": (work, ["a"])})
        with pytest.raises(ConfigurationError, match="engine"):
            await execute_as_dag({"a": work}, engine="temporal")

    run_virtual(main())
