"""The one wrapper that every engine runs steps in: attempts, limits, costs, and results that are kept."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from smart_model_router.domain.errors import ConfigurationError, RequestRejected
from smart_model_router.domain.ports import Clock, Dice
from smart_model_router_research.engine.journal import RunJournal
from smart_model_router_research.engine.protocol import RunEventKind
from smart_model_router_research.engine.states import FREE, Results, StepResult, StepState, outputs_of
from smart_model_router_research.engine.store_port import RunInterrupted
from smart_model_router_research.workflow.definition import (
    COSTS,
    Costs,
    Run,
    Step,
    StepInput,
    WorkflowError,
    owned,
    scope_of,
)
from smart_model_router_research.workflow.evaluation import ExpressionTypeError
from smart_model_router_research.workflow.expressions import fill

MAX_OUTPUTS = 1_048_576
"""Characters of a step's outputs as JSON text: what is larger is a document."""
BACKOFF_BASE = 0.25
BACKOFF_CAP = 8.0
"""Seconds. The pause before retry n (from 0) is drawn from [0, min(cap, base x 2^n)): full jitter."""
_MAX_ERROR = 2_000
Ending = Callable[[StepResult], StepResult]
"""The last word about a step that has succeeded, before that is kept."""


class OutputsRefused(ValueError):
    """The outputs of a step are no mapping of JSON, or too large."""


PERMANENT: tuple[type[Exception], ...] = (
    RequestRejected,
    ConfigurationError,
    WorkflowError,
    ExpressionTypeError,
    TypeError,
    OutputsRefused,
)
"""The errors after which another attempt would end in the same way."""


