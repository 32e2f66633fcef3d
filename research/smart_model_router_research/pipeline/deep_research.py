"""Runs of research: begun, watched, resumed, cancelled, and their results."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from smart_model_router.domain.ports import Clock
from smart_model_router.flow.clock import SystemClock, WallClock
from smart_model_router_research.deep.artefact_files import run_of
from smart_model_router_research.deep.artefact_records import HTML, MARKDOWN
from smart_model_router_research.deep.artefacts import write_artefacts
from smart_model_router_research.deep.offline import DocumentSearch
from smart_model_router_research.deep.records import decode
from smart_model_router_research.deep.verifying import read_folder
from smart_model_router_research.engine import (
    Budget,
    ExecutionContext,
    ExecutionResult,
    RunEvent,
    RunState,
    RunStore,
    SupportsDocuments,
    select_engine,
)
from smart_model_router_research.pipeline.research_events import ResearchEvent, events_of, first_to_read
from smart_model_router_research.pipeline.run_inputs import RunInputs
from smart_model_router_research.pipeline.stored_values import StoredValues
from smart_model_router_research.pipeline.tools import SERVICE, ResearchTools
from smart_model_router_research.pipeline.workflow_file import NAME, research_workflow
from smart_model_router_research.workflow import Costs, WorkflowDefinition

INCOMPLETE = ("budget", "deadline", "failed", "interrupted")
"""The reasons to stop that make a run partial: it would have gone on."""


class UnsuitableStore(TypeError):
    """The store of runs keeps no documents beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchResult:
    """The result of a run.

    `status` is completed, partial, failed, cancelled, paused or running; `delivery` full, moderate, low or withheld, ""
    where there is no report; `report` is Markdown, "" without one. `artefacts` is their folder. `problems` are
    sentences: steps that failed, and what limits kept away.
    """

    run_id: str
    status: str
    delivery: str = ""
    report: str = ""
    quality_metadata: Mapping[str, Any] = field(default_factory=dict)
    artefacts: Path | None = None
    usage: Mapping[str, float] = field(default_factory=dict)
    stop_reason: str = ""
    problems: tuple[str, ...] = ()
    engine: str = ""
    answers: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()


