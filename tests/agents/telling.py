"""A client's tasks, and its program's report of them: one JSON line each. Runs in the client's own environment."""

from __future__ import annotations

import asyncio
import contextlib
import json
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

from tests.agents.faults import COLUMNS, NONE
from tests.agents.plan import ANSWER, CITY, DIALECTS, MEASURED, NEXT_ANSWER, WAYS, applies, has_beta, model

HANG_SECONDS = 100.0
"""More than the gateway's timeouts and every client's own attempts take together."""
AT_ONCE = 12
"""Cells of the table that are played at the same time: they mostly wait."""


class Wrong(AssertionError):
    """The client took for the answer what the provider did not say."""


class Weather:
    """The client's own tool, which remembers its calls."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def look(self, city: str) -> str:
        """Say how warm it is."""
        self.asked.append(city)
        return MEASURED

    def check(self, answer: object) -> None:
        """It was asked for the city, and the answer that followed is the provider's."""
        if (set(self.asked), answer) != ({CITY}, ANSWER):
            raise Wrong(f"the tool was asked for {self.asked}, and the answer was {answer!r}")


Whole = Callable[[str, str, str, Weather], Awaitable[str]]
"""(way, api, model, tool) -> the answer that follows the tool's call."""
Streamed = Callable[[str, str, str, Weather | None], Awaitable[list[str]]]
"""(way, api, model, tool) -> the pieces of the answer; without a tool it is the first thing that is said."""
Further = Callable[[str, str], Awaitable[str]]
"""(api, model) -> the answer of a task of one client only."""


@contextlib.asynccontextmanager
async def told(name: str, weather: Weather | None = None) -> AsyncGenerator[None]:
    """Report of the block, the task of this model: done, an error, a wrong answer, or a hang."""
    said: dict[str, object] = {"model": name}
    limit = asyncio.timeout(HANG_SECONDS)
    try:
        async with limit:
            yield
    except Wrong as error:
        said["wrong"] = str(error)[:300]
    except Exception as error:  # noqa: BLE001  whatever a client raises is its verdict
        traceback.print_exc()
        said["hang" if limit.expired() else "error"] = f"{type(error).__name__}: {error}"[:300]
    acted = [city for city in (weather.asked if weather else ()) if city != CITY]
    if acted:
        said["wrong"] = f"the tool was called for {acted}"
    print(json.dumps(said), flush=True)


def check_answer(answer: object, wanted: str = ANSWER) -> None:
    """The provider's, to the letter."""
    if answer != wanted:
        raise Wrong(f"the answer was {answer!r}")


def check_pieces(pieces: list[str]) -> None:
    """A stream that came in pieces and is complete."""
    check_answer("".join(pieces))
    if len(pieces) < 3:
        raise AssertionError(f"it came at once: {pieces}")


async def play(
    apis: Iterable[str],
    whole: Whole,
    streamed: Streamed,
    ways: Iterable[str] = WAYS,
    turns: Further | None = None,
    beta: Further | None = None,
) -> None:
    """Every way and every dialect upstream without a fault; then the gateway with each of them.

    The tasks: a call of a tool, the same as a stream, a stream without tools; `turns`, a conversation of two; `beta`,
    a call that needs one.
    """

    async def cell(way: str, dialect: str, api: str, fault: str) -> None:
        def name(task: str) -> str:
            return model(way, dialect, api, task, fault)

        weather = Weather()
        async with told(name("tools"), weather):
            weather.check(await whole(way, api, name("tools"), weather))
        weather = Weather()
        async with told(name("tools-stream"), weather):
            pieces = await streamed(way, api, name("tools-stream"), weather)
            weather.check("".join(pieces))
            check_pieces(pieces)
        if applies("stream", fault):
            async with told(name("stream")):
                check_pieces(await streamed(way, api, name("stream"), None))
        if turns and way == "gateway" and applies("turns", fault):
            async with told(name("turns")):
                check_answer(await turns(api, name("turns")), NEXT_ANSWER)
        if beta and has_beta(api, dialect) and applies("beta", fault):
            async with told(name("beta")):
                check_answer(await beta(api, name("beta")))

    played = [*apis]
    for way, dialect, api in [(way, dialect, api) for way in ways for dialect in DIALECTS for api in played]:
        await cell(way, dialect, api, NONE)
    faults = sorted((fault for fault in COLUMNS if fault != NONE), key="stall".__ne__)  # the slowest first
    failing = [(dialect, api, fault) for fault in faults for dialect in DIALECTS for api in played]
    free = asyncio.Semaphore(AT_ONCE)

    async def in_turn(dialect: str, api: str, fault: str) -> None:
        async with free:
            await cell("gateway", dialect, api, fault)

    await asyncio.gather(*(in_turn(*one) for one in failing))
