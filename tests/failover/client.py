"""The clients of `make failoverbench`: a streaming one, and the loop over the targets that a user would write."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from tests.failover.rows import End, Reply

LOOP_FIRST_CONTENT_SECONDS = 30.0
LOOP_ROUNDS = 2


class ErrorReceived(Exception):
    """The server answered with an error object, before or within the stream."""


@dataclass(frozen=True, slots=True)
class Target:
    """A model at a base URL."""

    base_url: str
    model: str


async def ask(
    target: Target,
    deadline_seconds: float,
    first_content_seconds: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Stream one answer until `[DONE]`, an error or the end. `first_content_seconds` of silence are an error."""
    clock = asyncio.get_running_loop().time
    began = clock()
    reply = Reply(End.ANSWER, 0.0)
    deadline, silence = asyncio.timeout(deadline_seconds), asyncio.timeout(first_content_seconds)
    try:
        async with deadline, silence:
            async for event in _events(target, headers):
                reply = _with_event(reply, event)
                if reply.text:
                    silence.reschedule(None)
    except TimeoutError:
        reply = replace(reply, end=End.HANG if deadline.expired() else End.ERROR, error="silent")
    except ErrorReceived as error:
        reply = replace(reply, end=End.ERROR, error=str(error))
    except (aiohttp.ClientError, ConnectionError, ValueError) as error:
        reply = replace(reply, end=End.ERROR, error=f"{type(error).__name__}: {error}")
    return replace(reply, seconds=clock() - began)


async def ask_in_turn(targets: Sequence[Target], deadline_seconds: float) -> Reply:
    """Ask the targets in order, twice round, until one has an answer. Nothing is remembered."""
    clock = asyncio.get_running_loop().time
    began = clock()
    reply = Reply(End.ERROR, 0.0)
    for target in (*targets,) * LOOP_ROUNDS:
        reply = await ask(target, deadline_seconds - (clock() - began), LOOP_FIRST_CONTENT_SECONDS)
        if reply.end is not End.ERROR:
            break
    return replace(reply, seconds=clock() - began)


async def _events(target: Target, headers: Mapping[str, str] | None) -> AsyncIterator[dict[str, Any]]:
    """Yield the events of the stream. Raises ErrorReceived, and ValueError for broken JSON."""
    body = {
        "model": target.model,
        "messages": [{"role": "user", "content": "Say the sixty words."}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    unlimited = aiohttp.ClientTimeout()
    async with (
        aiohttp.ClientSession(timeout=unlimited) as session,
        session.post(f"{target.base_url}/chat/completions", json=body, headers=headers) as response,
    ):
        if response.status != 200:
            raise ErrorReceived(f"{response.status} {_message(await response.json(content_type=None))}")
        async for line in response.content:
            data = line.removeprefix(b"data:").strip()
            if data == b"[DONE]":
                return
            if data == line.strip():
                continue  # blank lines, comments, `event:`
            event: dict[str, Any] = json.loads(data)
            if "error" in event:
                raise ErrorReceived(_message(event))
            yield event


def _message(body: dict[str, Any]) -> str:
    error = body["error"]
    return str(error.get("message", error))


def _with_event(reply: Reply, event: dict[str, Any]) -> Reply:
    pieces = [choice["delta"].get("content") or "" for choice in event["choices"]]
    return replace(
        reply,
        text=reply.text + "".join(pieces),
        model=event.get("model") or reply.model,
        has_usage=reply.has_usage or bool(event.get("usage")),
    )
