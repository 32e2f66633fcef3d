"""Tells the demo's story: with colours on a terminal, in plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from rich.text import Text

from smart_model_router.cli.demo.demo_figures import DemoFigures, Expectation
from smart_model_router.cli.output import console, print_table, printable

_SHOWN = 72
"""Characters of an answer that are shown."""


class Narrator:
    """Writes to one stream; nothing is kept."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._console = console(file)

    def opening(self, timings: Mapping[str, float]) -> None:
        """The timings, before anything happens."""
        self._say("Three providers on loopback, a real local model as the last resort, one router over them.", "bold")
        self._say("Timings of this demo: " + ", ".join(f"{what} {seconds:g} s" for what, seconds in timings.items()))

    def scene(self, title: str) -> None:
        """Announce the next failure."""
        self._say(f"\n{title}", "bold cyan")

    def said(self, text: str) -> None:
        """Something that happened."""
        self._say(f"  {text}")

    def served(self, question: str, answer: str, how: str) -> None:
        """Print a question, its answer, the target that gave it and the reason."""
        shown = " ".join(printable(answer).split())
        shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
        self._say(f"  {question}")
        self._say(f"    {how}", "yellow" if "degraded" in how else "green")
        self._say(f"    {shown}", "dim")

    def expected(self, expectation: Expectation) -> None:
        """Print an expectation and whether it came true."""
        mark, style = ("ok", "green") if expectation.came_true else ("NOT SO", "bold red")
        self._say(f"  [{mark}] {expectation.text} ({expectation.measured})", style)

    def summary(self, figures: DemoFigures) -> None:
        """The table at the end."""
        self._say("\nIn figures, all measured:", "bold")
        rows = [(what, _shown(value)) for what, value in figures.to_dict().items() if what != "expectations"]
        print_table(("figure", "value"), rows, self._file)
        broken = [expectation.text for expectation in figures.expectations if not expectation.came_true]
        for text in broken:
            self._say(f"NOT SO: {text}", "bold red")
        if not broken:
            self._say("Everything came true.", "bold green")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style), soft_wrap=True)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {count}" for key, count in value.items())
    return str(value)
