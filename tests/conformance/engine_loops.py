"""The promises of an ExecutionEngine with the capability `cycles`: steps that run again while a condition holds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.testing import run_virtual
from smart_model_router_research.engine import (
    Approval,
    CheckpointRef,
    ForkChanges,
    KahnEngine,
    RunState,
    StoreUnavailable,
)
from smart_model_router_research.workflow import Step, StepInput, StepLoop, WorkflowDefinition, WorkflowInput
from tests.conformance.engine_harness import EngineHarness, Process, Trace, Work, digest, passing, states


def counting(trace: Trace, seconds: float = 0.0) -> Work:
    """Make work that adds one to what the pass before put out."""

    async def run(step: StepInput) -> Mapping[str, Any]:
        trace.began.append(step.step)
        await asyncio.sleep(seconds)
        return {"n": (step.inputs.get("n") or 0) + 1}

    return run


def draft_and_check(trace: Trace, until: int, most: int = 10, **options: Any) -> WorkflowDefinition:
    """Make a workflow that drafts and checks until the draft is the one that is wanted, and then reports."""
    again = StepLoop("draft", f"steps.check.outputs.n < {until}", most)
    steps = [
        Step("plan", trace.work(1)),
        Step("draft", counting(trace, 1), ("plan",), inputs={"n": "${prev.draft.n}"}),
        Step("side", trace.work(1), ("draft",)),
        Step("check", trace.work(1), ("draft", "side"), inputs={"n": "${steps.draft.outputs.n}"}, **options),
        Step("report", trace.work(), ("plan", "side", "check")),
    ]

    async def check(step: StepInput) -> Mapping[str, Any]:
        trace.began.append(step.step)
        return {"n": step.inputs["n"]}

    steps[3] = Step("check", check, ("draft", "side"), inputs={"n": "${steps.draft.outputs.n}"}, loop=again, **options)
    return WorkflowDefinition("w", steps, outputs={"n": "${steps.draft.outputs.n}"})


class LoopContract(EngineHarness):
    """The promises. A subclass named Test… makes pytest run them."""

    @pytest.mark.parametrize("until", [1, 2, 5])
    def test_a_loop_runs_its_steps_until_its_condition_does_not_hold(self, until: int) -> None:
        """Each pass reads the one before; steps outside run once, behind the last pass, and read that."""
        trace = Trace()
        result = self.run(draft_and_check(trace, until))
        later = [f"{name}#{number}" for number in range(2, until + 1) for name in ("draft", "side", "check")]
        assert trace.began == ["plan", "draft", "side", "check", *later, "report"]
        assert (result.status, result.outputs, result.reason) == (RunState.COMPLETED, {"n": until}, "")
        assert set(states(result).values()) == {"succeeded"}
        assert list(result.steps)[:3] == ["plan", "draft", *["draft#2"][: until - 1], "side"][:3]

    def test_a_step_that_loops_over_itself_ends_at_its_most(self) -> None:
        """The condition would hold for ever; the row of the last pass says so, and the run goes on."""
        trace = Trace()
        loop = StepLoop("a", "true", 4)
        steps = [
            Step("a", counting(trace), inputs={"n": "${prev.a.n}"}, loop=loop),
            Step("b", trace.work(), ("a",), inputs={"n": "${steps.a.outputs.n}"}),
        ]
        result = self.run(WorkflowDefinition("w", steps, outputs={"n": "${steps.a.outputs.n}"}))
        assert trace.began == ["a", "a#2", "a#3", "a#4", "b"]
        assert (result.status, result.outputs) == (RunState.COMPLETED, {"n": 4})
        assert result.steps["a#4"].note == "the loop ended with pass 4, the last that is allowed: its condition held"
        assert result.steps["a#3"].note == ""

    def test_a_loop_may_have_as_many_passes_as_are_allowed(self) -> None:
        """A hundred: no limit of a library ends them."""
        trace = Trace()
        step = Step("a", counting(trace), inputs={"n": "${prev.a.n}"}, loop=StepLoop("a", "true", 100))
        result = self.run(WorkflowDefinition("w", [step], outputs={"n": "${steps.a.outputs.n}"}))
        assert (result.status, result.outputs, len(trace.began)) == (RunState.COMPLETED, {"n": 100}, 100)

    @pytest.mark.parametrize(("on_error", "after"), [("fail", "dependency_failed"), ("continue", "succeeded")])
    def test_a_condition_of_the_wrong_type_fails_its_step(self, on_error: Any, after: str) -> None:
        """In the pass in which it is one: the error names the expression, and nothing runs again."""
        trace = Trace()
        loop = StepLoop("a", "steps.a.outputs.of + 1 > 0")
        steps = [Step("a", trace.work(), loop=loop, on_error=on_error), Step("b", trace.work(), ("a",))]
        result = self.run(WorkflowDefinition("w", steps))
        assert states(result) == {"a": "failed", "b": after}
        assert result.steps["a"].error.startswith("loop: ")
        assert trace.began == ["a", "b"][: 1 + (after == "succeeded")]

    def test_a_text_as_a_condition_ends_the_loop_with_a_note(self) -> None:
        """As with `when`, only true is true."""
        trace = Trace()
        step = Step("a", trace.work(again="yes"), loop=StepLoop("a", "steps.a.outputs.again"))
        result = self.run(WorkflowDefinition("w", [step]))
        assert (trace.began, result.steps["a"].note) == (["a"], "the condition is a text, not true or false")

    def test_a_pass_that_fails_is_the_last(self) -> None:
        """Steps behind the loop are decided by that pass; the failure is that of the run."""
        trace = Trace()

        async def second_fails(step: StepInput) -> Mapping[str, Any]:
            trace.began.append(step.step)
            if step.step == "a#2":
                raise RuntimeError("no")
            return {}

        steps = [
            Step("a", second_fails),
            Step("b", trace.work(), ("a",), loop=StepLoop("a", "true")),
            Step("c", trace.work(), ("b",)),
        ]
        result = self.run(WorkflowDefinition("w", steps))
        assert trace.began == ["a", "b", "a#2"]
        assert states(result) == {
            "a": "succeeded",
            "a#2": "failed",
            "b": "succeeded",
            "b#2": "dependency_failed",
            "c": "dependency_failed",
        }
        assert (result.status, result.reason) == (RunState.FAILED, "step a#2 failed: RuntimeError: no")

    def test_a_failure_in_an_earlier_pass_leaves_the_run_partial(self) -> None:
        """A loop that goes on over it is not as if nothing had been."""
        trace = Trace()

        async def first_fails(step: StepInput) -> Mapping[str, Any]:
            if step.step == "a":
                raise RuntimeError("no")
            return {"good": True}

        again = StepLoop("a", "steps.a.outputs.good != true")
        steps = [Step("a", first_fails, on_error="continue"), Step("b", trace.work(), ("a",), loop=again)]
        result = self.run(WorkflowDefinition("w", steps))
        assert states(result) == {"a": "failed", "a#2": "succeeded", "b": "succeeded", "b#2": "succeeded"}
        assert (result.status, result.reason) == (RunState.PARTIAL, "step a failed: RuntimeError: no")

    def test_a_subgraph_in_a_loop_begins_anew_with_each_pass(self) -> None:
        """Its steps are `outer#2.inner`; a loop inside of it has passes of its own."""
        trace = Trace()
        inside = [
            Step("a", counting(trace), inputs={"n": "${prev.a.n}"}, loop=StepLoop("a", "steps.a.outputs.n < inputs.m")),
            Step("b", trace.work(), ("a",)),
        ]
        inner = WorkflowDefinition("v", inside, {"m": WorkflowInput("integer")}, {"n": "${steps.a.outputs.n}"})
        given = {"m": "${coalesce(prev.outer.n, 0) + 1}"}
        again = StepLoop("outer", "steps.outer.outputs.n < 3")
        steps = [
            Step("outer", kind="workflow", workflow=inner, inputs=given, loop=again),
            Step("end", trace.work(), ("outer",)),
        ]
        result = self.run(WorkflowDefinition("w", steps, outputs={"n": "${steps.outer.outputs.n}"}))
        assert (result.status, result.outputs) == (RunState.COMPLETED, {"n": 3})
        assert trace.began == [
            *("outer.a", "outer.b", "outer#2.a", "outer#2.a#2", "outer#2.b"),
            *("outer#3.a", "outer#3.a#2", "outer#3.a#3", "outer#3.b", "end"),
        ]

    def test_a_subgraph_that_fails_ends_its_loop(self) -> None:
        """Its condition is not asked."""
        trace = Trace()
        inner = WorkflowDefinition("v", [Step("a", trace.work(fails=RuntimeError("no")))])
        step = Step("outer", kind="workflow", workflow=inner, loop=StepLoop("outer", "1 + 1"))
        result = self.run(WorkflowDefinition("w", [step]))
        assert (trace.began, states(result)) == (["outer.a"], {"outer": "failed", "outer.a": "failed"})
        assert result.reason == "step outer failed: step outer.a failed: RuntimeError: no"

    def test_a_loop_whose_process_dies_at_any_write_ends_as_if_it_had_not(self) -> None:
        """A step that had settled in any pass does not run again, whichever write was the last."""
        whole = digest(self.run(draft_and_check(Trace(), 3)))

        async def broken(writes: int) -> bool:
            store, trace = self.store(), Trace()
            dying = Process(store, writes)
            try:
                result = await self.engine(dying.store).execute(draft_and_check(trace, 3), self.context())
            except StoreUnavailable:
                settled = {name for name, step in (await store.load("r")).steps.items() if step.number is not None}
                before = len(trace.began)
                await passing(31)
                again: Any = self.engine(store)
                result = await again.resume(draft_and_check(trace, 3), self.context())
                assert not settled & set(trace.began[before:])
            assert digest(result) == whole
            assert asyncio.all_tasks() == {asyncio.current_task()}
            return dying.left > 0

        writes = 1
        while not run_virtual(broken(writes)):
            writes += 1
        assert writes > 20

    def test_a_run_broken_off_in_its_second_pass_goes_on_there_and_on_no_other_engine(self) -> None:
        """Without the capability it is refused, with the extra that brings it; nothing is written by that."""
        trace = Trace()

        async def main() -> None:
            store = self.store()
            task = asyncio.create_task(self.engine(store).execute(draft_and_check(trace, 3), self.context()))
            await passing(4.5)
            task.cancel()
            await asyncio.wait((task,))
            assert trace.began[-1] == "side#2"
            before = await store.load("r")
            with pytest.raises(ConfigurationError, match=r"kahn.*cycles"):
                await KahnEngine(store).resume(draft_and_check(trace, 3), self.context())
            assert await store.load("r") == before
            again: Any = self.engine(store)
            result = await again.resume(draft_and_check(trace, 3), self.context())
            assert (result.status, result.outputs) == (RunState.COMPLETED, {"n": 3})
            assert [name for name in trace.began if trace.began.count(name) > 1] == ["side#2", "side#2"]

        run_virtual(main())

    @pytest.mark.parametrize("elsewhere", [False, True])
    def test_a_run_cancelled_in_its_second_pass_says_so(self, elsewhere: bool) -> None:
        """In the process that runs it, and where none does any more."""
        trace = Trace()

        async def main() -> None:
            store = self.store()
            engine: Any = self.engine(store)
            task = asyncio.create_task(engine.execute(draft_and_check(trace, 3), self.context()))
            await passing(4.5)
            if elsewhere:
                task.cancel()
                await asyncio.wait((task,))
            assert (await engine.cancel("r")).state is RunState.CANCELLED
            result = await cast("Any", self.engine(store)).resume(draft_and_check(trace, 3), self.context())
            assert (result.status, result.reason) == (RunState.CANCELLED, "the run was cancelled")
            assert (states(result)["side#2"], states(result)["report"]) == ("cancelled", "cancelled")

        run_virtual(main())

    def test_a_decision_ends_a_loop_or_begins_another_pass(self) -> None:
        """A person sends a draft back as often as needed; each pass has a question of its own."""
        trace = Trace()
        steps = [
            Step("draft", counting(trace, 1), inputs={"n": "${prev.draft.n}", "said": "${prev.ok.payload}"}),
            Step(
                "ok",
                kind="approval",
                needs=("draft",),
                message="Draft ${steps.draft.outputs.n}?",
                loop=StepLoop("draft", "steps.ok.outputs.payload == 'again'"),
            ),
            Step("send", trace.work(), ("draft", "ok")),
        ]
        workflow = WorkflowDefinition("w", steps, outputs={"n": "${steps.draft.outputs.n}"})

        async def main() -> None:
            store = self.store()
            engine: Any = self.engine(store)
            result = await engine.execute(workflow, self.context())
            for number in (1, 2):
                assert result.status is RunState.PAUSED
                assert [each.message for each in await store.approvals("r")] == [f"Draft {number}?"]
                result = await engine.resume(workflow, self.context(), Approval(payload="again"))
            result = await engine.resume(workflow, self.context(), Approval(payload="yes"))
            assert (result.status, result.outputs) == (RunState.COMPLETED, {"n": 3})
            assert trace.began == ["draft", "draft#2", "draft#3", "send"]

        run_virtual(main())

    def test_a_decision_that_comes_while_others_run_begins_the_next_pass(self) -> None:
        """The step behind the loop has not run by then: the loop is not over."""
        trace = Trace()
        steps = [
            Step("ok", kind="approval", loop=StepLoop("ok", "steps.ok.outputs.payload == 'again'")),
            Step("long", trace.work(20)),
            Step("longer", trace.work(20), ("long",)),
            Step("after", trace.work(), ("ok", "long")),
        ]
        workflow = WorkflowDefinition("w", steps)

        async def main() -> None:
            store = self.store()
            task = asyncio.create_task(self.engine(store).execute(workflow, self.context()))
            await passing(2)
            await store.decide("r", Approval(payload="again", step="ok"))
            result = await task
            assert (result.status, states(result)["ok#2"]) == (RunState.PAUSED, "paused")
            assert trace.began == ["long", "longer"]
            again: Any = self.engine(store)
            result = await again.resume(workflow, self.context(), Approval(payload="yes"))
            assert (result.status, trace.began) == (RunState.COMPLETED, ["long", "longer", "after"])

        run_virtual(main())

    def test_a_fork_keeps_the_passes_that_are_the_same(self) -> None:
        """All of them, those up to its checkpoint, or none that depend on a change."""
        trace = Trace()
        steps = [
            Step("a", counting(trace), inputs={"n": "${prev.a.n}"}),
            Step("b", trace.work(), ("a",), loop=StepLoop("a", "steps.a.outputs.n < inputs.m")),
            Step("c", trace.work(), ("b",), inputs={"n": "${steps.a.outputs.n}"}),
        ]
        workflow = WorkflowDefinition(
            "w", steps, {"m": WorkflowInput("integer", default=3)}, {"n": "${steps.a.outputs.n}"}
        )

        async def main() -> None:
            engine: Any = self.engine(self.store())
            await engine.execute(workflow, self.context())
            passes = ["a", "b", "a#2", "b#2", "a#3", "b#3"]
            assert trace.began == [*passes, "c"]
            for number, inputs, ran, n in (
                (7, {}, [], 3),
                (5, {}, ["b#3", "c"], 3),
                (7, {"m": 2}, ["c"], 2),
                (7, {"m": 4}, ["a#4", "b#4", "c"], 4),
            ):
                trace.began.clear()
                context = self.context(f"f{number}{len(ran)}")
                result = await engine.fork(CheckpointRef("r", number), workflow, context, ForkChanges(inputs=inputs))
                assert (trace.began, result.outputs) == (ran, {"n": n})

        run_virtual(main())
