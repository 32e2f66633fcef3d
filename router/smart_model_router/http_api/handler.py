"""Requests answered over HTTP: by the router, from the kept answers, or without a provider."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import parse_qs

from smart_model_router.core.media_tokens import media_tokens
from smart_model_router.domain.errors import DeadlineExceeded, InvalidRequest, ModelNotFound, RouterUnavailable
from smart_model_router.domain.request import Operation, RequestOptions, media_of
from smart_model_router.domain.suggest import unknown_model
from smart_model_router.flow.model_list import NamedModel
from smart_model_router.http_api.api_errors import NO_MODEL, ProblemError
from smart_model_router.http_api.api_request import ENDPOINTS, ApiRequest, read_options
from smart_model_router.http_api.event_stream import EdgeStream, Relabel, name_for
from smart_model_router.http_api.http_reply import Family, HttpReply, encoded, json_reply, report_headers
from smart_model_router.router import RouterReply, SmartModelRouter
from smart_model_router.wires.values import decode_any, is_list, is_object

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
    """Return the highest cost of the answer in USD over its names. A name that cannot be served costs nothing."""
    dearest = 0.0
    for name in ask.models:
        with suppress(InvalidRequest):
            body = _named(ask, name)
            cost = router.dearest_usd(ask.dialect, body, ask.options, written=ask.written, stream=ask.stream)
            dearest = max(dearest, cost)
    return dearest


async def _through_models(ask: ApiRequest, once: Callable[[RequestOptions], Awaitable[T]]) -> T:
    """Ask under each name in turn until one is served, within one deadline."""
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


RESPONSES = "/v1/responses/"
METHODS: Mapping[str, Operation] = MappingProxyType({"GET": "retrieve", "HEAD": "retrieve", "DELETE": "delete"})


def kept_thing(path: str) -> str | None:
    """The id of the answer that a path is about; None where it is about none."""
    thing = path.removeprefix(RESPONSES)
    return thing if path.startswith(RESPONSES) and thing and "/" not in thing and path not in ENDPOINTS else None


async def serve_kept(
    router: SmartModelRouter,
    method: str,
    thing: str,
    headers: Mapping[str, str],
    query: str,
    *,
    owner: str = "",
    may_use: Callable[[str], bool] = lambda _: True,
) -> HttpReply:
    """The reply to one of METHODS. `may_use` says which models this client may use. Raises SmartRouterError."""
    if parse_qs(query).get("stream", ["false"])[-1] == "true":
        raise InvalidRequest("stream: a kept answer is given whole")
    options = read_options(headers)
    options["owner"] = owner
    reply = await router.kept_response(thing, METHODS[method], options, may_use)
    return HttpReply(200, report_headers(reply.report, stream=False), reply.raw, reply.report)


MODELS = "/v1/models"

_CREATED = 1_700_000_000
_CREATED_AT = "2023-11-14T22:13:20Z"
"""Clients want to know when a model was made; ours are names, not files, and are all of one day."""


def asks_for_models(method: str, path: str) -> bool:
    """True for a request that `answer_models` answers."""
    return method in ("GET", "HEAD") and (path == MODELS or path.startswith(f"{MODELS}/"))


async def answer_models(
    router: SmartModelRouter, path: str, family: Family, may_use: Callable[[str], bool] = lambda _: True
) -> HttpReply:
    """The models that this client may use, or the one that the path names. Raises ProblemError for an unknown one."""
    if path == MODELS:
        return json_reply(_listed([model for model in await router.models() if may_use(model.name)], family))
    name = path.removeprefix(f"{MODELS}/")
    try:
        model = await router.model(name)
    except ModelNotFound:
        model = None
    if model is None or not may_use(name):
        raise ProblemError(NO_MODEL, unknown_model(name, filter(may_use, router.config.names)))
    return json_reply(_shown(model, family))


def _shown(model: NamedModel, family: Family) -> dict[str, Any]:
    """A model. Agents compact their conversations by its window: it is told under the names that clients look for."""
    window = model.context_tokens
    windows: dict[str, Any] = {} if window is None else {"context_window": window, "max_input_tokens": window}
    own: dict[str, Any]
    if family == "anthropic":
        own = {"type": "model", "id": model.name, "display_name": model.name, "created_at": _CREATED_AT}
    else:
        own = {"id": model.name, "object": "model", "created": _CREATED, "owned_by": "smart-model-router"}
    return {**own, **windows}


def _listed(models: Sequence[NamedModel], family: Family) -> dict[str, Any]:
    data = [_shown(model, family) for model in models]
    if family == "anthropic":
        first, last = (models[0].name, models[-1].name) if models else (None, None)
        return {"data": data, "has_more": False, "first_id": first, "last_id": last}
    return {"object": "list", "data": data}


COUNT_TOKENS = "/v1/messages/count_tokens"
_BYTES_PER_TOKEN = 4
_TOKENS_PER_MESSAGE = 4
_BINARY = frozenset({"data", "signature"})


def answer_locally(method: str, path: str, body: bytes) -> HttpReply | None:
    """The reply, or None when the path is not answered here. Raises InvalidRequest for a body that is no prompt."""
    if path == COUNT_TOKENS and method == "POST":
        return json_reply({"input_tokens": count_tokens(body)})
    return None


def count_tokens(body: bytes) -> int:
    """About how many tokens a Messages request is: a token per 4 bytes of text, media as Claude counts them.

    Raises InvalidRequest.
    """
    found = decode_any(body)
    if not is_object(found):
        raise InvalidRequest("the body must be a JSON object")
    messages = found.get("messages")
    if not is_list(messages) or not messages:
        raise InvalidRequest("messages: a non-empty list is needed")
    prompt = [found.get("system"), messages, found.get("tools")]
    media = media_tokens(media_of("messages", found), "claude")
    return max(1, math.ceil(sum(_weights(prompt)))) + media + _TOKENS_PER_MESSAGE * len(messages)


def _weights(value: object) -> Iterator[float]:
    """Tokens of every text below a value, without recursion: how deep it goes is the client's choice."""
    pending: list[object] = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield len(value.encode("utf-8", "replace")) / _BYTES_PER_TOKEN
        elif is_list(value):
            pending += value
        elif is_object(value):
            written = value.get("type") == "text"
            pending += [inner for key, inner in value.items() if written or key not in _BINARY]
            yield sum(map(len, value)) / _BYTES_PER_TOKEN
