"""The embedded model as a provider: started when first needed, restarted when it died, asked over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.outcome import Failure, FailureClass, Outcome, Wait
from smart_model_router.domain.ports import ProviderCall, ProviderStream
from smart_model_router.domain.request import Dialect
from smart_model_router_providers.http import HttpProvider
from smart_model_router_providers.local.model_file import is_ready
from smart_model_router_providers.local.process import Ended, Listening, ModelProcess, ModelSettings

ALIAS = "smollm2"
_TRAINED_CONTEXT_TOKENS = 8192
_STEADY_SECONDS = 60.0
_LONGEST_REST_SECONDS = 60.0
# No tokenizer packs more into a token on average, so a longer prompt is refused without counting it.
_MOST_BYTES_A_TOKEN = 16
_COUNT_TIMEOUT_SECONDS = 5.0
_END_SECONDS = 1.0
# llama.cpp takes n_predict in any dialect, and prefers it.
_LENGTH_KEYS = ("max_completion_tokens", "max_tokens", "n_predict")
_COUNT_PATHS: dict[Dialect, str] = {
    "chat": "/v1/chat/completions/input_tokens",
    "messages": "/v1/messages/count_tokens",
}


class _Connection:
    """A child that was ready once, and the way to it."""

    def __init__(self, process: ModelProcess, state: Listening) -> None:
        self.process = process
        self.state = state
        self.http = HttpProvider(kind="llamacpp", base_url=f"{state.url}/v1", api_keys=[state.api_key])


class LocalProvider:
    """The embedded last-resort model behind the Provider port.

    Speaks chat and messages. The model runs in a child process that the first call (or `prepare`) starts and
    that dies with this process. When it died, the next call starts another: at once the first time, then
    after 1, 2, 4 ... 60 s, until one has lived for a minute. Whatever happens to it is a Failure value.

    `prompt_cap_tokens` is the longest prompt it takes, by its own tokenizer; a longer one is a Failure
    CONTEXT_LENGTH and costs nothing. `default_max_tokens` is the answer's length when the caller names none,
    `max_tokens` the most a caller gets. `threads` compute: two, or one where there are no more than two
    processors. `start_timeout` is in seconds. `model` is another file than the
    installed one. Belongs to one event loop at a time. Raises ConfigurationError for senseless values.
    """

    def __init__(
        self,
        *,
        context_tokens: int = 4096,
        prompt_cap_tokens: int = 1500,
        default_max_tokens: int = 256,
        max_tokens: int = 1024,
        threads: int | None = None,
        start_timeout: float = 30.0,
        model: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _check("context_tokens", context_tokens, 256, _TRAINED_CONTEXT_TOKENS)
        _check("prompt_cap_tokens", prompt_cap_tokens, 1, context_tokens - 1)
        _check("max_tokens", max_tokens, 1, context_tokens)
        _check("default_max_tokens", default_max_tokens, 1, max_tokens)
        threads = _spare_threads() if threads is None else threads
        _check("threads", threads, 1, 256)
        _check("start_timeout", start_timeout, 0.1, 600)
        self.prompt_cap_tokens = prompt_cap_tokens
        self._default_max_tokens = default_max_tokens
        self._max_tokens = max_tokens
        self._context_tokens = context_tokens
        self._threads = threads
        self._start_timeout = start_timeout
        self._model = model
        self._clock = clock
        self._process: ModelProcess | None = None
        self._connection: _Connection | None = None
        self._deaths = 0
        self._rested_at = 0.0
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is none."""
        return self._process.pid if self._process is not None else None

    async def prepare(self) -> Failure | None:
        """Load the model now, so that the first call need not wait. Returns why it could not, or None."""
        connection = await self._connect()
        return connection if isinstance(connection, Failure) else None

    async def call(self, call: ProviderCall) -> Outcome:
        """Ask the model and read the whole answer."""
        admitted = await self._admit(call)
        if isinstance(admitted, Failure):
            return admitted
        http, capped = admitted
        return await http.call(capped)

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Ask the model; the events follow as it writes. Closing the stream stops the model."""
        admitted = await self._admit(call)
        if isinstance(admitted, Failure):
            return admitted
        http, capped = admitted
        return await http.open_stream(capped)

    async def aclose(self) -> None:
        """End the child and close the connections to it; safe to call twice. Calls after it fail."""
        self._closed = True
        self._leave_to_parent()
        process, self._process = self._process, None
        connection, self._connection = self._connection, None
        if process is not None:
            process.kill()
        try:
            if connection is not None:
                await connection.http.aclose()
        finally:
            if process is not None:
                with contextlib.suppress(TimeoutError):  # its own thread reaps it, even later
                    async with asyncio.timeout(_END_SECONDS):
                        await asyncio.wrap_future(process.ended)

    async def _admit(self, call: ProviderCall) -> tuple[HttpProvider, ProviderCall] | Failure:
        size = len(call.payload)
        if size > self.prompt_cap_tokens * _MOST_BYTES_A_TOKEN:
            return self._too_long(f"{size} bytes")
        connection = await self._connect()
        if isinstance(connection, Failure):
            return connection
        if size > self.prompt_cap_tokens:  # a token is a byte at least
            tokens = await _count(connection, call)
            if tokens is not None and tokens > self.prompt_cap_tokens:
                return self._too_long(f"{tokens} tokens")
        return connection.http, self._shortened(call)

    def _too_long(self, measured: str) -> Failure:
        return Failure(
            FailureClass.CONTEXT_LENGTH,
            f"the prompt has {measured}, the embedded model takes {self.prompt_cap_tokens} tokens",
        )

    def _shortened(self, call: ProviderCall) -> ProviderCall:
        """The call with an answer no longer than the model may give."""
        body: dict[str, Any] = json.loads(call.payload)
        asked = [body.pop(key) for key in _LENGTH_KEYS if key in body]
        wanted = next((n for n in asked if type(n) is int and n > 0), self._default_max_tokens)
        body["max_tokens"] = min(wanted, self._max_tokens)
        return replace(call, payload=json.dumps(body).encode(), body=body)

    async def _connect(self) -> _Connection | Failure:
        process = self._living_process()
        if isinstance(process, Failure):
            return process
        state = await self._report(process)
        if isinstance(state, Failure):
            return state
        connection, outdated = self._connection, None
        if connection is None or connection.process is not process:
            outdated = connection
            connection = self._connection = _Connection(process, state)
        if outdated is not None:
            await outdated.http.aclose()
        return connection

    async def _report(self, process: ModelProcess) -> Listening | Failure:
        """The address of the child, as soon as it listens."""
        if not process.ready.done():
            left = process.started_at + self._start_timeout - self._clock()
            try:
                async with asyncio.timeout(left):
                    await asyncio.wrap_future(process.ready)
            except TimeoutError:
                process.kill()
                return Failure(FailureClass.WARMING, f"the model was not loaded within {self._start_timeout:g} s")
        state = process.ready.result()
        if isinstance(state, Ended):
            return Failure(FailureClass.WARMING, f"the model's process ended: {state.reason}")
        return state

    def _living_process(self) -> ModelProcess | Failure:
        """The child, started if there is none and it is time to."""
        if self._closed:
            return Failure(FailureClass.TRANSPORT, "the embedded model was closed")
        self._leave_to_parent()
        if self._process is not None:
            if not self._process.ended.done():
                return self._process
            self._mourn(self._process)
        rest = self._rested_at - self._clock()
        if rest > 0:
            return Failure(
                FailureClass.WARMING,
                f"the model's process died {self._deaths} times and is started again in {rest:.1f} s",
                wait=Wait(rest, "overload"),
            )
        found = is_ready()
        model = self._model or found.model
        if model is None or not found.runtime:
            return Failure(FailureClass.MISCONFIGURED, f"the embedded model cannot run: {found.reason}")
        self._process = ModelProcess(
            ModelSettings(model=model, alias=ALIAS, context_tokens=self._context_tokens, threads=self._threads),
            clock=self._clock,
        )
        return self._process

    def _mourn(self, process: ModelProcess) -> None:
        """Take note of a death: when the next life may begin."""
        ended_at = process.ended.result().at
        self._deaths = 1 if ended_at - process.started_at >= _STEADY_SECONDS else self._deaths + 1
        self._rested_at = ended_at + rest_seconds(self._deaths)
        self._process = None

    def _leave_to_parent(self) -> None:
        """In a forked copy of this process the child and the connections to it are the original's."""
        if self._process is not None and self._process.owner != os.getpid():
            self._process = self._connection = None


