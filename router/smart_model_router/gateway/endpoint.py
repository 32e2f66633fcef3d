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
from smart_model_router.domain.errors import ModelNotFound, RouterUnavailable
from smart_model_router.domain.long_json import LARGE_BYTES
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
    """Where the present configuration is found."""

    @property
    def house(self) -> RouterGeneration:
        """The house that new requests enter."""
        ...

    @property
    def ending(self) -> bool:
        """Return whether the time to drain is over: what is under way ends now."""
        ...


@dataclass(slots=True)
class GatewayRequest:
    """A request whose head is read. Header names are lower-case."""

    house: RouterGeneration
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

    async def body(self, most: float = math.inf) -> bytes:
        """The whole body, of `most` bytes or what is configured if that is less. Raises ProblemError and ClientLeft.

        From here on a client that hangs up ends the walk.
        """
        config = self.house.config.gateway
        limit, elements, timeout = config.body_bytes, config.max_elements, config.body_timeout
        self.client = Client(self.receive, after=min(WATCH_AFTER, timeout))
        return await self.client.body(self.headers, limit=int(min(limit, most)), elements=elements, timeout=timeout)

    def pieces(self) -> Upload:
        """The body in pieces, of `passthrough.max_body` bytes at most. Raises ProblemError.

        From its end on a client that hangs up ends the walk; before that the reader of the pieces is told.
        """
        config = self.house.config.gateway
        self.client = Client(self.receive, after=None)
        limit, silence, watch = config.passthrough.max_body, config.body_timeout, self.client.watch
        self.upload = Upload(self.receive, self.headers, limit=limit, silence=silence, on_end=watch)
        return self.upload

    async def reply(self, reply: HttpReply) -> None:
        """Answer. Of a reply to a HEAD every server sends the head alone, with the length that a GET's body has."""
        if self.client is not None:
            self.client.close()
        await self.responder.reply(reply)


Walk = Callable[[GatewayRequest], Awaitable[None]]


class Endpoint:
    """An ASGI application that runs a walk: every end of it is an answer in the client's dialect, or silence."""

    def __init__(self, houses: RouterGenerations, walk: Walk) -> None:
        self._houses = houses
        self._walk = walk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        house = self._houses.house
        house.enter()
        headers = headers_of(scope)
        responder = Responder(send, family_of(scope["path"], headers), scope)
        arrival = GatewayRequest(house, scope, receive, responder, headers)
        try:
            try:
                check_head(scope, headers, house.config.gateway.head_bytes)
                await self._walk(arrival)
            except TOLD as error:
                problem = problem_of(error)
                if self._houses.ending and isinstance(error, RouterUnavailable):
                    problem = stopping(error.report)
                if arrival.upload is not None and arrival.upload.unread:
                    problem = replace(problem, closes=True)
                await responder.problem(problem)
        except ClientLeft:
            pass
        except asyncio.CancelledError:
            if arrival.client is None or not arrival.client.left:
                await responder.problem(stopping())
        except Exception as error:  # the last line of defence: the log gets the trace, the client a sentence
            # uvloop raises RuntimeError for what is written to a connection that is gone.
            if not isinstance(error, RuntimeError) or not await has_left(receive):
                log.exception("a request to %s met a bug", scope["path"][:200])
                await responder.problem(bug(error))
        finally:
            if arrival.client is not None:
                arrival.client.close()
            if house.leave():
                await house.close()


class DialectHandler:
    """The walk of a dialect's endpoint."""

    def __init__(self, asked: Asked) -> None:
        self._asked: Asked = asked

    async def __call__(self, arrival: GatewayRequest) -> None:
        """Read, admit, answer, settle."""
        house, clock = arrival.house, asyncio.get_running_loop().time
        guest = house.ring.guest(arrival.headers)
        body = await arrival.body()
        read = partial(self._read, arrival, body, counting=guest.counts_tokens)
        ask, tokens = await off_loop(read, len(body)) if len(body) > LARGE_BYTES else read()
        visit = await admit(house, guest, ask, tokens)
        try:
            with house.traced(arrival.headers):
                if ask.stream:
                    await _stream(arrival, ask)
                else:
                    await arrival.reply(await serve(house.router, ask))
        except ModelNotFound as error:  # the router knows names that are not for this key
            error.message = unknown_model(error.model, filter(guest.may_use, house.config.names))
            raise
        finally:
            visit.settle(ask.reports, clock())

    def _read(self, arrival: GatewayRequest, body: bytes, *, counting: bool) -> tuple[ApiRequest, int]:
        """The question, and about how many tokens it is (0 where that is not `counting`)."""
        ask = read_ask(self._asked, arrival.headers, body, arrival.scope["query_string"].decode("latin-1"))
        ask.ask_for(arrival.scope.get(DEPLOYMENT, ""))
        return ask, _prompt_tokens(ask, len(body)) if counting else 0


