"""Promises of every engine at bad moments: a cancellation that comes late, a process that dies at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.testing import LoopClock, run_virtual
from smart_model_router_research.engine import (
    Approval,
    Budget,
    ForkChanges,
    RunInterrupted,
    RunState,
    RunStore,
    StoreUnavailable,
)
from smart_model_router_research.workflow import Costs, Step, StepInput, WorkflowDefinition, WorkflowInput
from tests.conformance.engine_harness import EngineHarness, Trace, passing, states

HALF = "\ud83d"
"""Half of an emoji, as a text has that was cut; a name of a file that is no UTF-8 has the like."""


class Meanwhile:
    """A store with something that happens just before `method` is called."""

    def __init__(self, store: RunStore, method: str, happens: Callable[[], Awaitable[object]]) -> None:
        self._store = store
        self._method = method
        self._happens = happens

    @property
    def store(self) -> RunStore:
        """Itself, as a store."""
        return cast("RunStore", self)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def reached(*args: Any, **options: Any) -> Any:
            if name == self._method:
                await self._happens()
            return await getattr(self._store, name)(*args, **options)

        return reached


class HazardContract(EngineHarness):
    """The bad moments."""

    @pytest.mark.parametrize("method", ["ask_cancel", "lease"])
    def test_a_run_that_ends_while_it_is_cancelled_keeps_its_result(self, method: str) -> None:
        """C7: whichever of the two the store saw first; a reader ends with the run."""
        workflow = WorkflowDefinition("w", [Step("a", Trace().work(60))], outputs={"y": "${steps.a.outputs.of}"})

        async def main() -> None:
            store = self.store()
            engine: Any = self.engine(store)
            task = asyncio.create_task(engine.execute(workflow, self.context(heartbeat=15.0)))
            await passing(59)

            async def ends() -> None:
                await task

            other: Any = self.engine(Meanwhile(store, method, ends).store)
            assert (await other.cancel("r")).state is RunState.COMPLETED
            run = await store.load("r")
            assert (run.state, run.outputs, run.reason) == (RunState.COMPLETED, {"y": "a"}, "")
            assert [event.kind async for event in engine.stream(workflow, self.context())].count("run_ended") == 1

        run_virtual(main())

    def test_a_run_that_pauses_hears_of_a_cancellation_first(self) -> None:
        """C7: a cancellation between two heartbeats is not lost because nothing is left to do."""
        steps = [Step("a", Trace().work(1)), Step("ok", kind="approval", needs=("a",))]
        workflow = WorkflowDefinition("w", steps)

        async def main() -> None:
            store = self.store()
            task = asyncio.create_task(self.engine(store).execute(workflow, self.context()))
            await passing(0.5)
            other: Any = self.engine(store)
            assert (await other.cancel("r")).state is RunState.RUNNING
            assert (await task).status is RunState.CANCELLED
            assert states(await self.engine(store).execute(workflow, self.context())) == {
                "a": "succeeded",
                "ok": "cancelled",
            }

        run_virtual(main())

    def test_a_reader_of_a_paused_run_does_not_wait_for_a_cancellation_that_broke_off(self) -> None:
        """C23: its process had died after it asked."""
        workflow = WorkflowDefinition("w", [Step("ok", kind="approval")])

        async def main() -> None:
            store = self.store()
            engine: Any = self.engine(store)
            await engine.execute(workflow, self.context())
            await store.ask_cancel("r")
            told = [str(event.kind) async for event in engine.stream(workflow, self.context())]
            assert told == ["run_started", "step_paused", "run_paused", "cancel_asked"]

        run_virtual(main())

    def test_a_run_that_is_known_is_not_run_with_other_inputs(self) -> None:
        """C17: its old result would pass for theirs."""
        workflow = WorkflowDefinition("w", [Step("a", Trace().work())], {"q": WorkflowInput(default="tea")})

        async def main() -> None:
            engine = self.engine(self.store())
            first = await engine.execute(workflow, self.context(inputs={"q": "milk"}))
            assert await engine.execute(workflow, self.context(inputs={"q": "milk"})) == first
            with pytest.raises(ConfigurationError, match="that run began with another q; `resume` goes on with it"):
                await engine.execute(workflow, self.context())

        run_virtual(main())

    def test_the_limit_of_a_run_whose_process_died_at_once_is_kept(self) -> None:
        """C19: the process that goes on with it need not know the limit."""
        workflow = WorkflowDefinition("w", [Step("a", Trace().work(60))])

        async def dies() -> None:
            raise StoreUnavailable("the process", "was killed")

        async def main() -> None:
            store = self.store()
            context = self.context(deadline=LoopClock().now() + 10)
            with pytest.raises(StoreUnavailable, match="was killed"):
                await self.engine(Meanwhile(store, "load", dies).store).execute(workflow, context)
            result: Any = await cast("Any", self.engine(store)).resume(workflow, self.context())
            assert states(result) == {"a": "failed"}
            assert LoopClock().now() == pytest.approx(context.deadline)

        run_virtual(main())

    def test_a_run_that_goes_on_after_its_limit_has_its_reserve_from_then(self) -> None:
        """C19: what always runs ends it, also inside a subgraph; all else is skipped."""
        trace = Trace()
        inner = WorkflowDefinition("inner", [Step("b", trace.work(4), always=True)])
        steps = [
            Step("a", trace.work(60)),
            Step("end", kind="workflow", workflow=inner, needs=("a",), always=True),
            Step("late", trace.work(4), ("a",), always=True),
        ]
        workflow = WorkflowDefinition("w", steps)
        options: dict[str, Any] = {"budget": Budget(reserve=Costs(seconds=5))}

        async def main() -> None:
            store = self.store()
            context = self.context(deadline=LoopClock().now() + 20, **options)
            task = asyncio.create_task(self.engine(store).execute(workflow, context))
            await passing(3)
            task.cancel()
            await asyncio.wait([task])
            await passing(100)
            result: Any = await cast("Any", self.engine(store)).resume(workflow, self.context(**options))
            assert states(result) == {"a": "timeout", "end": "succeeded", "end.b": "succeeded", "late": "succeeded"}
            assert LoopClock().now() == pytest.approx(context.deadline - 20 + 103 + 4)

        run_virtual(main())

    def test_a_step_that_breaks_off_its_run_can_be_tried_again(self) -> None:
        """Nothing of it is settled, what runs beside it is cancelled, and the run is held by no process."""
        trace = Trace()
        full = [True]

        async def write(step: StepInput) -> Mapping[str, Any]:
            if full.pop():
                full.append(False)
                raise RunInterrupted("the disk", "is full")
            return {"of": step.step}

        workflow = WorkflowDefinition("w", [Step("a", trace.work(60)), Step("b", write)])

        async def main() -> None:
            store = self.store()
            with pytest.raises(RunInterrupted, match="the disk: is full"):
                await self.engine(store).execute(workflow, self.context())
            run = await store.load("r")
            assert (run.state, run.owner, trace.running) == (RunState.RUNNING, "", 0)
            result = await self.engine(store).execute(workflow, self.context())
            assert states(result) == {"a": "succeeded", "b": "succeeded"}

        run_virtual(main())

    def test_a_fork_drops_no_change_in_silence(self) -> None:
        """C22: outputs of a step in a subgraph that runs anew would be lost."""
        inner = WorkflowDefinition("inner", [Step("b", Trace().work())])
        steps = [
            Step("a", Trace().work(), inputs={"k": "${inputs.k}"}),
            Step("sub", kind="workflow", workflow=inner, needs=("a",)),
        ]
        workflow = WorkflowDefinition("w", steps, {"k": WorkflowInput(default=1)})

        async def main() -> None:
            engine: Any = self.engine(self.store())
            await engine.execute(workflow, self.context())
            ref = await engine.checkpoint("r")
            changes = ForkChanges(inputs={"k": 2}, outputs={"sub.b": {"of": "z"}})
            with pytest.raises(ConfigurationError, match=r"outputs\.sub\.b: .*whose subgraph does not run anew"):
                await engine.fork(ref, workflow, self.context("f"), changes)

        run_virtual(main())

    def test_texts_that_were_cut_in_a_character_do_not_stop_a_run(self) -> None:
        """Half of an emoji in an error or in a question is kept so that it can be read."""
        steps = [
            Step("a", Trace().work(text=HALF)),
            Step("ok", kind="approval", needs=("a",), message="Send ${steps.a.outputs.text}?"),
            Step("b", Trace().work(fails=OSError("caf\udce9"))),
        ]
        workflow = WorkflowDefinition("w", steps, outputs={"y": "${steps.a.outputs.text}"})

        async def main() -> None:
            store = self.store()
            engine: Any = self.engine(store)
            assert (await engine.execute(workflow, self.context())).status is RunState.PAUSED
            (asked,) = await store.approvals("r")
            assert asked.message == r"Send \ud83d?"
            await store.decide("r", Approval())
            assert (await engine.resume(workflow, self.context())).outputs == {"y": HALF}
            assert (await store.load("r")).reason == r"step b failed: OSError: caf\udce9"

        run_virtual(main())
