"""A client's tasks, and what its program says of them: one JSON line each. Runs in the client's own environment."""

from __future__ import annotations

import contextlib
import json
import traceback
from collections.abc import Awaitable, Callable, Generator, Iterable

from tests.agents.plan import ANSWER, CITY, DIALECTS, MEASURED, WAYS, model


class Weather:
    """The client's own tool, which remembers whether it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def look(self, city: str) -> str:
        """Say how warm it is."""
        self.asked.append(city)
        return MEASURED

    def check(self, answer: object) -> None:
        """It was asked once, and the answer that followed is the provider's."""
        if (self.asked, answer) != ([CITY], ANSWER):
            raise AssertionError(f"the tool was asked for {self.asked}, and the answer was {answer!r}")


Whole = Callable[[str, str, str, Weather], Awaitable[str]]
"""(way, api, model, tool) -> the answer that follows the tool's call."""
Streamed = Callable[[str, str, str, Weather | None], Awaitable[list[str]]]
"""(way, api, model, tool) -> the pieces of the answer; without a tool it is the first thing that is said."""


@contextlib.contextmanager
def told(name: str) -> Generator[None]:
    """Say of the block, the task of this model, that it was done, or why not."""
    said: dict[str, str] = {"model": name}
    try:
        yield
    except Exception as error:  # noqa: BLE001  whatever a client raises is its verdict
        traceback.print_exc()
        said["error"] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps(said), flush=True)


def check_answer(answer: object) -> None:
    """The provider's, to the letter."""
    if answer != ANSWER:
        raise AssertionError(f"the answer was {answer!r}")


def check_pieces(pieces: list[str]) -> None:
    """A stream that came in pieces and is complete."""
    check_answer("".join(pieces))
    if len(pieces) < 3:
        raise AssertionError(f"it came at once: {pieces}")


async def play(apis: Iterable[str], whole: Whole, streamed: Streamed, ways: Iterable[str] = WAYS) -> None:
    """A call of a tool, the same as a stream, and a stream without tools: every way, every dialect upstream."""
    for way, dialect, api in [(way, dialect, api) for way in ways for dialect in DIALECTS for api in apis]:
        name = model(way, dialect, api, "tools")
        with told(name):
            weather = Weather()
            weather.check(await whole(way, api, name, weather))
        name = model(way, dialect, api, "tools-stream")
        with told(name):
            weather = Weather()
            pieces = await streamed(way, api, name, weather)
            weather.check("".join(pieces))
            check_pieces(pieces)
        name = model(way, dialect, api, "stream")
        with told(name):
            check_pieces(await streamed(way, api, name, None))
