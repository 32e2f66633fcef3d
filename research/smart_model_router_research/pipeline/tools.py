"""The tools of the steps of research: each kind of step receives those that it may use, and no others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from smart_model_router.domain.errors import ConfigurationError, RouterUnavailable
from smart_model_router.domain.ports import Clock
from smart_model_router_research.deep.session import DocumentSearch
from smart_model_router_research.model_forms.model_calls import (
    AskedModel,
    ChatRouter,
    ModelAccount,
    ModelCaller,
    StepCalls,
)
from smart_model_router_research.pipeline.stored_values import StoredValues
from smart_model_router_research.workflow import StepInput

if TYPE_CHECKING:
    from smart_model_router import RequestOptions, RouterReply

SERVICE = "research"
"""The name of the tools among the services of a run."""
MOST_SECONDS = 120.0
"""Seconds that one model call takes at most."""
TIME_SHARE = 8.0
"""The part of the time that is left which one model call takes at most: one that hangs leaves the rest to others."""


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
    models: RunModels | None = None


@dataclass(frozen=True, kw_only=True)
class RunModels:
    """The models of a run: what sends its calls, their settings, and what is left of the budget for them.

    Without a `router` each model form stands back, visibly.
    """

    settings: AskedModel
    account: ModelAccount
    router: ChatRouter | None = None


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
    models: ModelCaller | None = None
    """The caller of models; None for a run without any, and for a kind of step that asks none."""

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


class NoRouter:
    """The router of a run that goes on without the one that it began with."""

    async def chat(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterReply:
        """Raise RouterUnavailable."""
        del body, options
        raise RouterUnavailable("this process has no router: give one to DeepResearch")


def _caller(step: StepInput, given: ResearchTools) -> ModelCaller | None:
    """Return the caller of models of a step. A call takes a part of the time that is left; the last one half of it."""
    if given.models is None:
        return None

    def seconds_left(*, is_last: bool) -> float:
        left = step.deadline - given.clock.now()
        part = left / 2.0 if is_last else left / TIME_SHARE  # the reserve is taken off already
        return max(0.0, min(MOST_SECONDS, part))

    return ModelCaller(
        router=given.models.router or NoRouter(),
        settings=given.models.settings,
        account=given.models.account,
        charge=step.charge,
        seconds_left=seconds_left,
        session=step.run_id,
        told=StepCalls(step=step.step),
    )


def _may_ask(models: RunModels | None, allowed: frozenset[str]) -> bool:
    """Return whether a step may ask the model of a run: one that writes prose alone only what may be prose."""
    return models is not None and ("prose" in allowed or (models.settings.writes_json and "model" in allowed))


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
        models=_caller(step, given) if _may_ask(given.models, allowed) else None,
    )
