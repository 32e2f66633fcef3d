"""The same transport for the SDKs of yesterday (openai 2, anthropic 0.x), which are built on httpx, not httpx2."""

from __future__ import annotations

from typing import Any, ClassVar

import httpx

from smart_model_router.clients.transport import Frames, Transport


class _Frames1(Frames, httpx.SyncByteStream, httpx.AsyncByteStream):
    """The same, for httpx to recognise."""


class LegacyTransport(Transport, httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A router as an httpx transport."""

    http: ClassVar[Any] = httpx
    frames: ClassVar[type[Frames]] = _Frames1
