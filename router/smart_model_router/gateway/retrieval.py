"""`POST /query_documents`: questions to the index that the configuration names, answered by the router's models."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from smart_model_router.domain.report import RouteReport
from smart_model_router.flow import search_service
from smart_model_router.flow.clock import WallClock
from smart_model_router.gateway.client_keys import ApiClient
from smart_model_router.gateway.endpoint import GatewayRequest, admit
from smart_model_router.gateway.router_generation import RouterGeneration
from smart_model_router.http_api import HttpReply, read_ask, report_headers
from smart_model_router.http_api.http_reply import encoded, json_reply
from smart_model_router.wires import text_of_answer

if TYPE_CHECKING:
    from smart_model_router_scoring.retrieval import Passage, QueryOrchestrator

_BYTES_PER_TOKEN = 4
_MOST_BYTES = 1_048_576
"""Of a question with its filters."""
_NO_INDEX = "search.index names no index; `smr index DIR --db FILE` makes one"


class RetrievalRoutes:
    """Answers questions to the index. An orchestrator holds vectors in memory, and lives as long as its generation."""

    def __init__(self) -> None:
        self._orchestrators: WeakKeyDictionary[RouterGeneration, QueryOrchestrator] = WeakKeyDictionary()

    async def __call__(self, incoming: GatewayRequest) -> None:
        """Read, search, have an answer written, reply."""
        api_client = incoming.generation.ring.api_client(incoming.headers)
        body = await incoming.body(_MOST_BYTES)
        await incoming.reply(await self._reply(incoming, api_client, body))

    async def _reply(self, incoming: GatewayRequest, api_client: ApiClient, body: bytes) -> HttpReply:
        from smart_model_router_scoring.retrieval.answering import answer  # noqa: PLC0415 - only a search pays

        orchestrator = self._orchestrator(incoming.generation)
        if orchestrator is None:
            return json_reply({"detail": _NO_INDEX}, 503)
        writer = _Writer(incoming, api_client)
        status, told = await answer(body, orchestrator, writer.write)
        reply = json_reply(told, status, writer.report)
        if writer.report is None:
            return reply
        headers = {**reply.headers, **report_headers(writer.report, stream=False)}
        return HttpReply(reply.status, headers, reply.body, reply.report)

    def _orchestrator(self, generation: RouterGeneration) -> QueryOrchestrator | None:
        search = generation.config.search
        if search.index is None:
            return None
        if generation not in self._orchestrators:
            router = generation.router

            async def embed(body: Mapping[str, Any]) -> Mapping[str, Any]:
                return (await router.embeddings(body)).body

            file = Path(search.index).expanduser()
            self._orchestrators[generation] = search_service.orchestrator(
                search, file, now=WallClock().now, embed=embed
            )
        return self._orchestrators[generation]


class _Writer:
    """Has one answer written, at the expense of the guest. `report` is how, once it is."""

    def __init__(self, incoming: GatewayRequest, api_client: ApiClient) -> None:
        self._arrival = incoming
        self._guest = api_client
        self.report: RouteReport | None = None

    async def write(self, asked: str, passages: Sequence[Passage]) -> str:
        """The answer. Raises ProblemError (403, 429) and SmartRouterError."""
        generation, clock = self._arrival.generation, asyncio.get_running_loop().time
        body = encoded(search_service.question(search_service.model_of(generation.config), asked, passages))
        ask = read_ask("chat", self._arrival.headers, body)
        visit = await admit(generation, self._guest, ask, len(body) // _BYTES_PER_TOKEN)
        try:
            reply = await generation.router.chat(ask.body, **ask.options)
            self.report = reply.report
            return text_of_answer(reply.body)
        finally:
            visit.settle([] if self.report is None else [self.report], clock())
