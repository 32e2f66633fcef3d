"""Parameters that a target adds to requests whose callers left them out (`defaults` of a target)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from smart_model_router.domain.request import Dialect

_LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Every name that the cap on an answer has: a caller that gave one needs no default."""
_LENGTH_IN: Mapping[Dialect, str] = MappingProxyType(
    {"chat": "max_tokens", "messages": "max_tokens", "responses": "max_output_tokens"}
)


def with_defaults(
    dialect: Dialect, body: Mapping[str, Any], defaults: Mapping[str, Any], *, newest_chat: bool
) -> Mapping[str, Any]:
    """The body with the defaults that it does not have, in the words of `dialect`; the same when it has all of them.

    `newest_chat`: a Chat target that takes `max_completion_tokens` and refuses `max_tokens`. Embeddings take none, and
    Responses no `thinking`.
    """
    if dialect not in _LENGTH_IN:
        return body
    added: dict[str, Any] = {}
    for name, value in defaults.items():
        if name == "max_tokens":
            if all(body.get(length) is None for length in _LENGTHS):
                added["max_completion_tokens" if dialect == "chat" and newest_chat else _LENGTH_IN[dialect]] = value
        elif body.get(name) is None and (name != "thinking" or dialect != "responses"):
            added[name] = value
    return {**body, **added} if added else body