class DeepResearch:
    """Runs of research over corpora, kept in a store of runs, with their artefacts in a folder for each.

    `corpora` are searched in their order; `engine` is `auto`, `kahn` or `langgraph`. `workflow` stands in for the
    shipped one; it has steps of the same names. Each of `observers` is called with every event of the engine. Raises
    UnsuitableStore for a store without documents.
    """

    def __init__(
        self,
        *,
        store: RunStore,
        corpora: Sequence[DocumentSearch],
        folder: Path,
        engine: str = "auto",
        workflow: WorkflowDefinition | None = None,
        observers: Sequence[Callable[[RunEvent], object]] = (),
        clock: Clock | None = None,
        wall: Callable[[], float] = WallClock.now,
    ) -> None:
        if not isinstance(store, SupportsDocuments):
            raise UnsuitableStore(
                f"{type(store).__name__} keeps no documents: SqliteRunStore or MemoryRunStore is needed"
            )
        self._store: RunStore = store
        self._values = StoredValues(store)
        self._corpora = tuple(corpora)
        self._folder = folder
        self._engine = engine
        self._workflow = workflow
        self._observers = tuple(observers)
        self._clock = clock or SystemClock()
        self._wall = wall

    async def run(self, inputs: RunInputs, run_id: str | None = None) -> ResearchResult:
        """Run a topic to its end. A run of that id that was interrupted goes on.

        Raises ConfigurationError for one of that id with other inputs, RunBusy when another process has it, and what
        the store raises.
        """
        known = run_id or run_id_of(inputs, self._wall())
        workflow = self._workflow_of(inputs)
        chosen = select_engine(workflow, self._engine, store=self._store)
        context = self._context(inputs, known, chosen.engine.name, chosen.reason)
        return await self._result(await chosen.engine.execute(workflow, context))

    async def resume(self, run_id: str) -> ResearchResult:
        """Go on with a run that was interrupted; one that has ended gives its result. Raises RunNotFound, as `run`."""
        return await self.run(await self.inputs_of(run_id), run_id)

    async def stream(
        self, inputs: RunInputs, run_id: str | None = None, after: int = 0
    ) -> AsyncGenerator[ResearchEvent]:
        """Yield the events of a run with a greater seq than `after`, up to its end. It is begun where it is not known.

        A reader that goes away stops nothing; one that comes again with its last seq misses nothing.
        """
        known = run_id or run_id_of(inputs, self._wall())
        workflow = self._workflow_of(inputs)
        chosen = select_engine(workflow, self._engine, store=self._store)
        context = self._context(inputs, known, chosen.engine.name, chosen.reason)
        async for event in chosen.engine.stream(workflow, context, first_to_read(after)):  # type: ignore[attr-defined]
            for each in await events_of(event, self._values):
                if each.seq > after:
                    yield each

    async def cancel(self, run_id: str) -> None:
        """Cancel a run for good, in whichever process it runs. Raises RunNotFound."""
        workflow = self._workflow_of(await self.inputs_of(run_id))
        await select_engine(workflow, self._engine, store=self._store).engine.cancel(run_id)  # type: ignore[attr-defined]

    async def inputs_of(self, run_id: str) -> RunInputs:
        """Return the inputs that a run was created with. Raises RunNotFound, ArtefactError for one of another kind."""
        return decode(RunInputs, (await self._store.load(run_id)).inputs, f"run {run_id}")

    async def result(self, run_id: str) -> ResearchResult:
        """Return what a run has come to so far. Raises RunNotFound."""
        run = await self._store.load(run_id)
        steps = {name: step.result for name, step in run.steps.items()}
        return await self._result(
            ExecutionResult(
                run_id=run_id, status=run.state, steps=steps, outputs=run.outputs, reason=run.reason, engine=run.engine
            )
        )

    async def accept(self, run_id: str, person: str) -> ResearchResult:
        """Note that a person accepts a withheld report, which is rendered then. Raises RunNotFound, ArtefactError."""
        folder = self._folder_of(run_id)
        await asyncio.to_thread(_accepted, folder, person)
        return await self.result(run_id)

    def page_of(self, run_id: str) -> str:
        """Return the report of a run as HTML. Raises OSError without one."""
        return (self._folder_of(run_id) / HTML).read_text(encoding="utf-8")

    def _workflow_of(self, inputs: RunInputs) -> WorkflowDefinition:
        return self._workflow or research_workflow(inputs.analysts)

    def _folder_of(self, run_id: str) -> Path:
        return self._folder / run_id

    def _context(self, inputs: RunInputs, run_id: str, engine: str, reason: str) -> ExecutionContext:
        workflow = self._workflow_of(inputs)
        seconds = inputs.budget.seconds
        tools = ResearchTools(
            values=self._values,
            clock=self._clock,
            wall=self._wall,
            searches=self._corpora,
            folder=self._folder_of(run_id),
            facts={"workflow": workflow.name, "workflow_hash": workflow.hash, "engine": engine},
        )
        return ExecutionContext(
            run_id=run_id,
            inputs=inputs.as_inputs(),
            services={SERVICE: tools},
            clock=self._clock,
            deadline=self._clock.now() + seconds,
            budget=Budget(reserve=Costs(seconds=seconds * inputs.budget.reserve)),
            store=self._store,
            observers=self._observers,
            origin={"research": NAME},
            engine_reason=reason,
        )

    async def _result(self, found: ExecutionResult) -> ResearchResult:
        outputs = {name: dict(step.outputs or {}) for name, step in found.steps.items()}
        supervised, packaged = outputs.get("supervisor_decide", {}), outputs.get("rag_package", {})
        folder = self._folder_of(found.run_id) if packaged else None
        retrieved = [each for name, each in sorted(outputs.items()) if name.startswith("retrieval_react") and each]
        problems = [f"{name}: {step.error}" for name, step in found.steps.items() if step.error]
        problems += [gap for each in retrieved for gap in each["gaps"]]
        status = found.status.value
        if found.status is RunState.COMPLETED and supervised.get("stop_reason") in INCOMPLETE:
            status = RunState.PARTIAL.value
        usage = {"searches": 0.0, "documents": 0.0, "model_calls": found.usage.calls}
        if retrieved:
            usage |= {"searches": float(retrieved[-1]["searches"]), "documents": float(retrieved[-1]["source_count"])}
        synthesised = outputs.get("final_synthesis", {})
        return ResearchResult(
            run_id=found.run_id,
            status=status,
            delivery=packaged.get("delivery", ""),
            report=await asyncio.to_thread(_report_in, folder),
            quality_metadata=supervised.get("quality_metadata", {}),
            artefacts=folder,
            usage=usage,
            stop_reason=supervised.get("stop_reason", ""),
            problems=tuple(dict.fromkeys([*problems, *([found.reason] if found.reason and not problems else [])])),
            engine=found.engine,
            answers=tuple(synthesised.get("executive_summary", ())),
            not_found=tuple(synthesised.get("limitations", ())),
        )


def run_id_of(inputs: RunInputs, now: float) -> str:
    """Return a new id of a run: its topic in words, and what makes it the only one."""
    words = "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in inputs.topic.lower()).split()[:5])[:40]
    told = hashlib.sha256(f"{inputs.topic}\n{now!r}\n{os.getpid()}\n{os.urandom(8)!r}".encode()).hexdigest()[:8]
    return f"{words or 'research'}-{told}"


def _report_in(folder: Path | None) -> str:
    if folder is None:
        return ""
    try:
        return (folder / MARKDOWN).read_text(encoding="utf-8")
    except OSError:
        return ""


def _accepted(folder: Path, person: str) -> None:
    """Write the artefacts again, with the person who accepted them."""
    run = run_of(read_folder(folder))
    accepted = replace(run, facts=replace(run.facts, accepted_by=person))
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as beside:
        written = Path(beside) / "accepted"
        write_artefacts(accepted, written)
        old = folder.rename(Path(beside) / "before")
        written.rename(folder)
        shutil.rmtree(old)
