"""The scripted provider: real provider code over scripted bytes, without sockets and on a clock that jumps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent, Success
from smart_model_router.domain.ports import Provider, ProviderCall
from smart_model_router.domain.request import Dialect
from smart_model_router_providers.fault import Fault, Script, ScriptedProvider

pytestmark = pytest.mark.asyncio


class JumpingClock:
    """A clock that jumps over every sleep."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)

    def call_at(self, when: float, callback: Callable[[], object]) -> Any:
        raise AssertionError("the scripted provider only sleeps")


def a_call(dialect: Dialect = "chat", *, model: str = "m", stream: bool = False, credential: int = 0) -> ProviderCall:
    """One small request of a dialect."""
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 100}
    body = {"model": model, "stream": stream, **({"input": "hello"} if dialect == "embeddings" else asked)}
    return ProviderCall(dialect, model, json.dumps(body).encode(), body, stream=stream, credential=credential)


def scripted(script: Script = None, **options: Any) -> tuple[ScriptedProvider, JumpingClock]:
    """Make a provider and its clock."""
    clock = JumpingClock()
    return ScriptedProvider(script, clock=clock, **options), clock


async def read(provider: ScriptedProvider, dialect: Dialect = "chat") -> list[StreamEvent]:
    """Every event of one stream."""
    stream = await provider.open_stream(a_call(dialect, stream=True))
    assert not isinstance(stream, Failure)
    events = [event async for event in stream]
    await stream.aclose()
    return events


async def test_it_is_a_provider() -> None:
    """It fits the port that the router asks."""
    provider, _ = scripted()
    assert isinstance(provider, Provider)


async def test_a_closed_one_answers_the_next_router() -> None:
    """A test may give one script to several routers, one after the other."""
    provider, _ = scripted()
    for _ in range(2):
        assert isinstance(await provider.call(a_call()), Success)
        await provider.aclose()


async def test_without_a_script_it_answers_a_fixed_text_at_once() -> None:
    """No clock moves, and the text is the one it was given."""
    provider, clock = scripted(text="fine")
    outcome = await provider.call(a_call())
    assert isinstance(outcome, Success)
    assert outcome.body["choices"][0]["message"]["content"] == "fine"
    assert clock.time == 1000.0


async def test_without_a_clock_it_takes_the_loops() -> None:
    """It can be made outside any event loop and then simply works."""
    provider = await asyncio.to_thread(ScriptedProvider, [Fault.status(503, times=1)])
    assert isinstance(await provider.call(a_call()), Failure)
    assert isinstance(await provider.call(a_call()), Success)


@pytest.mark.parametrize("dialect", ["chat", "messages", "embeddings"])
async def test_it_answers_every_dialect(dialect: Dialect) -> None:
    """A good answer of each dialect is read as a success with its usage."""
    provider, _ = scripted(kind="anthropic" if dialect == "messages" else "openai_compatible")
    outcome = await provider.call(a_call(dialect))
    assert isinstance(outcome, Success)
    assert outcome.usage is not None
    assert outcome.usage.prompt_tokens == 2


@pytest.mark.parametrize("dialect", ["chat", "messages"])
async def test_it_streams(dialect: Dialect) -> None:
    """A good stream has content, a finish reason and its terminator, and says nothing is wrong."""
    provider, _ = scripted()
    kinds = [event.kind for event in await read(provider, dialect)]
    assert kinds.count(EventKind.CONTENT) == 8  # "This is the scripted provider." by fours
    assert kinds[-1] is EventKind.END
    assert {EventKind.ERROR, EventKind.MALFORMED}.isdisjoint(kinds)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.status(429), FailureClass.RATE_LIMITED),
        (Fault.status(500), FailureClass.SERVER_ERROR),
        (Fault.status(529), FailureClass.OVERLOADED),
        (Fault.status(401), FailureClass.AUTH),
        (Fault.html(), FailureClass.MALFORMED),
        (Fault.wrong_json(), FailureClass.MALFORMED),
        (Fault.bad_json(), FailureClass.MALFORMED),
        (Fault.empty(), FailureClass.EMPTY),
        (Fault.down(), FailureClass.TRANSPORT),
        (Fault.reset(), FailureClass.TRANSPORT),
        (Fault.cut(), FailureClass.TRUNCATED),
    ],
    ids=lambda value: str(getattr(value, "effect", value)),
)
async def test_a_fault_comes_back_as_a_value(fault: Fault, expected: FailureClass) -> None:
    """Nothing raises: each fault is read as the failure it would be on a real wire."""
    provider, _ = scripted([fault])
    outcome = await provider.call(a_call())
    assert isinstance(outcome, Failure)
    assert outcome.failure_class is expected


