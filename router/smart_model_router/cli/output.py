"""Where words go: data to stdout, everything about it to stderr; nothing a model says can steer a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if code not in (9, 10)}
"""Everything but tab and newline: an escape sequence in an answer could repaint the screen."""
_PIPE_COLUMNS = 200
"""How wide tables are where no terminal says: wide enough that nothing is folded in practice."""


def printable(text: str) -> str:
    """The text without control characters."""
    return text.translate(_CONTROLS)


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on one line of stdout. Escaped to ASCII: an answer may hold what no encoding can write."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def print_line(text: str) -> None:
    """One line on stderr, whatever line breaks the text has."""
    sys.stderr.write(_encodable(printable(" ".join(text.splitlines())), sys.stderr) + "\n")
    sys.stderr.flush()


def print_answer(text: str) -> None:
    """A piece of an answer on stdout, at once. A pipe gets it as it came, a terminal without control characters."""
    shown = printable(text) if sys.stdout.isatty() else text
    sys.stdout.write(_encodable(shown, sys.stdout))
    sys.stdout.flush()


def print_listed(scenarios: Sequence[Mapping[str, str]], *, as_json: bool) -> None:
    """Print the scenarios, a line each. All rows have the same keys; their values are the columns."""
    if as_json:
        print_json({"scenarios": [dict(row) for row in scenarios]})
        return
    widths = {key: max(len(row[key]) for row in scenarios) for key in scenarios[0]}
    for row in scenarios:
        print_answer("  ".join(f"{value:{widths[key]}}" for key, value in row.items()).rstrip() + "\n")


def console(file: TextIO) -> Console:
    """A rich console: colours and tables on a terminal, plain unfolded text elsewhere."""
    from rich.console import Console  # noqa: PLC0415 - half of what `smr --help` may cost

    width = None if file.isatty() else _PIPE_COLUMNS
    return Console(file=file, width=width, markup=False, highlight=False, emoji=False)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], file: TextIO) -> None:
    """A table with a line for each row."""
    from rich import box  # noqa: PLC0415 - as above
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console(file).print(table)


def _encodable(text: str, file: TextIO) -> str:
    """The text with what the stream's encoding cannot write replaced by `?`."""
    encoding = file.encoding or "utf-8"
    return text.encode(encoding, errors="replace").decode(encoding)
