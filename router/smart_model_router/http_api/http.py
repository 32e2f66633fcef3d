"""What HTTP is to the edge: two families of manners, and a whole reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.report import RouteReport

Family = Literal["openai", "anthropic"]
"""Whose manners an endpoint has: the shape of its errors, the names of its headers."""

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
