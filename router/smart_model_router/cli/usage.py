"""Wrong usage in two lines: what is wrong, then where the options are explained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from smart_model_router.cli.output import print_line

_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
"""The class of every error of usage, which typer does not export by its name."""
_QUOTES = "a prompt of several words is put in quotes"


def run(app: typer.Typer, arguments: Sequence[str] | None) -> int:
    """Run the application; return the exit code. Errors of usage are told on stderr, the cause first."""
    try:
        code = app(args=arguments, prog_name="smr", standalone_mode=False)
    except _USAGE_ERROR as error:
        return _tell(error)
    except typer.Abort:
        return 1
    return code if isinstance(code, int) else 0


def _tell(error: Any) -> int:
    """Print an error of usage; return its exit code."""
    said, context = str(error.format_message()), error.ctx
    if context is None or "\n" in said:  # a command without arguments: its help
        error.show()
        return int(error.exit_code)
    takes_prompt = any(parameter.name == "prompt" for parameter in context.command.params)
    hint = f" ({_QUOTES})" if takes_prompt and "extra argument" in said else ""
    print_line(f"smr: {said}{hint}")
    print_line(f"{context.command_path} -h explains its options")
    return int(error.exit_code)
