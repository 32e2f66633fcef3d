"""The rows of the lane, and what comes of each: verdicts of how a client is run, and cells of the client table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from tests.agents.faults import NONE


class Mark(StrEnum):
    """The outcome of a cell, from the best to the worst."""

    WORKS = "works"
    """The client has the right whole answer: the router or the client asked again where it had to."""
    ERROR = "error"
    """The client sees an error."""
    HANG = "hangs"
    SHORTENED = "takes a shortened answer for whole"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A client run in one way. `wrong` is empty when nothing went wrong."""

    client: str
    version: str
    how: str
    said: str
    wrong: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the lane fails by it."""
        return bool(self.wrong)


@dataclass(frozen=True, slots=True)
class Cell:
    """A client's `api` through `smr serve`, over a provider of one `dialect` with one `fault`."""

    client: str
    version: str
    api: str
    dialect: str
    fault: str
    mark: Mark
    wrong: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the lane fails by it: no cell may end otherwise than well or in an error, nor err without a fault."""
        return self.mark not in (Mark.WORKS, Mark.ERROR) or (self.fault == NONE and self.mark is not Mark.WORKS)

    @property
    def how(self) -> str:
        """The cell's place, in words."""
        return f"{self.api} over a provider of {self.dialect}, {self.fault}"


Run = Callable[[], Iterable[Verdict | Cell]]


@dataclass(frozen=True, slots=True)
class Row:
    """A client, and how it is run."""

    client: str
    run: Run


def worst(marks: Iterable[Mark]) -> Mark:
    """The mark of a cell with several tasks."""
    order = list(Mark)
    return max(marks, key=order.index, default=Mark.WORKS)


def table(verdicts: Iterable[Verdict]) -> str:
    """All of them, in Markdown."""
    lines = [("client", "version", "how", "result"), ("---",) * 4]
    lines += [
        (one.client, one.version, one.how, f"FAILED: {len(one.wrong)} wrong" if one.wrong else one.said)
        for one in verdicts
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
