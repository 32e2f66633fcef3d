"""The scripted provider: the fault server's answers in process, for tests and simulations in virtual time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from email.utils import formatdate

import httpx2

from smart_model_router.domain.outcome import Failure, Outcome
from smart_model_router.domain.ports import Clock, ProviderCall, ProviderStream
from smart_model_router_providers.fault.backend import KEPT_REQUESTS, Backend, Exchange, LoggedCalls
from smart_model_router_providers.fault.script import Script
from smart_model_router_providers.fault.steps import Data, End, Head, WaitStep
from smart_model_router_providers.http import HttpProvider

BASE_URL = "http://scripted.invalid/v1"
TEXT = "This is the scripted provider."
EPOCH = 1_763_683_200.0  # the wall clock of a simulation begins here: the same seed gives the same headers

Sleep = Callable[[float], Awaitable[None]]


class ScriptedProvider(LoggedCalls):
    """A provider without a network: a script of faults answers, the real provider code reads the answers.

    Nothing waits but on `clock.sleep` and nothing rolls dice but by `seed`, so a simulation in virtual time
    is repeatable. The script's seconds begin now; without a `clock` (the running event loop's time is taken
    then) they begin at the first call. Without a script it answers `text` at once; `text=None` echoes the
    last user message. `api_keys` are the credentials by number: a script may be keyed by them or by model.
    Raises ConfigurationError for a script that makes no sense.
    """

    def __init__(
        self,
        script: Script = None,
        *,
        clock: Clock | None = None,
        seed: int = 0,
        text: str | None = TEXT,
        kind: str = "openai_compatible",
        api_keys: Sequence[str] = (),
        name: str = "scripted",
        keep_requests: int = KEPT_REQUESTS,
    ) -> None:
        self._clock = clock
        now: Callable[[], float] = clock.now if clock is not None else lambda: asyncio.get_running_loop().time()
        self._backend = Backend(
            script,
            seed=seed,
            name=name,
            text=text,
            models=("scripted",),
            keep_requests=keep_requests,
            now=self._started(),
            wall=lambda: EPOCH + now(),
        )
        transport = _Transport(self._backend, now, clock.sleep if clock is not None else asyncio.sleep)
        self._http = HttpProvider(kind=kind, base_url=BASE_URL, api_keys=api_keys, transport=transport)

    async def call(self, call: ProviderCall) -> Outcome:
        """Make the call and read the whole answer."""
        return await self._http.call(call)

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Make the call and return once the response head is there."""
        return await self._http.open_stream(call)

    async def aclose(self) -> None:
        """Nothing is held, and nothing ends: routers may have one in common, also one after the other."""

    def set(self, script: Script) -> None:
        """Follow another script from now on. Calls under way keep their fate."""
        self._backend.set(script, self._started())

    def reset(self) -> None:
        """Forget every call and begin the script anew. Calls under way keep their fate."""
        self._backend.forget()
        self.set(self._backend.script)

    def _started(self) -> float | None:
        return None if self._clock is None else self._clock.now()


class _Transport(httpx2.AsyncBaseTransport):
    """Plays the steps of an exchange to an HTTP client, errors included, without a socket."""

    def __init__(self, backend: Backend, now: Callable[[], float], sleep: Sleep) -> None:
        self._backend = backend
        self._now = now
        self._sleep = sleep

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        target = request.url.raw_path.decode("ascii")
        exchange = self._backend.begin(request.method, target, headers, await request.aread(), self._now())
        body = _Body(exchange, self._now, self._sleep)
        try:
            head = await body.head()
        except BaseException:
            await body.aclose()
            raise
        date = formatdate(self._backend.wall(), usegmt=True)
        return httpx2.Response(head.status, headers=[("date", date), *head.headers], stream=body)


class _Body(httpx2.AsyncByteStream):
    """The rest of an exchange after its head."""

    def __init__(self, exchange: Exchange, now: Callable[[], float], sleep: Sleep) -> None:
        self._exchange = exchange
        self._now = now
        self._sleep = sleep

    async def head(self) -> Head:
        """Play up to the head."""
        for step in self._exchange.steps:
            if isinstance(step, Head):
                self._exchange.head_sent(step.status)
                return step
            if isinstance(step, WaitStep):
                await self._wait(step)
            elif isinstance(step, End):
                self._end(step)
        raise AssertionError("every exchange has a head or an end")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for step in self._exchange.steps:
            if isinstance(step, Data):
                yield step.body
            elif isinstance(step, WaitStep):
                await self._wait(step)
            elif isinstance(step, End):
                self._end(step)

    async def aclose(self) -> None:
        self._exchange.end("abandoned", self._now())

    async def _wait(self, wait: WaitStep) -> None:
        if wait.seconds < math.inf:
            await self._sleep(wait.seconds)
        else:
            await asyncio.get_running_loop().create_future()

    def _end(self, end: End) -> None:
        self._exchange.end("answered" if end is End.CLEAN else "cut", self._now())
        match end:
            case End.CLEAN:
                return
            case End.CUT:
                raise httpx2.RemoteProtocolError("the connection was closed before the body was complete")
            case End.RESET:
                raise httpx2.ReadError("the connection was reset")
            case End.REFUSED:
                raise httpx2.ConnectError("the connection was refused")
