"""Print how requests and a step move through the source: files entered, moves between files, moves between rooms.

`python tools/walk.py` counts this checkout, `--tree DIR` another one (a `git worktree` of an older commit), `--files`
also lists the files in the order of their first call. A move is a call that begins in another file than the call
before it; code outside the product is not counted. A room is a package directly inside `smart_model_router`; its loose
modules together are one room, and so is each other distribution of the product. The numbers do not depend on time: the
provider is a socket server of this file, answers are fixed, and both requests are made once before they are counted. Of
a workflow's step the way from the end of the work before it to the beginning of the work after it is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from types import FrameType

    from smart_model_router import SmartModelRouter

HERE = Path(__file__).resolve().parents[1]
SOURCES = ("router", "providers", "stats", "scoring", "research")
_MAIN = "smart_model_router"
_USAGE = {"prompt_tokens": 4, "completion_tokens": 1, "total_tokens": 5}
_QUESTION: dict[str, Any] = {
    "model": "smart",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "How much is two and two?"}],
}


@dataclass(frozen=True, slots=True)
class Walk:
    """The files of calls, in the order the calls began, relative to the root of the checkout."""

    calls: tuple[Path, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """Each file once, in the order of its first call."""
        return tuple(dict.fromkeys(self.calls))

    @property
    def moves(self) -> int:
        """Calls that begin in another file than the call before."""
        return _changes(self.calls)

    @property
    def room_moves(self) -> int:
        """Calls that begin in another room than the call before."""
        return _changes([room(file) for file in self.calls])


def room(file: Path) -> str:
    """Return the room of a file (`router/smart_model_router/core/gate.py`: core)."""
    package, *inside = file.parts[1:]
    return inside[0] if package == _MAIN and len(inside) > 1 else package


async def walk(root: Path, request: Callable[[], Awaitable[object]]) -> Walk:
    """Await `request()` and return its walk through the sources under `root`; other threads are not seen."""
    called: list[str] = []
    _note(called)
    try:
        await request()
    finally:
        sys.setprofile(None)
    return _walk(root, called)


def _note(called: list[str]) -> None:
    """Note the file of each call from now on."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_filename)

    sys.setprofile(note)


def _walk(root: Path, called: Iterable[str]) -> Walk:
    prefixes = tuple(f"{root / source}/" for source in SOURCES)
    return Walk(tuple(Path(file).relative_to(root) for file in called if file.startswith(prefixes)))


async def _step(root: Path) -> Walk:
    """The walk of the second of three steps that need each other, whose runs are kept in memory."""
    from smart_model_router_research.engine import ExecutionContext, KahnEngine
    from smart_model_router_research.workflow import Step, StepInput, WorkflowDefinition

    called: list[str] = []

    async def work(step: StepInput) -> dict[str, Any]:
        if step.step == "third":
            sys.setprofile(None)
        elif step.step == "first":
            _note(called)
        return {}

    steps = [Step("first", work), Step("second", work, ["first"]), Step("third", work, ["second"])]
    await KahnEngine().execute(WorkflowDefinition("w", steps), ExecutionContext(run_id="r"))
    return _walk(root, called)


def _changes(values: Iterable[object]) -> int:
    return sum(before != after for before, after in pairwise(values))


class _Provider(StreamRequestHandler):
    """Chat Completions over HTTP/1.1 on a kept connection, each answer sent in one piece."""

    def handle(self) -> None:
        """Answer requests until the client closes the connection."""
        while line := self.rfile.readline():
            length = 0
            while line.strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                line = self.rfile.readline()
            streams = json.loads(self.rfile.read(length)).get("stream", False)
            kind, body = ("text/event-stream", _STREAM) if streams else ("application/json", _ANSWER)
            head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)


def _completion(kind: str, choice: dict[str, Any], usage: dict[str, int] | None = None) -> bytes:
    content: dict[str, Any] = {
        "id": "1",
        "object": kind,
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, **choice}],
    }
    return json.dumps(content | ({"usage": usage} if usage else {})).encode()


_MESSAGE = {"role": "assistant", "content": "four"}
_ANSWER = _completion("chat.completion", {"message": _MESSAGE, "finish_reason": "stop"}, _USAGE)
_EVENTS = (
    _completion("chat.completion.chunk", {"delta": {"role": "assistant", "content": ""}, "finish_reason": None}),
    _completion("chat.completion.chunk", {"delta": {"content": "four"}, "finish_reason": None}),
    _completion("chat.completion.chunk", {"delta": {}, "finish_reason": "stop"}, _USAGE),
    b"[DONE]",
)
_STREAM = b"".join(b"data: " + event + b"\n\n" for event in _EVENTS)


async def _counted(root: Path, port: int) -> dict[str, Walk]:
    from smart_model_router import SmartModelRouter

    provider = {"kind": "openai_compatible", "base_url": f"http://127.0.0.1:{port}/v1", "api_key": "k"}
    targets = {"tiers": [{"targets": ["p/m"]}], "last_resort": []}
    config = {"version": 1, "providers": {"p": provider}, "models": {"smart": targets}}
    async with SmartModelRouter.from_config(config, seed=1) as router:
        walks = {}
        for name, request in (("chat", _chat), ("stream", _stream)):
            await request(router)
            walks[name] = await walk(root, lambda request=request: request(router))  # type: ignore[misc]
        return walks


async def _chat(router: SmartModelRouter) -> None:
    await router.chat(_QUESTION)


async def _stream(router: SmartModelRouter) -> None:
    """Stream Messages from a provider of Chat: with the translation, as coding agents use the router."""
    async for _ in router.stream_messages(_QUESTION):
        pass


def main() -> int:
    """Print the counts of a chat, a stream and a step."""
    parser = argparse.ArgumentParser(description="Count files, moves between files and moves between rooms.")
    parser.add_argument("--tree", type=Path, default=HERE, help="the root of another checkout")
    parser.add_argument("--files", action="store_true", help="list the files, too")
    options = parser.parse_args()
    root = options.tree.resolve()
    if not (root / "router" / _MAIN).is_dir():
        parser.error(f"--tree: {root} has no router/{_MAIN}")
    sys.path[:0] = [str(root / source) for source in SOURCES]
    with ThreadingTCPServer(("127.0.0.1", 0), _Provider) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        walks = asyncio.run(_counted(root, server.server_address[1]))
        if (root / "research").is_dir():
            walks["step"] = asyncio.run(_step(root))
        server.shutdown()
    for name, found in walks.items():
        print(f"{name}: {len(found.files)} files, {found.moves} moves, {found.room_moves} between rooms")
        for file in found.files if options.files else ():
            print(f"  {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
