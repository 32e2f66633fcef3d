"""The world of a cell: a provider whose nth answer is a function of the seed, and the loop without the router."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

from smart_model_router.core.flow_config import TimeoutConfig
from smart_model_router.domain.outcome import (
    NO_READING,
    EventKind,
    Failure,
    FailureClass,
    LimitReading,
    Outcome,
    StreamEvent,
    Success,
    Usage,
    Wait,
)
from smart_model_router.domain.ports import Provider, ProviderCall, ProviderStream
from smart_model_router.rehearsal.simulation.grid import Cell, Kind, Outage
from smart_model_router.testing import chunk, usage_chunk

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


_QUICK = 0.05
_SLOW = 10.0
_FIRST_CONTENT = 0.25
"""The share of an answer's time after which a stream's head and first content arrive."""
_USAGE = Usage(prompt_tokens=20, completion_tokens=40)
_ROLE = chunk({"role": "assistant"}, kind=EventKind.META)
_PIECE = chunk({"content": "Hello, world. "})
_END = (chunk({}, finish="stop"), usage_chunk(_USAGE), StreamEvent(EventKind.END, b"data: [DONE]\n\n"))
_ANSWER = Success(
    {
        "object": "chat.completion",
        "model": "big",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 40, "total_tokens": 60},
    },
    b'{"object":"chat.completion","model":"big","choices":[{"index":0,"message":{"role":"assistant",'
    b'"content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":40,'
    b'"total_tokens":60}}',
    _USAGE,
)


@dataclass(frozen=True, slots=True)
class _Fault:
    """`seconds` until the failure. `pieces` of content a stream brings before it; None: not even its head."""

    failure: Failure
    seconds: float = _QUICK
    pieces: int | None = None
    ends_well: bool = False
    """A stream ends like a complete one, although it is empty."""


_CUT = Failure(FailureClass.TRUNCATED, "the connection was closed in the middle of the answer")
_FAULTS: Mapping[Kind, _Fault] = MappingProxyType(
    {
        "500": _Fault(Failure(FailureClass.SERVER_ERROR, "internal error", status=500)),
        "502": _Fault(Failure(FailureClass.SERVER_ERROR, "bad gateway", status=502, raw=b"<html>Bad Gateway</html>")),
        "hang": _Fault(Failure(FailureClass.TIMEOUT), seconds=math.inf),
        "slow": _Fault(Failure(FailureClass.SERVER_ERROR, "internal error", status=500), seconds=_SLOW),
        "reset": _Fault(Failure(FailureClass.TRANSPORT, "connection reset by peer")),
        "cut": _Fault(_CUT, pieces=0),
        "cut_buffered": _Fault(_CUT, seconds=0.5, pieces=1),
        "empty": _Fault(Failure(FailureClass.EMPTY, "the answer is empty"), pieces=0, ends_well=True),
        "529": _Fault(Failure(FailureClass.OVERLOADED, "overloaded", status=529)),
        "429": _Fault(Failure(FailureClass.RATE_LIMITED, "too many requests", status=429)),
    }
)
_MIXTURE: tuple[Kind, ...] = tuple(kind for kind in _FAULTS if kind != "cut_buffered")
"""The failures that `mixed` draws from. A stream cut after content ends both the loop and us without `buffered`."""


def draws(*key: object) -> tuple[float, float]:
    """Two independent numbers in [0, 1) that depend on the key only, in every process."""
    digest = blake2b("/".join(map(str, key)).encode(), digest_size=16).digest()
    first, second = int.from_bytes(digest[:8]), int.from_bytes(digest[8:])
    return (first >> 11) * 2.0**-53, (second >> 11) * 2.0**-53


class GridProvider:
    """A ports.Provider. The body's `user` is the number of the request; calls for it are counted from 0.

    `sent` counts calls from the instant on from which the cell is judged, `in_flight` those that have not ended,
    `area` sums the seconds that they were in flight, `most` is the largest number at a time.
    """

    def __init__(self, cell: Cell, name: str, seed: int) -> None:
        self._cell = cell
        self._name = name
        self._seed = seed
        self._share = cell.shares[cell.providers.index(name)]
        self._outage = cell.outage
        self._phase = _phase(cell.outage, name, seed)
        quota = cell.quota
        self._quota = quota if quota is not None and (quota.everywhere or name == cell.providers[0]) else None
        self._window = self._used = 0
        """The number of the quota's window, and the calls answered in it."""
        self._calls_for: dict[str, int] = {}
        self._began = asyncio.get_running_loop().time()
        self._moved_at = self._began
        self.in_flight = 0
        self.sent = 0
        self.area = 0.0
        self.most = 0

    async def call(self, call: ProviderCall) -> Outcome:
        """Answer whole."""
        fault = self._arrive(call)
        try:
            await _pass(self._cell.answer if fault is None else fault.seconds)
            return _ANSWER if fault is None else fault.failure
        finally:
            self.moved(-1)

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Answer with a stream."""
        fault = self._arrive(call)
        opened = False
        try:
            if fault is None:
                await asyncio.sleep(self._cell.answer * _FIRST_CONTENT)
            else:
                await _pass(min(fault.seconds, _QUICK) if fault.pieces is not None else fault.seconds)
                if fault.pieces is None:
                    return fault.failure
            opened = True
            return _Stream(self, fault, self._cell.answer)
        finally:
            if not opened:
                self.moved(-1)

    async def aclose(self) -> None:
        """Nothing to release."""

    def moved(self, change: int) -> None:
        """Count a call in or out."""
        now = asyncio.get_running_loop().time()
        self.area += self.in_flight * (now - self._moved_at)
        self._moved_at = now
        self.in_flight += change
        self.most = max(self.most, self.in_flight)

    def _arrive(self, call: ProviderCall) -> _Fault | None:
        self.moved(1)
        self.sent += self._elapsed >= self._cell.judged_from
        request = call.body["user"]
        nth = self._calls_for.get(request, 0)
        self._calls_for[request] = nth + 1
        if (fault := self._down() or self._over_quota()) is not None:
            return fault
        chance, which = draws(self._seed, self._name, request, nth)
        if chance >= self._share:
            return None
        kind = self._cell.kind
        if kind == "mixed":
            kind = _MIXTURE[int(which * len(_MIXTURE))]
        return _FAULTS[kind]

    @property
    def _elapsed(self) -> float:
        return self._moved_at - self._began

    def _down(self) -> _Fault | None:
        outage = self._outage
        if outage is None:
            return None
        since = self._elapsed - outage.start + self._phase
        if outage.period is not None:
            since %= outage.period
        if not 0.0 <= since < outage.seconds:
            return None
        return _told_to_wait(outage.seconds - since) if outage.hinted else _FAULTS["500"]

    def _over_quota(self) -> _Fault | None:
        quota = self._quota
        if quota is None:
            return None
        window = int(self._elapsed / quota.seconds)
        if window != self._window:
            self._window, self._used = window, 0
        if self._used == quota.calls:
            return _told_to_wait((window + 1) * quota.seconds - self._elapsed)
        self._used += 1
        return None


class _Stream:
    """The stream of one call. It counts as in flight until it is closed."""

    __slots__ = ("_answer", "_closed", "_fault", "_provider")

    def __init__(self, provider: GridProvider, fault: _Fault | None, answer: float) -> None:
        self._provider = provider
        self._fault = fault
        self._answer = answer
        self._closed = False

    @property
    def reading(self) -> LimitReading:
        """Nothing is said of limits."""
        return NO_READING

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        fault = self._fault
        yield _ROLE
        if fault is None:
            yield _PIECE
            await asyncio.sleep(self._answer * (1.0 - _FIRST_CONTENT))
            yield _PIECE
        else:
            for _ in range(fault.pieces or 0):
                yield _PIECE
            if fault.seconds > _QUICK:
                await asyncio.sleep(fault.seconds - _QUICK)
            if not fault.ends_well:
                yield StreamEvent(EventKind.ERROR, b"", failure=fault.failure)
                return
        for event in _END:
            yield event

    async def aclose(self) -> None:
        """Count it out, once."""
        if not self._closed:
            self._closed = True
            self._provider.moved(-1)


async def _pass(seconds: float) -> None:
    if seconds == math.inf:
        await asyncio.get_running_loop().create_future()
    await asyncio.sleep(seconds)


def _told_to_wait(seconds: float) -> _Fault:
    """A 429 whose Retry-After, in whole seconds, is not over before the limit is."""
    wait = Wait(float(math.ceil(seconds)))
    return _Fault(Failure(FailureClass.RATE_LIMITED, "too many requests", status=429, wait=wait))


def _phase(outage: Outage | None, name: str, seed: int) -> float:
    if outage is None or outage.together or outage.period is None:
        return 0.0
    return outage.period * draws(seed, name, "phase")[0]
