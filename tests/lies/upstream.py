"""A provider that sends the streams it is given, byte for byte, through the reader of HTTP replies."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable

import aiohttp

from smart_model_router.domain.outcome import Failure, Outcome
from smart_model_router.domain.ports import ProviderCall, ProviderStream
from smart_model_router_providers.response import ReplyStream
from tests.lies.lying import Ending, Stream

Script = Callable[[str], Stream]
"""What is answered to a call; the text is what its answer is to go on from ("": it answers anew)."""


_STRETCH = 200
"""Bytes; longer than most events."""


class Liar:
    """A ports.Provider with one script for its first call, one for its second, ...; the last for all others."""

    def __init__(self, scripts: list[Script], dice: random.Random) -> None:
        self._scripts = scripts
        self._dice = dice
        self.sent: list[Stream] = []
        self.begun: list[str] = []
        """What each of them was to go on from."""

    async def call(self, call: ProviderCall) -> Outcome:
        """Only streams are asked for."""
        raise NotImplementedError

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """The next script."""
        begun = _begun(call.payload)
        told = self._scripts[min(len(self.sent), len(self._scripts) - 1)](begun)
        self.sent.append(told)
        self.begun.append(begun)
        return ReplyStream(_Wire(_pieces(told.raw, self._dice), told.ending), told.dialect, "openai_compatible")

    async def aclose(self) -> None:
        """Nothing is open."""


class _Wire:
    """A reply whose body comes in pieces and ends in one of three ways."""

    status = 200
    headers: dict[str, str] = {"content-type": "text/event-stream"}  # noqa: RUF012 - nobody writes to it

    def __init__(self, pieces: list[bytes], ending: Ending) -> None:
        self._pieces = pieces[::-1]
        self._ending = ending

    async def more(self) -> bytes:
        if self._pieces:
            return self._pieces.pop()
        if self._ending == "silence":
            await asyncio.Event().wait()
        if self._ending == "reset":
            raise aiohttp.ClientPayloadError("Response payload is not completed")
        return b""

    def ended(self) -> bool:
        return False

    async def aclose(self) -> None:
        self._pieces = []


def _pieces(raw: bytes, dice: random.Random) -> list[bytes]:
    """The bytes as a network might bring them: event by event, all at once, or in pieces of any size."""
    how = dice.random()
    if how < 0.4:
        whole, blank, rest = raw.rpartition(b"\n\n")
        return [part for part in (*(part + b"\n\n" for part in whole.split(b"\n\n") if blank), rest) if part]
    if how < 0.5:
        return [raw] if raw else []
    size = dice.choice((1, 7, 60, 400))
    start, end = 0, len(raw)
    if size == 1:  # byte by byte for a stretch of it: whole streams of single bytes took half of the time of all
        start = dice.randrange(len(raw) or 1)
        end = start + _STRETCH
    middle = (raw[at : min(at + size, end)] for at in range(start, min(end, len(raw)), size))
    return [piece for piece in (raw[:start], *middle, raw[end:]) if piece]


def _begun(payload: bytes) -> str:
    messages = json.loads(payload).get("messages") or [{}]
    last = next((one for one in messages if one.get("role") == "assistant"), None)
    if last is None:
        return ""
    content = last["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
