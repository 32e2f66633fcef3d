"""Runs that a server performs: begun once they are durable, gone on with after others, left alone, forgotten."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import AsyncMock

import pytest

from smart_model_router.domain.shared_state import ClockReading
from smart_model_router_research.deep.corpus_file import CorpusError
from smart_model_router_research.engine import (
    NewRun,
    RunEventKind,
    RunLease,
    RunNotFound,
    RunState,
    SqliteRunStore,
    StepResult,
    StepState,
    StoreUnavailable,
    TooManyRuns,
)
from smart_model_router_research.pipeline.deep_research import origin_of
from smart_model_router_research.pipeline.research_host import DAY, MOST_RESUMED, ResearchHost
from smart_model_router_research.pipeline.run_inputs import RunInputs
from smart_model_router_research.pipeline.workflow_file import NAME, research_workflow
from tests.research_worlds import AS_OF, PAGES

NOW = 1_782_900_000.0
TOPIC = "What is the capital of Arland?"
Store = TypeVar("Store", bound=SqliteRunStore)


class NeverLetsGo(SqliteRunStore):
    """A store that takes forever to let go of a run that has ended. `ended` is set when one has."""

    ended: asyncio.Event

    async def release(self, lease: RunLease) -> None:
        """Wait for the end of the process."""
        if (await self.load(lease.run_id)).state is RunState.COMPLETED:
            self.ended.set()
            await asyncio.Event().wait()
        await super().release(lease)


class Server:
    """A host over a folder, as one process after another has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = NOW
        self.pages = folder / "pages"
        self.pages.mkdir()
        for name, text in PAGES.items():
            (self.pages / name).write_text(text, encoding="utf-8")

    def store(self, kind: type[Store]) -> Store:
        """Return the store of the process."""
        return kind(self.folder / "runs.db", here=lambda: ClockReading("boot", self.now, self.now))

    @asynccontextmanager
    async def host(self, store: SqliteRunStore | None = None) -> AsyncGenerator[ResearchHost]:
        """A process with a host."""
        host = ResearchHost(
            store or self.store(SqliteRunStore), self.folder / "runs", self.folder / "cache", wall=lambda: self.now
        )
        try:
            yield host
        finally:
            await host.aclose()

    def inputs(self, topic: str = TOPIC, **others: Any) -> RunInputs:
        """Return the inputs of a run over the pages."""
        given: dict[str, Any] = {"as_of": AS_OF, "min_recent_sources": 1, "corpora": (str(self.pages),), **others}
        return RunInputs(topic=topic, **given)

    async def broken_off(self, run_id: str, *, owner: str = "x", **others: Any) -> None:
        """Leave a run as a process leaves it that ended before its first step."""
        workflow = research_workflow()
        known: dict[str, Any] = {"workflow_hash": workflow.hash, "step_hashes": workflow.step_hashes, "engine": "kahn"}
        inputs = workflow.with_defaults(self.inputs().as_inputs())
        run = NewRun(run_id=run_id, workflow=NAME, inputs=inputs, origin=origin_of(owner), **{**known, **others})
        store = self.store(SqliteRunStore)
        await store.create(run)
        await store.aclose()


@pytest.fixture
def server(tmp_path: Path) -> Server:
    """A folder with pages."""
    return Server(tmp_path)


async def ended(host: ResearchHost, run_id: str) -> str:
    """Wait for the end of a run here; returns its state."""
    await host.wait(run_id)
    return (await host.load(run_id)).state.value


@pytest.mark.asyncio
async def test_a_run_is_durable_once_it_has_begun(server: Server) -> None:
    """Another process finds it with its owner; it goes on when the caller that began it is cancelled."""
    async with server.host() as host, server.host() as other:
        run_id = await host.begin(server.inputs(), "x")
        found = await other.load(run_id)
        assert (found.origin["owner"], found.state) == ("x", RunState.RUNNING)
        assert await ended(host, run_id) == "completed"
        assert [run.run_id for run in await other.runs(5, "x")] == [run_id]
        assert await other.runs(5, "y") == []

        beginning = asyncio.create_task(host.begin(server.inputs(), "y"))
        await asyncio.sleep(0)
        beginning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await beginning
        [left] = host.running
        assert await ended(host, left) == "completed"


@pytest.mark.asyncio
async def test_a_run_that_cannot_begin_is_none(server: Server) -> None:
    """A corpus that is not there, and as many runs of the owner as may go on: an error, and nothing is kept."""
    async with server.host() as host:
        with pytest.raises(CorpusError, match="not there"):
            await host.begin(server.inputs(corpora=(str(server.folder / "gone"),)), "x")
        await server.broken_off("one")
        with pytest.raises(TooManyRuns):
            await host.begin(server.inputs(), "x", most=1)
        assert await ended(host, await host.begin(server.inputs(), "y", most=1)) == "completed"
        assert [run.run_id for run in await host.runs(5, "x")] == ["one"]
        assert list(host.running) == []


