"""Each command of `smr` names the function that performs it."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import packages_distributions
from inspect import signature

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.testing import CliRunner

from smart_model_router.cli import app, commands, research_commands, workflow_commands
from smart_model_router.cli.command import Command
from smart_model_router.cli.output import EXTRAS
from tests.meta.repository import project

MODULES = (app, commands, research_commands, workflow_commands)
COMMANDS = [one for module in MODULES for one in vars(module).values() if getattr(one, "performed_by", "")]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_function_of_a_command_exists(command: type[Command]) -> None:
    """It is in the module that the command names, and takes the command alone."""
    module, _, function = command.performed_by.partition(":")
    found = getattr(import_module(f"smart_model_router.cli.{module}"), function)
    (parameter,) = signature(found).parameters.values()
    assert parameter.annotation == command.__name__


def test_every_command_is_found() -> None:
    """The list above has every class of a command; one that others stand on is none."""
    known = {*Command.__subclasses__()}
    known |= {more for each in known for more in each.__subclasses__()}
    last = {each.__name__ for each in known if not each.__subclasses__()}
    assert {command.__name__ for command in COMMANDS} == last


def test_ctrl_c_before_a_run_of_research_began_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the command is still being imported: nothing else would tell whether there is a run."""

    def interrupted(_: Command) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Command, "run", interrupted)
    done = CliRunner().invoke(app.app, ["research", "run", "When?"])

    assert (done.exit_code, done.stderr) == (130, "interrupted before it began\n")


def test_each_module_of_an_extra_is_brought_by_it() -> None:
    """The extra that is named for a missing module has the package of that module, or one that brings it."""
    brought = packages_distributions()
    extras = project()["project"]["optional-dependencies"]
    for module, extra in EXTRAS.items():
        wanted = {canonicalize_name(Requirement(line).name) for line in extras[extra]}
        assert wanted & {canonicalize_name(name) for name in brought[module]}, module
