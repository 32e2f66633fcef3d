"""A whole reply over HTTP: its body, its headers, and the headers that tell of its routing."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.report import RouteReport

Family = Literal["openai", "anthropic"]
"""The conventions of an endpoint: the shape of its errors, the names of its headers."""

JSON_TYPE = {"content-type": "application/json"}


@quick
@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole answer over HTTP. Header names are lower-case; `report` is the routing behind it, when there was any."""

    status: int
    headers: Mapping[str, str] = field(default_factory=lambda: JSON_TYPE)
    body: bytes = b""
    report: RouteReport | None = None


def encoded(value: object) -> bytes:
    """JSON as we send it: compact; text that UTF-8 cannot write (a lone surrogate) as an escape."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_reply(value: Mapping[str, Any], status: int = 200, report: RouteReport | None = None) -> HttpReply:
    """A reply whose body is one JSON object."""
    return HttpReply(status, JSON_TYPE, encoded(value), report)


EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_MOST_HEADER = 1000


def report_headers(report: RouteReport, *, stream: bool, kind: Mapping[str, str] | None = None) -> dict[str, str]:
    """The headers of an answer, with what a client may want to know of the routing. `kind` says what the body is.

    A stream's head cannot know its cost, nor whether it will be complete: its `router` object does.
    """
    if kind is None:
        kind = EVENT_STREAM if stream else JSON_TYPE
    headers = {
        **kind,
        **id_headers(report.request_id),
        "x-router-attempts": str(len(report.attempts) + stream),  # a stream's own attempt is noted when it ends
    }
    if report.target is None:
        return headers
    headers["x-router-provider"], headers["x-router-model"] = _names(report.target)
    headers["x-router-tier"] = _header(report.actual_tier or "")
    headers["x-router-degraded"] = "true" if report.degraded else "false"
    if report.complete and not stream:
        headers["x-router-complete"] = "true"
    elif report.notes and not stream:
        headers["x-router-complete"] = "false"
    if report.cost_usd is not None:
        headers["x-router-cost-usd"] = f"{report.cost_usd:.8f}"
    if report.losses:
        headers["x-router-lossy"] = _header("; ".join(report.losses))
    return headers


def router_object(report: RouteReport) -> dict[str, Any]:
    """Return what a stream tells of its routing, beside its finish reason."""
    provider, model = ("", "") if report.target is None else _names(report.target)
    told = {
        "request_id": report.request_id,
        "complete": report.complete,
        "provider": provider,
        "model": model,
        "tier": report.actual_tier,
        "degraded": report.degraded,
        "recoveries": [recovery.to_dict() for recovery in report.recoveries],
        "cost_usd": report.cost_usd,
    }
    return {**told, "notes": list(report.notes)} if report.notes else told


def unrouted_headers() -> dict[str, str]:
    """The headers of an answer that no routing led to: an id by which people can speak of it."""
    return {**JSON_TYPE, **id_headers(f"req-{secrets.token_hex(8)}")}


def id_headers(request_id: str) -> dict[str, str]:
    """The id of a request, by the name that each family has for it."""
    return {"x-request-id": request_id, "request-id": request_id}


def model_of(target: str) -> str:
    """The model of a target, as its provider calls it."""
    model = target.partition("/")[2]
    return model.rpartition("#")[0] or model


@lru_cache(maxsize=1024)
def _names(target: str) -> tuple[str, str]:
    """The provider and the model of a target, as headers may carry them."""
    return _header(target.partition("/")[0]), _header(model_of(target))


@lru_cache(maxsize=1024)
def _header(text: str) -> str:
    """Text as a header may carry it."""
    return text[:_MOST_HEADER].encode("ascii", "replace").decode().translate(_CONTROLS)


_CONTROLS = dict.fromkeys((*range(32), 127), " ")
