"""The output of a command: data to stdout, all else to stderr, one exit code, never a traceback."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer

from smart_model_router.domain.errors import ConfigurationError, RouterUnavailable, SmartRouterError

if TYPE_CHECKING:
    from rich.console import Console

_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if code not in (9, 10)}
"""Everything but tab and newline: an escape sequence in an answer could repaint the screen."""
_BACKSLASHES = re.compile(r"\\([!-/:-@\[-`{-~])")
_PIPE_COLUMNS = 200
"""The width of tables without a terminal: wide enough that nothing is folded in practice."""


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


def print_report(text: str) -> None:
    """A page in Markdown on stdout; on a terminal without the backslashes before the signs of a source."""
    print_answer(_BACKSLASHES.sub(r"\1", text) if sys.stdout.isatty() else text)


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
    """A table with a line for each row, with a head unless there are no headings."""
    from rich import box  # noqa: PLC0415 - as above
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=bool(headings))
    shown = list(rows)
    for heading in headings or ("",) * max(map(len, shown), default=0):
        table.add_column(heading, overflow="fold")
    for row in shown:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console(file).print(table)


def _encodable(text: str, file: TextIO) -> str:
    """The text with what the stream's encoding cannot write replaced by `?`."""
    encoding = file.encoding or "utf-8"
    return text.encode(encoding, errors="replace").decode(encoding)


class ExitCode(IntEnum):
    """The exit codes. 2 (usage) is also typer's own."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIGURATION = 3
    UNAVAILABLE = 4
    DEGRADED = 5
    WITHHELD = 6
    """A report of research is withheld, or below what was asked for."""
    PAUSED = 7
    """A run waits for a decision."""
    BUSY = 8
    """Another process holds the run."""
    INTERRUPTED = 130


class OptionFault(ConfigurationError):
    """An option or argument of a command that cannot be used, found after typer's own look. `faults` are all of them.

    The message has a line for each.
    """

    def __init__(self, faults: Sequence[ConfigurationError]) -> None:
        first, *others = faults
        super().__init__(first.key, first.value, first.expected)
        self.with_others(others)
        self.message = "\n".join(fault.message for fault in faults)
        self.args = (self.message,)


EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        "charset_normalizer": "scoring",
        "htmldate": "research",
        "langgraph": "langgraph",
        "markdown_it": "scoring",
        "mdit_py_plugins": "scoring",
        "numpy": "scoring",
        "opentelemetry": "otel",
        "publicsuffixlist": "research",
        "pypdfium2": "pdf",
        "rich": "cli",
        "starlette": "gateway",
        "structlog": "log",
        "trafilatura": "research",
        "typer": "cli",
        "uvicorn": "gateway",
        "wordllama": "embed",
        "xllamacpp": "local",
    }
)
"""Modules that a command may find missing, each with the extra that brings it."""

_CODES: tuple[tuple[type[SmartRouterError], ExitCode], ...] = (
    (OptionFault, ExitCode.USAGE),
    (ConfigurationError, ExitCode.CONFIGURATION),
    (RouterUnavailable, ExitCode.UNAVAILABLE),
)
"""The first that fits; everything else is FAILED."""


def finish(command: Callable[[], int], *, as_json: bool = False, interrupted: str = "") -> NoReturn:
    """Run a command to its exit code. With `as_json` an error is an object on stdout, too.

    `interrupted` is the line for a Ctrl-C that the command has none for.
    """
    try:
        code = _ended(command, as_json)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
        if interrupted:
            print_line(interrupted)
    except OSError:
        # The reader has closed the pipe, or has no room. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = ExitCode.FAILED
    raise typer.Exit(code)


def _ended(command: Callable[[], int], as_json: bool) -> int:
    """Run the command and report its failure; the exit code. Raises OSError when nothing can be written."""
    try:
        code = command()
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except Exception as error:  # a person at a terminal is promised a line, not a traceback
        if sys.flags.dev_mode and not isinstance(error, (SmartRouterError, OSError)):
            raise
        return tell(error, as_json)
    return code


def tell(error: Exception, as_json: bool) -> ExitCode:
    """Say what went wrong: a line on stderr for each fault and, `as_json`, an object on stdout. The exit code of it."""
    message, retry_after, report = _message(error), None, None
    if isinstance(error, SmartRouterError):
        retry_after = error.retry_after if isinstance(error, RouterUnavailable) else None
        report = None if error.report is None else error.report.to_dict()
    others = len(error.others) if isinstance(error, ConfigurationError) else 0
    listed = message.splitlines() if others and "\n" in message else [message]  # an error that lists them itself
    more = f" (and {others} more: smr config check lists all)" if others and len(listed) == 1 else ""
    for line in listed:
        print_line(f"smr: {line}{more}")
    if as_json:
        told: dict[str, Any] = {"type": type(error).__name__, "message": message, "retry_after": retry_after}
        print_json({"error": told, "report": report})
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)


def _message(error: Exception) -> str:
    if isinstance(error, SmartRouterError):
        return error.message
    if isinstance(error, OSError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and (extra := EXTRAS.get((error.name or "").partition(".")[0])):
        return f"{error.name} is not installed, it is part of an extra: pip install 'smart-model-router[{extra}]'"
    told = f"{type(error).__name__}: {error}"
    return f"this is a bug in smr, please report it (PYTHONDEVMODE=1 shows where): {told}"
