"""The parts of answers and of errors in each dialect, as the bytes a provider sends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from smart_model_router_providers.fault.parsed_request import Dialect

CREATED = 1_763_683_200  # one fixed stamp: the same seed gives the same bytes
EVENT_STREAM = "text/event-stream; charset=utf-8"
JSON = "application/json"
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """A good answer in parts: what opens a stream, its pieces of content, and what closes it.

    A whole answer is content (the first half of the body) and closing (the second).
    """

    stream: bool
    opening: tuple[bytes, ...]
    content: tuple[bytes, ...]
    closing: tuple[bytes, ...]


def dumps(value: object) -> bytes:
    """JSON as it goes over the wire."""
    return json.dumps(value, separators=(",", ":")).encode()


def whole_answer(value: object) -> ScriptedAnswer:
    """An answer that is no stream."""
    body = dumps(value)
    half = len(body) // 2
    return ScriptedAnswer(stream=False, opening=(), content=(body[:half],), closing=(body[half:],))


def data_frame(value: object) -> bytes:
    """A server-sent event without a name."""
    return b"data: " + dumps(value) + b"\n\n"


def named_frame(value: Mapping[str, Any]) -> bytes:
    """A server-sent event named by its type."""
    return b"event: " + str(value["type"]).encode() + b"\n" + data_frame(value)


PHRASES: Mapping[int, str] = MappingProxyType(
    {**{status.value: status.phrase for status in HTTPStatus}, 529: "Overloaded"}
)

# status -> (OpenAI's type, OpenAI's code, Anthropic's type)
_ERRORS: Mapping[int, tuple[str, str | None, str]] = MappingProxyType(
    {
        400: ("invalid_request_error", None, "invalid_request_error"),
        401: ("invalid_request_error", "invalid_api_key", "authentication_error"),
        402: ("insufficient_quota", "insufficient_quota", "billing_error"),
        403: ("invalid_request_error", "permission_denied", "permission_error"),
        404: ("invalid_request_error", "model_not_found", "not_found_error"),
        413: ("invalid_request_error", "request_too_large", "request_too_large"),
        429: ("requests", "rate_limit_exceeded", "rate_limit_error"),
        500: ("server_error", None, "api_error"),
        503: ("service_unavailable_error", None, "api_error"),
        504: ("server_error", None, "timeout_error"),
        529: ("overloaded_error", None, "overloaded_error"),
    }
)


def _error(dialect: Dialect, status: int, message: str | None) -> dict[str, Any]:
    kind, code, anthropic = _ERRORS.get(status) or _ERRORS[400 if status < 500 else 500]
    said = message or PHRASES.get(status, "Error")
    if dialect == "messages":
        return {"type": "error", "error": {"type": anthropic, "message": said}, "request_id": "req_fault"}
    return {"error": {"message": said, "type": kind, "param": None, "code": code}}


def error_body(dialect: Dialect, status: int, message: str | None = None) -> bytes:
    """The dialect's own error object for a status; a good status says a server error."""
    return dumps(_error(dialect, status if status >= 400 else 500, message))


def unknown_path(asked: str) -> bytes:
    """OpenAI's error for an unknown path: without the code that it has for a model."""
    error = {"message": f"Invalid URL ({asked})", "type": "invalid_request_error", "param": None, "code": None}
    return dumps({"error": error})


def error_frame(dialect: Dialect, body: bytes | None) -> bytes:
    """The dialect's error inside a stream; `body` (JSON) replaces its data."""
    if dialect == "messages":
        return b"event: error\ndata: " + (body or dumps(_error(dialect, 529, None))) + b"\n\n"
    if dialect == "responses":
        event = {
            "type": "error",
            "code": "server_error",
            "message": "Internal Server Error",
            "param": None,
            "sequence_number": 0,
        }
        return b"event: error\ndata: " + (body or dumps(event)) + b"\n\n"
    return b"data: " + (body or dumps(_error(dialect, 500, None))) + b"\n\n"


def ping(dialect: Dialect) -> bytes:
    """The dialect's own sign of life, else an SSE comment."""
    return PING if dialect == "messages" else COMMENT


COMMENT = b": keep-alive\n\n"
