"""Runs of research that a server performs for its clients: begun, followed, cancelled, gone on with after others."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.domain.ports import Clock
from smart_model_router.flow.clock import SystemClock, WallClock
from smart_model_router_research.deep.corpus_search import HITS, CorpusSearch
from smart_model_router_research.deep.session import DocumentSearch
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_research.engine import (
    RunBusy,
    RunEvent,
    RunEventKind,
    RunNotFound,
    RunState,
    RunStore,
    StoredRun,
    StoredStep,
    StoreUnavailable,
    WorkflowChanged,
)
from smart_model_router_research.engine.protocol import HEARTBEAT_SECONDS, LEASE_SECONDS
from smart_model_router_research.engine.states import OPEN
from smart_model_router_research.model_forms.model_calls import ChatRouter
from smart_model_router_research.pipeline.deep_research import (
    OWNER,
    DeepResearch,
    ResearchResult,
    origin_of,
    run_id_of,
)
from smart_model_router_research.pipeline.opened_corpora import OpenedCorpora, open_corpora
from smart_model_router_research.pipeline.research_events import ResearchEvent, events_of, first_to_read
from smart_model_router_research.pipeline.run_inputs import CORPUS, RunInputs
from smart_model_router_research.pipeline.stored_values import StoredValues
from smart_model_router_research.pipeline.told_runs import is_audit
from smart_model_router_research.pipeline.web_sources import WebSources
from smart_model_router_research.pipeline.workflow_file import NAME
from smart_model_router_research.web.backends import SearchBackend

POLL_SECONDS = 0.5
"""The pause of a reader between two looks at a run of another process."""
MOST_RESUMED = 5
"""A run that was gone on with so often, and settled no step, ends the processes that take it: it is left alone."""
DAY = 86_400.0
FRESH_SECONDS = 60.0
"""A corpus that is searched is looked at for changes so long after the last time."""
_MOST_OPEN = 1_000
_MOST_AUDITS = 200
"""Runs whose audits are kept decoded: a list is asked for again and again."""
_BATCH = 200
log = logging.getLogger("smart_model_router.research")


@dataclass(slots=True, eq=False)
class _Hosted:
    """A run that goes on here. `begun` is set once it is durable and held."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    research: DeepResearch | None = None
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class NextEvents:
    """The next events of a run; `is_over` says that no more will follow."""

    events: Sequence[ResearchEvent]
    is_over: bool


def _no_router(owner: str) -> None:
    """Return none: the runs ask no model."""
    del owner


