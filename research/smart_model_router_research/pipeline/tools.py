"""The tools of the steps of research: each kind of step receives those that it may use, and no others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.ports import Clock
from smart_model_router_research.deep.session import DocumentSearch
from smart_model_router_research.pipeline.stored_values import StoredValues
from smart_model_router_research.workflow import StepInput

SERVICE = "research"
"""The name of the tools among the services of a run."""


@dataclass(frozen=True, kw_only=True)
class ResearchTools:
    """Everything that steps use: stored values, and what the kinds of step are allowed by `StepTools`.

    `folder` is where the artefacts of the run are written. `wall` gives the seconds since 1970. `facts` are those of
    the run that its artefacts name: `workflow`, `workflow_hash`, `engine`.
    """

    values: StoredValues
    clock: Clock
    wall: Callable[[], float]
    searches: Sequence[DocumentSearch] = ()
    folder: Path | None = None
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StepTools:
    """The tools of one step. A tool that its kind may not use raises ToolRefused."""

    step: str
    values: StoredValues
    clock: Clock
    wall: Callable[[], float]
    facts: Mapping[str, str]
    _searches: Sequence[DocumentSearch] | None = None
    _folder: Path | None = None

    def moment(self) -> str:
        """Return the present moment, ISO 8601 in UTC, in whole seconds."""
        return datetime.fromtimestamp(int(self.wall()), UTC).isoformat()

    @property
    def searches(self) -> Sequence[DocumentSearch]:
        """The sources that can be searched."""
        if self._searches is None:
            raise ToolRefused(self.step, "search")
        return self._searches

    @property
    def folder(self) -> Path:
        """The folder that artefacts are written to."""
        if self._folder is None:
            raise ToolRefused(self.step, "write")
        return self._folder


class ToolRefused(ConfigurationError):
    """A step asked for a tool that its kind may not use."""

    def __init__(self, step: str, tool: str) -> None:
        super().__init__(step, tool, "a tool of its own kind of step is needed")


def tools_of(step: StepInput, allowed: frozenset[str]) -> StepTools:
    """Return the tools that a step may use. Raises ConfigurationError without those of the run."""
    given = step.services.get(SERVICE)
    if not isinstance(given, ResearchTools):
        raise ConfigurationError(f"services.{SERVICE}", given, "the tools of research are needed: use DeepResearch")
    return StepTools(
        step=step.step,
        values=given.values,
        clock=given.clock,
        wall=given.wall,
        facts=given.facts,
        _searches=given.searches if "search" in allowed else None,
        _folder=given.folder if "write" in allowed else None,
    )
