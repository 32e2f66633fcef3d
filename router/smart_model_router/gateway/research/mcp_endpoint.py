"""`/mcp`: research as tools of MCP over Streamable HTTP, without sessions: any worker answers any request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from smart_model_router.flow.clock import WallClock
from smart_model_router.gateway.client_keys import ApiClient
from smart_model_router.gateway.endpoint import RouterGenerations
from smart_model_router.gateway.request_body import check_head, headers_of
from smart_model_router.gateway.research.hosted_research import GatewayResearch, HostedResearch
from smart_model_router.gateway.research.research_request import AskedBudget, AskedRun, inputs_of
from smart_model_router.gateway.research.research_routes import begun_run, run_of, standing_of, told
from smart_model_router.gateway.response import Responder
from smart_model_router.http_api import ProblemError, problem_of
from smart_model_router_research.mcp_tools import (
    DeskError,
    FetchedText,
    RunReport,
    SearchResult,
    fetched_text,
    research_server,
    run_report,
    search_result,
)
from smart_model_router_research.pipeline.research_host import NextEvents
from smart_model_router_research.pipeline.run_inputs import ResearchBudget, RunInputs

T = TypeVar("T")
_MOST_BYTES = 1_048_576
_DESK = "smart_model_router.research"
"""The key of a scope that holds the desk of its client."""


class McpEndpoint:
    """An ASGI application for the requests of all clients; each has the desk of its key."""

    def __init__(self, generations: RouterGenerations, research: GatewayResearch) -> None:
        self._generations = generations
        self._research = research
        server = research_server(_desk_of, over_stdio=False)
        server.streamable_http_app(
            stateless_http=True,
            max_request_body_size=_MOST_BYTES,
            # Hosts and origins are checked with the key, as everywhere.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._manager: StreamableHTTPSessionManager = server.session_manager
        self._serving: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    def start(self) -> None:
        """Serve from now on; safe to call twice."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve(), name="smart-model-router mcp")

    async def stop(self) -> None:
        """End the requests that are under way."""
        if self._serving is not None:
            self._serving.cancel()
            with suppress(asyncio.CancelledError):
                await self._serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        generation = self._generations.generation
        generation.enter()
        try:
            headers = headers_of(scope)
            check_head(scope, headers, generation.config.gateway.head_bytes)
            api_client = generation.ring.api_client(headers)
            await self._ready.wait()
            scope[_DESK] = KeyDesk(self._research, self._research.of(generation), api_client)
            await self._manager.handle_request(scope, receive, send)
        except ProblemError as error:
            await Responder(send, "openai", scope).problem(problem_of(error))
        finally:
            if generation.leave():
                await generation.close()

    async def _serve(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await asyncio.Event().wait()


def _desk_of(context: Context[Any, Any]) -> KeyDesk:
    request: Any = context.request_context.request
    desk: KeyDesk = request.scope[_DESK]
    return desk


class KeyDesk:
    """Research as one key may use it: within its limits, over the corpora of the configuration, and its own runs."""

    def __init__(self, research: GatewayResearch, hosted: HostedResearch, api_client: ApiClient) -> None:
        self.stopping = research.stopping
        self._hosted = hosted
        self._client = api_client

    @property
    def budget(self) -> ResearchBudget:
        """The most that a run may use."""
        return self._inputs(AskedRun(topic="budget")).budget

    async def search(self, query: str) -> Sequence[SearchResult]:
        """Return the documents for a text. Raises DeskError."""
        await self._count()
        hosted, inputs = self._hosted, self._inputs(AskedRun(topic="search"))
        return [search_result(each) for each in await _told(hosted.call(hosted.host.search(inputs, query)))]

    async def fetch(self, document: str) -> FetchedText:
        """Return a document. Raises DeskError."""
        await self._count()
        hosted, inputs = self._hosted, self._inputs(AskedRun(topic="fetch"))
        found = await _told(hosted.call(hosted.host.document(inputs, document)))
        if found is None:
            raise DeskError(f"id: {document[:200]!r} is no document; `search` gives ids")
        return fetched_text(found)

    async def begin(self, topic: str, max_rounds: int | None, budget_usd: float | None) -> str:
        """Begin a run of the key. Raises DeskError."""
        await self._count()
        budget = None if budget_usd is None else AskedBudget(usd=budget_usd)
        inputs = self._inputs(AskedRun(topic=topic, max_rounds=max_rounds, budget=budget))
        return await _told(begun_run(self._hosted, inputs, self._client))

    async def next_events(self, run: str, after: int, seconds: float) -> NextEvents:
        """Return the next events of a run of the key. Raises DeskError."""
        return await _told(self._hosted.call(self._hosted.host.next_events(run, after, seconds)))

    async def status(self, run: str) -> Mapping[str, Any]:
        """Return how a run of the key stands. Raises DeskError."""
        return standing_of(self._hosted, await _told(run_of(self._hosted, run, self._client)), self._client)

    async def report(self, run: str) -> RunReport:
        """Return what a run of the key has come to. Raises DeskError."""
        known = await _told(run_of(self._hosted, run, self._client))
        return run_report(known, await _told(self._hosted.call(self._hosted.host.result(run))))

    async def cancel(self, run: str) -> None:
        """Cancel a run of the key. Raises DeskError."""
        await _told(run_of(self._hosted, run, self._client))
        await _told(self._hosted.call(self._hosted.host.cancel(run)))

    async def _count(self) -> None:
        """Count a request of the key. Raises DeskError where its limit is used up."""
        visit = await _told(self._client.admit(0, 0.0))
        visit.settle((), asyncio.get_running_loop().time())

    def _inputs(self, asked: AskedRun) -> RunInputs:
        config = self._hosted.generation.config
        left = self._client.usd_left(asyncio.get_running_loop().time())
        now = datetime.fromtimestamp(WallClock.now(), UTC)
        try:
            return inputs_of(asked, config.research, config.evaluation, self._hosted.corpora, left, now)
        except ProblemError as error:
            raise DeskError(error.problem.message) from None


async def _told(answer: Awaitable[T]) -> T:
    """Return an answer. Raises DeskError for what the client has to change, or cannot have."""
    try:
        return await told(answer)
    except ProblemError as error:
        raise DeskError(error.problem.message) from None