class ResearchHost:
    """The runs of a server, on one event loop. Every run has an owner; corpora are those that its inputs name.

    `folder` has the artefacts of each run, `cache` the indexes of corpora; `lease` and `heartbeat` are seconds, as
    those of DeepResearch. `router_of` gives the router that answers for the models of the runs of an owner, and
    `backends` search the web for all of them. The store is closed with `aclose`, which leaves what goes on here to be
    gone on with by another process.
    """

    def __init__(
        self,
        store: RunStore,
        folder: Path,
        cache: Path,
        *,
        engine: str = "auto",
        lease: float = LEASE_SECONDS,
        heartbeat: float = HEARTBEAT_SECONDS,
        router_of: Callable[[str], ChatRouter | None] = _no_router,
        backends: Sequence[SearchBackend] = (),
        clock: Clock | None = None,
        wall: Callable[[], float] = WallClock.now,
    ) -> None:
        self._store = store
        self._folder = folder
        self._cache = cache
        self._engine = engine
        self._lease = lease
        self._heartbeat = heartbeat
        self._router_of = router_of
        self._clock = clock or SystemClock()
        self._wall = wall
        self._web = WebSources(backends, self._clock, wall)
        self._values = StoredValues(store)  # type: ignore[arg-type]  # the first DeepResearch checks it
        self._kept = DeepResearch(corpora=(), store=store, folder=folder, engine=engine)
        self._hosted: dict[str, _Hosted] = {}
        self._readers: dict[str, set[asyncio.Event]] = {}
        self._left_alone: set[str] = set()
        self._audits: dict[str, tuple[float, Mapping[str, StoredStep]]] = {}
        self._read: tuple[object, float, list[CorpusSearch]] | None = None
        self._opening = asyncio.Lock()

    @property
    def running(self) -> Collection[str]:
        """The ids of the runs that go on here."""
        return self._hosted.keys()

    async def aclose(self) -> Sequence[str]:
        """Break off what goes on here and close the store; safe to call twice.

        Returns the ids of the runs that were left to be gone on with: not of those that had ended, or been cancelled,
        and had not come to rest here.
        """
        tasks = {run_id: each.task for run_id, each in self._hosted.items() if each.task is not None}
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        left = [run_id for run_id in tasks if await self._is_left(run_id)]
        await self._store.aclose()
        return left

    # -------------------------------------------------------------------------------------------- to run

    async def begin(self, inputs: RunInputs, owner: str, *, most: int | None = None) -> str:
        """Begin a run; returns its id once it is durable. It goes on when the caller is cancelled.

        Raises TooManyRuns while `most` runs of the owner go on, CorpusError for a corpus that cannot be opened, and
        what the store raises.
        """
        run_id = run_id_of(inputs, self._wall())
        hosted = self._take(inputs, run_id, owner, most=most)
        assert hosted.task is not None  # noqa: S101 - it was just begun
        begun = asyncio.ensure_future(hosted.begun.wait())
        try:
            await asyncio.wait({hosted.task, begun}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            begun.cancel()
        if not hosted.begun.is_set():
            await hosted.task
        return run_id

    async def adopt(self, owners: Collection[str]) -> list[str]:
        """Go on with the runs of these owners that no process holds; returns their ids. Raises StoreUnavailable."""
        found = await self._store.runs(_MOST_OPEN, workflow=NAME, state=RunState.RUNNING)
        unheld = [run for run in found if not run.owner and run.origin.get(OWNER) in owners]
        adopted: list[str] = []
        for run in unheld:
            if run.run_id in self._hosted or run.run_id in self._left_alone:
                continue
            if await self._resumed_in_vain(run.run_id) >= MOST_RESUMED:
                self._leave_alone(run.run_id, f"it was gone on with {MOST_RESUMED} times, and settled no step")
                continue
            with suppress(RunNotFound):  # it was deleted meanwhile
                self._take(await self._kept.inputs_of(run.run_id), run.run_id, str(run.origin[OWNER]), is_known=True)
                adopted.append(run.run_id)
        return adopted

    async def cancel(self, run_id: str) -> RunState:
        """Cancel a run for good; returns its state. One of another process is asked to end. Raises RunNotFound."""
        hosted = self._hosted.get(run_id)
        research = self._kept if hosted is None or hosted.research is None else hosted.research
        await research.cancel(run_id)
        return (await self._store.load(run_id)).state

    async def wait(self, run_id: str) -> None:
        """Wait until a run goes on here no more; at once for one that does not."""
        hosted = self._hosted.get(run_id)
        if hosted is not None and hosted.task is not None:
            await asyncio.wait({hosted.task})

    async def forget(self, days: float) -> list[str]:
        """Delete the runs that ended more than so many days ago, with their artefacts; returns their ids.

        Those that have an owner. Raises StoreUnavailable.
        """
        old = await self._store.runs(_MOST_OPEN, workflow=NAME, changed_before=self._wall() - days * DAY)
        forgotten: list[str] = []
        for run in old:
            if OWNER in run.origin and await self._store.delete(run.run_id):
                await asyncio.to_thread(shutil.rmtree, self._folder / run.run_id, ignore_errors=True)
                forgotten.append(run.run_id)
        return forgotten

    # -------------------------------------------------------------------------------------------- to tell

    async def load(self, run_id: str) -> StoredRun:
        """Return a run of research with its steps. Raises RunNotFound, also for one of another workflow."""
        run = await self._store.load(run_id)
        if run.workflow != NAME:
            raise RunNotFound(run_id)
        return run

    async def runs(self, limit: int, owner: str | None = None) -> Sequence[StoredRun]:
        """Return the runs that changed last, with the steps that audited them: those of an owner, or all."""
        origin = None if owner is None else origin_of(owner)
        return [await self._audited(run) for run in await self._store.runs(limit, workflow=NAME, origin=origin)]

    async def count_open(self) -> int:
        """Return how many runs go on, or are to be gone on with, wherever they do."""
        return len(await self._store.runs(_MOST_OPEN, workflow=NAME, state=RunState.RUNNING))

    async def _audited(self, run: StoredRun) -> StoredRun:
        """Return a run with the steps that audited it; they are read once for each change."""
        known = self._audits.pop(run.run_id, None)
        if known is None or known[0] != run.changed_at:
            with suppress(RunNotFound):
                run = await self._store.load(run.run_id)
            audits = {name: step for name, step in run.steps.items() if is_audit(name)}
            known = (run.changed_at, audits)
        self._audits[run.run_id] = known
        while len(self._audits) > _MOST_AUDITS:
            del self._audits[next(iter(self._audits))]
        return replace(run, steps=known[1])

    async def result(self, run_id: str) -> ResearchResult:
        """Return what a run has come to so far. Raises RunNotFound."""
        return await self._kept.result(run_id)

    async def accept(self, run_id: str, person: str) -> ResearchResult:
        """Note that a person accepts a report, which is shown then. Raises RunNotFound, ArtefactError."""
        return await self._kept.accept(run_id, person)

    async def page(self, run_id: str) -> str:
        """Return the report of a run as HTML. Raises OSError without one."""
        return await asyncio.to_thread(self._kept.page_of, run_id)

    async def next_events(self, run_id: str, after: int, seconds: float) -> NextEvents:
        """Return the events of a run with a greater seq than `after`, for the first of which this waits so long.

        Whichever process runs it. Raises RunNotFound.
        """
        until = self._clock.now() + seconds
        news = asyncio.Event()
        self._readers.setdefault(run_id, set()).add(news)
        try:
            while True:
                news.clear()
                found = await self._events(run_id, after)
                left = until - self._clock.now()
                if found.events or found.is_over or left <= 0:
                    return found
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, POLL_SECONDS)):
                        await news.wait()
        finally:
            self._readers[run_id].discard(news)
            if not self._readers[run_id]:
                del self._readers[run_id]

    async def _events(self, run_id: str, after: int) -> NextEvents:
        read = await self._store.events_since(run_id, first_to_read(after), _BATCH)
        found = [each for event in read for each in await events_of(event, self._values) if each.seq > after]
        if read:
            is_over = any(event.kind is RunEventKind.RUN_ENDED for event in read)
        else:  # `after` is behind all that there is
            is_over = (await self._store.load(run_id)).state not in OPEN
        return NextEvents(found, is_over)

    # -------------------------------------------------------------------------------------------- to read

    async def search(self, inputs: RunInputs, text: str) -> list[StoredDocument]:
        """Return the documents for a text of the corpora that inputs name, the best of each in turn.

        Raises CorpusError for a corpus that cannot be opened, SearchIncomplete for one that cannot be searched.
        """
        found = [await each.search(text) for each in await self._corpora(inputs)]
        ranked = [document for row in zip_longest(*found) for document in row if document is not None]
        return [each.stored for each in ranked[:HITS]]

    async def document(self, inputs: RunInputs, name: str) -> StoredDocument | None:
        """Return a document of the corpora that inputs name by its id, None where there is none. Raises CorpusError."""
        for corpus in await self._corpora(inputs):
            path = name.removeprefix(f"{corpus.corpus.name}/")
            if path != name and (found := await corpus.read([path])):
                return found[0].stored
        return None

    async def _corpora(self, inputs: RunInputs) -> list[CorpusSearch]:
        """Return the corpora of inputs, opened a short while ago at most."""
        key = (inputs.corpora, inputs.as_of, inputs.policy())
        async with self._opening:
            if self._read is None or self._read[0] != key or self._clock.now() >= self._read[1]:
                opened = await self._open(inputs, lost_too=False)
                corpora = [each for each in opened.searches if isinstance(each, CorpusSearch)]
                self._read = (key, self._clock.now() + FRESH_SECONDS, corpora)
            return self._read[2]

    # -------------------------------------------------------------------------------------------- insides

    async def _is_left(self, run_id: str) -> bool:
        """Return whether a run can be gone on with, as far as is known."""
        try:
            return (await self._store.load(run_id)).state in OPEN
        except RunNotFound:
            return False
        except StoreUnavailable:
            return True

    def _take(
        self, inputs: RunInputs, run_id: str, owner: str, *, most: int | None = None, is_known: bool = False
    ) -> _Hosted:
        hosted = self._hosted[run_id] = _Hosted()
        performed = self._perform(hosted, inputs, run_id, owner, most, is_known=is_known)
        hosted.task = asyncio.create_task(performed, name=f"smart-model-router research {run_id}")
        hosted.task.add_done_callback(lambda task: self._over(run_id, hosted, task))
        return hosted

    async def _perform(
        self, hosted: _Hosted, inputs: RunInputs, run_id: str, owner: str, most: int | None, *, is_known: bool
    ) -> None:
        async with self._opening:  # two at once would wait for each other's index in longer steps
            opened = await self._open(inputs, lost_too=is_known)
        hosted.research = self._research(owner, opened.searches, hosted, most)
        await hosted.research.run(inputs, run_id)

    async def _open(self, inputs: RunInputs, *, lost_too: bool) -> OpenedCorpora:
        return await open_corpora(
            inputs.corpora if CORPUS in inputs.backends else (),
            as_of=inputs.moment(),
            policy=inputs.policy(),
            cache=self._cache,
            wall=self._wall,
            lost_too=lost_too,
        )

    def _research(
        self,
        owner: str,
        searches: Sequence[DocumentSearch],
        hosted: _Hosted,
        most: int | None,
    ) -> DeepResearch:
        def note(event: RunEvent) -> None:
            hosted.begun.set()
            for news in self._readers.get(event.run_id, ()):
                news.set()

        return DeepResearch(
            self._router_of(owner),
            corpora=searches,
            backends=self._web,
            store=self._store,
            folder=self._folder,
            engine=self._engine,
            observers=[note],
            owner=owner,
            runs_at_once=most,
            lease=self._lease,
            heartbeat=self._heartbeat,
            clock=self._clock,
            wall=self._wall,
        )

    def _over(self, run_id: str, hosted: _Hosted, task: asyncio.Task[None]) -> None:
        if self._hosted.get(run_id) is hosted:
            del self._hosted[run_id]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, WorkflowChanged):
            self._leave_alone(run_id, error.message)
        elif error is not None and not isinstance(error, RunBusy) and hosted.begun.is_set():
            log.warning("run %s of research broke off: %s", run_id, error, exc_info=_trace(error))

    def _leave_alone(self, run_id: str, why: str) -> None:
        self._left_alone.add(run_id)
        log.warning("run %s of research is not gone on with: %s", run_id, why)

    async def _resumed_in_vain(self, run_id: str) -> int:
        """Return how often a run was gone on with since it settled its latest step."""
        count, after = 0, 0
        while events := await self._store.events_since(run_id, after):
            for event in events:
                count += event.kind is RunEventKind.RUN_RESUMED
                count = 0 if event.kind is RunEventKind.STEP_SETTLED else count
            after = events[-1].seq
        return count


def _trace(error: BaseException) -> BaseException | None:
    """Return an error whose trace belongs into a log: one that is no failure of ours on purpose."""
    return None if isinstance(error, SmartRouterError) else error
