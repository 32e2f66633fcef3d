"""How a command ends: one exit code and, when it went wrong, one clear line. Never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NoReturn

import typer

from smart_model_router.cli.printing import print_json, print_line
from smart_model_router.errors import ConfigurationError, RouterUnavailable, SmartRouterError


class ExitCode(IntEnum):
    """What the shell is told. 2 (usage) is typer's own."""

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
    (SmartRouterError, ExitCode.FAILED),
)
"""The first that fits; everything the router raises on purpose fits the last."""


def finish(command: Callable[[], int], *, as_json: bool = False) -> NoReturn:
    """Run a command to its exit code. With `as_json` an error is an object on stdout, too."""
    try:
        code = command()
        sys.stdout.flush()
    except SmartRouterError as error:
        code = _tell(error, as_json)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has had enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = ExitCode.FAILED
    except OSError as error:
        print_line(f"smr: {error}")
        code = ExitCode.FAILED
    except Exception as bug:  # a person at a terminal is promised a line, not a traceback
        if sys.flags.dev_mode:
            raise
        told = f"{type(bug).__name__}: {bug}"
        print_line(f"smr: this is a bug in smr, please report it (PYTHONDEVMODE=1 shows where): {told}")
        code = ExitCode.FAILED
    raise typer.Exit(code)


def _tell(error: SmartRouterError, as_json: bool) -> ExitCode:
    retry_after = error.retry_after if isinstance(error, RouterUnavailable) else None
    later = "" if retry_after is None else f" (ask again in {retry_after:.1f} s)"
    others = len(error.others) if isinstance(error, ConfigurationError) else 0
    more = f" (and {others} more: smr config check lists all)" if others else ""
    print_line(f"smr: {error.message}{later}{more}")
    if as_json:
        told: dict[str, Any] = {"type": type(error).__name__, "message": error.message, "retry_after": retry_after}
        print_json({"error": told, "report": None if error.report is None else error.report.to_dict()})
    return code_of(error)


def code_of(error: SmartRouterError) -> ExitCode:
    """The exit code that an error stands for."""
    return next(code for kind, code in _CODES if isinstance(error, kind))
