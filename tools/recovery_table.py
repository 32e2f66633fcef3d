"""Measure every recovery policy on every kind of answer: what is lost, repeated, delayed and billed. Prints a table.

A scripted upstream breaks off in the middle of an answer; another one stands behind it. The gateway is a process of its
own, the clients are the openai and anthropic packages. About two minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

import anthropic
import openai
from aiohttp import web

from tests.e2e.gateways import served
from tests.lies.answers import Block, Frame, frames_of

Dialect = Literal["chat", "messages"]
DIALECTS: tuple[Dialect, ...] = ("chat", "messages")
POLICIES = ("none", "continue", "hold_back(200)", "buffered", "restart")
PIECE_SECONDS = 0.05
TOGETHER = 20
"""Cells that are measured at once."""


def words(name: str, count: int) -> tuple[str, ...]:
    """So many distinct words."""
    return tuple(f"{name}{number:02} " for number in range(count))


_ARGUMENTS = json.dumps({"path": "/a/b", "content": "x" * 140})
_CALL = Block("call", tuple(_ARGUMENTS[at : at + 9] for at in range(0, len(_ARGUMENTS), 9)), "write")
_JSON = json.dumps({"items": [f"item{number:02}" for number in range(16)]})
_TOOL: Mapping[Dialect, Any] = {
    "chat": {"type": "function", "function": {"name": "write", "parameters": {"type": "object"}}},
    "messages": {"name": "write", "input_schema": {"type": "object"}},
}
_SCHEMA: Mapping[Dialect, dict[str, Any]] = {
    "chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}},
    "messages": {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
}


@dataclass(frozen=True, slots=True)
class Content:
    """A kind of answer: its blocks, and after how many content events of them the first upstream breaks off."""

    blocks: tuple[Block, ...]
    cut_after: int
    tools: bool = False
    schema: bool = False


CONTENTS: Mapping[str, Content] = {
    "text": Content((Block("text", words("word", 40)),), 24),
    "thoughts": Content((Block("thinking", words("thought", 20)), Block("text", words("word", 20))), 10),
    "text after thoughts": Content((Block("thinking", words("thought", 20)), Block("text", words("word", 20))), 30),
    "a call": Content((_CALL,), 10, tools=True),
    "a call after text": Content((Block("text", words("word", 10)), _CALL), 20, tools=True),
    "schema": Content((Block("text", tuple(_JSON[at : at + 9] for at in range(0, len(_JSON), 9))),), 12, schema=True),
}
BEHIND = {
    "continues a prefill": "vllm",
    "continues when asked": "openai_compatible",
    "answers anew, the same": "openai_compatible",
    "answers anew, other words": "openai_compatible",
    "refuses a prefill": "vllm",
    "fails": "openai_compatible",
}
"""Second upstreams, and their kinds for Chat; those for Messages are `anthropic`."""


@dataclass(slots=True)
class Got:
    """The result at the client of one cell, and the seconds to its first content and to its end."""

    text: str = ""
    calls: str = ""
    error: str = ""
    first: float = 0.0
    end: float = 0.0
    restarted: bool = False


@dataclass(slots=True)
class Sent:
    """The billed output of one cell's upstreams: calls (each a prompt) and content events."""

    calls: int = 0
    events: int = 0


