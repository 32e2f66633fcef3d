"""The promises of an ExecutionEngine about subgraphs, C24: workflows as steps of others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from smart_model_router.testing import START, LoopClock, run_virtual
from smart_model_router_research.engine import (
    Approval,
    Budget,
    ForkChanges,
    RunState,
    StepState,
)
from smart_model_router_research.workflow import Costs, Step, StepInput, WorkflowDefinition, WorkflowInput
from tests.conformance.engine_harness import EngineHarness, Trace, digest, passing, states


def sub(name: str, *steps: Step, needs: tuple[str, ...] = (), **options: Any) -> Step:
    """Make a step that is a workflow of these steps; its output `y` is that of its last one."""
    given: dict[str, Any] = {"inputs": {}, "on_error": "fail", "timeout": None} | options
    declared = {key: WorkflowInput("integer") for key in given["inputs"]}
    inner = WorkflowDefinition(f"of {name}", steps, declared, {"y": f"${{steps.{steps[-1].name}.outputs.y}}"})
    return Step(name, kind="workflow", workflow=inner, needs=needs, **given)


class SubgraphContract(EngineHarness):
    """The promises. A subclass named Test… makes pytest run them."""

    def test_the_steps_of_a_subgraph_have_names_of_their_own(self) -> None:
        """C24: `outer.inner`, nested as deep as they are; inputs go in, outputs come out, and nothing else is seen."""

        async def plus(step: StepInput) -> Mapping[str, Any]:
            return {"y": step.inputs["x"] + 1, "of": step.step}

        given = {"x": "${inputs.x}"}
        deep = sub("deep", Step("a", plus, inputs=given), inputs=given)
        outer = sub("outer", Step("a", plus, inputs=given), deep, inputs={"x": "${steps.a.outputs.y}"}, needs=("a",))
        steps = [Step("a", plus, inputs={"x": "${inputs.q}"}), outer]
        declared = {"q": WorkflowInput("integer", default=1)}
        result = self.run(WorkflowDefinition("w", steps, declared, {"y": "${steps.outer.outputs.y}"}))
        assert list(result.steps) == ["a", "outer", "outer.a", "outer.deep", "outer.deep.a"]
        assert result.steps["outer.deep.a"].outputs == {"y": 3, "of": "outer.deep.a"}
        assert (result.status, result.outputs) == (RunState.COMPLETED, {"y": 3})
        assert result.steps["outer"].outputs == {"y": 3}

    def test_a_subgraph_takes_no_room_of_its_own(self) -> None:
        """C24: with one step at once it runs to its end, and all that runs together is counted."""
        trace = Trace()
        steps = [sub(f"s{n}", sub("t", Step("a", trace.work(1, y=1)), Step("b", trace.work(1, y=1)))) for n in range(3)]
        result = self.run(WorkflowDefinition("w", steps), max_concurrency=1)
        assert (result.status, trace.most, len(trace.began)) == (RunState.COMPLETED, 1, 6)
        self.run(WorkflowDefinition("w", steps), max_concurrency=4)
        assert trace.most == 4

    @pytest.mark.parametrize("inside", ["fail", "continue"])
    @pytest.mark.parametrize("outside", ["fail", "continue"])
    def test_a_failure_inside_fails_the_step_unless_it_goes_on(self, inside: Any, outside: Any) -> None:
        """C24: the reason names the step; a failure that goes on leaves the run partial."""
        trace = Trace()
        bad = Step("bad", trace.work(fails=RuntimeError("no")), on_error=inside)
        steps = [sub("s", bad, Step("b", trace.work(y=1), ("bad",)), on_error=outside), Step("t", trace.work(), ("s",))]
        result = self.run(WorkflowDefinition("w", steps))
        failed = inside == "fail"
        assert states(result) == {
            "s": "failed" if failed else "succeeded",
            "s.bad": "failed",
            "s.b": "dependency_failed" if failed else "succeeded",
            "t": "dependency_failed" if failed and outside == "fail" else "succeeded",
        }
        assert result.status is (RunState.FAILED if failed and outside == "fail" else RunState.PARTIAL)
        assert result.reason == (
            "step s failed: step s.bad failed: RuntimeError: no" if failed else "step s.bad failed: RuntimeError: no"
        )

    def test_a_subgraph_that_does_not_run_has_no_steps(self) -> None:
        """C24: skipped by its condition, or failed by its inputs; one in which nothing ran completes no run."""
        trace = Trace()
        skipped = sub("s", Step("a", trace.work(y=1)))
        never = WorkflowDefinition("w", [Step("s", kind="workflow", workflow=skipped.workflow, when=False)])
        assert states(self.run(never)) == {"s": "condition"}
        wrong = WorkflowDefinition("w", [sub("s", Step("a", trace.work(y=1)), inputs={"x": "text"})])
        result = self.run(wrong)
        assert (states(result), result.status) == ({"s": "failed"}, RunState.FAILED)
        assert result.steps["s"].error.startswith("inputs: inputs.x: ")
        empty = self.run(WorkflowDefinition("w", [sub("s", Step("a", trace.work(y=1), when=False))]))
        assert (states(empty), empty.status) == ({"s": "succeeded", "s.a": "condition"}, RunState.PARTIAL)
        assert trace.began == []

    def test_outputs_of_the_wrong_type_fail_the_subgraph(self) -> None:
        """C24: its dependants do not run on them."""
        inner = WorkflowDefinition("v", [Step("a", Trace().work(y="t"))], outputs={"y": "${steps.a.outputs.y + 1}"})
        result = self.run(WorkflowDefinition("w", [Step("s", kind="workflow", workflow=inner)]))
        assert (result.status, result.steps["s"].error[:9]) == (RunState.FAILED, "outputs: ")

    def test_budget_and_limit_are_shared(self) -> None:
        """C24: what is spent inside is spent outside, and the other way round."""
        trace = Trace()
        one = {"calls": 1}
        inner = [Step("a", trace.work(y=1), estimate=one), Step("b", trace.work(y=1), ("a",), estimate=one)]
        steps = [sub("s", *inner), Step("c", trace.work(), ("s",), estimate=one)]
        workflow = WorkflowDefinition("w", steps)
        result = self.run(workflow, budget=Budget(calls=1))
        assert states(result) == {"s": "succeeded", "s.a": "succeeded", "s.b": "budget", "c": "budget"}
        assert (result.status, result.usage) == (RunState.PARTIAL, Costs(calls=1))
        assert self.run(workflow, budget=Budget(calls=3)).status is RunState.COMPLETED
        long = [sub("s", Step("a", trace.work(60, y=1)), Step("b", trace.work(y=1), ("a",), always=True))]
        result = self.run(WorkflowDefinition("w", long), deadline=START + 10)
        assert states(result) == {"s": "failed", "s.a": "failed", "s.b": "timeout"}

    def test_a_subgraph_has_a_limit_of_its_own(self) -> None:
        """C24: its time-out cuts what runs inside, and nothing else."""
        trace = Trace()
        steps = [sub("s", Step("a", trace.work(60, y=1)), timeout=5.0), Step("b", trace.work(10))]

        async def main() -> None:
            result = await self.engine(self.store()).execute(WorkflowDefinition("w", steps), self.context())
            assert states(result) == {"s": "failed", "s.a": "failed", "b": "succeeded"}
            assert LoopClock().now() - START == 10

        run_virtual(main())

    def test_a_run_resumes_inside(self) -> None:
        """C24: what had settled in a subgraph does not run again."""
        trace = Trace()
        inner = [Step(name, trace.work(10, y=1), need) for name, need in (("x", ()), ("y", ("x",)), ("z", ("y",)))]
        workflow = WorkflowDefinition("w", [sub("s", *inner), Step("b", trace.work(), ("s",))])

        async def main() -> None:
            store = self.store()
            task = asyncio.create_task(self.engine(store).execute(workflow, self.context()))
            await passing(15)
            task.cancel()
            await asyncio.wait((task,))
            assert (await self.engine(store).get_status("r")).steps["s"].state is StepState.RUNNING
            engine: Any = self.engine(store)
            result = await engine.resume(workflow, self.context())
            assert result.status is RunState.COMPLETED
            assert trace.began == ["s.x", "s.y", "s.y", "s.z", "b"]
            assert digest(await engine.execute(workflow, self.context())) == digest(result)

        run_virtual(main())

    def test_a_decision_inside_pauses_all_around_it(self) -> None:
        """C24: the step is named in full; the rest of the subgraph runs on, and goes on with the decision."""
        trace = Trace()
        inner = sub("deep", Step("ok", kind="approval"), Step("a", trace.work(1, y=1), ("ok",)))
        workflow = WorkflowDefinition("w", [sub("s", Step("x", trace.work(1)), inner), Step("b", trace.work(), ("s",))])

        async def main() -> None:
            store = self.store()
            engine: Any = self.engine(store)
            result = await engine.execute(workflow, self.context())
            assert states(result) == {
                "s": "paused",
                "s.x": "succeeded",
                "s.deep": "paused",
                "s.deep.ok": "paused",
                "b": "pending",
            }
            assert (result.status, result.reason) == (RunState.PAUSED, "step s.deep.ok waits for a decision")
            status = await engine.get_status("r")
            assert {name: step.state for name, step in status.steps.items()} == {
                name: step.state for name, step in result.steps.items() if step.state is not StepState.PENDING
            }
            result = await engine.resume(workflow, self.context(), Approval(step="s.deep.ok"))
            assert result.status is RunState.COMPLETED
            assert trace.began == ["s.x", "s.deep.a", "b"]

        run_virtual(main())

    def test_cancelling_cancels_inside(self) -> None:
        """C24: held by this process, by none, and paused; no step stays in flight."""
        trace = Trace()
        inner = [Step("a", trace.work(60, y=1)), Step("b", trace.work(y=1), ("a",))]
        workflow = WorkflowDefinition("w", [sub("s", *inner), Step("c", trace.work(), ("s",))])

        async def main() -> None:
            store = self.store()
            engine: Any = self.engine(store)
            task = asyncio.create_task(engine.execute(workflow, self.context()))
            await passing(1)
            await engine.cancel("r")
            assert states(await task) == dict.fromkeys(("s", "s.a", "s.b", "c"), "cancelled")
            task = asyncio.create_task(engine.execute(workflow, self.context("t")))
            await passing(1)
            task.cancel()
            await asyncio.wait((task,))
            status = await engine.cancel("t")
            assert {step.state for step in status.steps.values()} == {StepState.CANCELLED}
            assert status.state is RunState.CANCELLED
            task = asyncio.create_task(engine.execute(workflow, self.context("u")))
            await passing(1)
            task.cancel()
            await asyncio.wait((task,))
            await store.ask_cancel("u")  # before a process takes it up again
            assert set(states(await engine.resume(workflow, self.context("u"))).values()) == {"cancelled"}

        run_virtual(main())

    @pytest.mark.parametrize(
        ("changes", "ran"),
        [
            ({}, []),
            ({"inputs": {"k": 7}}, ["s.a", "s.b", "c"]),
            ({"outputs": {"s.a": {"y": 7}}}, ["s.b", "c"]),
            ({"outputs": {"s.b": {"y": 7}}}, ["c"]),
            ({"outputs": {"s": {"y": 7}}}, ["c"]),
        ],
    )
    def test_a_fork_changes_steps_inside(self, changes: Any, ran: list[str]) -> None:
        """C24: what depends on the change runs again, inside and outside."""
        began: list[str] = []

        async def work(step: StepInput) -> Mapping[str, Any]:
            began.append(step.step)
            return {"y": step.inputs["x"]}

        inner = [
            Step("a", work, inputs={"x": "${inputs.x}"}),
            Step("b", work, ("a",), inputs={"x": "${steps.a.outputs.y}"}),
            Step("alone", Trace().work(y=1)),
            Step("y", Trace().work(y=1)),
        ]
        graph = WorkflowDefinition("v", inner, {"x": WorkflowInput("integer")}, {"y": "${steps.b.outputs.y}"})
        steps = [
            Step("s", kind="workflow", workflow=graph, inputs={"x": "${inputs.k}"}),
            Step("c", work, ("s",), inputs={"x": "${steps.s.outputs.y}"}),
        ]
        declared = {"k": WorkflowInput("integer", default=1)}
        workflow = WorkflowDefinition("w", steps, declared, {"y": "${steps.c.outputs.y}"})

        async def main() -> None:
            engine: Any = self.engine(self.store())
            await engine.execute(workflow, self.context())
            began.clear()
            ref = await engine.checkpoint("r")
            result = await engine.fork(ref, workflow, self.context("f"), ForkChanges(**changes))
            assert (began, result.outputs) == (ran, {"y": 7 if ran else 1})
            old = (await engine.history("r"))[1]  # the subgraph had not settled by then
            changed = ForkChanges(inputs=changes.get("inputs", {}))
            inside = await engine.fork(old, workflow, self.context("g"), changed)
            assert inside.status is RunState.COMPLETED

        run_virtual(main())
