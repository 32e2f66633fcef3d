"""The promises of an ExecutionEngine about runs that go on: resumed after crashes, decided about, read, and forked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.testing import START, LoopClock, run_virtual
from smart_model_router_research.engine import (
    Approval,
    CheckpointRef,
    ExecutionEngine,
    ForkChanges,
    RunBusy,
    RunEvent,
    RunNotFound,
    RunState,
    StepState,
    StoreUnavailable,
    SupportsResume,
    SupportsStream,
    SupportsTimeTravel,
    WorkflowChanged,
)
from smart_model_router_research.workflow import (
    Costs,
    Step,
    StepInput,
    WorkflowDefinition,
    WorkflowError,
    WorkflowInput,
    parse_workflow,
)
from tests.conformance.engine_harness import EngineHarness, Process, Trace, digest, passing, states

ENDS = ("run_ended", "run_paused")


def resumable(engine: ExecutionEngine) -> SupportsResume:
    """Return the engine, which can resume."""
    assert isinstance(engine, SupportsResume)
    return engine


def streaming(engine: ExecutionEngine) -> SupportsStream:
    """Return the engine, which can stream."""
    assert isinstance(engine, SupportsStream)
    return engine


def travelling(engine: ExecutionEngine) -> SupportsTimeTravel:
    """Return the engine, which can fork."""
    assert isinstance(engine, SupportsTimeTravel)
    return engine


async def read(events: AsyncIterator[RunEvent], into: list[RunEvent], most: int = 1_000) -> None:
    """Read events until there are no more, or so many."""
    async for event in events:
        into.append(event)
        if len(into) == most:
            return


def named(events: Sequence[RunEvent]) -> list[str]:
    """Return kind and step of events."""
    return [f"{event.kind} {event.step}".strip() for event in events]


class RunContract(EngineHarness):
    """The promises. A subclass named Test… makes pytest run them."""

    # -------------------------------------------------------------------------------------------- C10, C11

    @pytest.mark.parametrize("boundary", range(4))
    def test_a_run_that_was_broken_off_goes_on_where_it_was(self, boundary: int) -> None:
        """C10: each step runs once but the one in flight, with the inputs that the run began with."""
        trace = Trace()
        names = "abcd"
        needs = [()] + [(name,) for name in names]
        steps = [Step(n, trace.work(10), need) for n, need in zip(names, needs, strict=False)]
        declared = {"q": WorkflowInput("integer", default=1)}
        workflow = WorkflowDefinition("w", steps, inputs=declared, outputs={"q": "${inputs.q}"})

        async def main() -> None:
            store = self.store()
            task = asyncio.create_task(self.engine(store).execute(workflow, self.context(inputs={"q": 2})))
            await passing(10 * boundary + 5)
            with pytest.raises(RunBusy):
                await resumable(self.engine(store)).resume(workflow, self.context())
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await self.engine(store).checkpoint("r")).number == boundary
            result = await resumable(self.engine(store)).resume(workflow, self.context())
            assert (result.status, result.outputs) == (RunState.COMPLETED, {"q": 2})
            assert sorted(trace.began) == sorted([*names, names[boundary]])
            assert LoopClock().now() - START == 45
            assert digest(await resumable(self.engine(store)).resume(workflow, self.context())) == digest(result)

        run_virtual(main())

    def test_a_run_whose_process_dies_at_any_write_ends_as_if_it_had_not(self) -> None:
        """C10: what had settled does not run again, whichever write was the last; subgraphs and skips included."""

        def workflow(trace: Trace) -> WorkflowDefinition:
            part = [Step("x", trace.work(1, y=1)), Step("z", trace.work(1, y=2), ("x",))]
            inner = WorkflowDefinition("v", part, outputs={"y": "${steps.z.outputs.y}"})
            steps = [
                Step("a", trace.work(1)),
                Step("no", trace.work(), ("a",), when=False),
                Step("bad", trace.work(1, fails=RuntimeError("no")), ("a",), on_error="continue", attempts=2),
                Step("sub", kind="workflow", workflow=inner, needs=("a",)),
                Step("b", trace.work(1), ("no", "bad", "sub"), inputs={"y": "${steps.sub.outputs.y}"}),
            ]
            return WorkflowDefinition("w", steps, outputs={"y": "${steps.sub.outputs.y}"})

        whole = digest(self.run(workflow(Trace())))

        async def broken(writes: int) -> bool:
            store, trace = self.store(), Trace()
            dying = Process(store, writes)
            engine = self.engine(dying.store)
            try:
                result = await engine.execute(workflow(trace), self.context())
            except StoreUnavailable:
                settled = {name for name, step in (await store.load("r")).steps.items() if step.number is not None}
                before = len(trace.began)
                await passing(31)  # no heartbeat of its holder comes any more
                result = await resumable(self.engine(store)).resume(workflow(trace), self.context())
                assert not settled & set(trace.began[before:])
            assert digest(result) == whole
            assert asyncio.all_tasks() == {asyncio.current_task()}
            return dying.left > 0

        writes = 1
        while not run_virtual(broken(writes)):
            writes += 1
        assert writes > 20

    def test_a_run_does_not_go_on_with_another_workflow(self) -> None:
        """C11: the steps that differ are named, by whatever means it is taken up."""

        async def main() -> None:
            store, trace = self.store(), Trace()
            await self.engine(store).execute(WorkflowDefinition("w", [Step("a", trace.work())]), self.context())
            other = WorkflowDefinition("w", [Step("a", trace.work()), Step("b", trace.work())])
            with pytest.raises(WorkflowChanged, match="these differ: b"):
                await self.engine(store).execute(other, self.context())
            with pytest.raises(WorkflowChanged, match="these differ: b"):
                await resumable(self.engine(store)).resume(other, self.context())
            with pytest.raises(WorkflowChanged, match="these differ: b"):
                await read(streaming(self.engine(store)).stream(other, self.context()), [])
            with pytest.raises(RunNotFound):
                await resumable(self.engine(store)).resume(other, self.context("s"))

        run_virtual(main())

    # -------------------------------------------------------------------------------------------- C13, C23

    def test_observers_see_the_events_of_the_store_and_change_nothing(self) -> None:
        """C13: each once and in order, also when one of them raises."""
        seen: list[RunEvent] = []

        def broken(event: RunEvent) -> None:
            raise RuntimeError("no")

        async def main() -> None:
            store = self.store()
            workflow = WorkflowDefinition("w", [Step("a", Trace().work(1)), Step("b", Trace().work(), ("a",))])
            context = self.context(observers=(broken, seen.append))
            result = await self.engine(store).execute(workflow, context)
            assert result.status is RunState.COMPLETED
            assert seen == await store.events_since("r")

        run_virtual(main())
        assert named(seen) == [
            "run_started",
            "step_started a",
            "step_settled a",
            "step_started b",
            "step_settled b",
            "run_ended",
        ]

    def test_a_stream_starts_a_run_and_tells_of_it_as_it_goes(self) -> None:
        """C13: each event at the moment when it happens, up to the end; they are those of the store."""
        workflow = WorkflowDefinition("w", [Step("a", Trace().work(1)), Step("b", Trace().work(2), ("a",))])

        async def main() -> None:
            store = self.store()
            at: list[tuple[str, float]] = []
            seen: list[RunEvent] = []
            async for event in streaming(self.engine(store)).stream(workflow, self.context()):
                seen.append(event)
                at.append((f"{event.kind} {event.step}".strip(), LoopClock().now() - START))
            assert at == [
                ("run_started", 0.0),
                ("step_started a", 0.0),
                ("step_settled a", 1.0),
                ("step_started b", 1.0),
                ("step_settled b", 3.0),
                ("run_ended", 3.0),
            ]
            assert seen == await store.events_since("r")
            await passing(0)
            assert asyncio.all_tasks() == {asyncio.current_task()}

        run_virtual(main())

    def test_a_reader_that_comes_back_misses_nothing_and_sees_nothing_twice(self) -> None:
        """C23: wherever it left off, while the run goes on, in this process and in another; it starts nothing anew."""
        trace = Trace()
        steps = [Step(f"s{n}", trace.work(1), (f"s{n - 1}",) if n else ()) for n in range(4)]
        workflow = WorkflowDefinition("w", steps)

        async def main(most: int, *, elsewhere: bool) -> None:
            trace.began.clear()
            store = self.store()
            engine = streaming(self.engine(store))
            other = streaming(self.engine(store)) if elsewhere else engine
            first: list[RunEvent] = []
            reading = engine.stream(workflow, self.context())
            await read(reading, first, most)
            await passing(0.7)  # nothing reads for a while, then the reader goes away
            await reading.aclose()  # type: ignore[attr-defined]  # ours are generators
            rest: list[RunEvent] = []
            await read(other.stream(workflow, self.context(), after=first[-1].seq), rest)
            assert first + rest == await store.events_since("r")
            assert (rest[-1].kind, len(trace.began)) == ("run_ended", 4)
            again: list[RunEvent] = []
            await read(other.stream(workflow, self.context(), after=rest[-1].seq), again)
            assert again == []
            await read(other.stream(workflow, self.context()), again)
            assert (again, len(trace.began)) == (first + rest, 4)

        for most in range(1, 10):
            run_virtual(main(most, elsewhere=False))
            run_virtual(main(most, elsewhere=True))

    def test_a_reader_stays_over_a_crash_and_a_resume(self) -> None:
        """C23: one reader of another process sees all events of both holders, once."""
        workflow = WorkflowDefinition("w", [Step("a", Trace().work(1)), Step("b", Trace().work(2), ("a",))])

        async def main() -> None:
            store, seen = self.store(), list[RunEvent]()
            dying = Process(store)
            task = asyncio.create_task(self.engine(dying.store).execute(workflow, self.context()))
            await passing(0.5)
            reader = asyncio.create_task(read(streaming(self.engine(store)).stream(workflow, self.context()), seen))
            await passing(1.5)
            dying.left = 0
            with pytest.raises(StoreUnavailable):
                await task
            await passing(31)
            assert named(seen)[-1] == "step_started b"
            await resumable(self.engine(store)).resume(workflow, self.context())
            await reader
            assert seen == await store.events_since("r")
            assert "run_resumed" in named(seen)
            assert seen[-1].kind in ENDS

        run_virtual(main())

    def test_a_stream_whose_run_cannot_go_on_says_why(self) -> None:
        """C13: wrong inputs before anything is created; a store that fails while it is read."""
        workflow = WorkflowDefinition(
            "w", [Step("a", Trace().work(1))], inputs={"q": WorkflowInput("integer", required=True)}
        )

        async def main() -> None:
            store = self.store()
            with pytest.raises(WorkflowError):
                await read(streaming(self.engine(store)).stream(workflow, self.context()), [])
            with pytest.raises(RunNotFound):
                await store.load("r")
            dying = Process(store, 2)
            with pytest.raises(StoreUnavailable):
                await read(streaming(self.engine(dying.store)).stream(workflow, self.context(inputs={"q": 1})), [])

        run_virtual(main())

    # -------------------------------------------------------------------------------------------- C14

    def approval(self, trace: Trace, **options: Any) -> WorkflowDefinition:
        """Make a workflow with a decision, a branch beside it, and a step behind it."""
        steps = [
            Step("draft", trace.work(1, text="hello")),
            Step("ok", kind="approval", needs=("draft",), message="Send ${steps.draft.outputs.text}?", **options),
            Step("beside", trace.work(3), ("draft",)),
            Step("send", trace.work(1), ("ok",), inputs={"to": "${steps.ok.outputs.payload.to}"}),
        ]
        return WorkflowDefinition("w", steps, outputs={"to": "${steps.ok.outputs.payload.to}"})

    def test_a_run_pauses_at_an_approval_and_goes_on_with_the_decision(self) -> None:
        """C14: what does not need it runs on; nothing holds a paused run; another engine goes on with it."""
        trace = Trace()
        workflow = self.approval(trace)

        async def main() -> None:
            store = self.store()
            result = await self.engine(store).execute(workflow, self.context())
            assert (result.status, result.reason) == (RunState.PAUSED, "step ok waits for a decision")
            assert states(result) == {"draft": "succeeded", "ok": "paused", "beside": "succeeded", "send": "pending"}
            status = await self.engine(store).get_status("r")
            assert (status.state, status.owner, status.steps["ok"].state) == (RunState.PAUSED, "", StepState.PAUSED)
            assert [each.message for each in await store.approvals("r")] == ["Send hello?"]
            again = await resumable(self.engine(store)).resume(workflow, self.context())
            assert (digest(again), trace.began) == (digest(result), ["draft", "beside"])
            decision = Approval(payload={"to": ["x"]})
            done = await resumable(self.engine(store)).resume(workflow, self.context(), decision)
            assert (done.status, done.outputs) == (RunState.COMPLETED, {"to": ["x"]})
            assert done.steps["ok"].outputs == {"approved": True, "payload": {"to": ["x"]}}
            assert trace.began == ["draft", "beside", "send"]
            assert named(await store.events_since("r")).count("step_paused ok") == 1

        run_virtual(main())

    @pytest.mark.parametrize(
        ("on_error", "send", "status"), [("fail", "dependency_failed", "failed"), ("continue", "succeeded", "partial")]
    )
    def test_a_rejection_fails_its_step(self, on_error: Any, send: str, status: str) -> None:
        """C14: with what the decision says; the rest follows by the join rule."""
        workflow = self.approval(Trace(), on_error=on_error)

        async def main() -> None:
            store = self.store()
            await self.engine(store).execute(workflow, self.context())
            decision = Approval(approved=False, payload="not yet", step="ok")
            result = await resumable(self.engine(store)).resume(workflow, self.context(), decision)
            assert (states(result)["ok"], states(result)["send"]) == ("failed", send)
            assert (result.status, result.reason) == (status, "step ok failed: rejected: not yet")

        run_virtual(main())

    @pytest.mark.parametrize("limit", ["step", "run"])
    def test_a_decision_that_does_not_come_in_time_is_a_rejection(self, limit: str) -> None:
        """C14: by the limit of the step, and by that of the run; nothing can be decided any more."""
        workflow = self.approval(Trace(), timeout=60.0 if limit == "step" else None)

        async def main() -> None:
            store = self.store()
            options: dict[str, Any] = {} if limit == "step" else {"deadline": START + 61}
            result = await self.engine(store).execute(workflow, self.context(**options))
            assert result.status is RunState.PAUSED
            await passing(60)
            with pytest.raises(ConfigurationError, match="approval"):
                await resumable(self.engine(store)).resume(workflow, self.context(), Approval())
            result = await resumable(self.engine(store)).resume(workflow, self.context())
            assert (result.status, result.steps["ok"].error) == (RunState.FAILED, "rejected: no decision in time")

        run_virtual(main())

    def test_a_decision_is_seen_while_the_run_goes_on(self) -> None:
        """C14: and a time-out is; the run need not pause first. The step behind it may have to wait for its batch."""
        trace = Trace()

        async def main(*, decided: bool) -> None:
            trace.began.clear()
            store = self.store()
            steps = [
                Step("ok", kind="approval", timeout=8.0),
                Step("long", trace.work(60)),
                Step("then", trace.work(1), ("ok",)),
                Step("end", trace.work(), ("long",)),
            ]
            workflow = WorkflowDefinition("w", steps)
            task = asyncio.create_task(self.engine(store).execute(workflow, self.context()))
            await passing(2)
            with pytest.raises(RunBusy):
                await resumable(self.engine(store)).resume(workflow, self.context(), Approval())
            if decided:
                await store.decide("r", Approval())
            await passing(10)
            assert ("then" in trace.began) == (decided and self.wavefront)
            assert (await store.load("r")).steps["ok"].result.state.settled
            result = await task
            assert result.status is (RunState.COMPLETED if decided else RunState.FAILED)
            assert ("then" in trace.began) == decided

        run_virtual(main(decided=True))
        run_virtual(main(decided=False))

    def test_a_decision_inside_a_subgraph_is_seen_while_the_run_goes_on(self) -> None:
        """C14: the steps behind it run in the same run, inside and outside."""
        trace = Trace()
        inner = WorkflowDefinition("v", [Step("ok", kind="approval"), Step("then", trace.work(1), ("ok",))])
        steps = [
            Step("sub", kind="workflow", workflow=inner),
            Step("long", trace.work(60)),
            Step("end", trace.work(), ("sub", "long")),
        ]

        async def main() -> None:
            store = self.store()
            task = asyncio.create_task(self.engine(store).execute(WorkflowDefinition("w", steps), self.context()))
            await passing(2)
            await store.decide("r", Approval())
            assert (await task).status is RunState.COMPLETED
            assert sorted(trace.began) == ["end", "long", "sub.then"]

        run_virtual(main())

    def test_one_of_several_decisions_is_made_by_its_name(self) -> None:
        """C14: the run pauses again for the others; a decision about nothing changes nothing."""
        steps = [Step("a", kind="approval"), Step("b", kind="approval"), Step("c", Trace().work(), ("a", "b"))]
        workflow = WorkflowDefinition("w", steps)

        async def main() -> None:
            store = self.store()
            engine = resumable(self.engine(store))
            await self.engine(store).execute(workflow, self.context())
            for wrong in (Approval(), Approval(step="c")):
                with pytest.raises(ConfigurationError, match="a, b"):
                    await engine.resume(workflow, self.context(), wrong)
            result = await engine.resume(workflow, self.context(), Approval(step="b"))
            assert states(result) == {"a": "paused", "b": "succeeded", "c": "pending"}
            result = await engine.resume(workflow, self.context(), Approval())
            assert result.status is RunState.COMPLETED
            with pytest.raises(ConfigurationError, match="waits for no decision"):
                await engine.resume(workflow, self.context(), Approval())

        run_virtual(main())

    def test_a_message_of_the_wrong_type_fails_its_step(self) -> None:
        """C14: nothing is asked."""
        steps = [
            Step("a", Trace().work()),
            Step("ok", kind="approval", needs=("a",), message="${steps.a.outputs.of + 1}"),
        ]
        result = self.run(WorkflowDefinition("w", steps))
        assert (result.status, result.steps["ok"].error[:8]) == (RunState.FAILED, "inputs: ")

    def test_a_paused_run_is_cancelled_at_once(self) -> None:
        """C14: its approvals wait for nothing any more."""
        workflow = self.approval(Trace())

        async def main() -> None:
            store = self.store()
            engine: Any = self.engine(store)
            await engine.execute(workflow, self.context())
            assert (await engine.cancel("r")).state is RunState.CANCELLED
            assert await store.approvals("r") == []
            assert states(await engine.resume(workflow, self.context()))["ok"] == "cancelled"

        run_virtual(main())

    # -------------------------------------------------------------------------------------------- C15

    @pytest.mark.parametrize("passes_in", [1, 2, 3, 4, 5])
    def test_rounds_stop_as_soon_as_one_is_good_enough(self, passes_in: int) -> None:
        """C15: rounds 1 to 4 are named steps; those after the good one are skipped, and the report reads the latest."""
        asked: list[str] = []

        async def search(step: StepInput) -> Mapping[str, Any]:
            asked.append(step.step)
            return {"found": [*(step.inputs["before"] or []), step.step]}

        async def judge(step: StepInput) -> Mapping[str, Any]:
            return {"passed": len(step.inputs["found"]) >= passes_in}

        async def report(step: StepInput) -> Mapping[str, Any]:
            return dict(step.inputs)

        workflow = parse_workflow(
            """
            name: w
            templates:
              round:
                steps:
                - {name: search, function: search, outputs: [found], inputs: {before: "${prev.search.found}"},
                   when: "${round_number == 1 or not prev.judge.passed}"}
                - {name: judge, function: judge, outputs: [passed], needs: [search],
                   inputs: {found: "${steps.search.outputs.found}"}}
            rounds: {template: round, max: 4}
            steps:
            - name: report
              function: report
              run: always
              needs: [search_r1, search_r2, search_r3, search_r4]
              inputs:
                found: "${coalesce(steps.search_r4.outputs.found, steps.search_r3.outputs.found,
                  steps.search_r2.outputs.found, steps.search_r1.outputs.found)}"
            outputs: {found: "${steps.report.outputs.found}"}
            """,
            functions={"search": search, "judge": judge, "report": report},
        )

        result = self.run(workflow)
        rounds = [f"search_r{n}" for n in range(1, min(passes_in, 4) + 1)]
        assert asked == rounds
        assert result.outputs == {"found": rounds}
        assert result.status is RunState.COMPLETED

    # -------------------------------------------------------------------------------------------- C22

    def counted(self, trace: Trace) -> WorkflowDefinition:
        """Make a workflow whose steps depend on different inputs."""

        def work(name: str) -> Callable[[StepInput], Any]:
            async def run(step: StepInput) -> Mapping[str, Any]:
                trace.began.append(name)
                return {"y": [*step.inputs.values()]}

            return run

        steps = [
            Step("a", work("a"), inputs={"k": "${inputs.k}"}),
            Step("b", work("b"), inputs={"m": "${inputs.m}"}),
            Step("c", work("c"), ("a",), inputs={"a": "${steps.a.outputs.y}"}),
            Step("d", work("d"), ("b", "c"), inputs={"b": "${steps.b.outputs.y}", "c": "${steps.c.outputs.y}"}),
        ]
        inputs = {"k": WorkflowInput("integer", default=1), "m": WorkflowInput("integer", default=2)}
        return WorkflowDefinition("w", steps, inputs, {"y": "${steps.d.outputs.y}"})

    def test_checkpoints_are_listed_oldest_first(self) -> None:
        """C22: one for each step that settled; the latest is the last."""

        async def main() -> None:
            store = self.store()
            engine = self.engine(store)
            await engine.execute(self.counted(Trace()), self.context(max_concurrency=1))
            history = await travelling(engine).history("r")
            assert [str(ref) for ref in history] == ["r@1", "r@2", "r@3", "r@4"]
            assert {ref.step for ref in history} == set("abcd")
            assert history[-1] == await engine.checkpoint("r")
            with pytest.raises(RunNotFound):
                await travelling(engine).history("s")

        run_virtual(main())

    @pytest.mark.parametrize(
        ("changes", "ran", "outputs"),
        [
            ({}, "", [[2], [[1]]]),
            ({"inputs": {"k": 7}}, "acd", [[2], [[7]]]),
            ({"inputs": {"m": 7}}, "bd", [[7], [[1]]]),
            ({"outputs": {"a": {"y": 0}}}, "cd", [[2], [0]]),
            ({"outputs": {"a": {"y": 0}}, "inputs": {"k": 7}}, "cd", [[2], [0]]),
            ({"outputs": {"d": {"y": 0}}}, "", 0),
        ],
    )
    def test_a_fork_runs_what_depends_on_its_changes(self, changes: Any, ran: str, outputs: Any) -> None:
        """C22: and nothing else; the old run stays as it is."""
        trace = Trace()
        workflow = self.counted(trace)

        async def main() -> None:
            store = self.store()
            engine = self.engine(store)
            await engine.execute(workflow, self.context())
            old, events = await store.load("r"), await store.events_since("r")
            trace.began.clear()
            ref = await engine.checkpoint("r")
            result = await travelling(engine).fork(ref, workflow, self.context("f"), ForkChanges(**changes))
            assert (result.status, sorted(trace.began), result.outputs) == (RunState.COMPLETED, [*ran], {"y": outputs})
            assert (await store.load("r"), await store.events_since("r")) == (old, events)
            assert (await store.load("f")).forked_from == ref
            assert digest(await resumable(engine).resume(workflow, self.context("f"))) == digest(result)

        run_virtual(main())

    def test_a_fork_begins_at_its_checkpoint(self) -> None:
        """C22: what settled later runs again; a changed workflow keeps the steps that did not change."""
        trace = Trace()

        async def main() -> None:
            store = self.store()
            engine = self.engine(store)
            workflow = self.counted(trace)
            await engine.execute(workflow, self.context(max_concurrency=1))
            order = [ref.step for ref in await travelling(engine).history("r")]
            for number in range(5):
                trace.began.clear()
                context = self.context(f"f{number}")
                ref = CheckpointRef("r", number)
                result = await travelling(engine).fork(ref, workflow, context, ForkChanges())
                assert (sorted(trace.began), result.outputs) == (sorted(order[number:]), {"y": [[2], [[1]]]})
            trace.began.clear()
            *steps, last = workflow.steps
            other = WorkflowDefinition("w", [*steps, Step("d", trace.work(), ("b",))], workflow.inputs)
            await travelling(engine).fork(CheckpointRef("r", 4), other, self.context("o"), ForkChanges())
            assert trace.began == ["d"]
            assert last.name == "d"

        run_virtual(main())

    def test_a_fork_asks_conditions_and_types_anew(self) -> None:
        """C22: a step that was skipped is so again while its condition says so; a type error is one again."""
        trace = Trace()
        steps = [
            Step("a", trace.work()),
            Step("seven", trace.work(), ("a",), when="inputs.k == 7"),
            Step("sum", trace.work(), ("a",), inputs={"x": "${steps.a.outputs.of + 1}"}, on_error="continue"),
            Step("text", trace.work(), ("a",), when="steps.a.outputs.of + 1", on_error="continue"),
        ]
        workflow = WorkflowDefinition("w", steps, {"k": WorkflowInput("integer", default=1)})

        async def main() -> None:
            engine: Any = self.engine(self.store())
            old = await engine.execute(workflow, self.context())
            ref = await engine.checkpoint("r")
            same = await engine.fork(ref, workflow, self.context("f"), ForkChanges())
            assert (states(same), trace.began) == (states(old), ["a"])
            other = await engine.fork(ref, workflow, self.context("g"), ForkChanges(inputs={"k": 7}))
            assert (states(other)["seven"], trace.began) == ("succeeded", ["a", "seven"])

        run_virtual(main())

    def test_a_fork_that_cannot_be_is_refused(self) -> None:
        """C22: a checkpoint that is not there, a step that had not settled, an id that is taken, wrong inputs."""

        async def main() -> None:
            store = self.store()
            engine = travelling(self.engine(store))
            workflow = self.counted(Trace())
            await self.engine(store).execute(workflow, self.context(max_concurrency=1))
            first = CheckpointRef("r", 1)
            refused: list[tuple[CheckpointRef, str, dict[str, Any], str]] = [
                (CheckpointRef("r", 5), "f", {}, "from 0 to 4"),
                (first, "f", {"outputs": {"d": {"y": 1}}}, "had settled at r@1 is needed: a"),
                (first, "f", {"outputs": {"x": {"y": 1}}}, "had settled at r@1 is needed: a"),
                (first, "f", {"outputs": {"a": {"y": {1}}}}, "no JSON"),
                (first, "r", {}, "a new run"),
                (first, "f", {"inputs": {"kk": 1}}, "did you mean 'k'"),
            ]
            for ref, run_id, changes, reason in refused:
                with pytest.raises(ConfigurationError, match=reason):
                    await engine.fork(ref, workflow, self.context(run_id), ForkChanges(**changes))
            with pytest.raises(RunNotFound):
                await engine.fork(CheckpointRef("s", 1), workflow, self.context("f"), ForkChanges())
            with pytest.raises(RunNotFound):
                await store.load("f")

        run_virtual(main())

    def test_a_fork_of_a_run_that_ran_out_runs_what_was_left(self) -> None:
        """C22: what was cancelled, or skipped for want of time, is no result to keep."""
        trace = Trace()
        workflow = WorkflowDefinition("w", [Step("a", trace.work(5)), Step("b", trace.work(60), ("a",))])

        async def main() -> None:
            store = self.store()
            engine: Any = self.engine(store)
            task = asyncio.create_task(engine.execute(workflow, self.context()))
            await passing(10)
            await engine.cancel("r")
            await task
            result = await engine.fork(await engine.checkpoint("r"), workflow, self.context("f"), ForkChanges())
            assert (result.status, trace.began) == (RunState.COMPLETED, ["a", "b", "b"])
            assert (result.usage, result.steps["a"].costs) == (Costs(calls=1), Costs(calls=1))

        run_virtual(main())
