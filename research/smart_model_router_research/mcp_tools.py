"""Research as tools of MCP: search, fetch, deep_research, research_status and research_report. Imports the extra `mcp`.

`search` and `fetch` take one string each, and give what clients for deep research look for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel

from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_research.engine import StoredRun
from smart_model_router_research.pipeline.deep_research import ResearchResult
from smart_model_router_research.pipeline.progress_lines import ProgressLines
from smart_model_router_research.pipeline.research_host import NextEvents
from smart_model_router_research.pipeline.run_inputs import ResearchBudget
from smart_model_router_research.pipeline.told_runs import state_of

T = TypeVar("T")
CANCELLED = "notifications/cancelled"
_WAIT_SECONDS = 15.0
_MOST_CALLS = 1_000
"""Calls under way of one client that are remembered, so that they can be cancelled."""
_INSTRUCTIONS = (
    "Answers whose every sentence was checked against its source. `search` and `fetch` read the documents; "
    "`deep_research` answers a question from them, and says what it did not find."
)


class DeskError(Exception):
    """A request that its client has to change, or that it may not make: the text is for the client."""


class SearchResult(BaseModel):
    """A document that was found."""

    id: str
    title: str
    url: str


class SearchResults(BaseModel):
    """The documents that a search found, the best first."""

    results: list[SearchResult]


class FetchedText(BaseModel):
    """A document, whole."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


class RunReport(BaseModel):
    """A run and what it has come to. `report` is Markdown, "" while there is none.

    `problems` also say which steps went on without their model.
    """

    run: str
    state: str
    delivery: str = ""
    answers: list[str] = []
    report: str = ""
    stop_reason: str = ""
    problems: list[str] = []


class ResearchDesk(Protocol):
    """Research as one client may use it. Every method raises DeskError for what the client has to change."""

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the server is about to end: calls that wait for a run answer then, and the run goes on later."""
        ...

    @property
    def budget(self) -> ResearchBudget:
        """The most that a run may use."""
        ...

    async def search(self, query: str) -> Sequence[SearchResult]:
        """Return the documents for a text, the best first."""
        ...

    async def fetch(self, document: str) -> FetchedText:
        """Return a document by its id."""
        ...

    async def begin(self, topic: str, max_rounds: int | None, budget_usd: float | None) -> str:
        """Begin a run; returns its id once it is durable."""
        ...

    async def next_events(self, run: str, after: int, seconds: float) -> NextEvents:
        """Return the events of a run after one, for the first of which this waits so long."""
        ...

    async def status(self, run: str) -> Mapping[str, Any]:
        """Return how a run stands."""
        ...

    async def report(self, run: str) -> RunReport:
        """Return what a run has come to."""
        ...

    async def cancel(self, run: str) -> None:
        """Cancel a run for good."""
        ...


DeskOf = Callable[[Context[Any, Any]], ResearchDesk]
"""The desk of the client that a call comes from."""


def research_server(desk_of: DeskOf, *, over_stdio: bool) -> MCPServer[Any]:
    """Return the server of the tools, for one client over stdio or for many over HTTP.

    A client that cancels a call of `deep_research` cancels its run: over stdio by the notification that says so, over
    HTTP by closing the stream, as the protocol has it since 2026-07-28; before that, closing it says nothing.
    """
    calls = _Calls()
    server: MCPServer[Any] = MCPServer(
        "smart-model-router",
        title="Smart model router: research",
        instructions=_INSTRUCTIONS,
        version=version("smart-model-router"),
        log_level="WARNING",
        middleware=[calls.hear] if over_stdio else [],
    )

    @server.tool(annotations=_READS)
    async def search(query: str, ctx: Context[Any, Any]) -> SearchResults:
        """Search the documents; returns id, title and url of the best."""
        return SearchResults(results=list(await _asked(desk_of(ctx).search(query))))

    @server.tool(annotations=_READS)
    async def fetch(id: str, ctx: Context[Any, Any]) -> FetchedText:  # noqa: A002 - the name that clients look for
        """Fetch a document by the id that a search gave; returns its text."""
        return await _asked(desk_of(ctx).fetch(id))

    @server.tool(annotations=_BEGINS)
    async def deep_research(
        topic: str, ctx: Context[Any, Any], max_rounds: int | None = None, budget_usd: float | None = None
    ) -> RunReport:
        """Answer a question from the documents, each sentence checked against its source. It may take minutes.

        The run goes on when the connection is lost: `research_status` and `research_report` find it by its id.
        """
        desk = desk_of(ctx)
        begun = calls.begun(ctx.request_id, desk, desk.begin(topic, max_rounds, budget_usd))
        try:
            run = await _asked(asyncio.shield(begun))
            await ctx.report_progress(0, message=f"run {run}")
            return await _followed(desk, run, ctx)
        except asyncio.CancelledError:
            if not (over_stdio or desk.stopping.is_set() or ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS):
                calls.cancel(ctx.request_id)
            raise

    @server.tool(annotations=_READS)
    async def research_status(run: str, ctx: Context[Any, Any]) -> dict[str, Any]:
        """Tell how a run of deep_research stands: its state, round, confidence index, and what it has spent."""
        return dict(await _asked(desk_of(ctx).status(run)))

    @server.tool(annotations=_READS)
    async def research_report(run: str, ctx: Context[Any, Any]) -> RunReport:
        """Return the report of a run of deep_research, as far as it has come."""
        return await _asked(desk_of(ctx).report(run))

    return server


_READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_BEGINS = ToolAnnotations(read_only_hint=True, idempotent_hint=False, open_world_hint=False)


class _Calls:
    """Calls of `deep_research` and the runs that they began, by the ids of their requests."""

    def __init__(self) -> None:
        self._begun: OrderedDict[str, tuple[ResearchDesk, asyncio.Future[str]]] = OrderedDict()
        self._cancelling: set[asyncio.Task[None]] = set()

    def begun(self, request: str, desk: ResearchDesk, beginning: Coroutine[Any, Any, str]) -> asyncio.Future[str]:
        """Note that a call begins a run, which it does also when the call is cancelled meanwhile."""
        future: asyncio.Future[str] = asyncio.ensure_future(beginning)
        future.add_done_callback(_retrieved)
        self._begun[request] = (desk, future)
        while len(self._begun) > _MOST_CALLS:
            self._begun.popitem(last=False)
        return future

    def cancel(self, request: str) -> None:
        """Cancel the run of a call, once it has begun."""
        if (found := self._begun.pop(request, None)) is not None:
            task = asyncio.ensure_future(_cancelled(*found))
            self._cancelling.add(task)
            task.add_done_callback(self._cancelling.discard)

    async def hear(self, ctx: Any, call_next: Any) -> Any:
        """Hear of the calls that a client cancels: middleware of the server of one client."""
        if ctx.method == CANCELLED:
            self.cancel(str((ctx.params or {}).get("requestId")))
        return await call_next(ctx)


async def _cancelled(desk: ResearchDesk, begun: asyncio.Future[str]) -> None:
    try:
        await desk.cancel(await asyncio.shield(begun))
    except DeskError:
        return  # it did not begin, or is not there any more


def _retrieved(future: asyncio.Future[str]) -> None:
    if not future.cancelled():
        future.exception()


async def _followed(desk: ResearchDesk, run: str, ctx: Context[Any, Any]) -> RunReport:
    """Tell of the progress of a run up to its end, or the server's; returns what it has come to."""
    progress, told, after = ProgressLines(desk.budget), 0, 0
    while not desk.stopping.is_set():
        found = await _next(desk, run, after)
        for event in found.events:
            after = event.seq
            for line in progress.of(event):
                told += 1
                await ctx.report_progress(told, message=line.strip())
        if found.is_over:
            break
    return await _asked(desk.report(run))


