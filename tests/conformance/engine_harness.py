"""The surroundings in which engines are tested: work that says what it did, virtual time, and processes that die."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from smart_model_router.testing import FakeDice, LoopClock, run_virtual
from smart_model_router_research.engine import (
    Capability,
    ExecutionContext,
    ExecutionEngine,
    ExecutionResult,
    MemoryRunStore,
    RunStore,
    StoreUnavailable,
)
from smart_model_router_research.workflow import Costs, StepInput, WorkflowDefinition

Work = Callable[[StepInput], Coroutine[Any, Any, Mapping[str, Any]]]


@dataclass
class Trace:
    """The work of steps, and what they did: `began` in order, `running` and the most that ran at once."""

    began: list[str] = field(default_factory=list)
    running: int = 0
    most: int = 0

    def work(self, seconds: float = 0.0, *, fails: Exception | None = None, **outputs: Any) -> Work:
        """Make work that takes so many seconds, charges a call, and fails or puts something out."""

        async def run(step: StepInput) -> Mapping[str, Any]:
            self.began.append(step.step)
            self.running += 1
            self.most = max(self.most, self.running)
            step.charge(Costs(calls=1))
            try:
                await asyncio.sleep(seconds)
            finally:
                self.running -= 1
            if fails is not None:
                raise fails
            return outputs or {"of": step.step}

        return run


async def passing(seconds: float) -> None:
    """Let virtual seconds pass."""
    await asyncio.sleep(seconds)


def states(result: ExecutionResult) -> dict[str, str]:
    """Return state or skip reason of each step."""
    return {name: step.skip_reason or step.state for name, step in result.steps.items()}


def digest(result: ExecutionResult) -> str:
    """Return all of a result that does not depend on an engine, as canonical JSON."""
    steps = {name: step.as_json() for name, step in result.steps.items()}
    return json.dumps([result.status, steps, result.outputs, result.reason], sort_keys=True)


WRITES = ("begin", "charge", "settle", "record", "end", "ask", "release")


class Process:
    """A store as one process has it. After `writes` of them it is dead: nothing reaches the store any more."""

    def __init__(self, store: RunStore, writes: int = -1) -> None:
        self._store = store
        self.left = writes

    @property
    def store(self) -> RunStore:
        """Itself, as a store."""
        return cast("RunStore", self)

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def reached(*args: Any, **options: Any) -> Any:
            if self.left == 0:
                raise StoreUnavailable("the process", "was killed")
            found = await getattr(self._store, name)(*args, **options)
            self.left -= name in WRITES
            return found

        return reached


class EngineHarness(ABC):
    """The makers that a subclass of the contracts gives or inherits."""

    @abstractmethod
    def engine(self, store: RunStore) -> ExecutionEngine:
        """Return an engine with this store."""

    @property
    def wavefront(self) -> bool:
        """True when a step starts as soon as its needs have settled, not with a batch."""
        return Capability.WAVEFRONT in self.engine(MemoryRunStore()).capabilities

    def store(self) -> RunStore:
        """Return a new store on the clock of the loop."""
        return MemoryRunStore(now=LoopClock().now, wall=LoopClock().now)

    def context(self, run_id: str = "r", **options: Any) -> ExecutionContext:
        """Return the surroundings of a run in virtual time."""
        given: dict[str, Any] = {"clock": LoopClock(), "dice": FakeDice(0.5)} | options
        return ExecutionContext(run_id=run_id, **given)

    def run(self, workflow: WorkflowDefinition, **options: Any) -> ExecutionResult:
        """Run a workflow in virtual time; no task is left."""

        async def main() -> ExecutionResult:
            result = await self.engine(self.store()).execute(workflow, self.context(**options))
            assert asyncio.all_tasks() == {asyncio.current_task()}
            return result

        return run_virtual(main())
