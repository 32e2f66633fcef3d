"""The loop a user would write without the router: ask the targets in written order, twice round, without memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from smart_model_router.core.flow_config import TimeoutConfig
from smart_model_router.domain.outcome import EventKind, Failure, Success
from smart_model_router.domain.ports import Provider, ProviderCall

_DEFAULTS = TimeoutConfig()


class Naive:
    """`ask` tries each of `targets` (name and provider) in turn, `rounds` times, until `deadline` seconds are over.

    Each attempt is bounded by the default `attempt` timeout (whole answers) or `first_content` timeout (streams). A
    stream that is cut after content ends the request, unless `buffered`: then nothing was delivered, and the loop
    goes on.
    """

    def __init__(
        self, targets: Sequence[tuple[str, Provider]], *, deadline: float, rounds: int = 2, buffered: bool = False
    ) -> None:
        self._targets = tuple(targets)
        self._deadline = deadline
        self._rounds = rounds
        self._buffered = buffered

    async def ask(self, body: Mapping[str, Any], *, stream: bool) -> str | None:
        """Send one request. Returns the name of the target that served it; None when none did."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._deadline
        call = ProviderCall("chat", "big", b"{}", body, stream=stream)
        for name, provider in self._targets * self._rounds:
            if loop.time() >= ends_at:
                return None
            delivered = False
            try:
                if stream:
                    complete, delivered = await self._read(provider, call, ends_at)
                else:
                    async with asyncio.timeout_at(min(ends_at, loop.time() + _DEFAULTS.attempt)):
                        complete = isinstance(await provider.call(call), Success)
            except TimeoutError:
                complete = False
            if complete:
                return name
            if delivered:
                return None
        return None

    async def _read(self, provider: Provider, call: ProviderCall, ends_at: float) -> tuple[bool, bool]:
        """Read one stream: whether it is complete, and whether the caller has content of it."""
        loop = asyncio.get_running_loop()
        content = complete = False
        async with asyncio.timeout_at(min(ends_at, loop.time() + _DEFAULTS.first_content)) as limit:
            opened = await provider.open_stream(call)
            if isinstance(opened, Failure):
                return False, False
            try:
                async for event in opened:
                    if event.kind is EventKind.CONTENT and not content:
                        content = True
                        limit.reschedule(ends_at)
                    complete = event.kind is EventKind.END
            finally:
                await opened.aclose()
        return content and complete, content and not self._buffered
