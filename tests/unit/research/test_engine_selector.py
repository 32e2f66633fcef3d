"""The selector of engines: which engine a workflow gets, why, and what is refused; and tasks that go through it."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
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
    LangGraphEngine,
    MemoryRunStore,
    PostgresRunStore,
    RunState,
    RunStatus,
    dbos_runtime,
    execute_as_dag,
    select_engine,
)
from smart_model_router_research.engine.engine_selector import ShadowEngine
from smart_model_router_research.engine.langgraph import BELOW_VERSION, MIN_VERSION
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
    """An engine that says it can do everything."""

    name = "everything"
    capabilities = frozenset(Capability)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> PostgresRunStore:
    """Runs in a database that is not asked."""
    monkeypatch.setattr(dbos_runtime._Current, "runtime", None)
    return PostgresRunStore("postgresql://ann:secret@nowhere/d")


@pytest.fixture
def version(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Say which version of LangGraph, or of another library, is installed, None for none."""
    version = importlib.metadata.version

    def install(found: str | None, library: str = "langgraph") -> None:
        def said(name: str) -> str:
            if name != library:
                return version(name)
            if found is None:
                raise importlib.metadata.PackageNotFoundError(name)
            return found

        monkeypatch.setattr(importlib.metadata, "version", said)

    return install


@pytest.mark.parametrize("kind", [kind for kind in FIVE if kind != "cyclic"])
def test_without_the_extra_kahn_serves_all_but_cycles(kind: str, version: Callable[[str | None], None]) -> None:
    """The reason is one sentence that names the requirement which decided."""
    version(None)
    selected = select_engine(FIVE[kind])
    assert selected.engine.name == "kahn"
    assert selected.reason == f"the workflow {WHY[kind]}, and kahn comes first of the engines that can run it"


@pytest.mark.parametrize("kind", FIVE)
def test_with_the_extra_what_needs_more_than_order_goes_to_it(kind: str) -> None:
    """A pure DAG stays with Kahn, whose steps wait for no others."""
    selected = select_engine(FIVE[kind])
    assert selected.engine.name == ("kahn" if kind == "pure" else "langgraph")
    assert selected.reason.startswith(f"the workflow {WHY[kind]}, and {selected.engine.name}")


@pytest.mark.parametrize("asked", ["auto", "kahn", "langgraph"])
def test_a_loop_is_refused_with_the_extra_that_brings_an_engine(
    asked: str, version: Callable[[str | None], None]
) -> None:
    """Whichever way the engine is asked for."""
    version(None)
    with pytest.raises(ConfigurationError, match=r"langgraph >=1.2,<1.3 is needed; the extra `langgraph`") as error:
        select_engine(CYCLIC, asked)
    assert (error.value.key, error.value.value) == ("engine", asked)


