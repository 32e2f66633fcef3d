"""A request of an SDK, answered by a router in this process: what the network and a server would have done."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from smart_model_router.clients.reports import remember
from smart_model_router.domain.body_encoding import LARGE_BYTES
from smart_model_router.domain.errors import DeadlineExceeded, SmartRouterError
from smart_model_router.domain.report import RouteReport
from smart_model_router.flow.off_loop import off_loop
from smart_model_router.http_api import (
    EdgeStream,
    HttpReply,
    ProblemError,
    answer_locally,
    bug,
    endpoint,
    family_of,
    open_stream,
    problem_of,
    read_ask,
    rendered,
    report_headers,
    serve,
)
from smart_model_router.http_api.api_errors import NOT_FOUND
from smart_model_router.http_api.api_request import ENDPOINTS, canonical, hint
from smart_model_router.http_api.handler import (
    COUNT_TOKENS,
    METHODS,
    MODELS,
    answer_models,
    asks_for_models,
    kept_thing,
    serve_kept,
)
from smart_model_router.router import SmartModelRouter

log = logging.getLogger("smart_model_router.clients")
_IDS = ("x-request-id", "request-id")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of an SDK. Header names are lower-case; `read_timeout` is its longest wait for bytes, in seconds."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    read_timeout: float | None = None
    query: str = ""


@dataclass(frozen=True, slots=True)
class OpenedReply:
    """A stream whose first content is there."""

    headers: Mapping[str, str]
    stream: EdgeStream
    report: RouteReport


class OutOfPatience(Exception):
    """The SDK's own timeout came first; the report says how far the router was."""

    def __init__(self, late: DeadlineExceeded) -> None:
        super().__init__(late.message)
        self.report = late.report


async def answer(router: SmartModelRouter, sent: Sent) -> HttpReply | OpenedReply:
    """Have it answered. Every failure is a reply in the SDK's dialect, but for its own timeout: OutOfPatience."""
    family = family_of(canonical(sent.path).path, sent.headers)
    try:
        reply = await _routed(router, sent)
    except (SmartRouterError, ProblemError) as error:
        reply = rendered(problem_of(error), family)
    except OutOfPatience:
        raise
    except Exception as error:
        log.exception("a request to %s met a bug", sent.path[:200])
        reply = rendered(bug(error), family)
    if isinstance(reply, OpenedReply) or reply.report is None:
        return reply
    return HttpReply(reply.status, _named(reply.headers, reply.report), reply.body, reply.report)


async def _routed(router: SmartModelRouter, sent: Sent) -> HttpReply | OpenedReply:
    path, deployment = canonical(sent.path)
    asked = endpoint(path)
    if asked is None or sent.method != "POST":
        if asks_for_models(sent.method, path):
            return await answer_models(router, path, family_of(path, sent.headers))
        if sent.method in METHODS and (thing := kept_thing(path)) is not None:
            return await serve_kept(router, sent.method, thing, sent.headers, sent.query)
        found = answer_locally(sent.method, path, sent.body)
        if found is None:
            right = hint(path, (*ENDPOINTS, MODELS, COUNT_TOKENS))
            raise ProblemError(NOT_FOUND, f"the router does not answer {sent.method} {path[:200]}; {right}")
        return found
    read = partial(read_ask, asked, sent.headers, sent.body, sent.query)
    ask = await off_loop(read, len(sent.body)) if len(sent.body) > LARGE_BYTES else read()
    ask.ask_for(deployment)
    if sent.read_timeout is not None and ("timeout" not in ask.options or ask.own_deadline):
        ask.options["timeout"], ask.own_deadline = sent.read_timeout, True
    try:
        if not ask.stream:
            return await serve(router, ask)
        stream = await open_stream(router, ask)
    except DeadlineExceeded as expired:
        if ask.own_deadline:
            raise OutOfPatience(expired) from expired
        raise
    headers = _named(report_headers(stream.report, stream=True), stream.report)
    return OpenedReply(headers, stream, stream.report)


def _named(headers: Mapping[str, str], report: RouteReport) -> dict[str, str]:
    """The headers with the id by which the report is found again."""
    return {**headers, **dict.fromkeys(_IDS, remember(report))}
