"""The promises of every RunStore, as an importable suite: subclass it, say how processes get at yours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.engine import (
    Approval,
    CheckpointRef,
    NewRun,
    RunBusy,
    RunEventKind,
    RunLease,
    RunNotFound,
    RunState,
    SkipReason,
    StaleLease,
    StateTooLarge,
    StepResult,
    StepState,
    StoredStep,
    TooManyRuns,
    WorkflowChanged,
)
from smart_model_router_research.engine.store_rules import late_decision
from smart_model_router_research.workflow import Costs

if TYPE_CHECKING:
    from smart_model_router_research.engine import RunStore

SKIPPED = StepResult(state=StepState.SKIPPED, skip_reason=SkipReason.CONDITION, note="null is no truth value")
FAILED = StepResult(state=StepState.FAILED, error="no", attempts=3)


def done(**outputs: Any) -> StepResult:
    """Make the result of a step that succeeded."""
    return StepResult(state=StepState.SUCCEEDED, outputs=outputs, attempts=1, costs=Costs(tokens=3))


def new_run(run_id: str = "r", **options: Any) -> NewRun:
    """Make a run of a workflow of two steps."""
    given: dict[str, Any] = {"workflow": "w", "workflow_hash": "h", "engine": "kahn", "inputs": {"q": ["é", 1, None]}}
    given |= {"step_hashes": {"a": "1", "b": "2"}}
    given |= options
    return NewRun(run_id=run_id, **given)


class RunStoreContract(ABC):
    """The promises. A subclass named Test… makes pytest run them."""

    @pytest.fixture(autouse=True)
    def _clock(self) -> None:
        self.time = 1_700_000_000.0

    def now(self) -> float:
        """Return the time on both clocks, monotonic and wall, moved by hand."""
        return self.time

    @abstractmethod
    def process(self) -> RunStore:
        """Return a store of one more process, that shares the runs of the others of this test."""

    async def begun(self, store: RunStore, owner: str = "one", **options: Any) -> RunLease:
        """Create the run and take it."""
        await store.create(new_run(**options))
        return await store.lease("r", owner)

    async def kinds(self, store: RunStore, after: int = 0) -> Sequence[str]:
        """Return kind and step of the events."""
        return [f"{event.kind} {event.step}".strip() for event in await store.events_since("r", after)]

    # -------------------------------------------------------------------------------------------- runs

    @pytest.mark.asyncio
    async def test_a_run_is_there_for_every_process_as_it_was_created(self) -> None:
        """With its inputs as JSON, its time limit from now, and no steps."""
        created = await self.process().create(new_run(seconds=60.0, origin={"file": "w.yaml"}))
        self.time += 20
        run = await self.process().load("r")
        assert run == replace(created, seconds_left=40.0)
        assert (run.state, run.steps, run.seq, run.inputs) == (RunState.RUNNING, {}, 1, {"q": ["é", 1, None]})
        assert (run.created_at, run.owner, run.spent, run.forked_from) == (self.time - 20, "", Costs(), None)
        assert run.origin == {"file": "w.yaml"}
        self.time += 100
        assert (await self.process().load("r")).seconds_left == 0.0

    @pytest.mark.asyncio
    async def test_a_run_is_created_once(self) -> None:
        """A second creation returns the run with the inputs and the limit that it began with."""
        store = self.process()
        first = await store.create(new_run())
        assert await store.create(new_run(inputs={"q": 2}, seconds=1.0)) == first
        assert await self.kinds(store) == ["run_started"]

    @pytest.mark.asyncio
    async def test_another_workflow_is_refused_with_the_steps_that_differ(self) -> None:
        """Those that are new, gone, or changed; a workflow with other outputs only differs in no step."""
        store = self.process()
        await store.create(new_run())
        with pytest.raises(WorkflowChanged, match="these differ: b, c") as error:
            await store.create(new_run(workflow_hash="g", step_hashes={"a": "1", "b": "x", "c": "3"}))
        assert error.value.steps == ("b", "c")
        with pytest.raises(WorkflowChanged, match="inputs or outputs"):
            await store.create(new_run(workflow_hash="g"))

    @pytest.mark.asyncio
    async def test_an_unknown_run_is_an_error_of_its_own(self) -> None:
        """It is so for whatever reads or takes it."""
        store = self.process()
        for asked in (
            store.load("r"),
            store.lease("r", "one"),
            store.checkpoint("r"),
            store.checkpoints("r"),
            store.events_since("r"),
            store.approvals("r"),
            store.ask_cancel("r"),
            store.decide("r", Approval()),
        ):
            with pytest.raises(RunNotFound, match="run 'r' is not known"):
                await asked

    @pytest.mark.asyncio
    async def test_runs_are_listed_by_their_last_change(self) -> None:
        """The latest first, without steps."""
        store = self.process()
        for name in ("r", "s", "t"):
            await store.create(new_run(name))
            self.time += 1
        await store.settle(await store.lease("r", "one"), "a", done())
        assert [(run.run_id, run.steps) for run in await store.runs()] == [("r", {}), ("t", {}), ("s", {})]
        assert [run.run_id for run in await store.runs(1)] == ["r"]

    @pytest.mark.asyncio
    async def test_runs_are_listed_by_what_they_are(self) -> None:
        """By workflow, origin and state, each alone and together."""
        store = self.process()
        for name, workflow, owner in (("r", "v", "x"), ("s", "w", "x"), ("t", "w", "y")):
            await store.create(new_run(name, workflow=workflow, origin={"kind": "k", "owner": owner}))
            self.time += 1
        await store.end(await store.lease("r", "one"), RunState.COMPLETED, {}, "")
        x = {"kind": "k", "owner": "x"}
        asked: Sequence[tuple[Mapping[str, Any], str]] = [
            ({}, "rts"),
            ({"workflow": "w"}, "ts"),
            ({"origin": x}, "rs"),
            ({"state": RunState.RUNNING}, "ts"),
            ({"workflow": "w", "origin": x, "state": RunState.RUNNING}, "s"),
            ({"workflow": "w", "state": RunState.COMPLETED}, ""),
            ({"changed_before": self.time - 1}, "s"),
            ({"changed_before": self.time, "workflow": "w"}, "ts"),
        ]
        for given, expected in asked:
            assert [run.run_id for run in await store.runs(**given)] == list(expected), given

    @pytest.mark.asyncio
    async def test_so_many_runs_of_an_origin_are_open_and_no_more(self) -> None:
        """Over all processes; a run that has ended makes room, another origin has room, and one that is known stays."""
        store, other = self.process(), self.process()
        for name in ("r", "s"):
            await store.create(new_run(name, origin={"owner": "x"}, most_alike=2))
        with pytest.raises(TooManyRuns, match="2 of its origin go on already") as error:
            await other.create(new_run("t", origin={"owner": "x"}, most_alike=2))
        assert (error.value.run_id, error.value.most) == ("t", 2)
        with pytest.raises(RunNotFound):
            await store.load("t")
        assert (await other.create(new_run("r", origin={"owner": "x"}, most_alike=2))).run_id == "r"
        await other.create(new_run("u", origin={"owner": "y"}, most_alike=2))
        await store.end(await store.lease("s", "one"), RunState.CANCELLED, {}, "")
        await other.create(new_run("t", origin={"owner": "x"}, most_alike=2))

    @pytest.mark.asyncio
    async def test_a_run_that_has_ended_is_deleted(self) -> None:
        """For every process, with its events; one that may go on stays, and an unknown one is none."""
        store, other = self.process(), self.process()
        lease = await self.begun(store)
        assert not await other.delete("r")
        await store.settle(lease, "a", done())
        await store.end(lease, RunState.FAILED, {}, "")
        await store.release(lease)
        assert await other.delete("r")
        with pytest.raises(RunNotFound):
            await store.load("r")
        with pytest.raises(RunNotFound):
            await store.events_since("r")
        assert not await other.delete("r")
        assert (await other.create(new_run())).seq == 1

    # -------------------------------------------------------------------------------------------- leases

    @pytest.mark.asyncio
    async def test_one_process_holds_a_run(self) -> None:
        """Another one is told which, and for how long; the holder keeps it by asking again."""
        one, other = self.process(), self.process()
        lease = await self.begun(one)
        self.time += 20
        with pytest.raises(RunBusy, match=r"held by one for 10\.0 s more") as error:
            await other.lease("r", "two")
        assert error.value.owner == "one"
        assert error.value.seconds == pytest.approx(10.0)
        assert (await other.load("r")).owner == "one"
        assert await one.lease("r", "one") == lease
        self.time += 20
        with pytest.raises(RunBusy):
            await other.lease("r", "two")
        assert await one.begin(lease, "a", 1, "i") is None

    @pytest.mark.asyncio
    async def test_a_holder_past_its_time_writes_nothing_once_another_took_over(self) -> None:
        """No write of any kind; until then it may go on. It gives nothing back that is not its own."""
        one, other = self.process(), self.process()
        old = await self.begun(one)
        self.time += 31
        assert (await other.load("r")).owner == ""
        await one.settle(old, "a", done(x=1))
        new = await other.lease("r", "two")
        assert new.fence > old.fence
        before = await other.load("r")
        for write in (
            one.begin(old, "b", 1, "i"),
            one.charge(old, "b", Costs(1)),
            one.settle(old, "b", done()),
            one.record(old, RunEventKind.STEP_RETRYING, "b"),
            one.end(old, RunState.COMPLETED, {}, ""),
            one.ask(old, "b", "?", None),
        ):
            with pytest.raises(StaleLease, match="was taken over"):
                await write
        await one.release(old)
        assert await other.load("r") == before
        assert before.owner == "two"
        assert await other.begin(new, "b", 1, "i") is None

    @pytest.mark.asyncio
    async def test_a_run_that_was_given_back_can_be_taken_at_once(self) -> None:
        """Its old holder writes no more."""
        one, other = self.process(), self.process()
        lease = await self.begun(one)
        await one.release(lease)
        with pytest.raises(StaleLease):
            await one.begin(lease, "a", 1, "i")
        assert (await other.lease("r", "two")).fence > lease.fence

    @pytest.mark.asyncio
    async def test_a_cancellation_is_told_to_the_holder_with_its_next_lease(self) -> None:
        """Asked from any process, twice as once."""
        one, other = self.process(), self.process()
        assert not (await self.begun(one)).cancel_asked
        await other.ask_cancel("r")
        await other.ask_cancel("r")
        assert (await one.lease("r", "one")).cancel_asked
        assert await self.kinds(one) == ["run_started", "cancel_asked"]

    @pytest.mark.asyncio
    async def test_a_run_that_has_ended_is_not_asked_to_cancel(self) -> None:
        """Its end stays its last event."""
        store = self.process()
        await store.end(await self.begun(store), RunState.COMPLETED, {}, "")
        await self.process().ask_cancel("r")
        assert not (await store.lease("r", "one")).cancel_asked
        assert await self.kinds(store, 1) == ["run_ended"]

    # -------------------------------------------------------------------------------------------- steps

    @pytest.mark.asyncio
    @pytest.mark.parametrize("result", [done(x=[1, {"y": None}]), done(), SKIPPED, FAILED])
    async def test_a_result_comes_back_as_it_was_settled(self, result: StepResult) -> None:
        """In every process, by the same input, and it is a checkpoint."""
        store = self.process()
        lease = await self.begun(store)
        assert await store.begin(lease, "a", 1, "i") is None
        self.time += 5
        ref = await store.settle(lease, "a", result, "i")
        assert (ref, ref.step, ref.time) == (CheckpointRef("r", 1), "a", self.time)
        other = self.process()
        assert (await other.load("r")).steps == {"a": StoredStep(result=result, input_hash="i", number=1)}
        assert await other.begin(lease, "a", 1, "i") == result
        assert await other.checkpoint("r") == ref
        assert await self.kinds(other) == ["run_started", "step_started a", "step_settled a"]

    @pytest.mark.asyncio
    async def test_what_was_read_can_be_changed_without_changing_the_store(self) -> None:
        """So can what was written."""
        store = self.process()
        lease = await self.begun(store)
        outputs: dict[str, Any] = {"x": [1]}
        await store.settle(lease, "a", done(**outputs), "i")
        outputs["x"].append(2)
        for _ in range(2):
            result = await store.begin(lease, "a", 1, "i")
            assert result is not None
            assert result.outputs is not None
            assert result.outputs == {"x": [1]}
            result.outputs["x"].append(3)

    @pytest.mark.asyncio
    async def test_a_step_settles_once(self) -> None:
        """A second result is ignored, and returns the first's checkpoint."""
        store = self.process()
        lease = await self.begun(store)
        first = await store.settle(lease, "a", done(x=1), "i")
        await store.settle(lease, "b", SKIPPED)
        assert await store.settle(lease, "a", FAILED, "i") == first
        assert (await store.load("r")).steps["a"].result == done(x=1)
        assert [str(ref) for ref in await store.checkpoints("r")] == ["r@1", "r@2"]

    @pytest.mark.asyncio
    async def test_an_attempt_that_began_is_seen_and_begins_again(self) -> None:
        """After a crash nothing is answered for it; a retry is a state of its own."""
        store = self.process()
        lease = await self.begun(store)
        for attempt in (1, 2):
            assert await store.begin(lease, "a", attempt, "i") is None
            running = (await store.load("r")).steps["a"]
            assert running == StoredStep(
                result=StepResult(state=StepState.RUNNING, attempts=attempt), input_hash="i", number=None
            )
            event = await store.record(lease, RunEventKind.STEP_RETRYING, "a", {"attempt": attempt, "reason": "no"})
            assert event.id == f"r/a/step_retrying/{attempt}"
            assert (await store.load("r")).steps["a"].result == StepResult(state=StepState.RETRYING, attempts=attempt)
        assert (await store.checkpoint("r")).number == 0

    @pytest.mark.asyncio
    async def test_a_step_pauses_with_the_event_that_says_so(self) -> None:
        """As a subgraph does in which a decision is waited for; nothing can be decided about it."""
        store = self.process()
        lease = await self.begun(store)
        await store.begin(lease, "a", 1, "i")
        await store.record(lease, RunEventKind.STEP_PAUSED, "a")
        assert (await store.load("r")).steps["a"].result == StepResult(state=StepState.PAUSED, attempts=1)
        assert await store.approvals("r") == []
        assert await store.begin(lease, "a", 1, "i") is None
        assert (await store.load("r")).steps["a"].result.state is StepState.RUNNING

    @pytest.mark.asyncio
    async def test_other_input_is_other_work(self) -> None:
        """A result answers for the input that it was made from only."""
        store = self.process()
        lease = await self.begun(store)
        await store.settle(lease, "a", done(), "i")
        assert await store.begin(lease, "a", 1, "j") is None

    @pytest.mark.asyncio
    async def test_a_run_holds_a_mebibyte_and_no_more(self) -> None:
        """Outputs beyond it are refused and change nothing; a failure is kept, and what was run anew frees its room."""
        store, large = self.process(), "x" * 600_000
        lease = await self.begun(store)
        await store.settle(lease, "a", done(x=large), "i")
        assert await store.begin(lease, "b", 1, "i") is None
        before = await store.load("r")
        with pytest.raises(StateTooLarge, match=r"the outputs of step b.*store a document"):
            await store.settle(lease, "b", done(x=large), "i")
        assert await store.load("r") == before
        await store.settle(lease, "b", FAILED, "i")
        assert await store.begin(lease, "a", 1, "j") is None
        await store.settle(lease, "c", done(x=large), "i")
        with pytest.raises(StateTooLarge, match="its inputs"):
            await store.create(new_run("s", inputs={"q": [large, large]}))
        with pytest.raises(StateTooLarge, match=r"the outputs of step a"):
            await store.create(new_run("s", inputs={"q": large}, settled={"a": StoredStep(result=done(x=large))}))
        with pytest.raises(RunNotFound):
            await store.load("s")

    @pytest.mark.asyncio
    @pytest.mark.parametrize("wrong", [float("nan"), object()])
    async def test_what_is_no_json_is_refused_and_changes_nothing(self, wrong: object) -> None:
        """As inputs, outputs, or data of an event."""
        store = self.process()
        lease = await self.begun(store)
        before = await store.load("r")
        for write in (
            store.create(new_run("s", inputs={"q": wrong})),
            store.settle(lease, "a", done(x=wrong), "i"),
            store.record(lease, RunEventKind.ENGINE_SELECTED, data={"x": wrong}),
            store.end(lease, RunState.COMPLETED, {"x": wrong}, ""),
        ):
            with pytest.raises((TypeError, ValueError), match="JSON"):
                await write
        assert await store.load("r") == before

    @pytest.mark.asyncio
    async def test_charges_add_up_over_steps_and_holders(self) -> None:
        """Charges stay, whatever becomes of the step."""
        store = self.process()
        lease = await self.begun(store)
        assert await store.charge(lease, "a", Costs(tokens=10, usd=0.5)) == Costs(tokens=10, usd=0.5)
        await store.settle(lease, "a", FAILED, "i")
        await store.release(lease)
        other = await self.process().lease("r", "two")
        assert await self.process().charge(other, "b", Costs(tokens=1, calls=2)) == Costs(11, 0.5, 0, 2)
        assert (await store.load("r")).spent == Costs(11, 0.5, 0, 2)

    @pytest.mark.asyncio
    async def test_an_end_has_state_outputs_and_reason(self) -> None:
        """A pause is none: the run goes on when it is resumed."""
        store = self.process()
        lease = await self.begun(store)
        assert (await store.end(lease, RunState.PAUSED, {}, "waits")).kind is RunEventKind.RUN_PAUSED
        assert (await store.load("r")).state is RunState.PAUSED
        await store.record(lease, RunEventKind.RUN_RESUMED)
        assert (await store.load("r")).state is RunState.RUNNING
        event = await store.end(lease, RunState.PARTIAL, {"y": None}, "because")
        assert (event.kind, event.data) == (RunEventKind.RUN_ENDED, {"state": "partial", "reason": "because"})
        run = await self.process().load("r")
        assert (run.state, run.outputs, run.reason) == (RunState.PARTIAL, {"y": None}, "because")

    @pytest.mark.asyncio
    async def test_texts_with_half_a_character_are_kept_readable(self) -> None:
        """A file of UTF-8 has no place for a lone surrogate, nor a server for NUL; the end of a run must find one."""
        store = self.process()
        lease = await self.begun(store)
        assert await store.ask(lease, "a", "Send \ud83d?", None) is None
        assert [each.message for each in await store.approvals("r")] == [r"Send \ud83d?"]
        await store.end(lease, RunState.FAILED, {"y": "\0"}, "caf\udce9 é\0")
        run = await self.process().load("r")
        assert (run.reason, run.outputs) == (r"caf\udce9 é\x00", {"y": "\0"})

    # -------------------------------------------------------------------------------------------- events

    @pytest.mark.asyncio
    async def test_a_reader_gets_exactly_what_follows(self) -> None:
        """Numbered from 1 without gaps, in parts as in one."""
        store = self.process()
        lease = await self.begun(store)
        for number in range(1, 6):
            await store.record(lease, RunEventKind.ENGINE_SELECTED, data={"n": number})
        events = await self.process().events_since("r")
        assert [event.seq for event in events] == [1, 2, 3, 4, 5, 6]
        assert [event.data.get("n") for event in events] == [None, 1, 2, 3, 4, 5]
        assert await store.events_since("r", 2, 3) == events[2:5]
        assert await store.events_since("r", 6) == []
        assert (await store.load("r")).seq == 6

    # -------------------------------------------------------------------------------------------- decisions

    @pytest.mark.asyncio
    async def test_a_paused_step_waits_for_its_decision(self) -> None:
        """Asked once, however often the run is resumed; decided once, from any process, without the lease."""
        store, other = self.process(), self.process()
        lease = await self.begun(store)
        await store.begin(lease, "a", 1, "i")
        for _ in range(2):
            assert await store.ask(lease, "a", "Send it?", 60.0) is None
            self.time += 20
        assert (await store.load("r")).steps["a"].result.state is StepState.PAUSED
        (asked,) = await other.approvals("r")
        assert (asked.step, asked.message) == ("a", "Send it?")
        assert asked.seconds_left == pytest.approx(20.0)
        assert await other.decide("r", Approval(payload={"to": ["x"]})) == "a"
        assert await other.approvals("r") == []
        with pytest.raises(ConfigurationError, match="for no decision; decided, or out of time: a: resume without"):
            await other.decide("r", Approval())
        self.time += 60
        assert await store.ask(lease, "a", "Send it?", 60.0) == Approval(payload={"to": ["x"]}, step="a")
        assert await self.kinds(store, 2) == ["step_paused a"]

    @pytest.mark.asyncio
    async def test_a_decision_that_is_late_is_a_rejection(self) -> None:
        """Nothing can be decided any more."""
        store = self.process()
        lease = await self.begun(store)
        assert await store.ask(lease, "a", "?", 60.0) is None
        self.time += 60
        assert await store.approvals("r") == []
        with pytest.raises(ConfigurationError, match="for no decision; decided, or out of time: a: resume without"):
            await store.decide("r", Approval())
        assert await store.ask(lease, "a", "?", 60.0) == late_decision("a")

    @pytest.mark.asyncio
    async def test_a_decision_among_several_names_its_step(self) -> None:
        """The error lists those that are paused."""
        store = self.process()
        lease = await self.begun(store)
        for step in ("a", "b.c"):
            await store.ask(lease, step, "?", None)
        for wrong in (Approval(), Approval(step="b")):
            with pytest.raises(ConfigurationError, match=r"decision is needed: a, b\.c"):
                await store.decide("r", wrong)
        assert await store.decide("r", Approval(approved=False, step="b.c")) == "b.c"
        assert await store.ask(lease, "b.c", "?", None) == Approval(approved=False, step="b.c")
        await store.settle(lease, "a", FAILED)
        assert await store.approvals("r") == []

    # -------------------------------------------------------------------------------------------- forks

    @pytest.mark.asyncio
    async def test_a_fork_begins_with_the_steps_that_had_settled(self) -> None:
        """In their order, numbered anew; they answer in the new run, and the old one stays as it was."""
        store = self.process()
        lease = await self.begun(store)
        await store.settle(lease, "b", done(x=1), "i")
        await store.settle(lease, "c", FAILED, "k")
        await store.settle(lease, "a", SKIPPED, "j")
        old = await store.load("r")
        kept: Mapping[str, StoredStep] = {name: old.steps[name] for name in ("a", "b")}
        fork = await store.create(new_run("f", forked_from=CheckpointRef("r", 3), settled=kept))
        assert fork.forked_from == CheckpointRef("r", 3)
        assert {name: step.number for name, step in fork.steps.items()} == {"b": 1, "a": 2}
        assert [(str(ref), ref.step) for ref in await store.checkpoints("f")] == [("f@1", "b"), ("f@2", "a")]
        assert [event.data for event in await store.events_since("f")] == [{"workflow": "w", "forked_from": "r@3"}]
        forked = await store.lease("f", "two")
        assert await store.begin(forked, "b", 1, "i") == done(x=1)
        assert await store.begin(forked, "c", 1, "k") is None
        assert await self.process().load("r") == old

    @pytest.mark.asyncio
    async def test_closing_twice_is_closing_once(self) -> None:
        """Also of a store that was never used."""
        store = self.process()
        await store.aclose()
        await store.aclose()
