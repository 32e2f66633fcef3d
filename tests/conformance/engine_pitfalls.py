"""The nine pitfalls of the founding engines, each a promise of every ExecutionEngine.

The bad inputs of the design are tests in other files; docs/guarantees.md lists them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.testing import run_virtual
from smart_model_router_research.engine import ExecutionResult, RunEvent, RunState, StepState
from smart_model_router_research.workflow import Step, StepInput, WorkflowDefinition
from tests.conformance.engine_harness import EngineHarness, Process, Trace, digest, passing, states


def research(trace: Trace, verdict: Any) -> WorkflowDefinition:
    """Make four rounds of seven steps, each gated by the round before, and a synthesis of the latest that ran."""
    steps: list[Step] = []
    names = ("plan", "search", "read", "extract", "verify", "score", "gate")
    for number in range(1, 5):
        before: tuple[str, ...] = (f"gate_r{number - 1}",) if number > 1 else ()
        for name in names:
            when = f"steps.{before[0]}.outputs.passed == false" if name == "plan" and before else None
            outputs: dict[str, Any] = {"passed": verdict} if name == "gate" else {"round": number}
            steps.append(Step(f"{name}_r{number}", trace.work(**outputs), before, when=when))
            before = (f"{name}_r{number}",)
    latest = ", ".join(f"steps.score_r{number}.outputs.round" for number in range(4, 0, -1))
    read = tuple(f"score_r{number}" for number in range(1, 5))
    steps.append(Step("synthesis", trace.work(), read, always=True, inputs={"round": f"${{coalesce({latest})}}"}))
    return WorkflowDefinition("w", steps, outputs={"round": f"${{coalesce({latest})}}"})


class PitfallContract(EngineHarness):
    """The promises. A subclass named Test… makes pytest run them."""

    def test_rounds_after_the_one_that_passed_do_not_run(self) -> None:
        """Of 29 steps 8 run when round 1 passes, and the synthesis reads round 1, not round 4."""
        trace = Trace()
        result = self.run(research(trace, True))
        assert len(trace.began) == 8
        assert (result.status, result.outputs) == (RunState.COMPLETED, {"round": 1})

    def test_a_text_is_no_truth_value(self) -> None:
        """A gate that says "false" has neither passed nor failed: nothing runs on it, and the step says why."""
        trace = Trace()
        steps = [
            Step("gate", trace.work(gate_passed="false")),
            Step("report", trace.work(), ("gate",), when="steps.gate.outputs.gate_passed"),
        ]
        result = self.run(WorkflowDefinition("w", steps))
        assert (trace.began, states(result)["report"]) == (["gate"], "condition")
        assert result.steps["report"].note == "the condition is a text, not true or false"

    @pytest.mark.parametrize("most", [0, -1, False])
    def test_no_room_at_all_is_no_success(self, most: Any) -> None:
        """A concurrency of 0 is refused before anything runs."""
        with pytest.raises(ConfigurationError, match="max_concurrency"):
            self.context(max_concurrency=most)

    def test_going_on_repeats_nothing(self) -> None:
        """Steps that had settled when the process died do not run again."""
        trace = Trace()
        steps = [Step(f"s{n}", trace.work(1), (f"s{n - 1}",) if n else ()) for n in range(5)]
        workflow = WorkflowDefinition("w", steps)

        async def main() -> ExecutionResult:
            store = self.store()
            task = asyncio.create_task(self.engine(store).execute(workflow, self.context()))
            await passing(2.5)
            task.cancel()
            await asyncio.wait((task,))
            return await self.engine(store).execute(workflow, self.context())

        assert run_virtual(main()).status is RunState.COMPLETED
        assert trace.began == ["s0", "s1", "s2", "s2", "s3", "s4"]

    def test_a_join_behind_unequal_paths_runs_once(self) -> None:
        """After the longest of them, whatever their lengths."""
        trace = Trace()
        steps = [
            Step("a", trace.work(1)),
            Step("b", trace.work(1), ("a",)),
            Step("c", trace.work(1), ("b",)),
            Step("join", trace.work(), ("a", "b", "c")),
        ]
        self.run(WorkflowDefinition("w", steps))
        assert trace.began == ["a", "b", "c", "join"]

    def test_a_result_is_no_success_before_the_end(self) -> None:
        """A run that waits is paused, one that goes on is running; neither is completed."""
        workflow = WorkflowDefinition("w", [Step("a", Trace().work(5)), Step("ok", kind="approval", needs=("a",))])

        async def main() -> None:
            engine = self.engine(self.store())
            task = asyncio.create_task(engine.execute(workflow, self.context()))
            await passing(1)
            assert (await engine.get_status("r")).state is RunState.RUNNING
            assert (await task).status is RunState.PAUSED
            assert (await engine.get_status("r")).state is RunState.PAUSED

        run_virtual(main())

    def test_a_step_that_raised_has_failed(self) -> None:
        """In the result and in the store, with its error; the run does not wait for it."""

        async def main() -> None:
            engine = self.engine(self.store())
            workflow = WorkflowDefinition("w", [Step("a", Trace().work(fails=ValueError("no")))])
            result = await engine.execute(workflow, self.context())
            stored = (await engine.get_status("r")).steps["a"]
            assert (stored, stored.state, stored.error) == (result.steps["a"], StepState.FAILED, "ValueError: no")

        run_virtual(main())

    def test_a_result_is_durable_before_the_next_step_begins(self) -> None:
        """No step runs on a result that a crash could lose."""
        seen: list[int] = []

        async def main() -> None:
            store = self.store()

            async def look(step: StepInput) -> Mapping[str, Any]:
                seen.append((await store.checkpoint("r")).number)
                return {}

            steps = [Step(f"s{n}", look, (f"s{n - 1}",) if n else ()) for n in range(4)]
            await self.engine(Process(store).store).execute(WorkflowDefinition("w", steps), self.context())

        run_virtual(main())
        assert seen == [0, 1, 2, 3]

    def test_an_observer_that_raises_changes_nothing(self) -> None:
        """The result is that without one."""

        def broken(event: RunEvent) -> None:
            raise RuntimeError("no")

        workflow = WorkflowDefinition("w", [Step("a", Trace().work(1)), Step("b", Trace().work(), ("a",))])
        assert digest(self.run(workflow, observers=(broken,))) == digest(self.run(workflow))