async def test_a_wait_is_read_from_the_headers() -> None:
    """Retry-After reaches the router as a wait."""
    provider, _ = scripted([Fault.status(429, headers={"retry-after": "3"}, times=1)])
    outcome = await provider.call(a_call())
    assert isinstance(outcome, Failure)
    assert outcome.wait is not None
    assert outcome.wait.seconds == 3


async def test_a_cut_stream_ends_with_an_error() -> None:
    """What came before the cut arrives; then one ERROR event, TRUNCATED."""
    provider, _ = scripted([Fault.cut(after=3)])
    *before, last = await read(provider)
    assert [event.kind for event in before].count(EventKind.CONTENT) == 3
    assert last.kind is EventKind.ERROR
    assert last.failure is not None
    assert last.failure.failure_class is FailureClass.TRUNCATED


async def test_delays_pass_on_the_clock_it_was_given() -> None:
    """20 s before the head and 1 s between events are 20 s and more of virtual time, and no real time."""
    provider, clock = scripted([Fault.delay(first=20, each=1)], text="abcdefgh")
    stream = await provider.open_stream(a_call(stream=True))
    assert clock.time == 1020.0
    assert not isinstance(stream, Failure)
    events = [event async for event in stream]
    assert clock.time == 1020.0 + len(events) - 1


async def test_an_outage_is_a_span_of_virtual_time() -> None:
    """Down from the 10th to the 20th second, and well before and after."""
    provider, clock = scripted([Fault.down(10, 20)])
    fates = []
    for moment in (1009.0, 1010.0, 1019.0, 1020.0):
        clock.time = moment
        fates.append(type(await provider.call(a_call())))
    assert fates == [Success, Failure, Failure, Success]


async def test_cancelling_a_call_that_hangs_gives_its_place_back() -> None:
    """A call that is never answered ends when its caller gives up, and is noted as abandoned."""
    provider, _ = scripted([Fault.hang()])
    task = asyncio.create_task(provider.call(a_call()))
    while provider.in_flight == 0:  # noqa: ASYNC110  the provider has no event for it
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.in_flight == 0
    assert provider.requests[-1].ending == "abandoned"


async def test_closing_a_stream_early_ends_its_call() -> None:
    """A stream that its reader leaves is in flight until then and no longer."""
    provider, _ = scripted([Fault.stall(after=1)])
    stream = await provider.open_stream(a_call(stream=True))
    assert not isinstance(stream, Failure)
    first = await anext(aiter(stream))
    assert (first.kind, provider.in_flight) == (EventKind.META, 1)
    await stream.aclose()
    assert provider.in_flight == 0


async def test_calls_are_counted_by_credential_and_model() -> None:
    """Counts are for an API key, for a model, and in all; the most in flight likewise."""
    provider, _ = scripted({"k1": [Fault.status(500)]}, api_keys=["k1", "k2"])
    outcomes = await asyncio.gather(*(provider.call(a_call(credential=number)) for number in (0, 1, 1)))
    assert [type(outcome) for outcome in outcomes] == [Failure, Success, Success]
    assert (provider.calls("k1"), provider.calls("k2"), provider.calls("m"), provider.calls()) == (1, 2, 3, 3)
    assert provider.calls("k3") == 0


async def test_the_most_in_flight_is_remembered() -> None:
    """Three slow calls at once are three, also after they ended."""
    provider = ScriptedProvider([Fault.delay(first=0.01)])
    await asyncio.gather(*(provider.call(a_call()) for _ in range(3)))
    assert (provider.max_in_flight(), provider.in_flight) == (3, 0)


async def test_another_script_may_follow() -> None:
    """`set` begins another script and `reset` begins the same one anew, with nothing counted."""
    provider, _ = scripted([Fault.status(500, times=1)])
    provider.set([Fault.status(429, times=1)])
    first = await provider.call(a_call())
    provider.reset()
    again = await provider.call(a_call())
    well = await provider.call(a_call())
    assert [getattr(outcome, "status", 200) for outcome in (first, again, well)] == [429, 429, 200]
    assert provider.calls() == 2


async def test_one_seed_gives_one_history() -> None:
    """The same seed answers the same calls in the same way at the same instants."""

    async def history(seed: int) -> list[tuple[str, float]]:
        provider, clock = scripted([Fault.brownout(0.3), Fault.brownout(0.5, latency=2)], seed=seed)
        return [(type(await provider.call(a_call())).__name__, clock.time) for _ in range(50)]

    assert await history(1) == await history(1)
    assert await history(1) != await history(2)


async def test_nonsense_is_refused_at_construction() -> None:
    """A script that makes no sense never becomes a provider."""
    with pytest.raises(ConfigurationError, match="a Fault is needed"):
        ScriptedProvider(cast("Any", ["status 500"]))
