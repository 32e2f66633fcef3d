"""A command of `smr` as a class: its fields are the options, its docstring the help, `run` performs it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, NoReturn, Self, TypeVar, dataclass_transform, get_type_hints

import typer

from smart_model_router.cli.exit_codes import finish


@dataclass_transform(kw_only_default=True)
class Command:
    """Options as given at the command line; every command has `as_json`.

    A plain class and no dataclass: making thirty of those would cost `smr --help` more than typer's own work on them.
    """

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def check(self) -> None:
        """Refuse options that exclude each other. Raises typer.BadParameter."""

    def changed(self, **given: Any) -> Self:
        """Return the same command with other options."""
        return type(self)(**{**self.__dict__, **given})

    @abstractmethod
    def run(self) -> int:
        """Perform the command; the exit code. It imports its module itself, so that only the command that runs pays."""


C = TypeVar("C", bound=Command)


def command(app: typer.Typer, name: str) -> Callable[[type[C]], type[C]]:
    """Add the decorated class to `app` as the command `name`."""

    def add(options: type[C]) -> type[C]:
        def perform(**given: Any) -> NoReturn:
            asked = options(**given)
            asked.check()
            finish(asked.run, as_json=given["as_json"])

        hints = get_type_hints(options, include_extras=True)
        perform.__doc__ = options.__doc__
        perform.__annotations__ = hints
        perform.__signature__ = Signature(  # type: ignore[attr-defined]  # typer asks for it
            [
                Parameter(
                    field,
                    Parameter.KEYWORD_ONLY,
                    default=options.__dict__.get(field, Parameter.empty),
                    annotation=hint,
                )
                for field, hint in hints.items()
            ]
        )
        app.command(name)(perform)
        return options

    return add