@dataclass(slots=True)
class Upstream:
    """Both upstreams of every cell; a model is named `<content>|<role>`, and a cell by its number in the path."""

    sent: dict[str, Sent] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one call of a cell."""
        cell, dialect = request.match_info["cell"], _dialect(request.path)
        body = await request.json()
        name, role = body["model"].split("|")
        content = CONTENTS[name]
        sent = self.sent.setdefault(cell, Sent())
        sent.calls += 1
        last = body["messages"][-1]
        is_prefill = last["role"] == "assistant"
        if role == "refuses a prefill" and is_prefill:
            return web.json_response({"error": {"message": "assistant message prefill is not supported"}}, status=400)
        if role == "fails" or (role == "first" and self.asked[cell]):
            return web.json_response({"error": {"message": "down"}}, status=500)
        self.asked[cell] += 1
        begun = _begun(body)
        blocks = _continued(content.blocks, begun, is_prefill=is_prefill, role=role)
        frames = frames_of(dialect, blocks, "up")
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        with suppress(ConnectionError):  # the gateway has seen enough of it
            for frame in _until_cut(frames, content.cut_after if role == "first" else None):
                await response.write(frame.raw)
                if frame.is_content:
                    sent.events += 1
                    await asyncio.sleep(PIECE_SECONDS)
        if role == "first" and request.transport is not None:
            request.transport.abort()
        return response


def _dialect(path: str) -> Dialect:
    return "messages" if path.endswith("/messages") else "chat"


def _begun(body: Mapping[str, Any]) -> str:
    """The beginning of the answer that the upstream is shown."""
    content = next((one["content"] for one in body["messages"] if one["role"] == "assistant"), "")
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _continued(blocks: tuple[Block, ...], begun: str, *, is_prefill: bool, role: str) -> tuple[Block, ...]:
    """The answer of an upstream that is shown `begun`: nothing of it, its last words and the rest, or all of it."""
    if role == "answers anew, other words":
        return tuple(_reworded(block) for block in blocks)
    if not begun or role == "answers anew, the same":
        return blocks
    out = []
    for block in blocks:
        if block.kind != "text":
            out += [] if block.kind == "thinking" and is_prefill else [block]
            continue
        said = "".join(block.pieces)
        tail = "" if is_prefill else begun[begun.rstrip().rfind(" ", 0, -40) + 1 :]
        rest = tail + said[len(begun) :]
        if rest:
            out.append(Block("text", tuple(rest[at : at + 7] for at in range(0, len(rest), 7))))
    return tuple(out)


def _reworded(block: Block) -> Block:
    return Block("text", tuple(f"other{piece}" for piece in block.pieces)) if block.kind == "text" else block


def _until_cut(frames: Sequence[Frame], events: int | None) -> list[Frame]:
    if events is None:
        return list(frames)
    places = [at for at, frame in enumerate(frames) if frame.is_content]
    return list(frames[: places[events - 1] + 1])


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement."""

    dialect: Dialect
    content: str
    behind: str
    policy: str

    @property
    def name(self) -> str:
        """A name that is a path."""
        places = (DIALECTS, tuple(CONTENTS), tuple(BEHIND), POLICIES)
        values = (self.dialect, self.content, self.behind, self.policy)
        return "-".join(str(names.index(value)) for names, value in zip(places, values, strict=True))


def configuration(cells: Sequence[Cell], url: str) -> dict[str, Any]:
    """Two providers and a model for each cell, that none learns from another's failures."""
    providers, models = {}, {}
    for cell in cells:
        base = f"{url}/{cell.name}/v1"
        behind = BEHIND[cell.behind] if cell.dialect == "chat" else "anthropic"
        first = "openai_compatible" if cell.dialect == "chat" else "anthropic"
        for place, kind in ((1, first), (2, behind)):
            name = f"p{cell.name}-{place}"
            providers[name] = {"kind": kind, "base_url": base, "api_key": "k", "failure_domain": name}
        way = {"continues a prefill": "plain", "refuses a prefill": "plain"}.get(cell.behind, "asked")
        targets = [
            {"target": f"p{cell.name}-1/{cell.content}|first", "schema": True},
            {"target": f"p{cell.name}-2/{cell.content}|{cell.behind}", "schema": True, "prefill": way},
        ]
        models[cell.name] = {"tiers": [{"targets": [target]} for target in targets], "last_resort": []}
    return {"version": 1, "providers": providers, "models": models}


async def measured(cell: Cell, url: str) -> Got:
    """Ask once, as a program with the provider's package does."""
    got, began = Got(), time.monotonic()
    content = CONTENTS[cell.content]
    more: dict[str, Any] = {"tools": [_TOOL[cell.dialect]]} if content.tools else {}
    if content.schema:
        more["extra_body"] = _SCHEMA[cell.dialect]
    try:
        async for text, call, restarted in _pieces(cell, url, more):
            got.first = got.first or time.monotonic() - began
            if restarted:
                got.text, got.calls, got.restarted = "", "", True
            got.text += text
            got.calls += call
    except (openai.APIError, anthropic.APIError) as error:
        got.error = type(error).__name__
    got.end = time.monotonic() - began
    return got


