"""The length of a prompt, which needs no provider (`POST /v1/messages/count_tokens`)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from smart_model_router.core.media_tokens import media_tokens
from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.request import media_of
from smart_model_router.http_api.http import HttpReply, json_reply
from smart_model_router.wires.large import decode_any
from smart_model_router.wires.values import is_list, is_object

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
