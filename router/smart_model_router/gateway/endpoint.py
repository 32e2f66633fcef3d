"""One request to the gateway, top to bottom: its client, its question, its rights, its answer, whole or a stream."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from starlette.types import Receive, Scope, Send

from smart_model_router.core.media_tokens import media_tokens
from smart_model_router.core.passthrough_rules import is_path
from smart_model_router.domain.body_encoding import LARGE_BYTES
from smart_model_router.domain.errors import ModelNotFound, RouterUnavailable
from smart_model_router.domain.request import media_of
from smart_model_router.domain.suggest import unknown_model
from smart_model_router.flow.off_loop import off_loop
from smart_model_router.gateway.client_keys import ApiClient, UsageReservation
from smart_model_router.gateway.request_body import (
    WATCH_AFTER,
    Client,
    ClientLeft,
    Upload,
    check_head,
    has_left,
    headers_of,
)
from smart_model_router.gateway.response import Keepalive, Responder
from smart_model_router.gateway.router_generation import RouterGeneration
from smart_model_router.http_api import (
    ApiRequest,
    HttpReply,
    ProblemError,
    answer_locally,
    bug,
    dearest_usd,
    family_of,
    open_stream,
    problem_of,
    read_ask,
    report_headers,
    serve,
    stopping,
)
from smart_model_router.http_api.api_errors import CLOSES, NOT_FOUND, TOLD
from smart_model_router.http_api.api_request import ENDPOINTS, Asked, hint, read_call, read_passed_options
from smart_model_router.http_api.handler import COUNT_TOKENS, MODELS, answer_models, kept_thing, serve_kept

log = logging.getLogger("smart_model_router.gateway")
_BYTES_PER_TOKEN = 4
DEPLOYMENT = "smart_model_router.deployment"
"""The key of a scope that holds the model named in the path; "" where none is."""
ORDER_BYTES = 65_536
"""An operator's order has no more."""


class RouterGenerations(Protocol):
    """The holder of the present generation."""

    @property
    def generation(self) -> RouterGeneration:
        """The generation that new requests enter."""
        ...

    @property
    def ending(self) -> bool:
        """Return whether the time to drain is over: what is under way ends now."""
        ...


@dataclass(slots=True)
class GatewayRequest:
    """A request whose head is read. Header names are lower-case."""

    generation: RouterGeneration
    scope: Scope
    receive: Receive
    responder: Responder
    headers: dict[str, str]
    client: Client | None = None
    upload: Upload | None = None

    @property
    def path(self) -> str:
        """The path, without the query."""
        path: str = self.scope["path"]
        return path

    def body(self, most: float = math.inf) -> Awaitable[bytes]:
        """The whole body, of `most` bytes or what is configured if that is less. Raises ProblemError and ClientLeft.

        From here on a client that hangs up ends the walk.
        """
        config = self.generation.config.gateway
        limit, elements, timeout = config.body_bytes, config.max_elements, config.body_timeout
        self.client = Client(self.receive, after=min(WATCH_AFTER, timeout))
        return self.client.body(self.headers, limit=int(min(limit, most)), elements=elements, timeout=timeout)

    def pieces(self) -> Upload:
        """The body in pieces, of `passthrough.max_body` bytes at most. Raises ProblemError.

        From its end on a client that hangs up ends the walk; before that the reader of the pieces is told.
        """
        config = self.generation.config.gateway
        self.client = Client(self.receive, after=None)
        limit, silence, watch = config.passthrough.max_body, config.body_timeout, self.client.watch
        self.upload = Upload(self.receive, self.headers, limit=limit, silence=silence, on_end=watch)
        return self.upload

    def reply(self, reply: HttpReply) -> Awaitable[None]:
        """Answer. Of a reply to a HEAD every server sends the head alone, with the length that a GET's body has."""
        if self.client is not None:
            self.client.close()
        return self.responder.reply(reply)


Walk = Callable[[GatewayRequest], Awaitable[None]]


class Endpoint:
    """An ASGI application that runs a walk: every end of it is an answer in the client's dialect, or silence."""

    def __init__(self, generations: RouterGenerations, walk: Walk) -> None:
        self._generations = generations
        self._walk = walk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        generation = self._generations.generation
        generation.enter()
        headers = headers_of(scope)
        responder = Responder(send, family_of(scope["path"], headers), scope)
        incoming = GatewayRequest(generation, scope, receive, responder, headers)
        try:
            try:
                check_head(scope, headers, generation.config.gateway.head_bytes)
                await self._walk(incoming)
            except TOLD as error:
                problem = problem_of(error)
                if self._generations.ending and isinstance(error, RouterUnavailable):
                    problem = stopping(error.report)
                if incoming.upload is not None and incoming.upload.unread:
                    problem = replace(problem, closes=True)
                await responder.problem(problem)
        except ClientLeft:
            pass
        except asyncio.CancelledError:
            if incoming.client is None or not incoming.client.left:
                await responder.problem(stopping())
        except Exception as error:  # the last line of defence: the log gets the trace, the client a sentence
            # uvloop raises RuntimeError for what is written to a connection that is gone.
            if not isinstance(error, RuntimeError) or not await has_left(receive):
                log.exception("a request to %s met a bug", scope["path"][:200])
                await responder.problem(bug(error))
        finally:
            if incoming.client is not None:
                incoming.client.close()
            if generation.leave():
                await generation.close()