async def _pieces(cell: Cell, url: str, more: dict[str, Any]) -> AsyncIterator[tuple[str, str, bool]]:
    """The text, arguments and restarts that a client sees."""
    headers = {"x-router-recovery": cell.policy}
    question: list[Any] = [{"role": "user", "content": "go"}]
    if cell.dialect == "chat":
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as chat:
            chunks = await chat.chat.completions.create(
                model=cell.name, messages=question, stream=True, extra_headers=headers, **more
            )
            async for chunk in chunks:
                restarted = chunk.object == "router.restart"
                for choice in chunk.choices:
                    calls = choice.delta.tool_calls or []
                    arguments = "".join(one.function.arguments or "" for one in calls if one.function)
                    thought = getattr(choice.delta, "reasoning_content", None)
                    if choice.delta.content or arguments or thought:
                        yield choice.delta.content or "", arguments, False
                if restarted:
                    yield "", "", True
        return
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as messages:
        events: Any = await messages.messages.create(
            model=cell.name, max_tokens=999, messages=question, stream=True, extra_headers=headers, **more
        )
        started = False
        async for event in events:
            if event.type == "message_start":
                if started:
                    yield "", "", True
                started = True
            elif event.type == "content_block_delta":
                yield getattr(event.delta, "text", ""), getattr(event.delta, "partial_json", ""), False


async def run(cells: Sequence[Cell]) -> dict[Cell, tuple[Got, Sent]]:
    """Measure all cells."""
    upstream = Upstream()
    app = web.Application(client_max_size=1 << 24)
    for path in ("chat/completions", "messages"):
        app.router.add_post(f"/{{cell}}/v1/{path}", upstream.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    found: dict[Cell, tuple[Got, Sent]] = {}
    room = asyncio.Semaphore(TOGETHER)

    async def one(cell: Cell, url: str) -> None:
        async with room:
            got = await measured(cell, url)
        found[cell] = got, upstream.sent.get(cell.name, Sent())

    try:
        with tempfile.TemporaryDirectory(prefix="smr-recovery-") as folder:
            tree = configuration(cells, f"http://127.0.0.1:{port}")
            with served(tree, Path(folder)) as gateway:
                await asyncio.gather(*(one(cell, gateway.base_url) for cell in cells))
    finally:
        await runner.cleanup()
    return found


def verdict(cell: Cell, got: Got) -> str:
    """Describe the client's result."""
    if got.error:
        return "error"
    text, calls = _whole(cell, reworded=False)
    other, _ = _whole(cell, reworded=True)
    right = got.calls == calls and (got.text in (text, other) or got.text.strip() == text.strip())
    return ("restarted" if got.restarted else "whole") if right else "WRONG"


def _whole(cell: Cell, *, reworded: bool) -> tuple[str, str]:
    blocks = CONTENTS[cell.content].blocks
    if reworded:
        blocks = tuple(_reworded(block) for block in blocks)
    parts = {kind: "".join(piece for b in blocks if b.kind == kind for piece in b.pieces) for kind in ("text", "call")}
    return parts["text"], parts["call"]


def cell_text(cell: Cell, got: Got, sent: Sent) -> str:
    """Verdict; seconds to the first content and to the end; prompts and events that are billed."""
    return f"{verdict(cell, got)} {got.first:.1f}/{got.end:.1f} s, {sent.calls} + {sent.events}"


def table(dialect: Dialect, found: Mapping[Cell, tuple[Got, Sent]]) -> str:
    """One dialect in Markdown."""
    lines = ["| cut in | behind it | " + " | ".join(POLICIES) + " |", "|---" * (len(POLICIES) + 2) + "|"]
    for content, behind in product(CONTENTS, BEHIND):
        cells = [Cell(dialect, content, behind, policy) for policy in POLICIES]
        lines.append(f"| {content} | {behind} | " + " | ".join(cell_text(cell, *found[cell]) for cell in cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Measure and print; 1 when an answer was called whole that is not."""
    parser = argparse.ArgumentParser(prog="python -m tools.recovery_table", description=__doc__)
    parser.add_argument("--dialect", choices=DIALECTS, action="append", help="this one only")
    dialects = parser.parse_args(arguments).dialect or DIALECTS
    cells = [Cell(*one) for one in product(dialects, CONTENTS, BEHIND, POLICIES)]
    found = asyncio.run(run(cells))
    for dialect in dialects:
        print(f"{dialect}\n\n{table(dialect, found)}\n")
    wrong = [cell for cell, (got, _) in found.items() if verdict(cell, got) == "WRONG"]
    for cell in wrong:
        print(f"WRONG: {cell}: {found[cell][0]}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
