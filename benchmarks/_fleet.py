"""The router that is measured: ten targets in three tiers over a provider that answers at once, without I/O."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from smart_model_router import SmartModelRouter
from smart_model_router.domain.outcome import NO_READING, EventKind, Failure, FailureClass, StreamEvent, Success, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from smart_model_router.domain.ports import Provider, ProviderCall

_ANSWER: dict[str, Any] = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m0",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "four"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42},
}
_SUCCESS = Success(_ANSWER, json.dumps(_ANSWER).encode(), Usage(40, 2))
_EVENTS = (
    StreamEvent(EventKind.CONTENT, b"", {"choices": [{"index": 0, "delta": {"content": "four"}}]}),
    StreamEvent(EventKind.FINISH, b"", {"choices": [{"index": 0, "delta": {}}]}, "stop", Usage(40, 2)),
)

BODY: dict[str, Any] = {
    "model": "smart",
    "messages": [
        {"role": "system", "content": "You answer in one word, without explanations, and never in more."},
        {"role": "user", "content": "How much is two and two? " * 4},
    ],
    "temperature": 0,
    "max_tokens": 64,
}
"""A small request: what routing costs must not hide behind what its JSON costs."""

PROVIDERS = ("p0", "p1", "p2", "p3", "p4")
CONFIG: dict[str, Any] = {
    "version": 1,
    "providers": {name: {"kind": "scripted", "bulkhead": 100} for name in PROVIDERS},
    "models": {
        "smart": {
            "tiers": [
                {"name": "frontier", "targets": ["p0/m0", "p1/m1", "p2/m2", "p3/m3"]},
                {"name": "standard", "targets": ["p4/m4", "p0/m5", "p1/m6"]},
                {"name": "fast", "targets": ["p2/m7", "p3/m8", "p4/m9"]},
            ],
            "last_resort": [],
        }
    },
}


class InstantProvider:
    """A provider (ports.Provider) that has the answer before it is asked. With `empty_every` each n-th one is empty."""

    def __init__(self, empty_every: int | None = None) -> None:
        self._empty_every = empty_every
        self._calls = 0

    async def call(self, call: ProviderCall) -> Success | Failure:
        """The same answer, at once."""
        del call
        self._calls += 1
        if self._empty_every and self._calls % self._empty_every == 0:
            return Failure(FailureClass.EMPTY, "nothing")
        return _SUCCESS

    async def open_stream(self, call: ProviderCall) -> InstantStream:
        """The same stream, at once."""
        del call
        return InstantStream()

    async def aclose(self) -> None:
        """It holds nothing."""


class HeldProvider(InstantProvider):
    """One whose calls end when they are told to, the oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[asyncio.Future[None], None] = {}
        """In the order of asking; a call that the router gives up is not held any more."""
        self._came = asyncio.Event()

    async def call(self, call: ProviderCall) -> Success | Failure:
        """The same answer, once it is told."""
        told = asyncio.get_running_loop().create_future()
        self._held[told] = None
        self._came.set()
        try:
            await told
        finally:
            self._held.pop(told, None)
        return await super().call(call)

    def answer_oldest(self) -> None:
        """Let one call end."""
        told = next(told for told in self._held if not told.done())  # one that was cancelled is about to leave
        del self._held[told]
        told.set_result(None)

    async def holds(self, calls: int) -> None:
        """Return once so many calls are held, and the waiting ones have begun to wait."""
        while len(self._held) < calls:
            self._came.clear()
            await self._came.wait()
        for _ in range(5):
            await asyncio.sleep(0)


class InstantStream:
    """A stream (ports.ProviderStream) of two events."""

    reading = NO_READING

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        for event in _EVENTS:
            yield event

    async def aclose(self) -> None:
        """It holds nothing."""


def instant_router(provider: Provider) -> SmartModelRouter:
    """A router whose ten targets are all served by `provider`."""
    return SmartModelRouter.from_config(CONFIG, seed=1, providers=dict.fromkeys(PROVIDERS, provider))