def step_input(
    step: Step, name: str, run_id: str, workflow_hash: str, inputs: Mapping[str, Any], results: Results
) -> StepInput:
    """Return what a step reads, as copies of its own. Raises ExpressionTypeError.

    `name` is its full name, `inputs` are those of the workflow, `results` those of its steps so far. The message of an
    approval is an option of it.
    """
    options = step.options if step.message is None else {**step.options, "message": step.message}
    scope = scope_of(step, inputs, lambda need: outputs_of(results, need)) if step.inputs or options else {}
    filled, chosen = owned(fill(step.inputs, scope)), owned(fill(options, scope))
    read = {need: owned(outputs_of(results, need)) for need in step.needs}
    hashed = _hash(_CANONICAL.encode([filled, read, chosen]))
    return StepInput(
        run_id=run_id,
        step=name,
        inputs=filled,
        steps=read,
        options=chosen,
        input_hash=hashed,
        idempotency_key=_hash(f"{run_id}\n{name}\n{workflow_hash}\n{hashed}"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRunner:
    """The surroundings of the steps of one run. `services` are handed to them."""

    journal: RunJournal
    clock: Clock
    dice: Dice
    services: Mapping[str, Any] = field(default_factory=dict)

    async def run(
        self, step: Step, work: Run, given: StepInput, limit: float = math.inf, ending: Ending | None = None
    ) -> StepResult:
        """Run the work of a step until it has settled, and keep its result, as `ending` leaves it; returns it.

        A step that has settled with the same input does not run again. `limit` (monotonic) is that of the run: an
        attempt that it cuts is the last. An error, a time-out included, is retried with full-jitter back-off while
        attempts are left, unless it is PERMANENT. Raises RunInterrupted as the work does, and CancelledError when the
        task is cancelled, whatever the work makes of it; what it had paid by then is kept.
        """
        attempt, costs = 0, FREE
        while True:
            attempt += 1
            if (known := await self.journal.begin(given.step, attempt, given.input_hash)) is not None:
                return known
            began = _Attempt(self, given.step, step.timeout, limit)
            try:
                outcome = await began.outcome(work, given, attempt)
            finally:
                if began.costs != FREE:
                    await self.journal.keep_charge(given.step, began.costs)
            costs = began.costs if costs is FREE else costs + began.costs
            if not isinstance(outcome, _Failure):
                result = StepResult(state=StepState.SUCCEEDED, outputs=outcome, attempts=attempt, costs=costs)
                result = result if ending is None else ending(result)
                return await self.journal.settle(given.step, result, given.input_hash)
            pause = None if outcome.permanent or attempt == step.attempts else self._pause(attempt, limit)
            if pause is None:
                result = StepResult(state=StepState.FAILED, error=outcome.reason, attempts=attempt, costs=costs)
                return await self.journal.settle(given.step, result, given.input_hash)
            data = {"attempt": attempt, "reason": outcome.reason, "pause": pause}
            await self.journal.record(RunEventKind.STEP_RETRYING, given.step, data)
            await self.clock.sleep(pause)

    def _pause(self, attempt: int, limit: float) -> float | None:
        """Return the seconds until the next attempt, None when it would begin beyond the limit of the run."""
        pause = self.dice.roll() * min(BACKOFF_CAP, BACKOFF_BASE * 2.0 ** (attempt - 1))
        return None if self.clock.now() + pause >= limit else pause

    async def ask(
        self, step: Step, given: StepInput, limit: float = math.inf, ending: Ending | None = None
    ) -> StepResult:
        """Ask for the decision about an approval; returns that it is paused, or its result, kept as `ending` leaves it.

        It has succeeded with `approved` and `payload` as outputs, or a rejection has failed it. `limit` (monotonic) is
        that of the run: it, and the time-out of the step, reject.
        """
        seconds = min(math.inf if step.timeout is None else step.timeout, limit - self.clock.now())
        message = str(given.options.get("message", ""))
        decision = await self.journal.ask(given.step, message, None if seconds == math.inf else max(0.0, seconds))
        if decision is None:
            return StepResult(state=StepState.PAUSED)
        if decision.approved:
            outputs = {"approved": True, "payload": decision.payload}
            result = StepResult(state=StepState.SUCCEEDED, outputs=outputs, attempts=1)
            result = result if ending is None else ending(result)
        else:
            payload = decision.payload
            reason = "" if payload is None else f": {payload if isinstance(payload, str) else json.dumps(payload)}"
            result = StepResult(state=StepState.FAILED, error=f"rejected{reason}"[:_MAX_ERROR], attempts=1)
        return await self.journal.settle(given.step, result, given.input_hash)


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    permanent: bool = False


class _Attempt:
    """One attempt: its limit, and what it pays."""

    __slots__ = ("_late", "_name", "_run_limit", "_runner", "_timeout", "_until", "costs")

    def __init__(self, runner: StepRunner, name: str, timeout: float | None, limit: float) -> None:
        own = math.inf if timeout is None else runner.clock.now() + timeout
        self._runner = runner
        self._name = name
        self._timeout = timeout
        self._until = min(own, limit)
        self._run_limit = limit <= own
        self._late = False
        self.costs = FREE

    async def outcome(self, work: Run, given: StepInput, attempt: int) -> dict[str, Any] | _Failure:
        """Return the outputs, checked, or why there are none."""
        told = StepInput(  # by hand: dataclasses.replace took a sixth of an empty step
            run_id=given.run_id,
            step=given.step,
            inputs=given.inputs,
            steps=given.steps,
            options=given.options,
            services=self._runner.services,
            attempt=attempt,
            input_hash=given.input_hash,
            idempotency_key=given.idempotency_key,
            deadline=self._until,
            charge=self._charge,
        )
        try:
            return checked(await self._worked(work, told))
        except RunInterrupted:
            raise
        except Exception as error:  # noqa: BLE001 - the code of a step raises what it likes
            if not self._late:
                return _Failure(described(error), isinstance(error, PERMANENT))
        if self._run_limit:
            return _Failure("the time limit of the run came before its end")
        return _Failure(f"time-out after {self._timeout:g} s")

    async def _worked(self, work: Run, given: StepInput) -> object:
        """Return what the work put out. It has a task of its own, so that it changes no context but its own."""
        me = asyncio.current_task()
        assert me is not None  # noqa: S101 - only a task can await
        cancelling = me.cancelling()

        async def go() -> object:
            try:
                return await work(given)
            except (Exception, asyncio.CancelledError, KeyboardInterrupt):
                raise
            except BaseException as error:  # sys.exit(), a panic of an extension: not the end of the process
                raise RuntimeError(described(error)) from error

        task = asyncio.create_task(go())
        timer = None if self._until == math.inf else self._runner.clock.call_at(self._until, lambda: self._expire(task))
        try:
            return await task
        except asyncio.CancelledError:
            # The work was cancelled by its limit, or by itself: no more than a failure of this step.
            if me.cancelling() <= cancelling:
                raise RuntimeError("the step cancelled itself") from None
            raise
        finally:
            if timer is not None:
                timer.cancel()
            if me.cancelling() > cancelling:  # also where the work made a value or another error of it
                raise asyncio.CancelledError

    def _expire(self, task: asyncio.Task[object]) -> None:
        self._late = True
        task.cancel()

    def _charge(self, costs: Costs) -> None:
        for name in COSTS:
            if not 0 <= (value := getattr(costs, name)) < math.inf:
                raise ConfigurationError(f"charge.{name}", value, "a number of at least 0 is needed")
        self.costs += costs
        self._runner.journal.charge(self._name, costs)


def described(error: BaseException) -> str:
    """Return an error in words, also one that cannot be made to text."""
    try:
        return f"{type(error).__name__}: {error}"[:_MAX_ERROR]
    except Exception:  # noqa: BLE001 - the class of an error is the code of a step, too
        return type(error).__name__


def checked(outputs: object) -> dict[str, Any]:
    """Return a copy of the outputs of a step. Raises OutputsRefused."""
    if type(outputs) is not dict and not isinstance(outputs, Mapping):  # the former is asked much faster
        raise OutputsRefused(f"a mapping of names to JSON is needed, not {type(outputs).__name__}")
    plain = dict(outputs)
    try:
        text = _STRICT.encode(plain)
        copy: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise OutputsRefused(f"the outputs are no JSON: {error}") from None
    if len(text) > MAX_OUTPUTS:
        raise OutputsRefused(f"{len(text)} characters of JSON are above {MAX_OUTPUTS}: store a document, and its id")
    if copy != plain:
        raise OutputsRefused("the outputs are no JSON: keys have to be texts, and sequences lists")
    return copy


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# json.dumps makes an encoder for each call that has options.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_STRICT = json.JSONEncoder(allow_nan=False)