async def _next(desk: ResearchDesk, run: str, after: int) -> NextEvents:
    """Return the next events, without any when the server is about to end."""
    asked = asyncio.ensure_future(_asked(desk.next_events(run, after, _WAIT_SECONDS)))
    stops = asyncio.ensure_future(desk.stopping.wait())
    try:
        await asyncio.wait({asked, stops}, return_when=asyncio.FIRST_COMPLETED)
        return asked.result() if asked.done() else NextEvents((), is_over=False)
    finally:
        stops.cancel()
        asked.cancel()


async def _asked(answer: Awaitable[T]) -> T:
    """Return an answer of the desk. Raises ToolError, which the client's model reads."""
    try:
        return await answer
    except DeskError as error:
        raise ToolError(str(error)) from None


# ------------------------------------------------------------------------------------------------ for desks


def search_result(document: StoredDocument) -> SearchResult:
    """Return a document as a search tells of it; one without an address has its id as one."""
    return SearchResult(id=document.id, title=document.title or document.id, url=_address(document))


def fetched_text(document: StoredDocument) -> FetchedText:
    """Return a document, whole, with what is known of its source."""
    days = {name: day.day for name in ("published", "modified") if (day := getattr(document, name)) is not None}
    told = {"publisher": document.publisher, "tier": document.tier.value, "corpus": document.corpus, **days}
    return FetchedText(
        id=document.id,
        title=document.title or document.id,
        text=document.text,
        url=_address(document),
        metadata={name: value for name, value in told.items() if value},
    )


def run_report(run: StoredRun, result: ResearchResult) -> RunReport:
    """Return a run and what it has come to."""
    return RunReport(
        run=run.run_id,
        state=state_of(run),
        delivery=result.delivery,
        answers=list(result.answers),
        report=result.report,
        stop_reason=result.stop_reason,
        problems=[*result.problems, *result.model_notes],
    )


def _address(document: StoredDocument) -> str:
    return document.url or f"corpus:{quote(document.id, errors='replace')}"
