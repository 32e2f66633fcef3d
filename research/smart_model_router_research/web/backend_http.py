"""Calls of a back-end's own address over HTTP: bounded, without redirects, with failures in words that have no key."""

from __future__ import annotations

import asyncio
import json
import math
import ssl
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp

from smart_model_router.flow.clock import WallClock
from smart_model_router_research.web.backends import SearchFailed

SECONDS = 15.0
MOST_BYTES = 4 << 20
_LASTING = frozenset({401, 403, 432, 433})
"""Answers that a second query would get as well; 432 and 433 are Tavily's for a plan that is used up."""
_USER_AGENT = "smart-model-router (research; +https://github.com/smart-model-router/smart-model-router)"


class BackendHttp:
    """The HTTP of one back-end, by its name. It keeps no connection between two calls, and no cookies."""

    def __init__(self, backend: str, *, seconds: float = SECONDS, tls: ssl.SSLContext | bool = True) -> None:
        self._backend = backend
        self._seconds = seconds
        self._tls = tls

    async def json(self, method: str, url: str, **given: Any) -> Any:
        """Return the JSON that an address answers. Raises SearchFailed."""
        text = await self.text(method, url, **given)
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self._failed("it answers with something else than JSON") from None

    async def text(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the text that an address answers with status 200. Raises SearchFailed."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._asked(method, url, query, headers, body)
        except TimeoutError:
            raise self._failed(f"no answer within {self._seconds:g} s") from None
        except (aiohttp.ClientError, OSError, UnicodeError, ValueError) as error:
            # The text of such an error may have the address, with its query: its kind says enough.
            raise self._failed(f"it cannot be reached ({type(error).__name__})") from None

    async def _asked(
        self,
        method: str,
        url: str,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
    ) -> str:
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True, ssl=self._tls),
                timeout=aiohttp.ClientTimeout(total=None),
                headers={"User-Agent": _USER_AGENT, "Accept-Encoding": "identity", **(headers or {})},
            ) as session,
            session.request(method, url, params=query, json=body, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise self._refused(response)
            found = bytearray()
            async for piece in response.content.iter_any():
                found += piece
                if len(found) > MOST_BYTES:
                    raise self._failed(f"it answers with more than {MOST_BYTES} bytes")
            return found.decode("utf-8", "replace")

    def _refused(self, response: aiohttp.ClientResponse) -> SearchFailed:
        status = response.status
        told = {401: "it refuses the key (401)", 403: "it refuses the query (403)", 429: "too many queries (429)"}
        reason = told.get(status, f"it answers {status}")
        wait = seconds_of(response.headers.get("Retry-After", "")) if status in (429, 503) else None
        return SearchFailed(self._backend, reason, retry_after=wait, is_lasting=status in _LASTING)

    def _failed(self, reason: str) -> SearchFailed:
        return SearchFailed(self._backend, reason)


def seconds_of(header: str) -> float | None:
    """Return the seconds of a header `Retry-After`, a number or a date, 0 at least; None for anything else."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - WallClock.now()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