class DialectHandler:
    """The walk of a dialect's endpoint."""

    def __init__(self, asked: Asked) -> None:
        self._asked: Asked = asked

    async def __call__(self, incoming: GatewayRequest) -> None:
        """Read, admit, answer, settle."""
        generation, clock = incoming.generation, asyncio.get_running_loop().time
        api_client = generation.ring.api_client(incoming.headers)
        body = await incoming.body()
        read = partial(self._read, incoming, body, counting=api_client.counts_tokens)
        ask, tokens = await off_loop(read, len(body)) if len(body) > LARGE_BYTES else read()
        visit = await admit(generation, api_client, ask, tokens)
        try:
            with generation.traced(incoming.headers):
                if ask.stream:
                    await _stream(incoming, ask)
                else:
                    await incoming.reply(await serve(generation.router, ask))
        except ModelNotFound as error:  # the router knows names that are not for this key
            error.message = unknown_model(error.model, filter(api_client.may_use, generation.config.names))
            raise
        finally:
            visit.settle(ask.reports, clock())

    def _read(self, incoming: GatewayRequest, body: bytes, *, counting: bool) -> tuple[ApiRequest, int]:
        """The question, and about how many tokens it is (0 where that is not `counting`)."""
        ask = read_ask(self._asked, incoming.headers, body, incoming.scope["query_string"].decode("latin-1"))
        ask.ask_for(incoming.scope.get(DEPLOYMENT, ""))
        return ask, _prompt_tokens(ask, len(body)) if counting else 0


def admit(
    generation: RouterGeneration, api_client: ApiClient, ask: ApiRequest, tokens: int
) -> Awaitable[UsageReservation]:
    """Let a question of about so many tokens in. Raises ProblemError: 403, or 429 with the time to wait."""
    api_client.check(ask)
    return api_client.admit(tokens, dearest_usd(generation.router, ask) if api_client.counts_usd else 0.0)


def _prompt_tokens(ask: ApiRequest, size: int) -> int:
    """About how many tokens a body of `size` bytes is, for any model."""
    media = media_of(ask.dialect, ask.body)
    text = size - sum(medium.encoded for medium in media)
    return text // _BYTES_PER_TOKEN + media_tokens(media, "")


async def local(incoming: GatewayRequest) -> None:
    """The walk of count_tokens, which needs no provider."""
    incoming.generation.ring.api_client(incoming.headers)
    body = await incoming.body()
    answer = partial(answer_locally, incoming.scope["method"], incoming.path, body)
    found = await off_loop(answer, len(body)) if len(body) > LARGE_BYTES else answer()
    if found is None:
        raise not_found(incoming)
    await incoming.reply(found)


async def models(incoming: GatewayRequest) -> None:
    """The walk of the models, listed or one."""
    generation, path = incoming.generation, incoming.path
    api_client = generation.ring.api_client(incoming.headers)
    await incoming.reply(
        await answer_models(generation.router, path, family_of(path, incoming.headers), api_client.may_use)
    )


async def kept(incoming: GatewayRequest) -> None:
    """The walk of an answer of Responses that is kept: GET and DELETE."""
    router, scope, headers = incoming.generation.router, incoming.scope, incoming.headers
    api_client, thing = incoming.generation.ring.api_client(headers), kept_thing(incoming.path)
    if thing is None:
        raise not_found(incoming)
    query = scope["query_string"].decode("latin-1")
    reply = await serve_kept(
        router, scope["method"], thing, headers, query, owner=api_client.owner, may_use=api_client.may_use
    )
    await incoming.reply(reply)


async def passing(incoming: GatewayRequest) -> None:
    """The walk of a request that passes through: neither of its bodies is held."""
    generation, responder, clock = incoming.generation, incoming.responder, asyncio.get_running_loop().time
    api_client = generation.ring.api_client(incoming.headers)
    if not is_path(incoming.path):
        raise not_found(incoming)
    query, deployment = incoming.scope["query_string"].decode("latin-1"), incoming.scope.get(DEPLOYMENT, "")
    body = incoming.pieces()
    call = read_call(incoming.path, incoming.headers, query, body, body.length, deployment)
    options = read_passed_options(incoming.headers)
    passage = generation.router.passage(call, options)
    api_client.check_route(passage.route.name, options)
    visit = await api_client.admit(0, 0.0)
    try:
        with generation.traced(incoming.headers):
            await passage.open()
            headers = report_headers(passage.report, stream=not passage.settled, kind=passage.headers)
            await responder.begin(passage.status, {**headers, **(CLOSES if body.unread else {})})
            await responder.pour(passage.next_piece)
    finally:
        await passage.aclose()
        visit.settle((passage.report,), clock())
    await responder.end()


async def missing(incoming: GatewayRequest) -> None:
    """Reply to a path that does not exist."""
    raise not_found(incoming)


def not_found(incoming: GatewayRequest) -> ProblemError:
    """Return the error of a path that does not exist."""
    right = hint(incoming.path, (*ENDPOINTS, MODELS, COUNT_TOKENS, "/health", "/metrics", "/api/stats"))
    return ProblemError(NOT_FOUND, f"there is no {incoming.scope['method'][:20]} {incoming.path[:200]}; {right}")


async def _stream(incoming: GatewayRequest, ask: ApiRequest) -> None:
    generation, responder = incoming.generation, incoming.responder
    config = generation.config.gateway
    keepalive = Keepalive(responder, ask, hold=config.hold_head, ping=config.ping)
    try:
        stream = await open_stream(generation.router, ask, reported=config.stream_report)
        try:
            await responder.head(ask.dialect, report_headers(stream.report, stream=True))
            await responder.pour(stream.next_frame)
            await keepalive.close()  # nothing comes after the last event
        finally:
            await stream.aclose()
    finally:
        await keepalive.close()
    await responder.end()
