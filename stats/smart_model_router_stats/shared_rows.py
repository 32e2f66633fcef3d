"""Shared rows as plain values and back: whatever is in a store, a row or nothing comes out."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast, get_args

from smart_model_router.domain.outcome import FailureClass, RestReason
from smart_model_router.domain.shared_state import (
    BreakerRow,
    BucketRow,
    BudgetRow,
    CallRow,
    ClockReading,
    Deadline,
    MakerRow,
    MemberRow,
    OperatorRow,
    OperatorWord,
    RestRow,
    SlotRow,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_model_router.domain.shared_state import BreakerKind, SharedBreakerState

Columns = tuple[Any, ...]


def breaker_columns(row: BreakerRow) -> Columns:
    """The values of a breaker's row."""
    return (*row.key, row.provider, row.state, *_columns(row.until), row.step, row.reason, row.holder, row.gen)


def rest_columns(row: RestRow) -> Columns:
    """The values of a rest's row."""
    cause = None if row.cause is None else row.cause.value
    return (*row.key, *_columns(row.until), cause, int(row.hinted), row.step, int(row.over), row.gen)


def bucket_columns(row: BucketRow) -> Columns:
    """The values of a limit's row."""
    sizes = (row.key, row.boot, row.at, row.level, row.capacity, row.rate)
    return (*sizes, row.window, row.resets_at, row.held_until)


def budget_columns(row: BudgetRow) -> Columns:
    """The values of a budget's row."""
    return (row.key, row.used, row.reserved, *_columns(row.until))


def slots_columns(row: SlotRow) -> Columns:
    """The values of a row of slots."""
    return (row.key, row.holder, row.boot, row.held, row.until, row.waits)


def call_columns(row: CallRow) -> Columns:
    """The values of a call's row."""
    return (
        row.target,
        row.at.boot,
        row.at.boottime,
        row.at.wall,
        None if row.failure is None else row.failure.value,
        int(row.stream),
        row.seconds,
        row.ttft_seconds,
        row.completion_tokens,
        int(row.anew),
    )


def word_columns(row: OperatorRow) -> Columns:
    """The values of a row of the operator's."""
    return (row.target, row.word, row.by, row.why, row.at.boot, row.at.boottime, row.at.wall, row.gen)


def member_columns(row: MemberRow) -> Columns:
    """The values of a process's row."""
    return (row.holder, row.machine, row.version, row.pid, row.at.boot, row.at.boottime, row.at.wall)


_RESTS = frozenset(get_args(RestReason))
_WORDS = frozenset(get_args(OperatorWord))
_STATES = frozenset({"closed", "open", "half_open"})


def _columns(deadline: Deadline) -> tuple[Any, ...]:
    return (
        deadline.boot,
        deadline.boottime,
        deadline.boottime_until,
        deadline.wall,
        deadline.wall_until,
        deadline.duration,
    )


def _deadline(columns: Sequence[Any]) -> Deadline:
    return Deadline(str(columns[0]), *(_number(column) for column in columns[1:]))


def _number(value: Any) -> float:
    """A figure; NaN for what is none: the rules of shared know what to make of that."""
    with suppress(TypeError, ValueError):
        return float(value)
    return math.nan


def _count(value: Any) -> int:
    number = _number(value)
    return int(number) if math.isfinite(number) else 0


def breaker_of(row: Sequence[Any]) -> BreakerRow:
    """A breaker's row."""
    return BreakerRow(
        owner=str(row[0]),
        kind=cast("BreakerKind", row[1]),
        provider=str(row[2]),
        state=cast("SharedBreakerState", row[3] if row[3] in _STATES else "open"),
        until=_deadline(row[4:10]),
        step=_count(row[10]),
        reason=str(row[11]),
        holder=str(row[12]),
        gen=_count(row[13]),
    )


def rest_of(row: Sequence[Any]) -> RestRow | None:
    """A rest's row; None for one of a reason that is not known here."""
    if row[1] not in _RESTS:
        return None
    return RestRow(
        owner=str(row[0]),
        reason=cast("RestReason", row[1]),
        until=_deadline(row[2:8]),
        cause=_failure(row[8]),
        hinted=bool(_count(row[9])),
        step=_count(row[10]),
        over=bool(_count(row[11])),
        gen=_count(row[12]),
    )


def _failure(value: Any) -> FailureClass | None:
    return FailureClass(value) if value in FailureClass.__members__ else None


def bucket_of(row: Sequence[Any]) -> BucketRow | None:
    """A limit's row; None where its figures make no limit."""
    figures = [_number(value) for value in (*row[2:6], *row[7:9])]
    window = None if row[6] is None else _number(row[6])
    if (
        not all(map(math.isfinite, (*figures, window or 0.0)))
        or figures[3] <= 0
        or (window is not None and window <= 0)
    ):
        return None
    at, level, capacity, rate, resets_at, held_until = figures
    return BucketRow(
        key=str(row[0]),
        boot=str(row[1]),
        at=at,
        level=level,
        capacity=capacity,
        rate=rate,
        window=window,
        resets_at=resets_at,
        held_until=held_until,
    )


def budget_of(row: Sequence[Any]) -> BudgetRow:
    """A budget's row."""
    used = max(0, _count(row[1]))
    return BudgetRow(key=str(row[0]), used=used, reserved=min(used, max(0, _count(row[2]))), until=_deadline(row[3:9]))


def slots_of(row: Sequence[Any]) -> SlotRow:
    """A row of slots."""
    held, until, waits = max(0, _count(row[3])), _number(row[4]), _number(row[5])  # NaN is over
    return SlotRow(key=str(row[0]), holder=str(row[1]), boot=str(row[2]), held=held, until=until, waits=waits)


def call_of(row: Sequence[Any]) -> CallRow:
    """A call's row."""
    seconds, ttft = _number(row[6]), None if row[7] is None else _number(row[7])
    return CallRow(
        target=str(row[0]),
        at=ClockReading(str(row[1]), _number(row[2]), _number(row[3])),
        failure=_failure(row[4]) or (None if row[4] is None else FailureClass.SERVER_ERROR),
        stream=bool(_count(row[5])),
        seconds=seconds if seconds >= 0 and math.isfinite(seconds) else 0.0,
        ttft_seconds=ttft if ttft is not None and ttft >= 0 and math.isfinite(ttft) else None,
        completion_tokens=None if row[8] is None else max(0, _count(row[8])),
        anew=bool(_count(row[9])),
    )


def word_of(row: Sequence[Any]) -> OperatorRow | None:
    """A row of the operator's; None for a command that is not known here."""
    if row[1] not in _WORDS:
        return None
    return OperatorRow(
        target=str(row[0]),
        word=cast("OperatorWord", row[1]),
        by=str(row[2]),
        why=str(row[3]),
        at=ClockReading(str(row[4]), _number(row[5]), _number(row[6])),
        gen=_count(row[7]),
    )


def maker_of(row: Sequence[Any]) -> MakerRow:
    """The row of a thing's maker."""
    return MakerRow(thing=bytes(row[0]), target=str(row[1]), owner=str(row[2]), at=_number(row[3]))


def member_of(row: Sequence[Any]) -> MemberRow:
    """A process's row; one whose instant is no number counts nowhere."""
    return MemberRow(
        holder=str(row[0]),
        machine=str(row[1]),
        version=str(row[2]),
        pid=_count(row[3]),
        at=ClockReading(str(row[4]), _number(row[5]), _number(row[6])),
    )
