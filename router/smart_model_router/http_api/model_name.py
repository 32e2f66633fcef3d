"""The name of the model in an answer: the one that was asked for stands where the provider wrote its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from smart_model_router.core.flow_config import ModelName
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import Dialect
from smart_model_router.http_api.headers import model_of
from smart_model_router.http_api.http import encoded

_KEY = b'"model"'
_INSIDE: Mapping[Dialect, str] = MappingProxyType({"messages": "message", "responses": "response"})
"""Where an event holds the answer's head, `model` with it; elsewhere it is at the top."""


def name_for(mode: ModelName, asked: str, report: RouteReport) -> str:
    """The `model` of an answer to a request for `asked`, by `routing.model_name`."""
    if report.target is None or mode == "asked":
        return asked
    fallback = report.fallback or report.model != asked  # a stand-in of `models` is asked under its own name
    return model_of(report.target) if fallback or mode == "served" else asked


class Relabel:
    """Rewrites `model` in the answers to one request; bytes that need no rewriting stay as they came.

    A stream keeps the name it begins with, whichever target goes on with it.
    """

    __slots__ = ("_asked", "_dialect", "_inside", "_needle", "_new", "_of")

    def __init__(self, asked: str, dialect: Dialect) -> None:
        self._asked = asked
        self._dialect: Dialect = dialect
        self._inside = _INSIDE.get(dialect)
        self._new = _member(asked)
        self._of: str | None = None
        self._needle = b""

    def whole(self, raw: bytes, body: Mapping[str, Any]) -> bytes:
        """A whole answer, or the JSON of one event."""
        found = body.get("model")
        if found == self._asked or not isinstance(found, str):
            return raw
        quick = self._quick(raw, found)
        return quick if quick is not None else encoded({**body, "model": self._asked})

    def frame(self, raw: bytes, data: Mapping[str, Any]) -> bytes:
        """One server-sent event."""
        inside = self._inside
        holder = data if inside is None else data.get(inside)
        if holder is None or not isinstance(holder, (dict, Mapping)):  # dict first: an abstract class is slow to ask
            return raw
        found = holder.get("model")
        if found == self._asked or not isinstance(found, str):
            return raw
        quick = self._quick(raw, found)
        if quick is not None:
            return quick
        renamed = {**holder, "model": self._asked}
        return frame(self._dialect, renamed if inside is None else {**data, inside: renamed})

    def _quick(self, raw: bytes, found: str) -> bytes | None:
        """The bytes with one name replaced by another, where there is exactly one place that could be meant.

        Inside a JSON string every quote is escaped: the key with bare quotes is never part of a text.
        """
        if found != self._of:
            self._of = found
            self._needle = _member(found)
        # Not `in` and `count`: on bytes they take several times as long, and this is asked for each chunk of a stream.
        if raw.find(_KEY) != raw.rfind(_KEY) or raw.find(self._needle) < 0:
            return None
        return raw.replace(self._needle, self._new)


@lru_cache(maxsize=256)
def _member(name: str) -> bytes:
    """`"model":"name"`: there are few, and each comes with every request."""
    return _KEY + b":" + json.dumps(name).encode()


def frame(dialect: Dialect, data: Mapping[str, Any]) -> bytes:
    """A server-sent event with this data, as the dialect writes it: all but Chat name their events."""
    head = f"event: {data.get('type')}\n".encode() if dialect in _INSIDE else b""
    return head + b"data: " + encoded(data) + b"\n\n"
