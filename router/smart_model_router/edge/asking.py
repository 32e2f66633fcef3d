"""An HTTP request read as a question for the router: dialect, body, names of models, options."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeGuard

from smart_model_router.edge.http import Family
from smart_model_router.errors import InvalidRequest
from smart_model_router.request import CRITICALITIES, Criticality, Dialect, RequestOptions
from smart_model_router.wires.values import decode, is_list, is_object

ENDPOINTS: Mapping[str, Dialect] = MappingProxyType(
    {
        "/v1/chat/completions": "chat",
        "/v1/messages": "messages",
        "/v1/responses": "responses",
        "/v1/embeddings": "embeddings",
    }
)
"""Where each dialect is asked."""

SESSION_HEADERS = ("x-router-session", "x-session-id", "session_id", "session-id", "x-claude-code-session-id")
"""What names a conversation, the most deliberate first."""
DEADLINE_HEADERS = ("x-stainless-read-timeout", "x-stainless-timeout")
"""How long the client itself will wait, in seconds."""

_HASTE_SECONDS = 0.25
"""We answer so much before the client gives up: a clear error is worth more than a silence."""
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|)")


@dataclass(slots=True)
class Ask:
    """A question: `models` are the name asked for and then those to fall back to, in order.

    `options` are the router's; `own_deadline` says that `options["timeout"]` is how long the client itself waits.
    """

    dialect: Dialect
    family: Family
    body: dict[str, Any]
    models: tuple[str, ...]
    stream: bool
    options: RequestOptions = field(default_factory=RequestOptions)
    own_deadline: bool = False


def endpoint(path: str) -> Dialect | None:
    """The dialect asked at a path, None where none is. A trailing slash makes no difference."""
    return ENDPOINTS.get(path) or ENDPOINTS.get(path.rstrip("/"))


def read_ask(dialect: Dialect, headers: Mapping[str, str], body: bytes) -> Ask:
    """Read a request. Header names are lower-case. Raises InvalidRequest that names what is wrong."""
    found = decode(body)
    if found is None and body.strip() != b"null":
        raise InvalidRequest("the body is empty" if not body.strip() else "the body is not JSON")
    if not is_object(found):
        raise InvalidRequest(f"the body must be a JSON object, not {type(found).__name__}")
    stream = found.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise InvalidRequest("stream: true or false is needed")
    if stream and dialect == "embeddings":
        raise InvalidRequest("stream: embeddings have no streams")
    family: Family = "anthropic" if dialect == "messages" else "openai"
    ask = Ask(dialect, family, found, _models(found), bool(stream))
    _read_headers(ask, headers)
    return ask


def _models(body: dict[str, Any]) -> tuple[str, ...]:
    """The name asked for and those of `models` / `fallbacks`, which are ours and go no further."""
    names = [] if body.get("model") is None else [body["model"]]
    for key in ("models", "fallbacks"):
        if key in body and _are_names(body[key]):
            names += [name["model"] if is_object(name) else name for name in body.pop(key)]
    if names and "model" not in body:
        body["model"] = names[0]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


def _are_names(value: object) -> TypeGuard[list[Any]]:
    if not is_list(value):
        return False
    return all(isinstance(name.get("model") if is_object(name) else name, str) for name in value)


def _read_headers(ask: Ask, headers: Mapping[str, str]) -> None:
    options = ask.options
    for name, read in _READERS.items():
        if name in headers:
            read(options, headers[name])
    session = next((headers[name] for name in SESSION_HEADERS if headers.get(name)), None)
    if session is not None:
        options["session"] = session
    if "timeout" not in options:
        own = [seconds for name in DEADLINE_HEADERS if (seconds := _number(headers.get(name, ""))) is not None]
        if own:
            options["timeout"] = min(own) - min(_HASTE_SECONDS, min(own) / 10)
            ask.own_deadline = True


def _tier(options: RequestOptions, value: str) -> None:
    options["tier"] = value


def _timeout(options: RequestOptions, value: str) -> None:
    match = _DURATION.fullmatch(value.strip())
    seconds = None if match is None else float(match[1]) * _UNITS[match[2]]
    if not seconds:
        raise InvalidRequest(f"x-router-timeout: a duration above 0 (such as 15s) is needed, not {value[:40]!r}")
    options["timeout"] = seconds


def _max_cost(options: RequestOptions, value: str) -> None:
    usd = _number(value)
    if usd is None:
        raise InvalidRequest(f"x-router-max-cost: a number of USD above 0 is needed, not {value[:40]!r}")
    options["max_cost"] = usd


def _criticality(options: RequestOptions, value: str) -> None:
    options["criticality"] = criticality(value)


def criticality(value: str) -> Criticality:
    """One of the four. Raises InvalidRequest."""
    for known in CRITICALITIES:
        if value.strip().lower() == known:
            return known
    raise InvalidRequest(f"x-router-criticality: {value[:40]!r} is none of {', '.join(CRITICALITIES)}")


_READERS: Mapping[str, Callable[[RequestOptions, str], None]] = MappingProxyType(
    {
        "x-router-tier": _tier,
        "x-router-timeout": _timeout,
        "x-router-max-cost": _max_cost,
        "x-router-criticality": _criticality,
    }
)


def _number(value: str) -> float | None:
    """A finite number above 0, None for anything else."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None
