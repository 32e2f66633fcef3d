"""What the edge answers by itself, without a provider: which models there are, and how long a prompt is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from smart_model_router.config import RouterConfig
from smart_model_router.core.media import media_tokens
from smart_model_router.edge.http import Family, HttpReply, json_reply
from smart_model_router.edge.problems import NO_MODEL, ProblemError
from smart_model_router.errors import InvalidRequest
from smart_model_router.request import media_of
from smart_model_router.suggest import did_you_mean
from smart_model_router.wires.large import decode_any
from smart_model_router.wires.values import is_list, is_object

COUNT_TOKENS = "/v1/messages/count_tokens"
MODELS = "/v1/models"

_CREATED = 1_700_000_000
_CREATED_AT = "2023-11-14T22:13:20Z"
"""The day every model was made on: clients want one, and ours are names, not files."""
_BYTES_PER_TOKEN = 4
_TOKENS_PER_MESSAGE = 4
_BINARY = frozenset({"data", "signature"})


def answer_locally(method: str, path: str, family: Family, body: bytes, names: tuple[str, ...]) -> HttpReply | None:
    """The reply, or None when the path is not answered here. `names` are the models there are for this client.

    Raises ProblemError for an unknown model, InvalidRequest for a body that is no prompt.
    """
    if path.rstrip("/") == COUNT_TOKENS and method == "POST":
        return json_reply({"input_tokens": count_tokens(body)})
    if method not in ("GET", "HEAD"):
        return None
    if path.rstrip("/") == MODELS:
        return json_reply(_listed(names, family))
    if path.startswith(MODELS + "/"):
        name = path.removeprefix(MODELS + "/")
        if name not in names:
            raise ProblemError(NO_MODEL, f"model: {name[:100]!r} is unknown; {did_you_mean(name, names)}")
        return json_reply(_shown(name, family))
    return None


def public_names(config: RouterConfig) -> tuple[str, ...]:
    """Every name a client may ask for, but for patterns."""
    return tuple(name for name in config.names if "*" not in name)


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


def _shown(name: str, family: Family) -> dict[str, Any]:
    if family == "anthropic":
        return {"type": "model", "id": name, "display_name": name, "created_at": _CREATED_AT}
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "smart-model-router"}


def _listed(names: tuple[str, ...], family: Family) -> Mapping[str, Any]:
    data = [_shown(name, family) for name in names]
    if family == "anthropic":
        ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
        return {"data": data, "has_more": False, **ends}
    return {"object": "list", "data": data}
