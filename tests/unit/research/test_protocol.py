"""The protocol of engines: contexts and budgets that refuse nonsense, and engines that have what they declare."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research import engine as engine_package
from smart_model_router_research import workflow as workflow_package
from smart_model_router_research.engine import (
    Approval,
    Budget,
    Capability,
    CheckpointRef,
    ExecutionContext,
    ExecutionEngine,
    ExecutionResult,
    ForkChanges,
    RunBusy,
    RunEvent,
    RunEventKind,
    RunNotFound,
    RunState,
    RunStatus,
    SkipReason,
    StaleLease,
    StepResult,
    StepState,
    StoreUnavailable,
    SupportsStream,
    WorkflowChanged,
    check_engine,
    required_capabilities,
)
from smart_model_router_research.workflow import Costs, Step, StepInput, StepLoop, WorkflowDefinition


async def work(step: StepInput) -> Mapping[str, Any]:
    """Put nothing out."""
    return {}


class Whole:
    """An engine with every method."""

    name = "whole"
    capabilities = frozenset(Capability)

    async def execute(self, workflow: WorkflowDefinition, context: ExecutionContext) -> ExecutionResult:
        return ExecutionResult(run_id=context.run_id, status=RunState.COMPLETED, steps={})

    async def checkpoint(self, run_id: str) -> CheckpointRef:
        return CheckpointRef(run_id, 0)

    async def get_status(self, run_id: str) -> RunStatus:
        return RunStatus(run_id=run_id, state=RunState.COMPLETED, steps={}, seq=0, workflow_hash="")

    async def resume(
        self, workflow: WorkflowDefinition, context: ExecutionContext, payload: Approval | None = None
    ) -> ExecutionResult:
        return await self.execute(workflow, context)

    async def stream(
        self, workflow: WorkflowDefinition, context: ExecutionContext, after: int = 0
    ) -> AsyncIterator[RunEvent]:
        yield RunEvent(seq=1, run_id=context.run_id, kind=RunEventKind.RUN_STARTED, time=0.0)

    async def cancel(self, run_id: str) -> RunStatus:
        return await self.get_status(run_id)

    async def history(self, run_id: str) -> Sequence[CheckpointRef]:
        return [await self.checkpoint(run_id)]

    async def fork(
        self, ref: CheckpointRef, workflow: WorkflowDefinition, context: ExecutionContext, changes: ForkChanges
    ) -> ExecutionResult:
        return await self.execute(workflow, context)


def test_an_engine_with_all_of_its_methods_is_taken() -> None:
    """It is returned as it is; type checkers agree that it is one."""
    engine: ExecutionEngine = check_engine(Whole())
    assert isinstance(engine, SupportsStream)
    assert engine.name == "whole"


def altered(**members: Any) -> Any:
    """Make an engine with other members than it should have."""
    return type("Altered", (Whole,), members)()


def test_an_engine_without_a_method_that_it_declares_is_refused() -> None:
    """When it is registered, and not when a run needs it."""
    with pytest.raises(ConfigurationError, match=r"engine whole.stream: missing - the capability .* needs stream\("):
        check_engine(altered(stream=None))
    check_engine(altered(stream=None, capabilities=frozenset({Capability.RESUME})))


def test_an_engine_whose_method_takes_something_else_is_refused() -> None:
    """Also where the name is right: names are all that `isinstance` sees."""

    async def cancel(self: Any, run_id: str, why: str) -> None:
        """Cancel."""

    async def stream(self: Any, workflow: Any, context: Any, after: int = 1) -> None:
        """Stream."""

    with pytest.raises(ConfigurationError, match=r"\(self, run_id, why\)' - .* needs cancel\(self, run_id\)"):
        check_engine(altered(cancel=cancel))
    with pytest.raises(ConfigurationError, match=r"needs stream\(self, workflow, context, after=0\)"):
        check_engine(altered(stream=stream))


def test_a_thing_that_cannot_execute_is_no_engine() -> None:
    """Three methods are everybody's."""
    nothing: Any = type("Nothing", (), {"name": "nothing", "capabilities": frozenset()})()
    with pytest.raises(ConfigurationError, match=r"engine nothing.execute: missing - every engine needs execute\(self"):
        check_engine(nothing)


def test_an_unknown_capability_is_refused() -> None:
    """A word that no workflow could require."""
    odd = altered(capabilities=frozenset({Capability.STREAM, "teleport"}))
    with pytest.raises(ConfigurationError, match=r"engine whole.capabilities: 'teleport' - one of checkpoint, resume,"):
        check_engine(odd)


@pytest.mark.parametrize("most", [0, -1, True, 1.0, None, "2"])
def test_a_run_without_room_is_refused(most: Any) -> None:
    """It would succeed with nothing run."""
    with pytest.raises(ConfigurationError, match=r"max_concurrency: .* a whole number of at least 1 is needed"):
        ExecutionContext(run_id="r", max_concurrency=most)


