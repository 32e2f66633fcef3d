"""The SDKs of OpenAI and Anthropic: tools, streams, two turns, and a call that needs a beta, through the gateway."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import openai
from _doors import GATEWAY, KEY

from tests.agents.plan import NEXT_QUESTION, QUESTION
from tests.agents.telling import Weather, play

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"name": "weather", "parameters": PARAMETERS, "strict": True}  # the helpers for streams want strict ones
ASKED: list[Any] = [{"role": "user", "content": QUESTION}]
NEXT: list[Any] = [{"role": "user", "content": NEXT_QUESTION}]
CHAT_TOOLS: list[Any] = [{"type": "function", "function": WEATHER}]
RESPONSES_TOOLS: list[Any] = [{"type": "function", **WEATHER}]
MESSAGES_TOOLS: list[Any] = [{"name": "weather", "input_schema": PARAMETERS}]


class Chat:
    """`client.chat.completions`."""

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self.client = client

    async def asked(self, name: str, weather: Weather) -> list[Any]:
        """The conversation up to the tool's result; `stream()` collects a streamed call."""
        create = self.client.chat.completions.create
        if "stream" not in name:
            message = (await create(model=name, messages=ASKED, tools=CHAT_TOOLS)).choices[0].message
        else:
            async with self.client.chat.completions.stream(model=name, messages=ASKED, tools=CHAT_TOOLS) as stream:
                message = (await stream.get_final_completion()).choices[0].message
        results = [
            {
                "role": "tool",
                "tool_call_id": call.id,
                "content": weather.look(**json.loads(call.function.arguments)),
            }
            for call in message.tool_calls or ()
        ]
        return [*ASKED, message.model_dump(exclude_none=True, exclude={"parsed"}), *results]

    async def whole(self, name: str, conversation: list[Any], **options: Any) -> Any:
        """The answer."""
        done = await self.client.chat.completions.create(model=name, messages=conversation, **options)
        return done.choices[0].message.content

    async def streamed(self, name: str, conversation: list[Any], **options: Any) -> list[str]:
        """The pieces of the answer."""
        stream = await self.client.chat.completions.create(model=name, messages=conversation, stream=True, **options)
        return [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]

    async def turns(self, name: str) -> Any:
        """The second answer."""
        first = await self.whole(name, ASKED)
        return await self.whole(name, [*ASKED, {"role": "assistant", "content": first}, *NEXT])


class Responses:
    """`client.responses`; `client.beta.responses` for the beta."""

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self.client = client

    async def asked(self, name: str, weather: Weather) -> list[Any]:
        """The conversation up to the tool's result."""
        if "stream" not in name:
            done: Any = await self.client.responses.create(model=name, input=ASKED, tools=RESPONSES_TOOLS)
        else:
            async with self.client.responses.stream(model=name, input=ASKED, tools=RESPONSES_TOOLS) as stream:
                done = await stream.get_final_response()
        calls = [item for item in done.output if item.type == "function_call"]
        results = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": weather.look(**json.loads(call.arguments)),
            }
            for call in calls
        ]
        output = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in done.output]
        return [*ASKED, *output, *results]

    async def whole(self, name: str, conversation: list[Any], **options: Any) -> Any:
        """The answer."""
        return (await self.client.responses.create(model=name, input=conversation, **options)).output_text

    async def streamed(self, name: str, conversation: list[Any], **options: Any) -> list[str]:
        """The pieces of the answer."""
        stream = await self.client.responses.create(model=name, input=conversation, stream=True, **options)
        return [event.delta async for event in stream if event.type == "response.output_text.delta"]

    async def turns(self, name: str) -> Any:
        """The second answer, by the id of the first."""
        first = await self.client.responses.create(model=name, input=ASKED)
        return await self.whole(name, NEXT, previous_response_id=first.id)

    async def beta(self, name: str) -> Any:
        """The answer to a call that needs a beta."""
        done = await self.client.beta.responses.create(
            model=name, input=ASKED, betas=["responses_multi_agent=v1"], multi_agent={"enabled": True}
        )
        return "".join(part.text for item in done.output for part in item.content)


class Messages:
    """`client.messages`; `client.beta.messages` for the beta."""

    def __init__(self, client: anthropic.AsyncAnthropic) -> None:
        self.client = client

    async def asked(self, name: str, weather: Weather) -> list[Any]:
        """The conversation up to the tool's result."""
        options: Any = {"model": name, "messages": ASKED, "tools": MESSAGES_TOOLS, "max_tokens": 200}
        if "stream" not in name:
            message = await self.client.messages.create(**options)
        else:
            async with self.client.messages.stream(**options) as stream:
                message = await stream.get_final_message()
        calls = [block for block in message.content if block.type == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": weather.look(**call.input)} for call in calls
        ]
        content = [block.model_dump(exclude_none=True) for block in message.content]
        return [*ASKED, {"role": "assistant", "content": content}, {"role": "user", "content": results}]

    async def whole(self, name: str, conversation: list[Any], **options: Any) -> Any:
        """The answer."""
        done = await self.client.messages.create(model=name, messages=conversation, max_tokens=200, **options)
        return "".join(block.text for block in done.content if block.type == "text")

    async def streamed(self, name: str, conversation: list[Any], **options: Any) -> list[str]:
        """The pieces of the answer."""
        asked = {"model": name, "messages": conversation, "max_tokens": 200, **options}
        async with self.client.messages.stream(**asked) as stream:
            return [piece async for piece in stream.text_stream]

    async def turns(self, name: str) -> Any:
        """The second answer."""
        first = await self.whole(name, ASKED)
        return await self.whole(name, [*ASKED, {"role": "assistant", "content": first}, *NEXT])

    async def beta(self, name: str) -> Any:
        """The answer to a call that needs a beta."""
        edits: Any = [{"type": "clear_tool_uses_20250919"}]
        done = await self.client.beta.messages.create(
            model=name,
            messages=ASKED,
            max_tokens=200,
            betas=["context-management-2025-06-27"],
            context_management={"edits": edits},
        )
        return "".join(block.text for block in done.content if block.type == "text")


async def main() -> None:
    """Play every task."""
    of_openai = openai.AsyncOpenAI(base_url=f"{GATEWAY}/v1", api_key=KEY)
    of_anthropic = anthropic.AsyncAnthropic(base_url=GATEWAY, api_key=KEY)
    apis: dict[str, Any] = {
        "chat": Chat(of_openai),
        "responses": Responses(of_openai),
        "messages": Messages(of_anthropic),
    }
    tools: dict[str, Any] = {"chat": CHAT_TOOLS, "responses": RESPONSES_TOOLS, "messages": MESSAGES_TOOLS}

    async def whole(way: str, api: str, name: str, weather: Weather) -> str:
        return await apis[api].whole(name, await apis[api].asked(name, weather), tools=tools[api])

    async def streamed(way: str, api: str, name: str, weather: Weather | None) -> list[str]:
        if weather is None:
            return await apis[api].streamed(name, ASKED)
        return await apis[api].streamed(name, await apis[api].asked(name, weather), tools=tools[api])

    async def turns(api: str, name: str) -> str:
        return await apis[api].turns(name)

    async def beta(api: str, name: str) -> str:
        return await apis[api].beta(name)

    await play(apis, whole, streamed, ["gateway"], turns, beta)


asyncio.run(main())
