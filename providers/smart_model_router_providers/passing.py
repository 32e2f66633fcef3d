"""Requests that pass through: where they go, and their answers piece by piece."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router_providers.classify import classify_response
from smart_model_router_providers.response_reader import known_failure
from smart_model_router_providers.signals import read_limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.outcome import LimitReading
    from smart_model_router_providers.response import Reply

_OK = range(200, 300)
_ERROR_BYTES = 1024 * 1024
_NO_SCOPE = re.compile(r"missing scopes|insufficient permissions", re.IGNORECASE)
"""OpenAI, of a restricted key: a 401 about this path. The key is good for others."""


class PlainReply:
    """An answer whose body nothing here understands (ports.PassedReply)."""

    def __init__(self, reply: Reply, kind: str) -> None:
        self._reply = reply
        self._kind = kind
        self.status = reply.status
        self.headers: Mapping[str, str] = reply.headers
        self.reading: LimitReading = read_limits(kind, reply.headers)

    async def next_piece(self) -> bytes | Failure:
        """The next bytes; b"" after the last. A body that ends too early is TRUNCATED: the head had arrived."""
        try:
            return await self._reply.more()
        except Exception as exc:  # noqa: BLE001 - known_failure raises what is not a transport's
            failure = known_failure(exc, self._kind)
            cut = failure.failure_class is FailureClass.TRANSPORT
            found = FailureClass.TRUNCATED if cut else failure.failure_class
            return replace(failure, failure_class=found, status=self.status, headers=self.headers)

    async def aclose(self) -> None:
        """Give the connection back or drop it; safe to call twice."""
        await self._reply.aclose()


async def read_plain_reply(reply: Reply, kind: str) -> PlainReply | Failure:
    """The answer that a reply is, or the failure that it means."""
    if reply.status in _OK:
        return PlainReply(reply, kind)
    failure = classify_response(reply.status, reply.headers, await _error_body(reply, kind), kind=kind)
    if failure.credential_wide and _NO_SCOPE.search(failure.message):
        return replace(failure, credential_wide=False)
    return failure


async def _error_body(reply: Reply, kind: str) -> bytes:
    """The body of an error; b"" where it is too long or breaks off: the status already says what happened."""
    body = b""
    try:
        while piece := await reply.more():
            body += piece
            if len(body) > _ERROR_BYTES:
                return b""
    except Exception as exc:  # noqa: BLE001 - known_failure raises what is not a transport's
        known_failure(exc, kind)
        return b""
    finally:
        await reply.aclose()
    return body
