"""The states of steps and of runs: which move to which, and the result of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from smart_model_router.domain.fast_dataclass import quick
from smart_model_router_research.workflow.definition import Costs

FREE = Costs()


class StepState(StrEnum):
    """The state of one step in one run."""

    PENDING = "pending"
    """Something that it needs has not settled."""
    READY = "ready"
    """It will run when there is room."""
    RUNNING = "running"
    RETRYING = "retrying"
    """An attempt failed; the next one is waited for."""
    PAUSED = "paused"
    """It waits for a decision from outside."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"

    @property
    def settled(self) -> bool:
        """True when it will not change any more."""
        return self in SETTLED


MOVES: Mapping[StepState, frozenset[StepState]] = {
    StepState.PENDING: frozenset({StepState.READY, StepState.SKIPPED, StepState.FAILED, StepState.CANCELLED}),
    StepState.READY: frozenset({StepState.RUNNING, StepState.SKIPPED, StepState.CANCELLED}),
    StepState.RUNNING: frozenset(
        {StepState.SUCCEEDED, StepState.FAILED, StepState.RETRYING, StepState.PAUSED, StepState.CANCELLED}
    ),
    StepState.RETRYING: frozenset({StepState.RUNNING, StepState.FAILED, StepState.CANCELLED}),
    StepState.PAUSED: frozenset({StepState.RUNNING, StepState.FAILED, StepState.CANCELLED}),
    StepState.SUCCEEDED: frozenset(),
    StepState.FAILED: frozenset(),
    StepState.SKIPPED: frozenset(),
    StepState.CANCELLED: frozenset(),
}
"""The states that may follow each state; a step is settled where none may."""
SETTLED = frozenset(state for state, to in MOVES.items() if not to)


class SkipReason(StrEnum):
    """The reason why a step was skipped."""

    CONDITION = "condition"
    DEPENDENCY_FAILED = "dependency_failed"
    DEPENDENCY_SKIPPED = "dependency_skipped"
    BUDGET = "budget"
    TIMEOUT = "timeout"
    """The limit of the run came first."""


class RunState(StrEnum):
    """The state of a run: the first two go on, the others are results."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN = frozenset({RunState.RUNNING, RunState.PAUSED})
"""The states of a run that can go on."""


class IllegalMove(RuntimeError):
    """An engine has a bug: it moved a step to a state that may not follow."""


def moved(state: StepState, to: StepState) -> StepState:
    """Return the state `to`. Raises IllegalMove when it may not follow `state`."""
    if to not in MOVES[state]:
        raise IllegalMove(f"{state} -> {to}: {', '.join(sorted(MOVES[state])) or 'nothing'} may follow {state}")
    return to


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The state of a step, and what came of it.

    `outputs` are None unless it succeeded. `error` is the reason of a failure in words, `note` what a reader should
    know beside (a condition that was no truth value). `attempts` have begun so far; `costs` are what it charged.
    """

    state: StepState = StepState.PENDING
    outputs: Mapping[str, Any] | None = None
    skip_reason: SkipReason | None = None
    error: str = ""
    note: str = ""
    attempts: int = 0
    costs: Costs = FREE

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON data, without what is as it usually is."""
        plain: dict[str, Any] = {"state": self.state}
        if self.outputs is not None:
            plain["outputs"] = self.outputs
        for name in _SELDOM:
            if value := getattr(self, name):
                plain[name] = value
        if self.costs != FREE:
            plain["costs"] = {name: cost for name, cost in asdict(self.costs).items() if cost}
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StepResult:
        """Return the result that `as_json` wrote. Raises ValueError and TypeError for other data."""
        read = dict(data)
        read["state"] = StepState(data["state"])
        read["skip_reason"] = SkipReason(data["skip_reason"]) if "skip_reason" in data else None
        read["costs"] = Costs(**data.get("costs", {}))
        return cls(**read)


_SELDOM = ("skip_reason", "error", "note", "attempts")
PENDING = StepResult()
Results = Mapping[str, StepResult]


def outputs_of(results: Results, name: str) -> Mapping[str, Any] | None:
    """Return the outputs of a step, None unless it succeeded."""
    found = results.get(name)
    return None if found is None or found.state is not StepState.SUCCEEDED else found.outputs
