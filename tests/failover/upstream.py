"""The scripted upstream: streaming Chat Completions over raw sockets, one script for each model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import struct
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from tests.failover.rows import Call
from tests.failover.script import ANSWER, PREFILL_REFUSED, Action, Answer, Refuse, Reset, Script

WORD_SECONDS = 0.015
_USAGE = {"prompt_tokens": 9, "completion_tokens": 60, "total_tokens": 69}
_NO_LINGER = struct.pack("ii", 1, 0)


class Upstream:
    """Any number of listeners over the same scripts. `refusing_prefill`: models that refuse to continue a message."""

    def __init__(self, scripts: Mapping[str, Script], refusing_prefill: frozenset[str] = frozenset()) -> None:
        self.calls: dict[str, list[Call]] = {model: [] for model in scripts}
        self._scripts = scripts
        self._refusing_prefill = refusing_prefill
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> str:
        """Open a listener; return its base URL."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            body = await _request(reader)
            model, last = body["model"], body["messages"][-1]
            prefix = last["content"] if last["role"] == "assistant" else ""
            calls, now = self.calls[model], asyncio.get_running_loop().time()
            number, first = len(calls), calls[0].at if calls else now
            calls.append(Call(now))
            action = self._scripts[model](number, now - first)
            if prefix and model in self._refusing_prefill:
                action = Refuse(400, PREFILL_REFUSED, "invalid_request_error")
            if await _act(action, reader, writer, model, prefix):
                calls[number] = replace(calls[number], served=True)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the caller is gone
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _request(reader: asyncio.StreamReader) -> dict[str, Any]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?im)^content-length: *(\d+)", head)
    if length is None:
        raise ConnectionError("no content-length")
    body: dict[str, Any] = json.loads(await reader.readexactly(int(length[1])))
    return body


async def _act(
    action: Action, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, model: str, prefix: str
) -> bool:
    """Do it; True when the whole answer was sent."""
    match action:
        case Refuse():
            writer.write(_refusal(action))
            await writer.drain()
        case Reset():
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            writer.transport.abort()
        case Answer():
            if await _left_within(action.delay_seconds, reader):
                return False
            await _stream(action, writer, model, prefix)
            await _left_within(action.linger_seconds, reader)
            return action.is_whole
    return False


def _refusal(action: Refuse) -> bytes:
    error = {"message": action.message, "type": "error", "code": action.code}
    body = json.dumps({"error": error}).encode()
    lines = [f"HTTP/1.1 {action.status} Refused", "content-type: application/json", "connection: close"]
    lines += [f"retry-after: {action.retry_after}"] if action.retry_after is not None else []
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


async def _stream(action: Answer, writer: asyncio.StreamWriter, model: str, prefix: str) -> None:
    # Without a length the closed connection is the end of the body: a cut looks like an end.
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    rest = ANSWER.removeprefix(prefix)
    words = re.findall(r"\s*\S+", rest)[: action.words]
    for number, word in enumerate(words):
        if number == action.broken_after:
            writer.write(b'data: {"id": "1", "choices": [{"delta": {"cont\n\n')
        writer.write(_chunk(model, [{"index": 0, "delta": {"content": word}, "finish_reason": None}]))
        await writer.drain()
        await asyncio.sleep(WORD_SECONDS)
    if action.is_whole:
        writer.write(_chunk(model, [{"index": 0, "delta": {}, "finish_reason": "stop"}]))
        writer.write(_chunk(model, [], usage=_USAGE))
        if action.sends_done:
            writer.write(b"data: [DONE]\n\n")
    await writer.drain()


def _chunk(model: str, choices: list[dict[str, Any]], **further: Any) -> bytes:
    event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices, **further}
    return f"data: {json.dumps(event)}\n\n".encode()


async def _left_within(seconds: float, reader: asyncio.StreamReader) -> bool:
    """Wait; True as soon as the caller closes the connection."""
    if not seconds:
        return False
    try:
        return not await asyncio.wait_for(reader.read(1), seconds)
    except TimeoutError:
        return False
