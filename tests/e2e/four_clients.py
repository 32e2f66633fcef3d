"""The four drop-in clients behind one face, for what all of them promise: what a test says once is asked of each."""

from __future__ import annotations

import asyncio
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import anthropic
import openai
import pydantic

from smart_model_router.clients import Anthropic, AsyncAnthropic, AsyncOpenAI, OpenAI
from tests.e2e.gateways import MESSAGES

SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
_NO_MORE = object()


class Town(pydantic.BaseModel):
    """What `.parse()` is to fill."""

    name: str


class Caller(ABC):
    """One client; its calls can be awaited, those of a synchronous one are made in a thread each."""

    sdk: ModuleType
    nobody_left: type[Exception]
    """What the SDK raises for our 503, or Messages' 529."""

    def __init__(self, client: Any, *, asynchronous: bool) -> None:
        self.client = client
        self.asynchronous = asynchronous

    async def aclose(self) -> None:
        """Close it."""
        await self.do(self.client.close)

    async def do(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Make a call of the client's kind."""
        if self.asynchronous:
            return await call(*arguments, **options)
        return await asyncio.to_thread(call, *arguments, **options)

    async def text(self, **options: Any) -> str:
        """The text of a whole answer."""
        return self.said(await self.do(self.create, **self.asked, **options))

    async def parse_raw(self, raw: Any) -> Any:
        """The answer in a raw response; of Anthropic's newest asynchronous one it is awaited."""
        parsed = raw.parse()
        return await parsed if inspect.isawaitable(parsed) else parsed

    async def pieces(self, **options: Any) -> AsyncIterator[str]:
        """The pieces of a stream, as they come. Closing this closes the stream."""
        stream = await self.do(self.create, **self.asked, stream=True, **options)
        following = stream.__anext__ if self.asynchronous else lambda: next(stream, _NO_MORE)
        try:
            while (event := await self.do(following)) is not _NO_MORE:
                if piece := self.piece(event):
                    yield piece
        except StopAsyncIteration:
            pass
        finally:
            await self.do(stream.close)

    @property
    @abstractmethod
    def create(self) -> Callable[..., Any]:
        """What makes a call."""

    @property
    @abstractmethod
    def raw(self) -> Any:
        """`with_raw_response` of the same."""

    @property
    @abstractmethod
    def asked(self) -> dict[str, Any]:
        """A small question."""

    @abstractmethod
    def said(self, answer: Any) -> str:
        """The text of an answer."""

    @abstractmethod
    def piece(self, event: Any) -> str:
        """The text that an event of a stream adds."""

    @abstractmethod
    async def helped(self) -> str:
        """What the SDK's `.stream()` puts together."""

    @abstractmethod
    async def parsed(self) -> Any:
        """What `.parse()` makes of an answer."""

    @abstractmethod
    async def call_of_a_tool(self) -> tuple[tuple[str, str, Any], str]:
        """A round with a tool: (id, name, arguments) as called, and what is said once its result `42` is there."""


class Chatty(Caller):
    """OpenAI's, by Chat Completions."""

    sdk = openai
    nobody_left = openai.InternalServerError

    @property
    def create(self) -> Callable[..., Any]:
        made: Callable[..., Any] = self.client.chat.completions.create
        return made

    @property
    def raw(self) -> Any:
        return self.client.chat.completions.with_raw_response

    @property
    def asked(self) -> dict[str, Any]:
        return {"model": "smart", "messages": MESSAGES}

    def said(self, answer: Any) -> str:
        return str(answer.choices[0].message.content)

    def piece(self, event: Any) -> str:
        return event.choices[0].delta.content or "" if event.choices else ""

    async def helped(self) -> str:
        if self.asynchronous:
            async with self.client.chat.completions.stream(**self.asked) as stream:
                return self.said(await stream.get_final_completion())

        def read() -> str:
            with self.client.chat.completions.stream(**self.asked) as stream:
                return self.said(stream.get_final_completion())

        return await asyncio.to_thread(read)

    async def parsed(self) -> Any:
        answer = await self.do(self.client.chat.completions.parse, **self.asked, response_format=Town)
        return answer.choices[0].message.parsed

    async def call_of_a_tool(self) -> tuple[tuple[str, str, Any], str]:
        tools = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
        first = (await self.do(self.create, **self.asked, tools=tools)).choices[0].message
        (call,) = first.tool_calls
        result = {"role": "tool", "tool_call_id": call.id, "content": "42"}
        messages = [*MESSAGES, first.model_dump(exclude_none=True), result]
        second = await self.do(self.create, model="smart", messages=messages, tools=tools)
        return (call.id, call.function.name, json.loads(call.function.arguments)), self.said(second)


class Claudish(Caller):
    """Anthropic's, by Messages."""

    sdk = anthropic
    nobody_left = anthropic.OverloadedError

    @property
    def create(self) -> Callable[..., Any]:
        made: Callable[..., Any] = self.client.messages.create
        return made

    @property
    def raw(self) -> Any:
        return self.client.messages.with_raw_response

    @property
    def asked(self) -> dict[str, Any]:
        return {"model": "claude", "max_tokens": 99, "messages": MESSAGES}

    def said(self, answer: Any) -> str:
        return "".join(block.text for block in answer.content)

    def piece(self, event: Any) -> str:
        return str(event.delta.text) if event.type == "content_block_delta" else ""

    async def helped(self) -> str:
        if self.asynchronous:
            async with self.client.messages.stream(**self.asked) as stream:
                return str(await stream.get_final_text())

        def read() -> str:
            with self.client.messages.stream(**self.asked) as stream:
                return str(stream.get_final_text())

        return await asyncio.to_thread(read)

    async def parsed(self) -> Any:
        return (await self.do(self.client.messages.parse, **self.asked, output_format=Town)).parsed_output

    async def call_of_a_tool(self) -> tuple[tuple[str, str, Any], str]:
        tools = [{"name": "look", "input_schema": SCHEMA}]
        first = await self.do(self.create, **self.asked, tools=tools)
        (call,) = first.content
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "42"}
        turns = [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        second = await self.do(self.create, **{**self.asked, "messages": [*MESSAGES, *turns]}, tools=tools)
        return (call.id, call.name, call.input), self.said(second)


CLIENTS: dict[str, Callable[[Any], Caller]] = {
    "OpenAI": lambda source: Chatty(OpenAI(source, max_retries=0), asynchronous=False),
    "AsyncOpenAI": lambda source: Chatty(AsyncOpenAI(source, max_retries=0), asynchronous=True),
    "Anthropic": lambda source: Claudish(Anthropic(source, max_retries=0), asynchronous=False),
    "AsyncAnthropic": lambda source: Claudish(AsyncAnthropic(source, max_retries=0), asynchronous=True),
}