def rest_seconds(deaths: int) -> float:
    """The seconds before a restart of a child that died `deaths` (>= 1) times in a row: 0, 1, 2, 4 ... 60."""
    return 0.0 if deaths == 1 else min(_LONGEST_REST_SECONDS, 2.0 ** min(deaths - 2, 30))


async def _count(connection: _Connection, call: ProviderCall) -> int | None:
    """The prompt's length by the model's own tokenizer; None when unknown: the call itself will say why."""
    path = _COUNT_PATHS.get(call.dialect)
    if path is None:
        return None
    state = connection.state
    try:
        async with (
            aiohttp.ClientSession(
                headers={"authorization": f"Bearer {state.api_key}"},
                timeout=aiohttp.ClientTimeout(total=_COUNT_TIMEOUT_SECONDS),
            ) as session,
            session.post(state.url + path, data=call.payload) as response,
        ):
            counted = await response.json() if response.status == 200 else {}
    except (aiohttp.ClientError, TimeoutError):
        return None
    tokens = counted.get("input_tokens")
    return tokens if isinstance(tokens, int) else None


def _spare_threads() -> int:
    # The library's threads wait for each other by spinning. Two on two processors are a third faster than one while
    # no other process computes, and 15 times slower as soon as one does.
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(2, max(1, processors - 1))


def _check(key: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ConfigurationError(key, value, f"a number from {least} to {most} is needed")
