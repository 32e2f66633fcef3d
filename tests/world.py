"""A router in virtual time for tests: how one is made, what is asked of it, and what must be true when it rests."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec

from smart_model_router import SmartModelRouter, SmartRouterError
from smart_model_router.core.gate import Gate
from smart_model_router.domain.outcome import NO_READING, Failure, FailureClass, LimitReading, StreamEvent, Wait
from smart_model_router.domain.ports import Provider, ProviderCall, ProviderStream
from smart_model_router.flow.state import RouterState
from smart_model_router.testing import FakeProvider, FakeReply, LoopClock, RecordingSink, run_virtual

P = ParamSpec("P")

BODY: Mapping[str, Any] = {"model": "smart", "messages": [{"role": "user", "content": "hello"}]}
EMBED: Mapping[str, Any] = {"model": "smart", "input": "hello"}

DOWN = FakeReply(failure=Failure(FailureClass.SERVER_ERROR, "500", status=500))
UNREACHABLE = FakeReply(failure=Failure(FailureClass.TRANSPORT, "connection refused"))
BLACK_HOLE = FakeReply(seconds=float("inf"))


def virtual(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an asynchronous test in virtual time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtual(test(*args, **kwargs), limit=86_400)

    return run


def limited(seconds: float | None) -> FakeReply:
    """A 429, with a Retry-After or without."""
    wait = None if seconds is None else Wait(seconds)
    return FakeReply(failure=Failure(FailureClass.RATE_LIMITED, "429", status=429, wait=wait))


def failing(failure_class: FailureClass, status: int | None = None, raw: bytes = b"") -> FakeReply:
    """A failure of one class."""
    return FakeReply(failure=Failure(failure_class, failure_class.value, status=status, raw=raw))


@dataclass
class World:
    """A router, its providers by name, and every event it told."""

    router: SmartModelRouter
    providers: Mapping[str, FakeProvider]
    sink: RecordingSink = field(default_factory=RecordingSink)

    @property
    def state(self) -> RouterState:
        """The router's insides: tests may look."""
        return self.router._state

    def gate(self, target: str) -> Gate:
        """The gate of a target."""
        return self.state.fleet.gates[target]

    def calls(self, provider: str) -> int:
        """How many calls reached a provider."""
        return len(self.providers[provider].calls)

    async def verdicts(self) -> None:
        """Wait for the calls that run on for their verdict without their callers, and for those that were left."""
        await asyncio.gather(*self.state.detached, *self.state.loose, return_exceptions=True)

    def assert_idle(self) -> None:
        """Nothing is held any more: no slot, permit, probation, place in the waiting room, or call at a provider."""
        for gate in self.state.fleet.gates.values():
            provider = gate.provider
            assert gate.in_flight == provider.bulkhead.in_flight == 0, gate.id
            assert not provider.probe_in_flight, gate.id
            assert not any(b.probe_in_flight for b in (provider.transport, *gate.breakers.values())), gate.id
            assert gate.cooldown.on_trial == gate.credential.on_trial == 0, gate.id
        assert not self.state.detached
        room = self.state.wait_queue
        assert room.waiting == 0
        assert not room._queues
        assert not any(provider.in_flight for provider in self.providers.values())


def tiers(*targets: Sequence[str], last_resort: Sequence[str] = ()) -> dict[str, Any]:
    """The model `smart` with these tiers, named frontier, standard, economy."""
    return {"tiers": [{"targets": list(each)} for each in targets], "last_resort": list(last_resort)}


def world(
    *ladder: Sequence[str],
    last_resort: Sequence[str] = (),
    replies: Mapping[str, FakeProvider] | None = None,
    config: Mapping[str, Any] | None = None,
    kinds: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 1,
) -> World:
    """A router whose model `smart` has these tiers of targets; providers are healthy fakes unless `replies` has them.

    `kinds` are provider options (by name), `config` further sections of the configuration.
    """
    names = {target.partition("/")[0] for tier in (*ladder, last_resort) for target in tier}
    providers = {name: FakeProvider() for name in sorted(names)} | dict(replies or {})
    given: dict[str, Provider] = dict(providers)
    sink = RecordingSink()
    kind = {name: {"kind": "openai_compatible", "base_url": "http://fake.invalid/v1"} for name in providers}
    for name, options in (kinds or {}).items():
        kind[name] = {**kind[name], **options}
    tree = {
        "version": 1,
        "providers": kind,
        "models": {"smart": tiers(*ladder, last_resort=last_resort)},
        **(config or {}),
    }
    router = SmartModelRouter.from_config(tree, clock=LoopClock(), seed=seed, providers=given, sinks=[sink])
    return World(router, providers, sink)


def now() -> float:
    """The running loop's time."""
    return asyncio.get_running_loop().time()


def timers() -> list[asyncio.TimerHandle]:
    """The running loop's timers that are still to come."""
    scheduled: list[asyncio.TimerHandle] = vars(asyncio.get_running_loop())["_scheduled"]
    return [timer for timer in scheduled if not timer.cancelled()]


async def steady(world: World, seconds: float, *, every: float = 0.5, stream: bool = False) -> list[str | None]:
    """One request `every` so many seconds for `seconds`; who served each (None: nobody), in the order of sending."""
    asks = []
    for _ in range(round(seconds / every)):
        asks.append(asyncio.ensure_future(served_by(world, stream=stream)))
        await asyncio.sleep(every)
    return list(await asyncio.gather(*asks))


async def served_by(world: World, *, stream: bool = False, **options: Any) -> str | None:
    """The target that served one request; None when nobody did."""
    try:
        if not stream:
            return (await world.router.chat(BODY, **options)).report.target
        async with world.router.stream_chat(BODY, **options) as chunks:
            async for _ in chunks:
                pass
            return chunks.report.target
    except SmartRouterError:
        return None


async def swallow(*asks: asyncio.Future[Any] | asyncio.Task[Any]) -> None:
    """Cancel and await them all."""
    for ask in asks:
        ask.cancel()
    await asyncio.gather(*asks, return_exceptions=True)


class HandMade(FakeProvider):
    """A provider whose streams are the async iterators that `make` returns; `on_close` runs when one is closed."""

    def __init__(
        self, make: Callable[[], AsyncIterator[StreamEvent]], on_close: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__()
        self._make = make
        self._on_close = on_close

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Answer with a stream made by hand."""
        self._arrive(call)
        return _HandMadeStream(self, self._make, self._on_close)


class _HandMadeStream:
    def __init__(
        self, provider: HandMade, make: Callable[[], AsyncIterator[StreamEvent]], on_close: Callable[[], None]
    ) -> None:
        self._provider = provider
        self._make = make
        self._on_close = on_close
        self._closed = False

    @property
    def reading(self) -> LimitReading:
        return NO_READING

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self._make()

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._provider.in_flight -= 1
            self._on_close()
