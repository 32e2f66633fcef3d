"""Answers that a script words: text and calls of functions, as the official clients read them, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from anthropic import AsyncAnthropic
from anthropic.types import Message, MessageParam
from openai import APIConnectionError, AsyncOpenAI
from openai.types.chat import ChatCompletionChunk, ChatCompletionUserMessageParam
from openai.types.responses import Response

from smart_model_router import SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer, load_script

pytestmark = pytest.mark.asyncio

OSLO, ROME = {"city": "Oslo", "unit": "C"}, {"city": "Rome"}
SCRIPT = """
- reply:
    text: Let me look.
    tool_calls:
    - {name: weather, arguments: {city: Oslo, unit: C}}
    - {name: weather, arguments: {city: Rome}}
    times: 1
- reply:
    tool_calls: [{name: weather, arguments: {city: Rome}}]
"""
HELLO: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "hello"}]
GREETING: list[MessageParam] = [{"role": "user", "content": "hello"}]
Said = tuple[str, list[tuple[str, Any]], object]
"""Text, calls by name and arguments, and why it ended."""

FIRST = ("Let me look.", [("weather", OSLO), ("weather", ROME)])
LATER = ("", [("weather", ROME)])


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FaultServer]:
    """A provider that calls two functions at once, then one without a word."""
    async with FaultServer(load_script(SCRIPT)) as running:
        yield running


def openai(server: FaultServer) -> AsyncOpenAI:
    """An official client."""
    return AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0, timeout=5)


def anthropic(server: FaultServer) -> AsyncAnthropic:
    """An official client."""
    return AsyncAnthropic(base_url=server.base_url.removesuffix("/v1"), api_key="k", max_retries=0, timeout=5)


async def chat(server: FaultServer) -> Said:
    """Chat Completions, whole."""
    async with openai(server) as client:
        answer = await client.chat.completions.create(model="m", messages=HELLO)
    [choice] = answer.choices
    calls = [
        (c.function.name, json.loads(c.function.arguments))
        for c in choice.message.tool_calls or ()
        if c.type == "function"
    ]
    return choice.message.content or "", calls, choice.finish_reason


async def chat_stream(server: FaultServer) -> Said:
    """Chat Completions as a stream, put together by the client."""
    async with (
        openai(server) as client,
        client.chat.completions.stream(model="m", messages=HELLO) as stream,
    ):
        [choice] = (await stream.get_final_completion()).choices
    calls = [(c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls or ()]
    return choice.message.content or "", calls, choice.finish_reason


def of_message(message: Message) -> Said:
    """What a message says."""
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    return text, calls, message.stop_reason


async def messages(server: FaultServer) -> Said:
    """Messages, whole."""
    async with anthropic(server) as client:
        return of_message(await client.messages.create(model="m", max_tokens=100, messages=GREETING))


async def messages_stream(server: FaultServer) -> Said:
    """Messages as a stream, put together by the client."""
    async with (
        anthropic(server) as client,
        client.messages.stream(model="m", max_tokens=100, messages=GREETING) as stream,
    ):
        return of_message(await stream.get_final_message())


def of_response(response: Response) -> Said:
    """What a response says."""
    calls = [(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
    return response.output_text, calls, response.status


async def responses(server: FaultServer) -> Said:
    """Responses, whole."""
    async with openai(server) as client:
        return of_response(await client.responses.create(model="m", input="hello"))


async def responses_stream(server: FaultServer) -> Said:
    """Responses as a stream, put together by the client."""
    async with openai(server) as client, client.responses.stream(model="m", input="hello") as stream:
        return of_response(await stream.get_final_response())


@pytest.mark.parametrize(
    ("speak", "finish"),
    [
        (chat, "tool_calls"),
        (chat_stream, "tool_calls"),
        (messages, "tool_use"),
        (messages_stream, "tool_use"),
        (responses, "completed"),
        (responses_stream, "completed"),
    ],
)
async def test_every_client_reads_the_calls(server: FaultServer, speak: Any, finish: str) -> None:
    """Two parallel calls after some words, then one call without a word; arguments arrive whole."""
    assert await speak(server) == (*FIRST, finish)
    assert await speak(server) == (*LATER, finish)


async def test_ids_of_parallel_calls_differ(server: FaultServer) -> None:
    """Each call has an id of its own, and a later answer uses none of them again."""
    async with openai(server) as client:
        answers = [await client.chat.completions.create(model="m", messages=HELLO) for _ in range(2)]
    ids = [call.id for answer in answers for call in answer.choices[0].message.tool_calls or ()]
    assert len(set(ids)) == 3


async def test_events_of_responses_are_numbered_without_a_gap(server: FaultServer) -> None:
    """`sequence_number` counts every event, and each call has an output index of its own."""
    async with openai(server) as client:
        stream = await client.responses.create(model="m", input="hello", stream=True)
        events = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.output_index for event in events if event.type == "response.output_item.added"] == [0, 1, 2]


async def test_a_fault_below_a_reply_hits_it() -> None:
    """A cut after two pieces leaves the name of the function and the beginning of its arguments."""
    script = [Fault.reply(tool_calls=[{"name": "f", "arguments": OSLO}]), Fault.cut(after=2)]
    seen: list[str] = []

    async def read(stream: AsyncIterator[ChatCompletionChunk]) -> None:
        async for chunk in stream:
            calls = chunk.choices[0].delta.tool_calls or ()
            seen.extend(call.function.arguments or "" for call in calls if call.function)

    async with FaultServer(script) as server, openai(server) as client:
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        with pytest.raises((httpx2.RemoteProtocolError, APIConnectionError)):
            await read(aiter(stream))
    assert seen == ["", '{"ci']


async def test_broken_arguments_can_be_sent() -> None:
    """Text goes out as it is: a model's invalid JSON can be played."""
    script = [Fault.reply(tool_calls=[{"name": "f", "arguments": '{"a": '}])]
    async with FaultServer(script) as server, openai(server) as client:
        answer = await client.chat.completions.create(model="m", messages=HELLO)
    calls = answer.choices[0].message.tool_calls or []
    assert [call.function.arguments for call in calls if call.type == "function"] == ['{"a": ']


@pytest.mark.parametrize("stream", [False, True])
async def test_the_router_takes_calls_for_content(stream: bool) -> None:
    """An answer of calls alone is no empty one: it is served from the first target."""
    script = [Fault.reply(tool_calls=[{"name": "f", "arguments": ROME}])]
    async with FaultServer(script) as a, FaultServer() as b:
        tree = {
            "version": 1,
            "providers": {
                name: {"kind": "openai_compatible", "base_url": server.base_url, "api_key": "k"}
                for name, server in (("a", a), ("b", b))
            },
            "models": {"smart": {"tiers": [{"targets": ["a/m", "b/m"]}], "last_resort": []}},
        }
        body = {"model": "smart", "messages": HELLO}
        async with SmartModelRouter.from_config(tree, seed=1) as router:
            if stream:
                chunks: Sequence[Any] = [chunk async for chunk in router.stream_chat(body)]
                finish = [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]][-1]
            else:
                finish = (await router.chat(body)).body["choices"][0]["finish_reason"]
        assert finish == "tool_calls"
        assert (a.calls(), b.calls()) == (1, 0)