async def admit(house: RouterGeneration, guest: ApiClient, ask: ApiRequest, tokens: int) -> UsageReservation:
    """Let a question of about so many tokens in. Raises ProblemError: 403, or 429 with the time to wait."""
    guest.check(ask)
    return await guest.admit(tokens, dearest_usd(house.router, ask) if guest.counts_usd else 0.0)


def _prompt_tokens(ask: ApiRequest, size: int) -> int:
    """About how many tokens a body of `size` bytes is, for any model."""
    media = media_of(ask.dialect, ask.body)
    text = size - sum(medium.encoded for medium in media)
    return text // _BYTES_PER_TOKEN + media_tokens(media, "")


async def local(arrival: GatewayRequest) -> None:
    """The walk of count_tokens, which needs no provider."""
    arrival.house.ring.guest(arrival.headers)
    body = await arrival.body()
    answer = partial(answer_locally, arrival.scope["method"], arrival.path, body)
    found = await off_loop(answer, len(body)) if len(body) > LARGE_BYTES else answer()
    if found is None:
        raise not_found(arrival)
    await arrival.reply(found)


async def models(arrival: GatewayRequest) -> None:
    """The walk of the models, listed or one."""
    house, path = arrival.house, arrival.path
    guest = house.ring.guest(arrival.headers)
    await arrival.reply(await answer_models(house.router, path, family_of(path, arrival.headers), guest.may_use))


async def kept(arrival: GatewayRequest) -> None:
    """The walk of an answer of Responses that is kept: GET and DELETE."""
    router, scope, headers = arrival.house.router, arrival.scope, arrival.headers
    guest, thing = arrival.house.ring.guest(headers), kept_thing(arrival.path)
    if thing is None:
        raise not_found(arrival)
    query = scope["query_string"].decode("latin-1")
    reply = await serve_kept(router, scope["method"], thing, headers, query, owner=guest.owner, may_use=guest.may_use)
    await arrival.reply(reply)


async def passing(arrival: GatewayRequest) -> None:
    """The walk of a request that passes through: neither of its bodies is held."""
    house, responder, clock = arrival.house, arrival.responder, asyncio.get_running_loop().time
    guest = house.ring.guest(arrival.headers)
    if not is_path(arrival.path):
        raise not_found(arrival)
    query, deployment = arrival.scope["query_string"].decode("latin-1"), arrival.scope.get(DEPLOYMENT, "")
    body = arrival.pieces()
    call = read_call(arrival.path, arrival.headers, query, body, body.length, deployment)
    options = read_passed_options(arrival.headers)
    passage = house.router.passage(call, options)
    guest.check_route(passage.route.name, options)
    visit = await guest.admit(0, 0.0)
    try:
        with house.traced(arrival.headers):
            await passage.open()
            headers = report_headers(passage.report, stream=not passage.settled, kind=passage.headers)
            await responder.begin(passage.status, {**headers, **(CLOSES if body.unread else {})})
            await responder.pour(passage.next_piece)
    finally:
        await passage.aclose()
        visit.settle((passage.report,), clock())
    await responder.end()


async def missing(arrival: GatewayRequest) -> None:
    """Reply to a path that does not exist."""
    raise not_found(arrival)


def not_found(arrival: GatewayRequest) -> ProblemError:
    """Return the error of a path that does not exist."""
    right = hint(arrival.path, (*ENDPOINTS, MODELS, COUNT_TOKENS, "/health", "/metrics", "/api/stats"))
    return ProblemError(NOT_FOUND, f"there is no {arrival.scope['method'][:20]} {arrival.path[:200]}; {right}")


async def _stream(arrival: GatewayRequest, ask: ApiRequest) -> None:
    house, responder = arrival.house, arrival.responder
    config = house.config.gateway
    keepalive = Keepalive(responder, ask, hold=config.hold_head, ping=config.ping)
    try:
        stream = await open_stream(house.router, ask, reported=config.stream_report)
        try:
            await responder.head(ask.dialect, report_headers(stream.report, stream=True))
            await responder.pour(stream.next_frame)
            await keepalive.close()  # nothing comes after the last event
        finally:
            await stream.aclose()
    finally:
        await keepalive.close()
    await responder.end()
