"""Processes that share the slots of a provider, and a server that counts how many calls it has at once."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest
from aiohttp import web

from tests.e2e.command import StartedProgram
from tests.e2e.eventually import becomes

PROGRAM = Path(__file__).with_name("shared_program.py")
SLOTS = 8
SECONDS = 100.0


class Server:
    """A provider that counts: calls under way, the most there were at once, and those answered by model."""

    def __init__(self) -> None:
        self.url = ""
        self.in_flight = 0
        self.most = 0
        self.answered: Counter[str] = Counter()
        self.open = asyncio.Event()
        self.open.set()

    async def answer(self, request: web.Request) -> web.Response:
        """Answer after 50 ms, and not while it is closed."""
        model = (await request.json())["model"]
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(0.05)  # real time: calls overlap where the slots allow it, and fewer of them elsewhere
        await self.open.wait()
        self.in_flight -= 1
        self.answered[model] += 1
        message = {"role": "assistant", "content": "hello"}
        return web.json_response(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": model,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            }
        )

    def answered_more(self, before: Counter[str], models: list[str], least: int) -> bool:
        """True when each model has so many answers more than before."""
        return all(self.answered[model] - before[model] >= least for model in models)


@asynccontextmanager
async def serving() -> AsyncGenerator[Server]:
    """A server on a port of its own."""
    server = Server()
    app = web.Application()
    app.router.add_post("/chat/completions", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


class Process:
    """A process that keeps calls under way."""

    def __init__(self, program: StartedProgram) -> None:
        self.program = program

    def keep(self, calls: int) -> None:
        """So many from now on."""
        self.program.tell(f"{calls}\n")

    async def end(self) -> list[bool]:
        """Its good end; what it said of the store."""
        out, errors = await asyncio.to_thread(self.program.communicate, timeout=SECONDS)
        assert self.program.returncode == 0, errors
        said: list[bool] = json.loads(out.splitlines()[-1])
        return said


@asynccontextmanager
async def process(
    path: Path, server: Server, model: str, slots: int = SLOTS, patience: str = "patient"
) -> AsyncGenerator[Process]:
    """One that is ready; a patient one waits for the store however slow the machine is."""
    program = StartedProgram(PROGRAM, "crowd", path, server.url, slots, model, patience)
    try:
        assert await asyncio.to_thread(program.stdout.readline) == '"ready"\n'
        yield Process(program)
    finally:
        program.kill()
        program.communicate()


@contextmanager
def locked(state: Path) -> Generator[None]:
    """Nobody else can write to the file meanwhile."""
    with closing(sqlite3.connect(state, isolation_level=None, timeout=SECONDS)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@pytest.mark.parametrize("slots", [8, 3])
@pytest.mark.asyncio
async def test_eight_processes_race_for_the_slots_of_the_host(tmp_path: Path, slots: int) -> None:
    """Each would use all of them for ever: never more calls than slots, and each process has a third of its part.

    Three slots are less than one for each process: they go round. An answer counts from the first one of the process
    that began last.
    """
    models = [f"m{number}" for number in range(8)]
    async with serving() as server, AsyncExitStack() as stack:
        ones = [stack.enter_async_context(process(tmp_path / "stats.db", server, name, slots)) for name in models]
        processes = await asyncio.gather(*ones)
        for one in processes:
            one.keep(slots)
        assert await becomes(lambda: server.answered_more(Counter(), models, 1), within=SECONDS), server.answered
        before = server.answered.copy()
        assert await becomes(lambda: (server.answered - before).total() >= 240, within=SECONDS), server.answered
        taken = [(server.answered - before)[model] for model in models]
        assert min(taken) >= sum(taken) / 8 / 3, taken
        assert await asyncio.gather(*(one.end() for one in processes)) == [[]] * 8
        assert server.most == slots


@pytest.mark.asyncio
async def test_idle_slots_go_to_the_process_that_asks(tmp_path: Path) -> None:
    """Long before their lease is renewed: one process was busy, and another one has a call for each slot now."""
    async with (
        serving() as server,
        process(tmp_path / "stats.db", server, "one") as one,
        process(tmp_path / "stats.db", server, "other") as other,
    ):
        one.keep(SLOTS)
        assert await becomes(lambda: server.answered["one"] >= 2 * SLOTS)
        one.keep(0)
        assert await becomes(lambda: server.in_flight == 0)
        server.open.clear()
        other.keep(SLOTS)
        assert await becomes(lambda: server.in_flight == SLOTS, within=8.0)  # real time: leases are renewed after 10 s
        server.open.set()
        assert [await one.end(), await other.end()] == [[], []]


@pytest.mark.asyncio
async def test_a_locked_file_stops_nobody(tmp_path: Path) -> None:
    """Each process says so and goes on with its part of the slots; they share again when the file is free."""
    path, models = tmp_path / "stats.db", ["one", "other"]
    async with (
        serving() as server,
        process(path, server, "one", patience="hasty") as one,
        process(path, server, "other", patience="hasty") as other,
    ):
        for each in (one, other):
            each.keep(SLOTS)
        assert await becomes(lambda: server.answered_more(Counter(), models, 10))
        with locked(path.with_name("state.db")):
            before = server.answered.copy()
            assert await becomes(lambda: server.answered_more(before, models, 100), within=SECONDS)
        before = server.answered.copy()
        assert await becomes(lambda: server.answered_more(before, models, 100), within=SECONDS)
        assert [said[0] for said in await asyncio.gather(one.end(), other.end())] == [True, True]