@pytest.mark.parametrize("run_id", ["", "a b", "../x", "-r", ".r", "r@1", "r/1", "ä", "r\n", "r" * 129, None, 3])
def test_a_run_has_an_id_that_can_be_written_anywhere(run_id: Any) -> None:
    """In a command line, a path and a URL."""
    with pytest.raises(ConfigurationError, match="run_id: "):
        ExecutionContext(run_id=run_id)


@pytest.mark.parametrize("deadline", [math.nan, True, "1"])
def test_a_deadline_is_an_instant(deadline: Any) -> None:
    """Infinity is none."""
    with pytest.raises(ConfigurationError, match=r"deadline: .* an instant of the clock"):
        ExecutionContext(run_id="r", deadline=deadline)


def test_the_limits_themselves_are_allowed() -> None:
    """One step at a time, the longest id, an instant long ago."""
    context = ExecutionContext(run_id="R_1.a-" + "r" * 122, max_concurrency=1, deadline=-1)
    assert replace(context, max_concurrency=2).max_concurrency == 2
    assert ExecutionContext(run_id="r").max_concurrency == 10


# ------------------------------------------------------------------------------------------------ budgets


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"usd": -1}, "budget.usd"),
        ({"tokens": True}, "budget.tokens"),
        ({"calls": math.inf}, "budget.calls"),
        ({"seconds": "5"}, "budget.seconds"),
        ({"usd": 1, "reserve": Costs(usd=2)}, "budget.reserve.usd"),
        ({"usd": 1, "reserve": Costs(tokens=-1)}, "budget.reserve.tokens"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(options: dict[str, Any], key: str) -> None:
    """With the key and the value."""
    with pytest.raises(ConfigurationError) as error:
        Budget(**options)
    assert error.value.key == key


@pytest.mark.parametrize(
    ("spent", "estimate", "always", "fits"),
    [
        (Costs(), {}, False, True),
        (Costs(usd=0.5), {"usd": 0.25}, False, True),
        (Costs(usd=0.5), {"usd": 0.26}, False, False),
        (Costs(usd=0.5), {"usd": 0.5}, True, True),
        (Costs(usd=0.5), {"usd": 0.51}, True, False),
        (Costs(usd=0.8), {}, False, False),
        (Costs(usd=0.8), {}, True, True),
        (Costs(tokens=90), {"tokens": 10}, False, True),
        (Costs(tokens=90), {"tokens": 11}, True, False),
        (Costs(calls=1e9, seconds=1e9), {"calls": 1, "seconds": 1}, False, True),
    ],
)
def test_a_step_fits_beside_what_was_spent(spent: Costs, estimate: dict[str, float], always: bool, fits: bool) -> None:
    """One dollar, a quarter of it for steps that always run, and a hundred tokens."""
    step = Step("s", work, estimate=estimate, always=always)
    assert Budget(usd=1, tokens=100, reserve=Costs(usd=0.25)).fits(spent, step) is fits


def test_a_step_that_asks_a_model_is_a_call_where_it_says_nothing() -> None:
    """So that a budget of calls is not passed by one; an estimate of its own stands."""
    asks, free = Step("s", work, kind="model"), Step("s", work, kind="model", estimate={"calls": 0})
    budget = Budget(calls=2)
    for spent, step, fits in ((1, asks, True), (2, asks, False), (2, free, True), (2, Step("s", work), True)):
        assert budget.fits(Costs(calls=spent), step) is fits


@given(st.builds(Costs, usd=st.integers(0, 9)), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_what_fits_ordinary_steps_fits_those_that_always_run(spent: Costs, usd: int, cap: int, kept: int) -> None:
    """And what fits now fitted when less was spent."""
    budget = Budget(usd=cap, reserve=Costs(usd=min(cap, kept)))
    step = Step("s", work, estimate={"usd": usd})
    if budget.fits(spent, step):
        assert budget.fits(spent, replace(step, always=True))
        assert budget.fits(Costs(), step)


# ------------------------------------------------------------------------------------------------ what is said of a run


def test_a_checkpoint_is_written_as_run_and_number() -> None:
    """And read like that; the step and the time are for people."""
    ref = CheckpointRef("my-run", 12, "gate", 1.0)
    assert str(ref) == "my-run@12"
    assert CheckpointRef.parse("my-run@12") == ref
    assert sorted([ref, CheckpointRef("my-run", 2)]) == [CheckpointRef("my-run", 2), ref]


@pytest.mark.parametrize(
    "text", ["", "my-run", "my-run@", "@1", "my-run@-1", "my-run@x", "a b@1", "r@1.0", "r@" + "9" * 10]
)
def test_a_text_that_is_no_checkpoint_is_refused(text: str) -> None:
    """With the form."""
    with pytest.raises(ConfigurationError, match=r"RUN@NUMBER is needed|run_id"):
        CheckpointRef.parse(text)


def test_the_id_of_an_event_is_the_same_on_every_engine() -> None:
    """It depends on neither its number nor its time."""
    event = RunEvent(seq=3, run_id="r", kind=RunEventKind.STEP_STARTED, time=1.0, step="a.b", data={"attempt": 2})
    assert event.id == replace(event, seq=9, time=2.0).id == "r/a.b/step_started/2"
    assert RunEvent(seq=1, run_id="r", kind=RunEventKind.RUN_ENDED, time=1.0).id == "r//run_ended"


RESULTS = st.builds(
    StepResult,
    state=st.sampled_from(StepState),
    outputs=st.none() | st.dictionaries(st.sampled_from("ab"), st.integers() | st.none()),
    skip_reason=st.none() | st.sampled_from(SkipReason),
    error=st.sampled_from(["", "no"]),
    note=st.sampled_from(["", "x"]),
    attempts=st.integers(0, 3),
    costs=st.builds(Costs, usd=st.sampled_from([0.0, 0.5]), calls=st.integers(0, 2)),
)


@given(RESULTS)
def test_a_result_is_kept_as_json(result: StepResult) -> None:
    """Stores and other engines read back what was written."""
    assert StepResult.from_json(json.loads(json.dumps(result.as_json(), allow_nan=False))) == result


def test_a_result_as_json_is_short() -> None:
    """And says when there are outputs, but none."""
    assert StepResult().as_json() == {"state": "pending"}
    assert StepResult(state=StepState.SUCCEEDED, outputs={}).as_json() == {"state": "succeeded", "outputs": {}}


@pytest.mark.parametrize(
    "data", [{"state": "done"}, {"state": "failed", "x": 1}, {"state": "skipped", "skip_reason": "x"}]
)
def test_data_that_is_no_result_is_refused(data: dict[str, Any]) -> None:
    """A file of a newer version, or a broken one."""
    with pytest.raises((ValueError, TypeError)):
        StepResult.from_json(data)


def test_errors_about_runs_carry_their_facts() -> None:
    """For those who catch them, and in words."""
    busy = RunBusy("r", "host:12", 3.25)
    assert (busy.owner, busy.seconds, str(busy)) == ("host:12", 3.25, "run 'r' is held by host:12 for 3.2 s more")
    changed = WorkflowChanged("r", ["a", "b"])
    assert changed.steps == ("a", "b")
    assert "these differ: a, b" in str(changed)
    assert "these differ: inputs or outputs" in str(WorkflowChanged("r", []))
    assert StaleLease("r", 3).fence == 3
    assert RunNotFound("r").run_id == "r"
    assert str(StoreUnavailable("runs.db", "disk full")) == "runs.db: disk full"


# ------------------------------------------------------------------------------------------------ requirements


def required(*steps: Step, **options: Any) -> set[str]:
    """Return what a workflow of these steps requires."""
    return {str(each) for each in required_capabilities(WorkflowDefinition("w", steps, **options))}


def test_a_workflow_says_what_it_requires() -> None:
    """By its steps, those of subgraphs too, and by its own words."""
    plain, approval = Step("a", work), Step("b", kind="approval")
    inner = WorkflowDefinition("inner", [approval], stream="required")
    assert required(plain) == set()
    assert required(Step("a", work, when=True)) == {"conditional"}
    assert required(Step("a", work, loop=StepLoop("a", "false"))) == {"cycles"}
    assert required(approval) == {"hitl"}
    assert required(plain, checkpoint="required", stream="required") == {"checkpoint", "stream"}
    assert required(Step("o", kind="workflow", workflow=inner)) == {"subgraph", "hitl", "stream"}


# ------------------------------------------------------------------------------------------------ the packages


@pytest.mark.parametrize("package", [engine_package, workflow_package], ids=lambda package: str(package.__name__))
def test_public_names_are_importable(package: Any) -> None:
    """Each is where its package says."""
    assert len(package.__all__) == len(set(package.__all__))
    assert [name for name in package.__all__ if getattr(package, name) is None] == []
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_the_router_and_the_command_line_do_not_import_workflows() -> None:
    """A program that has none does not pay for them; a name alone imports no other module."""
    code = (
        "import sys, smart_model_router, smart_model_router.cli.app as app; smart_model_router.SmartModelRouter;"
        "before = [n for n in sys.modules if n.startswith('smart_model_router_research')];"
        "from smart_model_router_research.workflow import Step;"
        "print(before, 'smart_model_router_research.workflow.expressions' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] True"
