"""The promises of every ExecutionEngine, as an importable suite: subclass it, say how yours is made.

The names C1 to C24 are those of the design; what concerns runs that go on is in engine_runs.py. Everything runs in
virtual time.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from smart_model_router.domain.errors import ConfigurationError, RequestRejected
from smart_model_router.testing import START, LoopClock, run_virtual
from smart_model_router_research.engine import (
    Budget,
    RunBusy,
    RunState,
    StepState,
    SupportsCancel,
    consider,
)
from smart_model_router_research.workflow import (
    Costs,
    Step,
    StepInput,
    WorkflowDefinition,
    WorkflowError,
    WorkflowInput,
)
from tests.conformance.engine_harness import Trace, digest, passing, states
from tests.conformance.engine_hazards import HazardContract
from tests.conformance.engine_pitfalls import PitfallContract
from tests.conformance.engine_runs import RunContract
from tests.conformance.engine_subgraphs import SubgraphContract


class EngineContract(RunContract, SubgraphContract, PitfallContract, HazardContract):
    """The promises. A subclass named Test… makes pytest run them."""

    # -------------------------------------------------------------------------------------------- C1, C9

    @pytest.mark.parametrize(
        "needs",
        [
            {"a": ""},
            {"a": "", "b": "a", "c": "b"},
            {"a": "", "b": "a", "c": "a", "d": "bc"},
            {"a": "", "b": "a", "c": "a", "d": "a"},
            {"a": "", "b": "", "c": "b"},
            {"a": "", "b": "a", "c": "b", "d": "ac"},
        ],
        ids=["single", "linear", "diamond", "fan-out", "disconnected", "unequal paths"],
    )
    def test_each_step_runs_once_after_all_that_it_needs(self, needs: Mapping[str, str]) -> None:
        """C1: whatever the shape; the outputs are those of the definition."""
        trace = Trace()
        steps = [Step(name, trace.work(), tuple(before)) for name, before in needs.items()]
        outputs = {name: f"${{steps.{name}.outputs.of}}" for name in needs}
        result = self.run(WorkflowDefinition("w", steps, outputs=outputs))
        assert sorted(trace.began) == sorted(needs)
        assert all(trace.began.index(before) < trace.began.index(name) for name in needs for before in needs[name])
        assert (result.status, result.reason, result.usage) == (RunState.COMPLETED, "", Costs(calls=len(needs)))
        assert result.outputs == {name: name for name in needs}
        assert {step.state for step in result.steps.values()} == {StepState.SUCCEEDED}

    def test_a_workflow_without_steps_is_refused(self) -> None:
        """C1: nothing that has run nothing is completed."""
        with pytest.raises(WorkflowError, match="has no steps"):
            WorkflowDefinition("w", [])

    def test_results_are_merged_by_name_and_not_by_the_order_of_ending(self) -> None:
        """C9: a hundred orders, one result."""

        def result(seed: int) -> str:
            chance, trace = random.Random(seed), Trace()
            steps = [Step(f"s{n}", trace.work(chance.random())) for n in range(5)]
            return digest(self.run(WorkflowDefinition("w", steps)))

        assert len({result(seed) for seed in range(100)}) == 1

    # -------------------------------------------------------------------------------------------- C2, C3

    def test_a_skip_spreads_and_a_later_round_does_not_run_on_nothing(self) -> None:
        """C2: round 2 is skipped, its gate is null, so round 3 is not asked to run."""
        trace = Trace()
        steps = [
            Step("gate_r1", trace.work(passed=True)),
            Step("gate_r2", trace.work(passed=False), ("gate_r1",), when="not steps.gate_r1.outputs.passed"),
            Step("search_r3", trace.work(), ("gate_r1", "gate_r2"), when="not steps.gate_r2.outputs.passed"),
            Step("read_r3", trace.work(), ("search_r3",)),
            Step("report", trace.work(), ("gate_r1", "read_r3")),
        ]
        result = self.run(WorkflowDefinition("w", steps))
        assert states(result) == {
            "gate_r1": "succeeded",
            "gate_r2": "condition",
            "search_r3": "condition",
            "read_r3": "dependency_skipped",
            "report": "succeeded",
        }
        assert trace.began == ["gate_r1", "report"]
        assert result.status is RunState.COMPLETED

    def test_what_has_no_outputs_is_null(self) -> None:
        """C3: coalesce takes the first that is not, and a step reads null for it."""
        trace, read = Trace(), []

        async def last(step: StepInput) -> Mapping[str, Any]:
            read.append((step.steps, step.inputs))
            return {"y": step.inputs["x"]}

        steps = [
            Step("a", trace.work(y=0), when="false"),
            Step("b", trace.work(y=2)),
            Step("c", last, ("a", "b"), inputs={"x": "${coalesce(steps.a.outputs.y, steps.b.outputs.y)}"}),
        ]
        outputs = {"y": "${steps.c.outputs.y}", "none": "${steps.a.outputs.y}"}
        assert self.run(WorkflowDefinition("w", steps, outputs=outputs)).outputs == {"y": 2, "none": None}
        assert read == [({"a": None, "b": {"y": 2}}, {"x": 2})]

    # -------------------------------------------------------------------------------------------- C4, C5, C6

    @pytest.mark.parametrize(
        ("on_error", "after", "status"), [("fail", "dependency_failed", "failed"), ("continue", "succeeded", "partial")]
    )
    def test_a_failure_skips_what_needs_it_and_nothing_else(self, on_error: Any, after: str, status: str) -> None:
        """C4: siblings run on; with `continue` its dependants do as well; what always runs, runs."""
        trace = Trace()
        steps = [
            Step("a", trace.work(1, fails=RuntimeError("no")), on_error=on_error),
            Step("sibling", trace.work(5)),
            Step("b", trace.work(), ("a",)),
            Step("end", trace.work(), ("a", "b"), always=True),
        ]
        result = self.run(WorkflowDefinition("w", steps))
        assert states(result) == {"a": "failed", "sibling": "succeeded", "b": after, "end": "succeeded"}
        assert (result.status, result.reason) == (status, "step a failed: RuntimeError: no")

    def test_a_reference_of_the_wrong_type_fails_its_step(self) -> None:
        """C4: the error names the expression, nothing of the step runs, and the rest does."""
        trace = Trace()
        steps = [
            Step("a", trace.work(y="text")),
            Step("b", trace.work(), ("a",), inputs={"x": "${steps.a.outputs.y + 1}"}),
            Step("c", trace.work(), ("a",), when="steps.a.outputs.y + 1"),
            Step("d", trace.work(), ("a",)),
        ]
        result = self.run(WorkflowDefinition("w", steps, outputs={"y": "${steps.a.outputs.y}"}))
        assert states(result) == {"a": "succeeded", "b": "failed", "c": "failed", "d": "succeeded"}
        assert result.steps["b"].error.startswith("inputs: ")
        assert result.steps["c"].error.startswith("when: ")
        assert (result.status, result.outputs, trace.began) == (RunState.FAILED, {"y": "text"}, ["a", "d"])

    def test_outputs_of_the_wrong_type_fail_the_run(self) -> None:
        """C4: a run without its outputs is not completed."""
        workflow = WorkflowDefinition("w", [Step("a", Trace().work(y="t"))], outputs={"y": "${steps.a.outputs.y + 1}"})
        result = self.run(workflow)
        assert result.status is RunState.FAILED
        assert result.reason.startswith("outputs: ")

    def test_attempts_and_pauses_are_those_of_the_wrapper(self) -> None:
        """C5: full jitter on the run's dice and clock; none for a permanent error."""

        async def times(error: Exception) -> tuple[int, float]:
            step = Step("a", Trace().work(fails=error), attempts=3)
            workflow = WorkflowDefinition("w", [step])
            result = await self.engine(self.store()).execute(workflow, self.context())
            return result.steps["a"].attempts, LoopClock().now() - START

        assert run_virtual(times(RuntimeError("no"))) == (3, 0.125 + 0.25)
        assert run_virtual(times(RequestRejected("no"))) == (1, 0.0)

    def test_a_step_past_its_time_fails_alone(self) -> None:
        """C6: its siblings go on."""
        trace = Trace()
        steps = [Step("a", trace.work(60), timeout=5.0), Step("b", trace.work(10)), Step("c", trace.work(), ("a",))]
        result = self.run(WorkflowDefinition("w", steps))
        assert states(result) == {"a": "failed", "b": "succeeded", "c": "dependency_failed"}
        assert result.steps["a"].error == "time-out after 5 s"

    # -------------------------------------------------------------------------------------------- C7, C8

    def test_a_cancelled_run_leaves_no_task_and_says_so(self) -> None:
        """C7: what had settled stays; what runs, waits or always runs is cancelled; it does not go on again."""
        trace = Trace()
        steps = [
            Step("a", trace.work(1)),
            Step("b", trace.work(60), ("a",)),
            Step("c", trace.work(60), ("a",)),
            Step("end", trace.work(), ("b",), always=True),
        ]
        workflow = WorkflowDefinition("w", steps)

        async def main() -> None:
            engine = self.engine(self.store())
            assert isinstance(engine, SupportsCancel)
            task = asyncio.create_task(engine.execute(workflow, self.context(max_concurrency=1)))
            await passing(2)
            status = await engine.cancel("r")
            result = await task
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert LoopClock().now() - START == 2
            assert states(result) == {"a": "succeeded", "b": "cancelled", "c": "cancelled", "end": "cancelled"}
            assert (result.status, result.reason) == (RunState.CANCELLED, "the run was cancelled")
            assert (status.state, status.steps, status.owner) == (RunState.CANCELLED, result.steps, "")
            assert digest(await engine.execute(workflow, self.context())) == digest(result)
            assert trace.began == ["a", "b"]
            assert await engine.cancel("r") == status

        run_virtual(main())

    def test_a_run_is_cancelled_from_another_process(self) -> None:
        """C7: its holder learns of it with its next heartbeat; one that no process holds is cancelled at once."""
        workflow = WorkflowDefinition("w", [Step("a", Trace().work(60))])

        async def main() -> None:
            store = self.store()
            engine, other = self.engine(store), self.engine(store)
            assert isinstance(other, SupportsCancel)
            task = asyncio.create_task(engine.execute(workflow, self.context()))
            await passing(7)
            assert (await other.cancel("r")).state is RunState.RUNNING
            assert (await task).status is RunState.CANCELLED
            assert LoopClock().now() - START == 10
            task = asyncio.create_task(engine.execute(workflow, self.context("s")))
            await passing(1)
            task.cancel()
            await asyncio.wait((task,))
            assert (await other.cancel("s")).state is RunState.CANCELLED
            assert states(await engine.execute(workflow, self.context("s"))) == {"a": "cancelled"}

        run_virtual(main())

    def test_a_run_is_held_for_the_lease_and_the_heartbeat_of_its_context(self) -> None:
        """C7: its holder says so as often, and learns as often of a cancellation."""
        workflow = WorkflowDefinition("w", [Step("a", Trace().work(60))])

        async def main() -> None:
            store = self.store()
            engine, other = self.engine(store), self.engine(store)
            assert isinstance(other, SupportsCancel)
            task = asyncio.create_task(engine.execute(workflow, self.context(lease=4.0, heartbeat=2.0)))
            await passing(7)
            with pytest.raises(RunBusy) as busy:
                await other.execute(workflow, self.context())
            assert busy.value.seconds == 3.0
            await other.cancel("r")
            assert (await task).status is RunState.CANCELLED
            assert LoopClock().now() - START == 8

        run_virtual(main())

    @pytest.mark.parametrize(
        ("wrong", "key"),
        [
            ({"lease": 0}, "lease"),
            ({"lease": float("inf")}, "lease"),
            ({"lease": True}, "lease"),
            ({"heartbeat": 0}, "heartbeat"),
            ({"lease": 4.0, "heartbeat": 2.1}, "heartbeat"),
        ],
    )
    def test_a_lease_that_its_holder_would_lose_is_refused(self, wrong: Mapping[str, Any], key: str) -> None:
        """A heartbeat that is late once would lose it."""
        with pytest.raises(ConfigurationError) as error:
            self.context(**wrong)
        assert error.value.key == key

    def test_no_more_steps_run_at_once_than_allowed(self) -> None:
        """C8: two of five, and all of them run."""
        trace = Trace()
        result = self.run(WorkflowDefinition("w", [Step(f"s{n}", trace.work(n)) for n in range(5)]), max_concurrency=2)
        assert (trace.most, len(trace.began), result.status) == (2, 5, RunState.COMPLETED)

    @pytest.mark.parametrize("most", [0, -1, True, 1.0])
    def test_a_concurrency_that_runs_nothing_is_refused(self, most: Any) -> None:
        """C8: before anything runs."""
        with pytest.raises(ConfigurationError, match="max_concurrency"):
            self.context(max_concurrency=most)

    # -------------------------------------------------------------------------------------------- C12, C13

    def test_a_status_never_goes_back(self) -> None:
        """C12: later ones have a greater seq, and all that had settled; the last one is the result."""
        trace = Trace()
        steps = [Step(f"s{n}", trace.work(1), (f"s{n - 1}",) if n else ()) for n in range(5)]

        async def main() -> None:
            engine = self.engine(self.store())
            task = asyncio.create_task(engine.execute(WorkflowDefinition("w", steps), self.context()))
            await passing(0.01)
            seen = [await engine.get_status("r")]
            while not task.done():
                await passing(0.3)
                seen.append(await engine.get_status("r"))
            for before, after in itertools.pairwise(seen):
                assert before.seq <= after.seq
                settled = {name: step for name, step in before.steps.items() if step.state.settled}
                assert settled.items() <= after.steps.items()
            assert (seen[0].state, seen[-1].state) == (RunState.RUNNING, RunState.COMPLETED)
            assert seen[-1].steps == task.result().steps

        run_virtual(main())

    # -------------------------------------------------------------------------------------------- C16, C17, C18

    @pytest.mark.parametrize(
        ("needs", "reason"),
        [
            ({"a": "b", "b": "c", "c": "a"}, "a.*b.*c"),
            ({"a": "a"}, "a"),
            ({"a": "x"}, "x"),
            ({"inputs": ""}, "reserved"),
        ],
        ids=["cycle", "self", "unknown", "reserved"],
    )
    def test_steps_that_could_never_run_are_refused(self, needs: Mapping[str, str], reason: str) -> None:
        """C16: when the workflow is made; a cycle names its path."""
        with pytest.raises(WorkflowError, match=reason):
            WorkflowDefinition("w", [Step(name, Trace().work(), tuple(before)) for name, before in needs.items()])

    def test_inputs_are_checked_and_defaulted_before_anything_runs(self) -> None:
        """C17: a run with wrong inputs is not even created."""
        trace = Trace()
        declared = {"q": WorkflowInput("integer", required=True), "n": WorkflowInput("integer", default=3)}
        step = Step("a", trace.work(), inputs={"x": "${inputs.q + inputs.n}"})
        workflow = WorkflowDefinition("w", [step], inputs=declared, outputs={"n": "${inputs.n}"})
        for wrong in ({}, {"q": "1"}, {"q": 1, "z": 1}):
            with pytest.raises(WorkflowError):
                self.run(workflow, inputs=wrong)
        assert trace.began == []
        assert self.run(workflow, inputs={"q": 1}).outputs == {"n": 3}

    def test_a_step_cannot_change_what_others_read(self) -> None:
        """C18: neither inputs of the run nor outputs of other steps."""
        read: list[Any] = []

        async def greedy(step: StepInput) -> Mapping[str, Any]:
            read.append(json.dumps([step.inputs, step.steps]))
            step.inputs["q"].append(1)
            if step.steps:
                step.steps["a"]["y"].append(1)
            return {"y": []}

        inputs = {"q": "${inputs.q}"}
        steps = [Step(name, greedy, needs, inputs=inputs) for name, needs in (("a", ()), ("b", ("a",)), ("c", ("a",)))]
        workflow = WorkflowDefinition("w", steps, inputs={"q": WorkflowInput("list")}, outputs={"q": "${inputs.q}"})
        mine: list[int] = []
        assert self.run(workflow, inputs={"q": mine}).outputs == {"q": []}
        assert (read[1], mine) == (read[2], [])

    # -------------------------------------------------------------------------------------------- C19

    def test_a_budget_that_is_spent_skips_what_does_not_fit(self) -> None:
        """C19: the same partial result every time; what always runs has the reserve."""
        trace = Trace()
        one = {"calls": 1.0}
        steps = [Step(f"s{n}", trace.work(), (f"s{n - 1}",) if n else (), estimate=one) for n in range(5)]
        steps.append(Step("end", trace.work(), ("s4",), always=True, estimate=one))
        budget = Budget(calls=4, reserve=Costs(calls=1))
        result = self.run(WorkflowDefinition("w", steps), budget=budget)
        assert list(states(result).values()) == [*["succeeded"] * 3, "budget", "dependency_skipped", "succeeded"]
        assert (result.status, result.usage) == (RunState.PARTIAL, Costs(calls=4))
        assert result.reason == "step s3 was skipped: its estimate does not fit into the budget"

    def test_steps_under_way_count_with_what_they_will_cost(self) -> None:
        """C19: two that start at once do not both take what is left, and what was charged counts once."""
        trace = Trace()
        steps = [Step(f"s{n}", trace.work(1), estimate={"calls": 2}) for n in range(3)]
        result = self.run(WorkflowDefinition("w", steps), budget=Budget(calls=4))
        assert list(states(result).values()) == ["succeeded", "succeeded", "budget"]

        async def late(step: StepInput) -> Mapping[str, Any]:
            await passing(0.5)
            return {}

        steps = [
            Step("a", trace.work(1), estimate={"calls": 2}),
            Step("b", late),
            Step("c", trace.work(), ("b",), estimate={"calls": 2}),
        ]
        result = self.run(WorkflowDefinition("w", steps), budget=Budget(calls=4))
        assert list(states(result).values()) == ["succeeded"] * 3

    def test_the_limit_of_a_run_fails_what_runs_and_skips_the_rest(self) -> None:
        """C19: what always runs has the time that is reserved for it."""
        trace = Trace()
        steps = [
            Step("a", trace.work(60)),
            Step("b", trace.work(60)),
            Step("end", trace.work(4), ("a", "b"), always=True),
        ]
        options = {"max_concurrency": 1, "deadline": START + 20, "budget": Budget(reserve=Costs(seconds=5))}
        result = self.run(WorkflowDefinition("w", steps), **options)
        assert states(result) == {"a": "failed", "b": "timeout", "end": "succeeded"}
        assert result.status is RunState.FAILED
        assert result.steps["a"].error == "the time limit of the run came before its end"
        assert trace.began == ["a", "end"]

    def test_a_run_that_ran_nothing_is_not_completed(self) -> None:
        """C19: with no time left, and with conditions that none met."""
        trace = Trace()
        late = self.run(WorkflowDefinition("w", [Step("a", trace.work())]), deadline=START)
        assert (late.status, late.reason) == (
            RunState.PARTIAL,
            "step a was skipped: the time limit of the run came first",
        )
        unmet = self.run(WorkflowDefinition("w", [Step("a", trace.work(), when=False)]))
        assert (unmet.status, unmet.reason, trace.began) == (RunState.PARTIAL, "no step ran", [])

    # -------------------------------------------------------------------------------------------- C20, C21

    # Each subclass of the contract runs it: those are its executors, and an example is replayed by the one it is of.
    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
    @given(seed=st.integers(0, 2**32))
    def test_any_workflow_ends_as_the_join_rule_says(self, seed: int) -> None:
        """C20: workflows and faults by a seed; each step at most once an attempt, each result by the join rule."""
        note(f"seed {seed}")
        chance, trace = random.Random(seed), Trace()
        steps: list[Step] = []
        for number in range(chance.randint(1, 12)):
            before = [step.name for step in steps if chance.random() < 0.3]
            fails = RuntimeError("no") if chance.random() < 0.25 else None
            steps.append(
                Step(
                    f"s{number}",
                    trace.work(chance.choice([0, 1, 1, 3]), fails=fails),
                    tuple(before),
                    when=chance.choice([None, None, None, False, True]),
                    always=chance.random() < 0.2,
                    on_error=chance.choice(["fail", "continue"]),
                )
            )
        chance.shuffle(steps)
        workflow = WorkflowDefinition("w", steps)
        result = self.run(workflow, max_concurrency=chance.randint(1, 4))
        assert len(trace.began) == len(set(trace.began))
        for step in steps:
            decided = consider(workflow, step.name, result.steps, {})
            assert decided is not None
            ran = decided.state is StepState.READY
            assert ran == (step.name in trace.began)
            assert ran or result.steps[step.name] == decided
        assert result.status in {RunState.COMPLETED, RunState.PARTIAL, RunState.FAILED}

    def test_chains_do_not_wait_for_each_other(self) -> None:
        """C21: two chains of unequal steps take no 2 % more than the longer one; in supersteps, their longest steps."""
        trace = Trace()
        chains: Sequence[Sequence[float]] = ((0.5, 0.05, 0.5), (0.05, 0.5, 0.05))
        steps = [
            Step(f"c{chain}_{n}", trace.work(seconds), (f"c{chain}_{n - 1}",) if n else ())
            for chain, times in enumerate(chains)
            for n, seconds in enumerate(times)
        ]

        async def main() -> float:
            await self.engine(self.store()).execute(WorkflowDefinition("w", steps), self.context())
            return LoopClock().now() - START

        longest = 1.02 * 1.05 if self.wavefront else 3 * 0.5
        assert run_virtual(main()) <= longest
