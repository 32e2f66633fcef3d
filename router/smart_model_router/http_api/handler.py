"""A question answered: the router is called in the dialect, and what it says becomes HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from smart_model_router.domain.errors import DeadlineExceeded, InvalidRequest, RouterUnavailable
from smart_model_router.domain.request import RequestOptions
from smart_model_router.http_api.api_request import ApiRequest
from smart_model_router.http_api.event_stream import EdgeStream
from smart_model_router.http_api.headers import report_headers
from smart_model_router.http_api.http import HttpReply, encoded
from smart_model_router.http_api.model_name import Relabel, name_for
from smart_model_router.router import RouterReply, SmartModelRouter

T = TypeVar("T")


async def serve(router: SmartModelRouter, ask: ApiRequest) -> HttpReply:
    """The whole answer. Raises SmartRouterError."""

    def once(options: RequestOptions) -> Awaitable[RouterReply]:
        if ask.operation == "count":
            return router.count_input(ask.body, options)
        return router.answer(ask.dialect, ask.body, options, written=ask.written, operation=ask.operation)

    reply = await _through_models(ask, once)
    ask.reports.append(reply.report)
    raw, said = reply.raw, reply.body
    if ask.completion is not None:
        said = ask.completion.whole(said)
        raw = encoded(said)
        reply.report.losses[:0] = ask.completion.losses
    name = name_for(router.config.routing.model_name, ask.models[0], reply.report)
    body = Relabel(name, ask.dialect).whole(raw, said)
    return HttpReply(200, report_headers(reply.report, stream=False), body, reply.report)


async def open_stream(router: SmartModelRouter, ask: ApiRequest, *, reported: bool = True) -> EdgeStream:
    """A stream whose first content is there. Raises SmartRouterError."""

    async def once(options: RequestOptions) -> EdgeStream:
        own: RequestOptions = {"accept_restart": False, **options}  # a client that knows what it is says so
        request = await router.read(ask.dialect, ask.body, own, written=ask.written, stream=True)
        named = router.config.routing.model_name
        stream = EdgeStream(router.stream_of(request), ask, named=named, reported=reported)
        ask.reports.append(stream.report)
        await stream.start()
        return stream

    return await _through_models(ask, once)


def dearest_usd(router: SmartModelRouter, ask: ApiRequest) -> float:
    """What the answer may cost in USD, under the dearest of its names. A name that cannot be served costs nothing."""
    dearest = 0.0
    for name in ask.models:
        with suppress(InvalidRequest):
            body = _named(ask, name)
            cost = router.dearest_usd(ask.dialect, body, ask.options, written=ask.written, stream=ask.stream)
            dearest = max(dearest, cost)
    return dearest


async def _through_models(ask: ApiRequest, once: Callable[[RequestOptions], Awaitable[T]]) -> T:
    """Ask under each name in turn while nobody of the one before can serve, within one deadline."""
    loop = asyncio.get_running_loop()
    started, timeout = loop.time(), ask.options.get("timeout")
    first: RouterUnavailable | None = None
    for name in ask.models:
        ask.body = _named(ask, name)
        try:
            return await once(_rest_of(ask.options, timeout, loop.time() - started))
        except DeadlineExceeded:
            raise
        except RouterUnavailable as unavailable:
            first = first or unavailable
        except InvalidRequest:
            if first is None:
                raise
    if first is None:  # there was no name: the router says what is wrong with that
        return await once(ask.options)
    raise first  # what became of the name that was asked for says more than of a stand-in's


def _rest_of(options: RequestOptions, timeout: float | None, spent: float) -> RequestOptions:
    return options if timeout is None else {**options, "timeout": max(0.001, timeout - spent)}


def _named(ask: ApiRequest, name: str) -> dict[str, Any]:
    return ask.body if ask.body.get("model") == name else {**ask.body, "model": name}
