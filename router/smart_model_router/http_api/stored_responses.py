"""Answers that are kept: GET and DELETE /v1/responses/{id}."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from urllib.parse import parse_qs

from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.request import Operation
from smart_model_router.http_api.api_request import ENDPOINTS, read_options
from smart_model_router.http_api.headers import report_headers
from smart_model_router.http_api.http import HttpReply
from smart_model_router.router import SmartModelRouter

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
