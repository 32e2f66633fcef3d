"""The router as one key has it: each call in process is bounded, admitted and charged as a request of the key is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Unpack

from smart_model_router.domain.errors import Overloaded, RequestRejected, SmartRouterError
from smart_model_router.domain.request import RequestOptions
from smart_model_router.gateway.client_keys import ApiClient
from smart_model_router.gateway.endpoint import admit
from smart_model_router.gateway.router_generation import RouterGeneration
from smart_model_router.http_api import ApiRequest, ProblemError
from smart_model_router.http_api.api_errors import LIMITED
from smart_model_router.http_api.http_reply import encoded
from smart_model_router.router import RouterReply

_BYTES_PER_TOKEN = 4


class ChargedRouter:
    """Calls of the router at the expense of a key, from any loop. They run on `home`, the loop of its requests."""

    def __init__(self, generation: RouterGeneration, api_client: ApiClient, home: asyncio.AbstractEventLoop) -> None:
        self._generation = generation
        self._client = api_client
        self._home = home

    async def chat(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterReply:
        """Send a Chat Completions request and return the whole answer; `options` as those of the router.

        Raises SmartRouterError: RequestRejected for a model that the key may not use, Overloaded with the time to wait
        where its limit is used up.
        """
        charged = self._charged(dict(body), options)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(charged, self._home))

    async def _charged(self, body: dict[str, Any], options: RequestOptions) -> RouterReply:
        model, router = body.get("model"), self._generation.router
        names = (model,) if isinstance(model, str) else ()
        ask = ApiRequest("chat", body, names, stream=False, options=options)
        try:
            visit = await admit(self._generation, self._client, ask, len(encoded(body)) // _BYTES_PER_TOKEN)
        except ProblemError as error:
            raise _as_router_error(error) from None
        try:
            reply = await router.chat(body, **ask.options)
            ask.reports.append(reply.report)
            return reply
        finally:
            visit.settle(ask.reports, self._home.time())


def _as_router_error(error: ProblemError) -> SmartRouterError:
    """Return the refusal of a key as callers in process know refusals."""
    problem = error.problem
    if problem.kind is LIMITED:
        return Overloaded(problem.message, retry_after=problem.retry_after)
    return RequestRejected(problem.message)
