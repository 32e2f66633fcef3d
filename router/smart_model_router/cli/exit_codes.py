"""The end of a command: one exit code and, after a failure, one clear line. Never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NoReturn

import typer

from smart_model_router.cli.output import print_json, print_line
from smart_model_router.domain.errors import ConfigurationError, RouterUnavailable, SmartRouterError


class ExitCode(IntEnum):
    """The exit codes. 2 (usage) is typer's own."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIGURATION = 3
    UNAVAILABLE = 4
    DEGRADED = 5
    INTERRUPTED = 130


_CODES: tuple[tuple[type[SmartRouterError], ExitCode], ...] = (
    (ConfigurationError, ExitCode.CONFIGURATION),
    (RouterUnavailable, ExitCode.UNAVAILABLE),
)
"""The first that fits; everything else is FAILED."""


def finish(command: Callable[[], int], *, as_json: bool = False) -> NoReturn:
    """Run a command to its exit code. With `as_json` an error is an object on stdout, too."""
    try:
        code = _ended(command, as_json)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
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
    """Say what went wrong: a line on stderr and, `as_json`, an object on stdout. The exit code that it stands for."""
    message, retry_after, report = _message(error), None, None
    if isinstance(error, SmartRouterError):
        retry_after = error.retry_after if isinstance(error, RouterUnavailable) else None
        report = None if error.report is None else error.report.to_dict()
    later = "" if retry_after is None else f" (ask again in {retry_after:.1f} s)"
    others = len(error.others) if isinstance(error, ConfigurationError) else 0
    more = f" (and {others} more: smr config check lists all)" if others else ""
    print_line(f"smr: {message}{later}{more}")
    if as_json:
        told: dict[str, Any] = {"type": type(error).__name__, "message": message, "retry_after": retry_after}
        print_json({"error": told, "report": report})
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)


def _message(error: Exception) -> str:
    if isinstance(error, SmartRouterError):
        return error.message
    if isinstance(error, OSError):
        return str(error)
    told = f"{type(error).__name__}: {error}"
    return f"this is a bug in smr, please report it (PYTHONDEVMODE=1 shows where): {told}"
