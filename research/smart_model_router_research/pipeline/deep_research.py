"""Runs of research: begun, watched, resumed, cancelled, and their results."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.ports import Clock
from smart_model_router.flow.clock import SystemClock, WallClock
from smart_model_router_research.deep.artefact_files import run_of
from smart_model_router_research.deep.artefact_records import HTML, MARKDOWN
from smart_model_router_research.deep.artefacts import beside, write_artefacts
from smart_model_router_research.deep.corpus_search import CorpusSearch
from smart_model_router_research.deep.lookups import OpenQuestion
from smart_model_router_research.deep.records import decode
from smart_model_router_research.deep.session import DocumentSearch
from smart_model_router_research.deep.verifying import read_folder
from smart_model_router_research.engine import (
    Budget,
    ExecutionContext,
    ExecutionResult,
    MemoryRunStore,
    RunEvent,
    RunNotFound,
    RunState,
    RunStore,
    Selection,
    StoredRun,
    SupportsDocuments,
    select_engine,
)
from smart_model_router_research.engine.protocol import HEARTBEAT_SECONDS, LEASE_SECONDS, check_run_id
from smart_model_router_research.engine.states import OPEN
from smart_model_router_research.model_forms.model_calls import (
    AskedModel,
    ChatRouter,
    Criticality,
    ModelAccount,
    StepCalls,
    notes_on,
)
from smart_model_router_research.pipeline.opened_corpora import LostCorpus, open_corpora
from smart_model_router_research.pipeline.research_events import ResearchEvent, events_of, first_to_read
from smart_model_router_research.pipeline.run_inputs import BACKENDS, CORPUS, RunInputs, absolute_paths
from smart_model_router_research.pipeline.stored_values import StoredValues
from smart_model_router_research.pipeline.tools import SERVICE, ResearchTools, RunModels
from smart_model_router_research.pipeline.web_sources import WebSources
from smart_model_router_research.pipeline.workflow_file import NAME, research_workflow
from smart_model_router_research.web.backends import SearchBackend
from smart_model_router_research.workflow import Costs, WorkflowDefinition
from smart_model_router_scoring.confidence.gates import MIN_RECENT_SOURCES
from smart_model_router_scoring.options import ConfigError

if TYPE_CHECKING:
    from smart_model_router_research.web.fetcher import SafeFetcher

CACHE = ".indexes"
"""The folder of indexes among those of runs, whose ids begin with a letter or a digit."""
OWNER = "owner"
"""The key of the owner in the origin of a run."""
INCOMPLETE = ("budget", "deadline", "failed", "interrupted")
"""The reasons to stop that make a run partial: it would have gone on."""


class UnsuitableStore(TypeError):
    """The store of runs keeps no documents beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchResult:
    """The result of a run.

    `status` is completed, partial, failed, cancelled, paused or running; `delivery` full, moderate, low or withheld, ""
    where there is no report; `report` is Markdown, "" without one. `artefacts` is their folder. `problems` are
    sentences: steps that failed, and what limits kept away; `model_notes` say which steps went on without their model,
    and what stood in for what. `unanswered` are the questions without an answer: disputed,
    not found, looked for in part, or not looked for.
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
    unanswered: tuple[OpenQuestion, ...] = ()
    model_notes: tuple[str, ...] = ()


class DeepResearch:
    """Runs of research over corpora, kept in a store of runs, with their artefacts in a folder for each.

    `router` answers for the models of runs whose inputs name one; without it they go on as if there were no model, and
    say so.

    `corpora` are paths (folders, documents, index files) and sources that can be searched, in their order; paths are
    opened with the first run. `backends` search the web, and `fetcher` reads what they find; several share WebSources.
    `store` is one in memory by default, `folder` a temporary one, which goes with `aclose`. `engine` is `auto`, `kahn`
    or `langgraph`. `workflow` stands in for the shipped one; it has steps of the same names. Each of `observers` is
    called with every event of the engine. New runs are noted as those of `owner`, and are refused (TooManyRuns) while
    `runs_at_once` of the same owner go on in the store. A run is held for `lease` seconds, anew with every `heartbeat`,
    which hears of a cancellation by another process. Raises UnsuitableStore for a store without documents.
    """

    def __init__(
        self,
        router: ChatRouter | None = None,
        *,
        corpora: Sequence[DocumentSearch | str | Path] = (),
        backends: Sequence[SearchBackend] | WebSources = (),
        fetcher: SafeFetcher | None = None,
        store: RunStore | None = None,
        folder: Path | None = None,
        engine: str = "auto",
        workflow: WorkflowDefinition | None = None,
        observers: Sequence[Callable[[RunEvent], object]] = (),
        owner: str | None = None,
        runs_at_once: int | None = None,
        lease: float = LEASE_SECONDS,
        heartbeat: float = HEARTBEAT_SECONDS,
        clock: Clock | None = None,
        wall: Callable[[], float] = WallClock.now,
    ) -> None:
        self._router = router
        self._clock = clock or SystemClock()
        kept = MemoryRunStore(now=self._clock.now, wall=wall) if store is None else store
        if not isinstance(kept, SupportsDocuments):
            wanted = "SqliteRunStore, PostgresRunStore or MemoryRunStore is needed"
            raise UnsuitableStore(f"{type(kept).__name__} keeps no documents: {wanted}")
        self._store: RunStore = kept
        self._values = StoredValues(kept)
        self._corpora = tuple(corpora)
        if not isinstance(backends, WebSources):
            backends = WebSources(backends, self._clock, wall, fetcher)
        self._web = backends
        self._searches: dict[tuple[object, ...], tuple[DocumentSearch, ...]] = {}
        self._opening = asyncio.Lock()
        self._temporary = tempfile.TemporaryDirectory(prefix="smr-research-") if folder is None else None
        self._folder = (
            Path(self._temporary.name) if folder is None and self._temporary is not None else folder or Path()
        )
        self._engine = engine
        self._workflow = workflow
        self._observers = tuple(observers)
        self._origin = origin_of(owner)
        self._runs_at_once = runs_at_once
        self._lease = lease
        self._heartbeat = heartbeat
        self._selections: dict[str, Selection] = {}
        self._wall = wall
        self.skipped: tuple[str, ...] = ()
        """The files of the corpora that could not be read, with the reason, once they are open."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of the temporary folder, where there is one; safe to call twice."""
        if self._temporary is not None:
            await asyncio.to_thread(self._temporary.cleanup)

    async def run(self, topic: str | RunInputs, run_id: str | None = None) -> ResearchResult:
        """Run a topic to its end. A run of that id that was interrupted goes on.

        A text is asked as of today, with the defaults of RunInputs, in all sources; one recent source is enough, and
        ten are needed with a public back-end. Raises CorpusError for a corpus that cannot be opened, ConfigError for
        inputs that cannot be, ConfigurationError for a run of that id with other inputs, RunBusy when another process
        has it, and what the store raises.
        """
        workflow, chosen, context = await self._prepared(topic, run_id)
        return await self._result(await chosen.engine.execute(workflow, context))

    async def resume(self, run_id: str) -> ResearchResult:
        """Go on with a run that was interrupted; one that has ended gives its result. Raises RunNotFound, as `run`."""
        return await self.run(await self.inputs_of(run_id), run_id)

    async def stream(
        self, topic: str | RunInputs, run_id: str | None = None, after: int = 0
    ) -> AsyncGenerator[ResearchEvent]:
        """Yield the events of a run with a greater seq than `after`, up to its end. It is begun where it is not known.

        A reader that goes away stops nothing; one that comes again with its last seq misses nothing. Raises as `run`.
        """
        workflow, chosen, context = await self._prepared(topic, run_id)
        async for event in chosen.engine.stream(workflow, context, first_to_read(after)):  # type: ignore[attr-defined]
            for each in await events_of(event, self._values):
                if each.seq > after:
                    yield each

    async def cancel(self, run_id: str) -> None:
        """Cancel a run for good. One that runs here has ended then; another process is asked to. Raises RunNotFound."""
        chosen = self._selected(self._workflow_of(await self.inputs_of(run_id)))
        await chosen.engine.cancel(run_id)  # type: ignore[attr-defined]

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
        """Note that a person accepts a withheld report, which is rendered then. The first acceptance counts.

        Raises RunNotFound, ArtefactError.
        """
        await self._store.load(run_id)
        folder = self._folder_of(run_id)
        await asyncio.to_thread(_accepted, folder, person)
        return await self.result(run_id)

    def page_of(self, run_id: str) -> str:
        """Return the report of a run as HTML. Raises OSError without one."""
        return (self._folder_of(run_id) / HTML).read_text(encoding="utf-8")

    def _workflow_of(self, inputs: RunInputs) -> WorkflowDefinition:
        return self._workflow or research_workflow(inputs.analysts)

    def _selected(self, workflow: WorkflowDefinition) -> Selection:
        """Return the one engine for a workflow, which knows the runs that go on here."""
        if workflow.hash not in self._selections:
            self._selections[workflow.hash] = select_engine(workflow, self._engine, store=self._store)
        return self._selections[workflow.hash]

    def _folder_of(self, run_id: str) -> Path:
        return self._folder / run_id

    async def _prepared(
        self, topic: str | RunInputs, run_id: str | None
    ) -> tuple[WorkflowDefinition, Selection, ExecutionContext]:
        inputs = self._inputs_of(topic) if isinstance(topic, str) else topic
        workflow = self._workflow_of(inputs)
        chosen = self._selected(workflow)
        was = None if run_id is None else await self._known(run_id)
        has_ended = was is not None and was.state not in OPEN
        searches = () if has_ended else await self._opened(inputs, lost_too=was is not None)
        known = run_id or run_id_of(inputs, self._wall())
        spent = Costs() if was is None else was.spent
        return workflow, chosen, self._context(inputs, workflow, searches, known, chosen, spent)

    async def _known(self, run_id: str) -> StoredRun | None:
        """Return a run of the store, None for a new one. Raises ConfigurationError where another has its folder."""
        check_run_id(run_id)
        folder = self._folder_of(run_id)
        try:
            return await self._store.load(run_id)
        except RunNotFound:
            if await asyncio.to_thread(folder.exists):
                wanted = f"a new id is needed: {folder} is of another run, which this store of runs does not have"
                raise ConfigurationError("run_id", run_id, wanted) from None
            return None

    def _inputs_of(self, topic: str) -> RunInputs:
        paths = absolute_paths(each for each in self._corpora if isinstance(each, str | Path))
        today = datetime.fromtimestamp(self._wall(), UTC).date().isoformat()
        own = BACKENDS if self._corpora or not self._web.names else ()
        least = MIN_RECENT_SOURCES if self._web.has_public else 1
        backends = (*own, *self._web.names)
        return RunInputs(topic=topic, as_of=today, min_recent_sources=least, corpora=paths, backends=backends)

    async def _opened(self, inputs: RunInputs, *, lost_too: bool) -> tuple[DocumentSearch, ...]:
        """Return the sources, opened by the first run of their day and policy, for which others wait.

        Raises ConfigError where the inputs name other sources.
        """
        if not lost_too:
            self._web.check(inputs)
        if CORPUS not in inputs.backends:
            return ()
        known = (inputs.as_of, inputs.allow, inputs.block, *sorted(inputs.tiers.items()))
        async with self._opening:
            found = self._searches.get(known)
            if found is None:
                paths = [each for each in self._corpora if isinstance(each, str | Path)]
                opened = await open_corpora(
                    paths,
                    as_of=inputs.moment(),
                    cache=self._folder / CACHE,
                    policy=inputs.policy(),
                    wall=self._wall,
                    lost_too=lost_too,
                )
                made = iter(opened.searches)
                found = tuple(next(made) if isinstance(each, str | Path) else each for each in self._corpora)
                self.skipped = opened.skipped
                if not any(isinstance(each, LostCorpus) for each in found):
                    self._searches[known] = found
        places = absolute_paths(each.place for each in found if isinstance(each, CorpusSearch | LostCorpus))
        if inputs.corpora and set(absolute_paths(inputs.corpora)) != set(places):
            wanted = f"the corpora of this DeepResearch ({', '.join(places) or 'none is a path'}), or none,"
            raise ConfigError("corpora", list(inputs.corpora), wanted)
        return found

    def _context(
        self,
        inputs: RunInputs,
        workflow: WorkflowDefinition,
        searches: Sequence[DocumentSearch],
        run_id: str,
        chosen: Selection,
        spent: Costs,
    ) -> ExecutionContext:
        seconds, budget = inputs.budget.seconds, inputs.budget
        account = ModelAccount(budget.model_calls, budget.tokens, budget.usd, budget.reserve, spent)
        settings = AskedModel(
            model=inputs.model,
            tiers=inputs.model_tiers,
            criticality=cast("Criticality", inputs.criticality),
            writes_json=inputs.model_forms == "all",
        )
        tools = ResearchTools(
            values=self._values,
            clock=self._clock,
            wall=self._wall,
            searches=(*searches, *self._web.of(inputs)),
            folder=self._folder_of(run_id),
            facts={"workflow": workflow.name, "workflow_hash": workflow.hash, "engine": chosen.engine.name},
            models=RunModels(settings=settings, account=account, router=self._router) if inputs.model else None,
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
            origin=self._origin,
            most_alike=self._runs_at_once,
            lease=self._lease,
            heartbeat=self._heartbeat,
            engine_reason=chosen.reason,
        )

    async def _result(self, found: ExecutionResult) -> ResearchResult:
        outputs = {name: dict(step.outputs or {}) for name, step in found.steps.items()}
        supervised, packaged = outputs.get("supervisor_decide", {}), outputs.get("rag_package", {})
        folder = self._folder_of(found.run_id) if packaged else None
        retrieved = [each for name, each in sorted(outputs.items()) if name.startswith("retrieval_react") and each]
        problems = [f"{name}: {step.error}" for name, step in found.steps.items() if step.error]
        problems += [gap for each in retrieved for gap in each["gaps"]]
        calls = [decode(StepCalls, each["calls"], name) for name, each in outputs.items() if each.get("calls")]
        cut = [f"{each.step}: {each.degraded}" for each in calls if each.is_cut]
        status = found.status.value
        reason, synthesised = supervised.get("stop_reason", ""), outputs.get("final_synthesis", {})
        rows = synthesised.get("unanswered", ())
        unanswered = tuple(decode(OpenQuestion, row, f"unanswered[{at}]") for at, row in enumerate(rows))
        problems += [each.sentence for each in unanswered if each.obstacles]
        lacking = bool(unanswered) or reason != "passed"
        if found.status is RunState.COMPLETED and (reason in INCOMPLETE or cut or (problems and lacking)):
            status = RunState.PARTIAL.value
        problems += cut
        problems += [line for each in retrieved for line in (*each["further_gaps"], *each["web"]["unread"])]
        usage = {"searches": 0.0, "documents": 0.0, "model_calls": found.usage.calls}
        if found.usage.calls:
            usage |= {"tokens": found.usage.tokens, "usd": found.usage.usd}
        if retrieved:
            usage |= {"searches": float(retrieved[-1]["searches"]), "documents": float(retrieved[-1]["source_count"])}
        return ResearchResult(
            run_id=found.run_id,
            status=status,
            delivery=packaged.get("delivery", ""),
            report=await asyncio.to_thread(_report_in, folder),
            quality_metadata=supervised.get("quality_metadata", {}),
            artefacts=folder,
            usage=usage,
            stop_reason=reason,
            problems=tuple(dict.fromkeys([*problems, *([found.reason] if found.reason and not problems else [])])),
            engine=found.engine,
            answers=tuple(synthesised.get("executive_summary", ())),
            model_notes=tuple(notes_on(calls)),
            unanswered=unanswered,
        )


def origin_of(owner: str | None) -> Mapping[str, str]:
    """Return the origin by which runs of an owner are found in a store; None is that of runs without one."""
    return {"research": NAME} if owner is None else {"research": NAME, OWNER: owner}


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
    if run.is_shown:
        return
    accepted = replace(run, facts=replace(run.facts, accepted_by=person))
    with tempfile.TemporaryDirectory(prefix=beside(folder), dir=folder.parent) as temporary:
        written = Path(temporary) / "accepted"
        write_artefacts(accepted, written)
        old = folder.rename(Path(temporary) / "before")
        try:
            written.rename(folder)
        except OSError:
            old.rename(folder)
            raise
        shutil.rmtree(old)
