"""What each of the four drop-in clients does, and does in the same way. `make compat` asks older SDKs, too."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import pytest_asyncio

from smart_model_router.clients import report_of
from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.eventually import PATIENCE, becomes
from tests.e2e.four_clients import CLIENTS, Caller, Town
from tests.e2e.gateways import BRIEF, ECHO, fleet

pytestmark = pytest.mark.asyncio

CALL = {"name": "look", "arguments": {"at": "the sea"}}
SYNCHRONOUS = ("OpenAI", "Anthropic")
ASYNCHRONOUS = ("AsyncOpenAI", "AsyncAnthropic")
TARGETS = {"smart": "ao/big", "claude": "aa/big"}


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    """A provider that does what a test says."""
    with FaultServer() as server:
        yield server


@pytest_asyncio.fixture(params=CLIENTS)
async def client(request: pytest.FixtureRequest, upstream: FaultServer) -> AsyncIterator[Caller]:
    """Each of the four, without retries of its own."""
    caller = CLIENTS[request.param](fleet(upstream, routing={"max_wait": "2s"}, resilience=BRIEF))
    yield caller
    await caller.aclose()


async def test_a_whole_answer(client: Caller) -> None:
    """The answer is the provider's under the name asked for, the client is the SDK's, the report says who gave it."""
    answer = await client.do(client.create, **client.asked)
    name = client.asked["model"]
    assert (client.said(answer), answer.model, report_of(answer).target) == (ECHO, name, TARGETS[name])
    assert isinstance(client.client, getattr(client.sdk, type(client.client).__name__))


async def test_a_stream_arrives_piece_by_piece(client: Caller, upstream: FaultServer) -> None:
    """The first piece is there while the provider is still speaking."""
    upstream.set([Fault.stall(after=2, seconds=1.5)])
    arrivals = [(time.monotonic(), piece) async for piece in client.pieces()]
    assert "".join(piece for _, piece in arrivals) == ECHO
    assert arrivals[-1][0] - arrivals[0][0] > 0.2


async def test_the_stream_helper(client: Caller) -> None:
    """`.stream()` puts the answer together."""
    assert await client.helped() == ECHO


async def test_parse(client: Caller, upstream: FaultServer) -> None:
    """`.parse()` fills a pydantic model."""
    upstream.set([Fault.reply('{"name": "Delft"}')])
    assert await client.parsed() == Town(name="Delft")


async def test_tools(client: Caller, upstream: FaultServer) -> None:
    """A call of a tool arrives as it was made; its result goes back under its id."""
    upstream.set([Fault.reply(None, [CALL], times=1)])
    (call, name, arguments), said = await client.call_of_a_tool()
    assert (name, arguments) == ("look", {"at": "the sea"})
    assert said.startswith("fault-server: echo")
    first, second = upstream.requests
    assert first.body["tools"] == second.body["tools"]
    assert call in str(second.body["messages"][-1])


async def test_raw_responses_have_the_routers_headers(client: Caller) -> None:
    """`with_raw_response` shows x-router-*, and parses as ever."""
    raw = await client.do(client.raw.create, **client.asked)
    parsed = await client.parse_raw(raw)
    name = client.asked["model"]
    assert f"{raw.headers['x-router-provider']}/{raw.headers['x-router-model']}" == TARGETS[name]
    assert (raw.headers["x-router-attempts"], raw.headers["x-router-degraded"]) == ("1", "false")
    assert client.said(parsed) == ECHO
    assert report_of(parsed) is report_of(raw)


async def test_a_rate_limit_everywhere_is_a_rate_limit_error(client: Caller, upstream: FaultServer) -> None:
    """429, with a Retry-After that is real."""
    upstream.set([Fault.status(429, headers={"retry-after": "90"})])
    with pytest.raises(client.sdk.RateLimitError) as limited:
        await client.text()
    assert 80 < float(limited.value.response.headers["retry-after"]) <= 90
    assert [attempt.status for attempt in report_of(limited.value).attempts] == [429]


async def test_nobody_left_is_the_sdk_s_word_for_it(client: Caller, upstream: FaultServer) -> None:
    """503 InternalServerError, which Messages calls 529 and OverloadedError; with what was tried."""
    upstream.set([Fault.status(500)])
    with pytest.raises(client.nobody_left) as dead:
        await client.text()
    assert getattr(dead.value, "status_code", None) == {"openai": 503, "anthropic": 529}[client.sdk.__name__]
    assert {attempt.status for attempt in report_of(dead.value).attempts} == {500}


async def test_the_clients_timeout_is_kept(client: Caller, upstream: FaultServer) -> None:
    """`timeout=` ends a call as APITimeoutError; nothing stays in flight."""
    upstream.set([Fault.hang()])
    started = time.monotonic()
    with pytest.raises(client.sdk.APITimeoutError) as late:
        await client.text(timeout=1.0)
    assert time.monotonic() - started < 20
    assert [attempt.target for attempt in report_of(late.value).attempts] == [TARGETS[client.asked["model"]]]
    assert await becomes(lambda: upstream.in_flight == 0)


async def test_a_stream_left_in_the_middle_frees_the_provider(client: Caller, upstream: FaultServer) -> None:
    """Closing it, and for an asynchronous one cancelling its task, ends the call upstream."""
    upstream.set([Fault.stall(after=2)])
    pieces = client.pieces()
    assert await anext(pieces)
    assert upstream.in_flight == 1
    await pieces.aclose()  # type: ignore[attr-defined]  # a generator, said to be an iterator
    assert await becomes(lambda: upstream.in_flight == 0)


@pytest.mark.parametrize("client", ASYNCHRONOUS, indirect=True)
async def test_a_cancelled_stream_reaches_the_provider(client: Caller, upstream: FaultServer) -> None:
    """Cancelling the task in the middle of a stream ends the call upstream."""
    upstream.set([Fault.stall(after=2)])
    arrived = asyncio.Event()

    async def read() -> None:
        async for _ in client.pieces():
            arrived.set()

    reading = asyncio.ensure_future(read())
    await asyncio.wait_for(arrived.wait(), PATIENCE)
    assert upstream.in_flight == 1
    reading.cancel()
    assert await becomes(lambda: upstream.in_flight == 0)
    assert isinstance((await asyncio.gather(reading, return_exceptions=True))[0], asyncio.CancelledError)


@pytest.mark.parametrize("client", SYNCHRONOUS, indirect=True)
async def test_many_threads_share_a_synchronous_client(client: Caller) -> None:
    """Forty calls from eight threads are forty answers, each with a report of its own."""
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(client.create, **client.asked) for _ in range(40)]
        answers = [await asyncio.wrap_future(future) for future in asked]
    assert [client.said(answer) for answer in answers] == [ECHO] * 40
    assert len({report_of(answer).request_id for answer in answers}) == 40


@pytest.mark.parametrize("client", ASYNCHRONOUS, indirect=True)
async def test_loops_of_other_threads_share_an_asynchronous_client(client: Caller) -> None:
    """Eight loops in eight threads are served on the loop that asked first."""
    first = await client.text()
    others = [asyncio.to_thread(lambda: asyncio.run(client.text())) for _ in range(8)]
    assert [first, *await asyncio.gather(*others)] == [ECHO] * 9


@pytest.mark.parametrize("client", SYNCHRONOUS, indirect=True)
async def test_a_synchronous_client_works_inside_a_running_loop(client: Caller) -> None:
    """On the loop's own thread, as in a notebook, it answers instead of deadlocking; a stream does, too."""
    assert client.said(client.create(**client.asked)) == ECHO
    assert "".join(client.piece(event) for event in client.create(**client.asked, stream=True)) == ECHO
