"""A command of `smr` as a class: its fields are the options, its docstring the help, `run` performs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, NoReturn, Self, TypeVar, dataclass_transform, get_type_hints

import typer

from smart_model_router.cli.output import finish


def _prompt(given: str) -> str:
    """The prompt itself, or that on stdin for `-`."""
    raw = sys.stdin.buffer.read() if given == "-" else os.fsencode(given)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"it is not UTF-8 (byte {error.start})") from None
    if not text.strip():
        raise typer.BadParameter("it is empty")
    return text


Prompt = Annotated[str, typer.Argument(help="What to ask; - reads it from stdin.", callback=_prompt)]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="The configuration; else it is looked for (see smr doctor)."),
]
Model = Annotated[str | None, typer.Option("--model", "-m", help="A public model name (see smr models).")]
Tier = Annotated[str | None, typer.Option("--tier", "-t", help="A tier other than the first.")]
Db = Annotated[
    str | None,
    typer.Option("--db", metavar="STORE", help="A file, or postgresql://...; else the configuration's store."),
]
Index = Annotated[
    Path | None, typer.Option("--db", metavar="FILE", help="The index; else search.index, else the user's own.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Url = Annotated[str | None, typer.Option("--url", help="The gateway's address; else the configuration's.")]
Through = Annotated[
    str | None, typer.Option("--url", help="Ask through the gateway at this address; its key: see smr targets.")
]
Timeout = Annotated[float | None, typer.Option(min=0.001, help="Seconds in all.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A target (see smr targets), or a provider: all of its.")]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, shown with the target and in the log.")]


@dataclass_transform(kw_only_default=True)
class Command:
    """Options as given at the command line; every command has `as_json`.

    Not a dataclass: to make thirty of those takes `smr --help` longer than typer's own work on them.
    """

    performed_by = ""
    """`module:function` inside `smart_model_router.cli`; the function takes the command and returns the exit code."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def check(self) -> None:
        """Refuse options that exclude each other. Raises typer.BadParameter."""

    def changed(self, **given: Any) -> Self:
        """Return the same command with other options."""
        return type(self)(**{**self.__dict__, **given})

    def run(self) -> int:
        """Perform the command; return the exit code. Only now is its module imported: other commands do not need it."""
        module, _, function = self.performed_by.partition(":")
        code: int = getattr(import_module(f"smart_model_router.cli.{module}"), function)(self)
        return code


C = TypeVar("C", bound=Command)


def command(app: typer.Typer, name: str, performed_by: str, *, interrupted: str = "") -> Callable[[type[C]], type[C]]:
    """Add the decorated class to `app` as the command `name`, which the function `performed_by` performs.

    `interrupted` is the line for a Ctrl-C that the function has none for.
    """

    def add(options: type[C]) -> type[C]:
        options.performed_by = performed_by

        def perform(**given: Any) -> NoReturn:
            asked = options(**given)
            asked.check()
            finish(asked.run, as_json=given["as_json"], interrupted=interrupted)

        hints = get_type_hints(options, include_extras=True)
        perform.__doc__ = options.__doc__
        perform.__annotations__ = hints
        perform.__signature__ = Signature(  # type: ignore[attr-defined]  # typer asks for it
            [
                Parameter(
                    field,
                    Parameter.KEYWORD_ONLY,
                    default=getattr(options, field, Parameter.empty),
                    annotation=hint,
                )
                for field, hint in hints.items()
            ]
        )
        app.command(name)(perform)
        return options

    return add
