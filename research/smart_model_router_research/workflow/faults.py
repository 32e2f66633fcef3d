"""The faults of a workflow: all of them at once, each with its place, the value and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.tree_path import Path, spelled

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class WorkflowFault:
    """One fault: the path of the value in the workflow, the value, and what is needed instead.

    `place` is `FILE:LINE:COLUMN` (from 1) for a workflow that was read from a file, else "".
    """

    path: Path
    value: object
    expected: str
    place: str = ""

    @property
    def key(self) -> str:
        """The path as people write it: `steps[2].needs[0]`."""
        return spelled(self.path, "workflow")

    def as_error(self) -> ConfigurationError:
        """The fault as an error of a configuration."""
        return ConfigurationError(self.key, self.value, self.expected + (f" ({self.place})" if self.place else ""))


class WorkflowError(ConfigurationError):
    """The workflow cannot be. `faults` are all that were found; the message lists the first 20."""

    def __init__(self, faults: Iterable[WorkflowFault]) -> None:
        self.faults = tuple(faults)
        first, *others = (fault.as_error() for fault in self.faults)
        super().__init__(first.key, first.value, first.expected)
        self.with_others(others)
        shown = [error.message for error in (first, *others[: _SHOWN - 1])]
        more = len(self.faults) - len(shown)
        self.message = "\n".join([*shown, *([f"and {more} more"] if more else [])])
        self.args = (self.message,)

    def __reduce__(self) -> tuple[Any, ...]:
        return WorkflowError, (self.faults,)
