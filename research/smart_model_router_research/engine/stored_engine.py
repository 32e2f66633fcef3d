"""The part of every engine that concerns runs in a store: to hold them, to tell of them, and to begin them anew."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import platform
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import count

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.engine.forking import forked
from smart_model_router_research.engine.held_run import HeldRun
from smart_model_router_research.engine.joining import CANCELLED
from smart_model_router_research.engine.memory_store import MemoryRunStore
from smart_model_router_research.engine.protocol import (
    Approval,
    Capability,
    CheckpointRef,
    ExecutionContext,
    ExecutionResult,
    ForkChanges,
    RunEvent,
    RunEventKind,
    RunStatus,
    required_capabilities,
)
from smart_model_router_research.engine.states import OPEN, RunState
from smart_model_router_research.engine.store_port import (
    NewRun,
    RunBusy,
    RunNotFound,
    RunStore,
    StoredRun,
    WorkflowChanged,
)
from smart_model_router_research.engine.store_rules import differing_steps, json_text
from smart_model_router_research.workflow.definition import WorkflowDefinition

POLL_SECONDS = 0.5
"""The pause of a reader between two looks at a run of another process."""
_OVER = (RunEventKind.RUN_PAUSED, RunEventKind.RUN_ENDED)
_log = logging.getLogger("smart_model_router.workflows")
_owners = count(1)


class StoredEngine(ABC):
    """An engine whose runs are in a store; it has to say how a run is driven. All that waits uses the run's clock.

    `observer_failures` counts the observers that raised.
    """

    name: str
    capabilities: frozenset[Capability]

    def __init__(self, store: RunStore | None = None) -> None:
        self._store: RunStore = MemoryRunStore() if store is None else store
        self._running: dict[str, HeldRun] = {}
        self._streamed: set[asyncio.Task[ExecutionResult]] = set()
        self._readers: dict[str, set[asyncio.Event]] = {}
        self.observer_failures = 0

    @abstractmethod
    async def _drive(self, run: HeldRun) -> None:
        """Run the steps of a run until all have settled, or wait for decisions. Cancelled, leave no task behind."""

    # -------------------------------------------------------------------------------------------- to run

    async def execute(self, workflow: WorkflowDefinition, context: ExecutionContext) -> ExecutionResult:
        """Run a workflow to its end or to a pause; a run that is known goes on.

        Raises ConfigurationError when the workflow needs a capability that this engine has not, or a run that is known
        began with other inputs, WorkflowError for inputs that are wrong, WorkflowChanged, RunBusy, StaleLease and
        StoreUnavailable.
        """
        return await self._run(workflow, context, self._new(workflow, context))

    async def resume(
        self, workflow: WorkflowDefinition, context: ExecutionContext, payload: Approval | None = None
    ) -> ExecutionResult:
        """Go on with a run; `payload` decides about a step that is paused. A run that has ended answers its result.

        Raises RunNotFound, ConfigurationError for a decision that is not waited for, and as `execute` does.
        """
        new = self._new(workflow, context, await self._store_for(context).load(context.run_id))
        return await self._run(workflow, context, new, payload)

    async def fork(
        self, ref: CheckpointRef, workflow: WorkflowDefinition, context: ExecutionContext, changes: ForkChanges
    ) -> ExecutionResult:
        """Begin a run with the steps that had settled at `ref`, changed. Another workflow is a change as well.

        Raises RunNotFound, ConfigurationError for an id that is taken, a checkpoint that the run has not, and outputs
        of a step that had not settled, and as `execute` does.
        """
        store = self._store_for(context)
        old = await store.load(ref.run_id)
        known = True
        try:
            await store.load(context.run_id)
        except RunNotFound:
            known = False
        if known:
            raise ConfigurationError(
                "run_id", context.run_id, "the id of a new run is needed; `resume` goes on with one"
            )
        inputs = {**{name: old.inputs[name] for name in old.inputs if name in workflow.inputs}, **changes.inputs}
        new = self._new(workflow, replace(context, inputs=inputs, origin=context.origin or old.origin))
        return await self._run(workflow, context, forked(old, ref, workflow, new, changes.outputs))

    def _new(self, workflow: WorkflowDefinition, context: ExecutionContext, known: StoredRun | None = None) -> NewRun:
        if lacking := required_capabilities(workflow) - self.capabilities:
            raise ConfigurationError("engine", self.name, f"one that has {', '.join(sorted(lacking))} is needed")
        left = context.deadline - context.clock.now()
        return NewRun(
            run_id=context.run_id,
            workflow=workflow.name,
            workflow_hash=workflow.hash,
            step_hashes=workflow.step_hashes,
            inputs=workflow.with_defaults(context.inputs) if known is None else known.inputs,
            engine=self.name,
            origin=context.origin,
            most_alike=context.most_alike,
            seconds=None if left == math.inf else max(0.0, left),
        )

    async def _run(
        self, workflow: WorkflowDefinition, context: ExecutionContext, new: NewRun, payload: Approval | None = None
    ) -> ExecutionResult:
        store = self._store_for(context)
        known = await store.create(new)
        now = json.loads(json_text(new.inputs))
        if other := [
            name for name in sorted(now.keys() | known.inputs.keys()) if now.get(name) != known.inputs.get(name)
        ]:
            expected = f"a new id is needed: that run began with another {', '.join(other)}"
            raise ConfigurationError(
                "run_id", new.run_id, f"{expected}; `resume` goes on with it, `fork` changes inputs"
            )
        lease = await store.lease(context.run_id, new_owner(), context.lease)
        run = None
        try:
            if payload is not None:
                await store.decide(context.run_id, payload)
            held = await store.load(context.run_id)
            readers = self._readers.setdefault(context.run_id, set())
            run = HeldRun(workflow, context, store, lease, held, self.name, readers)
            if run.ended is not None:
                return run.ended
            self._running[context.run_id] = run
            return await run.held(self._drive)
        finally:
            await store.release(lease)
            if run is not None:
                run.over.set()
                self.observer_failures += run.journal.observer_failures
                if self._running.get(context.run_id) is run:
                    del self._running[context.run_id]
            self._forget_readers(context.run_id)

    async def cancel(self, run_id: str) -> RunStatus:
        """Cancel a run for good. One that runs in this process has ended then; one of another process was asked to.

        A run that no process holds is cancelled at once; one that has ended stays as it is. Raises RunNotFound.
        """
        store = self._store_of(run_id)
        if (await store.load(run_id)).state in OPEN:
            await store.ask_cancel(run_id)
            if (run := self._running.get(run_id)) is not None:
                run.cancel()
                await run.over.wait()
            else:
                await _cancel_unheld(store, run_id)
        return await self.get_status(run_id)

    # -------------------------------------------------------------------------------------------- to tell

    async def checkpoint(self, run_id: str) -> CheckpointRef:
        """Return the latest durable point of a run: each step that settled is one. Raises RunNotFound."""
        return await self._store_of(run_id).checkpoint(run_id)

    async def history(self, run_id: str) -> Sequence[CheckpointRef]:
        """Return the checkpoints of a run, oldest first. Raises RunNotFound."""
        return await self._store_of(run_id).checkpoints(run_id)

    async def get_status(self, run_id: str) -> RunStatus:
        """Return the state of a run. Raises RunNotFound."""
        run = await self._store_of(run_id).load(run_id)
        return RunStatus(
            run_id=run_id,
            state=run.state,
            steps={name: step.result for name, step in run.steps.items()},
            seq=run.seq,
            workflow_hash=run.workflow_hash,
            owner=run.owner,
        )

    async def stream(
        self, workflow: WorkflowDefinition, context: ExecutionContext, after: int = 0
    ) -> AsyncIterator[RunEvent]:
        """Yield the events of a run with a greater seq than `after`, up to its end or pause.

        A run that is known is attached to, whichever process runs it; one that broke off is waited for. A run that is
        not known starts, and goes on when its reader goes away. Raises WorkflowChanged, and as `execute` does.
        """
        store, task = self._store_for(context), None
        try:
            known = await store.load(context.run_id)
        except RunNotFound:
            new = self._new(workflow, context)
            await store.create(new)
            task = asyncio.create_task(self._run(workflow, context, new))
            self._streamed.add(task)
            task.add_done_callback(self._stream_over)
        else:
            if known.workflow_hash != workflow.hash:
                raise WorkflowChanged(context.run_id, differing_steps(known.step_hashes, workflow.step_hashes))
            if known.state is not RunState.RUNNING and known.seq <= after:
                return
        news = asyncio.Event()
        readers = self._readers.setdefault(context.run_id, set())
        readers.add(news)
        over = False
        try:
            while True:
                news.clear()
                ended = task is not None and task.done()
                events = await store.events_since(context.run_id, after)
                for event in events:
                    yield event
                    after = event.seq
                    over = event.kind in _OVER or (over and event.kind is RunEventKind.CANCEL_ASKED)
                if events:
                    continue
                if over:
                    return
                if task is not None and ended and not isinstance(task.exception(), RunBusy):
                    task.result()
                timer = context.clock.call_at(context.clock.now() + POLL_SECONDS, news.set)
                try:
                    await news.wait()
                finally:
                    timer.cancel()
        finally:
            readers.discard(news)
            self._forget_readers(context.run_id)

    def _forget_readers(self, run_id: str) -> None:
        """Let go of the readers of a run where there are none, and none would be told."""
        if run_id not in self._running and not self._readers.get(run_id):
            self._readers.pop(run_id, None)

    def _stream_over(self, task: asyncio.Task[ExecutionResult]) -> None:
        self._streamed.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("a run that was begun by its reader broke off: %s", error)

    def _store_for(self, context: ExecutionContext) -> RunStore:
        return self._store if context.store is None else context.store

    def _store_of(self, run_id: str) -> RunStore:
        run = self._running.get(run_id)
        return self._store if run is None else run.store


def new_owner() -> str:
    """Return a name for a holder of runs: this process, and a number of its own."""
    return f"{platform.node()}:{os.getpid()}:{next(_owners)}"


async def _cancel_unheld(store: RunStore, run_id: str) -> None:
    """Cancel a run, unless a process holds it."""
    try:
        lease = await store.lease(run_id, new_owner())
    except RunBusy:
        return
    try:
        run = await store.load(run_id)
        if run.state not in OPEN:  # its holder came to the end before this took the lease
            return
        begun = sorted(run.steps, key=lambda name: -name.count("."))  # a subgraph's steps before what it is
        for name in dict.fromkeys([*begun, *run.step_hashes]):
            if name not in run.steps or run.steps[name].number is None:
                await store.settle(lease, name, CANCELLED)
        await store.end(lease, RunState.CANCELLED, {}, "the run was cancelled")
    finally:
        await store.release(lease)
