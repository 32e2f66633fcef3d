"""The rules that every store of runs keeps: leases, decisions, the size of a run, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.engine.protocol import Approval, RunEventKind
from smart_model_router_research.engine.states import StepState
from smart_model_router_research.engine.store_port import RunBusy, StateTooLarge

STATE_LIMIT = 1_048_576
"""Characters of JSON text that inputs and results of a run may have together."""
STATE_BY_EVENT = {RunEventKind.STEP_RETRYING: StepState.RETRYING, RunEventKind.STEP_PAUSED: StepState.PAUSED}
"""The state of a step that began, after an event that settles it not."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that took a lease: its host, the boot of that, the space of its ids, and when it started there.

    What the system does not tell is "".
    """

    host: str
    boot: str
    space: str
    pid: int
    started: str


def is_gone(holder: Holder, here: Holder, started: str | None, *, one_host: bool) -> bool:
    """Return whether the process `holder` has ended, as this process, `here`, can tell.

    `started` is when the process that now has its id was started, None for no such process. Another host, or another
    space of ids (a container), tells nothing. Nor does another boot, unless the store is of `one_host`: two hosts may
    go by one name.
    """
    if holder.host != here.host:
        return False
    if holder.boot != here.boot:
        return one_host
    return holder.space == here.space and started != holder.started


def granted(run_id: str, held_by: str, seconds_left: float, *, own: bool, gone: bool) -> bool:
    """Return whether the lease of a run goes to a new holder, False where it stays with its own.

    `held_by` is its owner at present, "" for none; `own` says that it is the one that asks, `gone` that its process has
    ended. Raises RunBusy.
    """
    if own:
        return False
    if held_by and seconds_left > 0 and not gone:
        raise RunBusy(run_id, held_by, seconds_left)
    return True


def decided_step(run_id: str, approval: Approval, waiting: Iterable[str], asked: Iterable[str] = ()) -> str:
    """Return the step that a decision is about. Raises ConfigurationError.

    `waiting` are those that are paused, `asked` also those whose decision the run has not read yet, or that is late.
    """
    paused = list(waiting)
    named = paused if approval.step is None else [step for step in paused if step == approval.step]
    decided = sorted(set(asked) - set(paused))
    over = f"; decided, or out of time: {', '.join(decided)}: resume without a decision" if decided else ""
    if not paused:
        decision = "approved" if approval.approved else "rejected"
        raise ConfigurationError("approval", decision, f"run {run_id} waits for no decision{over}")
    if len(named) != 1:
        expected = f"one of the steps of run {run_id} that wait for a decision is needed: {', '.join(paused)}{over}"
        raise ConfigurationError("approval.step", approval.step, expected)
    return named[0]


def readable(text: str) -> str:
    """Return a text that every store can hold: NUL, and halves of surrogate pairs (in file names), are escaped."""
    return whole_characters(text).replace("\0", "\\x00")


def whole_characters(text: str) -> str:
    """Return a text that a file can hold: halves of surrogate pairs are escaped."""
    return text.encode(errors="backslashreplace").decode()


def late_decision(step: str) -> Approval:
    """Return the rejection of a step that was not decided in time."""
    return Approval(approved=False, payload="no decision in time", step=step)


def differing_steps(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the names of steps whose hashes differ, that are new or are gone, in the order of the alphabet."""
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def check_state(run_id: str, what: str, size: int) -> None:
    """Raise StateTooLarge when `what` would make a run hold `size` characters, more than STATE_LIMIT."""
    if size > STATE_LIMIT:
        raise StateTooLarge(run_id, what, size, STATE_LIMIT)


def json_text(data: object) -> str:
    """Return data as JSON text. Raises TypeError and ValueError for what is no JSON."""
    if type(data) is not dict and isinstance(data, Mapping):  # the former is asked much faster
        data = dict(data)
    return _STRICT.encode(data)


_STRICT = json.JSONEncoder(allow_nan=False)
