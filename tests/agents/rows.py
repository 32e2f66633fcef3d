"""What a row of the lane is, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """A line of the table. `wrong` says what went wrong; nothing did when it is empty."""

    client: str
    version: str
    how: str
    said: str
    wrong: tuple[str, ...] = ()


Run = Callable[[], Iterable[Verdict]]


@dataclass(frozen=True, slots=True)
class Row:
    """A client, and how it is run: one verdict for each way."""

    client: str
    run: Run


def table(verdicts: Iterable[Verdict]) -> str:
    """All of them, in Markdown."""
    lines = [("client", "version", "how", "result"), ("---",) * 4]
    lines += [
        (one.client, one.version, one.how, f"FAILED: {len(one.wrong)} wrong" if one.wrong else one.said)
        for one in verdicts
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
