"""The drop-in AsyncOpenAI and AsyncAnthropic clients, and the transport for frameworks that build their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import anthropic
import openai
import pytest
import pytest_asyncio

from smart_model_router import SmartModelRouter
from smart_model_router.clients import AsyncAnthropic, AsyncOpenAI, OpenAI, RouterTransport, report_of
from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_providers.sdk import SDKS, httpx_of
from tests.e2e.eventually import becomes
from tests.e2e.gateways import BRIEF, ECHO, MESSAGES, fleet

pytestmark = pytest.mark.asyncio


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    """A provider that does what a test says."""
    with FaultServer() as server:
        yield server


@pytest_asyncio.fixture
async def chatty(upstream: FaultServer) -> AsyncIterator[AsyncOpenAI]:
    """The drop-in AsyncOpenAI, without retries of its own."""
    async with AsyncOpenAI(fleet(upstream, resilience=BRIEF), max_retries=0) as client:
        yield client


@pytest_asyncio.fixture
async def claudish(upstream: FaultServer) -> AsyncIterator[AsyncAnthropic]:
    """The drop-in AsyncAnthropic, without retries of its own."""
    async with AsyncAnthropic(fleet(upstream), max_retries=0) as client:
        yield client


async def test_legacy_completions(chatty: AsyncOpenAI) -> None:
    """`client.completions` works whole and streamed; the report is found from the answer."""
    answer = await chatty.completions.create(model="smart", prompt="hello", best_of=2)
    assert (answer.choices[0].text, report_of(answer).losses[0].partition(":")[0]) == (ECHO, "best_of")
    stream = await chatty.completions.create(model="claude", prompt="hello", stream=True)
    assert "".join([chunk.choices[0].text async for chunk in stream]) == ECHO
    with pytest.raises(openai.BadRequestError) as told:
        await chatty.completions.create(model="smart", prompt="hello", suffix="x")
    assert (told.value.code, bool(told.value.request_id)) == ("unsupported_feature", True)


async def test_an_answer_its_headers_and_its_report(chatty: AsyncOpenAI, claudish: AsyncAnthropic) -> None:
    """Real subclasses that answer; the report is found from the parsed object."""
    assert isinstance(chatty, openai.AsyncOpenAI)
    assert isinstance(claudish, anthropic.AsyncAnthropic)
    raw = await chatty.chat.completions.with_raw_response.create(model="smart", messages=MESSAGES)
    answer = raw.parse()
    assert (answer.choices[0].message.content, raw.headers["x-router-provider"]) == (ECHO, "ao")
    assert report_of(answer) is report_of(raw)
    message = await claudish.messages.create(model="claude", max_tokens=99, messages=MESSAGES)
    assert (message.model, report_of(message).target) == ("claude", "aa/big")


async def test_streams_and_their_helpers(chatty: AsyncOpenAI, claudish: AsyncAnthropic) -> None:
    """Plain streams, and `.stream()` of both SDKs."""
    stream = await chatty.chat.completions.create(model="smart", messages=MESSAGES, stream=True)
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == ECHO
    assert report_of(stream).complete
    async with chatty.chat.completions.stream(model="smart", messages=MESSAGES) as helper:
        assert (await helper.get_final_completion()).choices[0].message.content == ECHO
    async with claudish.messages.stream(model="claude", max_tokens=99, messages=MESSAGES) as events:
        assert await events.get_final_text() == ECHO
        assert report_of(events).target == "aa/big"


async def test_an_sdks_own_retry_waits_as_long_as_it_is_told(upstream: FaultServer) -> None:
    """A 503 that says when is retried by the SDK at that time, and then answered."""
    upstream.set([Fault.status(429, headers={"retry-after": "1"}, times=1)])
    config = fleet(upstream, routing={"max_wait": 0, "degrade_after": 0})
    async with AsyncOpenAI(config, max_retries=1) as client:
        started = asyncio.get_running_loop().time()
        answer = await client.chat.completions.create(model="smart", messages=MESSAGES)
        waited = asyncio.get_running_loop().time() - started
        report = report_of(answer)
        again = report_of(await client.chat.completions.create(model="smart", messages=MESSAGES))
    assert answer.choices[0].message.content == ECHO
    assert 0.9 <= waited < 20
    assert ([each.target for each in report.earlier], report.target) == ([None], "ao/big")
    assert (again.earlier, again.target) == ([], "ao/big")


async def test_a_cancelled_call_reaches_the_provider(chatty: AsyncOpenAI, upstream: FaultServer) -> None:
    """Cancelling the task cancels the call upstream, before the head and in the middle of a stream."""
    upstream.set([Fault.hang()])
    call = asyncio.ensure_future(chatty.chat.completions.create(model="smart", messages=MESSAGES))
    assert await becomes(lambda: upstream.in_flight == 1)
    call.cancel()
    assert await becomes(lambda: upstream.in_flight == 0)
    upstream.set([Fault.stall(after=2)])

    async def read() -> None:
        async for _ in await chatty.chat.completions.create(model="smart", messages=MESSAGES, stream=True):
            pass

    reading = asyncio.ensure_future(read())
    assert await becomes(lambda: upstream.in_flight == 1)
    reading.cancel()
    assert await becomes(lambda: upstream.in_flight == 0)
    await asyncio.gather(call, reading, return_exceptions=True)


async def test_a_stream_left_early_frees_the_provider(chatty: AsyncOpenAI, upstream: FaultServer) -> None:
    """Leaving the `async with` is enough."""
    upstream.set([Fault.stall(after=2)])
    async with await chatty.chat.completions.create(model="smart", messages=MESSAGES, stream=True) as stream:
        await anext(stream)
        assert upstream.in_flight == 1
    assert await becomes(lambda: upstream.in_flight == 0)


async def test_frameworks_take_the_transport(upstream: FaultServer) -> None:
    """`RouterTransport(router)` under an SDK client that the caller built."""
    async with SmartModelRouter.from_config(fleet(upstream)) as router:
        http = httpx_of(SDKS["openai"]).AsyncClient(transport=RouterTransport(router))
        async with openai.AsyncOpenAI(base_url="http://any.invalid/v1", api_key="k", http_client=http) as client:
            answer = await client.chat.completions.create(model="smart", messages=MESSAGES)
        assert report_of(answer).target == "ao/big"
        assert (await router.chat({"model": "smart", "messages": MESSAGES})).report.target == "ao/big"


async def test_a_router_of_this_loop_serves_other_threads(upstream: FaultServer) -> None:
    """A synchronous client in a worker thread is answered on the router's own loop; on the loop's thread it is told."""
    async with SmartModelRouter.from_config(fleet(upstream)) as router, AsyncOpenAI(router) as own:
        await own.chat.completions.create(model="smart", messages=MESSAGES)
        client = OpenAI(router, max_retries=0)
        answer = await asyncio.to_thread(client.chat.completions.create, model="smart", messages=MESSAGES)
        assert answer.choices[0].message.content == ECHO
        with pytest.raises(openai.APIConnectionError) as told:
            client.chat.completions.create(model="smart", messages=MESSAGES)
        assert "use the asynchronous client" in str(told.value.__cause__)
        client.close()


async def test_an_asynchronous_client_may_use_a_router_of_the_portal(upstream: FaultServer) -> None:
    """One that synchronous code uses already answers here as well, streams included; cancellation crosses over."""
    router = SmartModelRouter.from_config(fleet(upstream))
    sync = OpenAI(router)
    await asyncio.to_thread(sync.chat.completions.create, model="smart", messages=MESSAGES)
    async with AsyncOpenAI(router) as client:
        stream = await client.chat.completions.create(model="smart", messages=MESSAGES, stream=True)
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == ECHO
        upstream.set([Fault.hang()])
        call = asyncio.ensure_future(client.chat.completions.create(model="smart", messages=MESSAGES))
        assert await becomes(lambda: upstream.in_flight == 1)
        call.cancel()
        assert await becomes(lambda: upstream.in_flight == 0)
        await asyncio.gather(call, return_exceptions=True)
    sync.close()