@pytest.mark.asyncio
async def test_what_others_left_is_gone_on_with_once(server: Server) -> None:
    """Of the owners that are asked for alone; a run that a process holds is its own."""
    await server.broken_off("left")
    await server.broken_off("foreign", owner="z")
    async with server.host() as host, server.host() as other:
        held = await host.begin(server.inputs(), "x")
        assert await host.adopt({"x", "y"}) == ["left"]
        assert await host.adopt({"x", "y"}) == []
        assert [await ended(host, each) for each in (held, "left")] == ["completed", "completed"]
        assert await other.adopt({"x", "y"}) == []
        assert (await other.load("foreign")).owner == ""
        with pytest.raises(RunNotFound):
            await host.next_events("unknown", 0, 0.0)


@pytest.mark.asyncio
async def test_a_server_that_ends_leaves_its_runs_to_the_next(server: Server) -> None:
    """Broken off, they are held by no process, and end in the next one; their readers get each event once."""
    topic = " ".join(f"What is the {each} of Arland?" for each in ("capital", "population", "area", "currency"))
    async with server.host() as host:
        run_id = await host.begin(server.inputs(topic), "x")
        first = (await host.next_events(run_id, 0, 0.0)).events
    async with server.host() as host:
        assert (await host.load(run_id)).owner == ""
        assert await host.adopt({"x"}) == [run_id]
        events, is_over = list(first), False
        while not is_over:
            found = await host.next_events(run_id, events[-1].seq, 30.0)
            events, is_over = [*events, *found.events], found.is_over
        assert [each.kind.value for each in events].count("finished") == 1
        again = await host.next_events(run_id, 0, 0.0)
        assert events[: len(again.events)] == list(again.events)
        assert (await host.next_events(run_id, events[-1].seq, 30.0)).is_over
        assert (await host.next_events(run_id, 10**17, 30.0)).is_over


@pytest.mark.asyncio
async def test_a_host_that_ends_tells_what_it_left(server: Server) -> None:
    """No run that has ended but has not come to rest, and none that was not known yet."""
    store = server.store(NeverLetsGo)
    store.ended = asyncio.Event()
    async with server.host(store) as host:
        await host.begin(server.inputs(), "x")
        await store.ended.wait()
        left = await host.begin(server.inputs(), "x")
        beginning = asyncio.create_task(host.begin(server.inputs(), "y"))
        await asyncio.sleep(0)
        assert len(host.running) == 3
        assert await host.aclose() == [left]
        assert await host.aclose() == []
        with pytest.raises(asyncio.CancelledError):
            await beginning


@pytest.mark.asyncio
async def test_a_run_of_a_store_that_fails_counts_as_left(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Better told once too often than lost."""
    store = server.store(SqliteRunStore)
    async with server.host(store) as host:
        left = await host.begin(server.inputs(), "x")
        monkeypatch.setattr(store, "load", AsyncMock(side_effect=StoreUnavailable("runs.db", "it is away")))
        assert await host.aclose() == [left]


@pytest.mark.asyncio
async def test_a_run_that_ends_its_processes_is_left_alone(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Gone on with some times and no step settled: the next process does not; a step that settles counts anew."""
    for run_id, settles in (("bad", False), ("slow", True)):
        await server.broken_off(run_id)
        store = server.store(SqliteRunStore)
        for at in range(MOST_RESUMED):
            lease = await store.lease(run_id, f"process {at}")
            await store.record(lease, RunEventKind.RUN_RESUMED)
            if settles and at == MOST_RESUMED - 1:
                await store.settle(lease, "intake_scope", StepResult(state=StepState.FAILED, error="no"))
            await store.release(lease)
        await store.aclose()
    async with server.host() as host:
        assert await host.adopt({"x"}) == ["slow"]
        assert await host.adopt({"x"}) == []
        assert caplog.text.count("run bad of research is not gone on with: it was gone on with 5 times") == 1
        assert (await host.cancel("bad")) is RunState.CANCELLED
        await host.wait("slow")


@pytest.mark.asyncio
async def test_a_run_of_another_version_is_left_alone(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Its workflow has changed: the log says so once, and it can be cancelled."""
    await server.broken_off("old", workflow_hash="another", step_hashes={})
    async with server.host() as host:
        assert await host.adopt({"x"}) == ["old"]
        await host.wait("old")
        assert await host.adopt({"x"}) == []
        assert caplog.text.count("run old of research is not gone on with") == 1
        assert (await host.cancel("old")) is RunState.CANCELLED


@pytest.mark.asyncio
async def test_runs_that_ended_long_ago_are_forgotten(server: Server) -> None:
    """With their artefacts; those that may go on, and those without an owner, stay."""
    async with server.host() as host:
        run_id = await host.begin(server.inputs(), "x")
        await host.wait(run_id)
        await server.broken_off("open")
        server.now += 30 * DAY
        assert await host.forget(30) == []
        assert json.loads((server.folder / "runs" / run_id / "rag_manifest.json").read_text("utf-8"))
        server.now += 1
        assert await host.forget(30) == [run_id]
        assert not (server.folder / "runs" / run_id).exists()
        assert [run.run_id for run in await host.runs(5)] == ["open"]
