"""Programs of users that mypy (strict) and pyright must accept; `make check` reads this file, and nothing runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, assert_type

from smart_model_router import (
    AllTargetsFailed,
    EventSink,
    Failure,
    FailureClass,
    Provider,
    ProviderCall,
    RequestOptions,
    RouterReply,
    RouterStream,
    SdkProvider,
    SmartModelRouter,
    StreamEvent,
    Success,
)
from smart_model_router.core.selection import Candidate, Selector, View
from smart_model_router.domain.events import AttemptFinished, Event, RequestFinished
from smart_model_router.domain.outcome import NO_READING, EventKind, LimitReading
from smart_model_router.domain.ports import (
    ProviderStream,
    StatsStore,
    SupportsClose,
    SupportsDialects,
    SupportsInline,
    SupportsSelection,
)
from smart_model_router.domain.request import Dialect

BODY = {"model": "smart", "messages": [{"role": "user", "content": "Hello!"}]}


class Stream:
    """A provider's stream."""

    reading: LimitReading = NO_READING

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        yield StreamEvent(EventKind.CONTENT, b"")

    async def aclose(self) -> None:
        """Nothing is open."""


class Table:
    """A provider with an optional member."""

    dialects: frozenset[Dialect] = frozenset({"chat"})

    async def call(self, call: ProviderCall) -> Success | Failure:
        """Answer, or fail with a class."""
        if call.model == "none":
            return Failure(FailureClass.EMPTY, "nothing")
        return Success({"model": call.model}, b"{}")

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Answer with a stream."""
        del call
        return Stream()

    async def aclose(self) -> None:
        """Nothing is open."""


class Sink:
    """A sink with optional members."""

    inline = False

    def emit(self, event: Event) -> None:
        """Print what a request cost."""
        if isinstance(event, RequestFinished):
            print(event.model, event.outcome, event.seconds)

    def wants(self, event: Event) -> bool:
        """Only requests."""
        return isinstance(event, RequestFinished)

    def close(self) -> None:
        """Nothing is open."""


class Store:
    """A store of statistics."""

    def observe(self, observation: AttemptFinished) -> None:
        """Print it."""
        print(observation.target, observation.failure_class)

    async def aclose(self) -> None:
        """Nothing is open."""


class Backwards:
    """A strategy."""

    redistributes = False

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """The last one first."""
        return sorted(candidates, key=lambda one: (view.of(one.id).success_rate, -one.position, now, roll))


provider: Provider = Table()
sink: EventSink = Sink()
store: StatsStore = Store()
strategy: Selector = Backwards()
speaks: SupportsDialects = Table()
quick: SupportsInline = Sink()
choosy: SupportsSelection = Sink()
closing: SupportsClose = Sink()


async def program(client: Any) -> None:
    """Ask, stream, and look at what happened."""
    providers: Mapping[str, Provider] = {"table": provider, "sdk": SdkProvider(client)}
    options: RequestOptions = {"timeout": 30, "avoid": ["table/m"], "criticality": "sheddable"}
    async with SmartModelRouter.from_config({}, providers=providers, store=store, sinks=[sink], seed=1) as router:
        reply = await router.chat(BODY, tier="frontier", max_cost=0.1)
        assert_type(reply, RouterReply)
        assert_type(reply.report.target, str | None)
        assert_type(reply.body, Mapping[str, Any])
        await router.messages(BODY, **options)
        try:
            async with router.stream_chat(BODY, recovery="continue") as stream:
                assert_type(stream, RouterStream)
                async for chunk in stream:
                    print(chunk["choices"])
        except AllTargetsFailed as error:
            assert_type(error.retry_after, float | None)
            print(error.message, error.report)
        print(router.explain(BODY, tier=None).strategy, router.stats(), router.targets()[0].id)