@pytest.mark.parametrize("found", ["1.1.9", "1.3.0", "2.0", "0.6.11", "1.3.0rc1", "None"])
def test_a_version_that_was_not_tried_is_refused_by_its_number(
    found: str, version: Callable[[str | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the range; what needs no loop runs on Kahn. An installation without metadata has the version None."""
    version(found)
    if found == "None":
        monkeypatch.setattr(importlib.metadata, "version", lambda _: None)
    said = rf"langgraph >=1.2,<1.3 is needed, and {re.escape(found)} is installed"
    for asked in ("auto", "langgraph", "kahn"):
        with pytest.raises(ConfigurationError, match=said):
            select_engine(CYCLIC, asked)
    with pytest.raises(ConfigurationError, match=said):
        LangGraphEngine()
    with pytest.raises(ConfigurationError, match=f"two engines are needed; {said}"):
        select_engine(DAG, "shadow")
    assert select_engine(HITL).engine.name == "kahn"


def test_the_versions_are_those_of_the_extra() -> None:
    """As pyproject.toml pins it."""
    extra = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["langgraph"]
    assert "langgraph>=1.2,<1.3" in extra
    assert (MIN_VERSION, BELOW_VERSION) == ((1, 2), (1, 3))
    extras = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert "dbos>=3.4,<4" in extras["dbos"]
    assert (dbos_runtime.MIN_VERSION, dbos_runtime.BELOW_VERSION) == ((3, 4), (4,))


def test_the_selector_imports_no_engine_of_others() -> None:
    """Neither a choice nor its refusal pays for LangGraph or DBOS: only a run on them does."""
    program = """
import sys
import smart_model_router_research.engine as engine
from smart_model_router_research.workflow import Step, StepLoop, WorkflowDefinition
async def work(step): return {}
store = engine.PostgresRunStore("postgresql://nowhere/d")
plain, loop = Step("a", work), Step("a", work, loop=StepLoop("a", "false"))
for steps in ([plain], [plain, Step("ok", kind="approval")], [loop]):
    for asked in ("auto", "langgraph", "kahn", "dbos", "shadow"):
        try:
            engine.select_engine(WorkflowDefinition("w", steps), asked, store=store)
        except Exception as error:
            assert "cycles" in str(error), error
print(sorted({name.partition(".")[0] for name in sys.modules} & {"dbos", "sqlalchemy", "langgraph", "langchain_core"}))
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


@pytest.mark.parametrize("kind", FIVE)
def test_runs_in_a_database_of_many_machines_go_to_dbos(kind: str, shared: PostgresRunStore) -> None:
    """But for loops, which it has not; its shadow is an engine of this process."""
    selected = select_engine(FIVE[kind], store=shared)
    assert selected.engine.name == ("langgraph" if kind == "cyclic" else "dbos")
    if kind != "cyclic":
        why = f"the workflow {WHY[kind]}, its runs are in a database of many machines, and dbos comes first"
        assert selected.reason.startswith(why)
        shadowed = select_engine(FIVE[kind], "shadow", store=shared)
        assert (shadowed.engine.name, type(shadowed.engine)) == ("dbos", ShadowEngine)


def test_dbos_is_asked_for_where_its_runs_can_be(shared: PostgresRunStore, version: Callable[..., None]) -> None:
    """Refused without such a database, without the extra, which is named, and for loops."""
    assert select_engine(DAG, "dbos", store=shared).engine.name == "dbos"
    with pytest.raises(ConfigurationError, match=r"one with cycles is needed; langgraph has them"):
        select_engine(CYCLIC, "dbos", store=shared)
    for store in (None, MemoryRunStore()):
        with pytest.raises(ConfigurationError, match=r"a PostgreSQL database are needed \(`workflows\.store_url`\)"):
            select_engine(DAG, "dbos", store=store)
    version(None, "dbos")
    assert select_engine(DAG, store=shared).engine.name == "kahn"
    with pytest.raises(ConfigurationError, match=r"dbos >=3.4,<4 is needed; .*smart-model-router\[dbos\]") as error:
        select_engine(DAG, "dbos", store=shared)
    assert "secret" not in str(error.value)
    version("4.0.1", "dbos")
    with pytest.raises(ConfigurationError, match=r"dbos >=3.4,<4 is needed, and 4\.0\.1 is installed"):
        select_engine(DAG, "dbos", store=shared)


def test_a_shadow_is_the_engine_that_would_run_it_and_the_next_one() -> None:
    """Both are named; where no second one can, the first runs alone, and the reason says so."""
    selected = select_engine(DAG, "shadow")
    assert (selected.engine.name, type(selected.engine)) == ("kahn", ShadowEngine)
    why = "the workflow is acyclic and requires nothing more"
    assert selected.reason == f"shadow was asked for: {why}, kahn runs it, and langgraph repeats it"
    assert select_engine(HITL, "shadow").engine.name == "langgraph"
    alone = select_engine(CYCLIC, "shadow")
    assert type(alone.engine) is LangGraphEngine
    assert alone.reason.endswith("langgraph runs it, and no other engine can repeat it")


def test_the_needs_of_subgraphs_decide_as_well() -> None:
    """A loop inside is a loop."""
    outer = WorkflowDefinition("o", [Step("s", kind="workflow", workflow=CYCLIC)])
    assert select_engine(outer).reason.startswith("the workflow has a loop, and langgraph comes first")
    assert select_engine(WorkflowDefinition("o", [Step("s", kind="workflow", workflow=DAG)])).engine.name == "kahn"


def test_an_engine_that_is_asked_for_is_taken_where_it_can() -> None:
    """Without a look at preferences; an unknown name has its nearest."""
    selected = select_engine(HITL, "kahn")
    assert (selected.engine.name, selected.reason) == (
        "kahn",
        "kahn was asked for, and the workflow waits for decisions",
    )
    for wrong, right in (("khan", "kahn"), ("lang_graph", "langgraph"), ("shadows", "shadow")):
        with pytest.raises(ConfigurationError, match=f"did you mean '{right}'"):
            select_engine(DAG, wrong)


def test_an_engine_without_what_it_declares_is_refused() -> None:
    """A method that is not there, or takes other parameters: before anything runs, named."""

    class Short(Everything):
        async def history(self) -> Sequence[CheckpointRef]:  # type: ignore[override]  # the fault of this test
            return ()

    with pytest.raises(ConfigurationError, match=r"engine everything\.history"):
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

    available = {"kahn": KahnEngine, "other": Other}
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
