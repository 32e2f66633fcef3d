"""Sums and rows since the last write, and the way a batch of them goes into the file."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import defaultdict, deque
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.events import (
    NAME_LIMIT,
    BreakerChanged,
    OfflineChanged,
    OperatorSpoke,
    ProbeStarted,
    RequestFinished,
    RequestShed,
    RestStarted,
    SheddingChanged,
    StoreChanged,
)
from smart_model_router.domain.outcome import FailureClass
from smart_model_router_stats.estimators import bucket_of, plausible
from smart_model_router_stats.schema import LATENCY, TTFT
from smart_model_router_stats.statements import ADD_UP, GIVE_BATCH, SAME, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from smart_model_router.domain.events import AttemptFinished, Event
    from smart_model_router_stats.open_db import GuardedConnection


def details_of(event: Event) -> dict[str, Any]:
    """An event's fields, but for `at`; an instant of this process's clock is given as the seconds until then."""
    details = asdict(event)
    del details["at"]
    open_until = details.pop("open_until", None)
    if open_until is not None:
        details["open_seconds"] = open_until - event.at
    return details


Row = tuple[Any, ...]
SUCCESS = "OK"
"""Stands in the place of a failure class."""


KEPT_EVENTS = frozenset(
    (
        BreakerChanged,
        OperatorSpoke,
        ProbeStarted,
        RestStarted,
        OfflineChanged,
        SheddingChanged,
        RequestShed,
        StoreChanged,
    )
)
_of_same = attrgetter(*SAME[:-1])


def shared_values(event: RequestFinished) -> tuple[object, ...]:
    """Return the values of a request that others may share (SAME); `notes` are JSON."""
    return (*_of_same(event), json.dumps(event.notes) if event.notes else "[]")


def clipped(event: RequestFinished) -> RequestFinished:
    """Return the event with names of a bounded length: callers choose some of them."""
    model, tier = event.model, event.requested_tier
    if len(model) <= NAME_LIMIT and len(tier) <= NAME_LIMIT:
        return event
    return replace(event, model=model[:NAME_LIMIT], requested_tier=tier[:NAME_LIMIT])


def event_row(event: Event, wall: float) -> Row:
    """Return the row of a state change."""
    details = details_of(event)
    subject = details.get("owner") or details.get("target") or details.get("request_id")
    return (wall, type(event).__name__, subject, json.dumps(details))


class DeltaCell:
    """The calls of one target that ended in one minute; every figure merges by addition or by maximum."""

    __slots__ = (
        "cached_prompt_tokens",
        "completion_tokens",
        "cost_usd",
        "last_failure",
        "last_success",
        "latencies",
        "latency_sum",
        "model",
        "outcomes",
        "pace_count",
        "pace_sum",
        "prompt_tokens",
        "provider",
        "ttft_sum",
        "ttfts",
    )

    def __init__(self, provider: str, model: str) -> None:
        self.provider = provider
        self.model = model
        self.outcomes: defaultdict[str, int] = defaultdict(int)
        self.latencies: defaultdict[int, int] = defaultdict(int)
        self.ttfts: defaultdict[int, int] = defaultdict(int)
        self.latency_sum = 0.0
        self.ttft_sum = 0.0
        self.pace_count = 0
        self.pace_sum = 0.0
        self.prompt_tokens = 0
        self.cached_prompt_tokens = 0
        self.completion_tokens = 0
        self.cost_usd = 0.0
        self.last_success: float | None = None
        self.last_failure: float | None = None

    @property
    def calls(self) -> int:
        """The number of observations in it."""
        return sum(self.outcomes.values())

    def add(self, event: AttemptFinished, wall: float) -> None:
        """Count one call that ended at `wall` (seconds since the epoch), by the rules of `book.py`."""
        failure, usage = event.failure_class, plausible(event.usage)
        self.outcomes[SUCCESS if failure is None else failure.value] += 1
        if usage is not None:
            self.prompt_tokens += usage.prompt_tokens
            self.cached_prompt_tokens += usage.cached_prompt_tokens
            self.completion_tokens += usage.completion_tokens
        if event.cost_usd is not None:
            self.cost_usd += event.cost_usd
        if failure is FailureClass.CANCELLED:
            return
        if event.stream and event.ttft_seconds is not None:
            self.ttfts[bucket_of(event.ttft_seconds)] += 1
            self.ttft_sum += event.ttft_seconds
        if failure is not None:
            self.last_failure = wall
            return
        self.last_success = wall
        if not event.stream:
            self.latencies[bucket_of(event.seconds)] += 1
            self.latency_sum += event.seconds
        if usage is not None and usage.completion_tokens:
            self.pace_count += 1
            self.pace_sum += 100.0 * event.seconds / usage.completion_tokens

    def row(self, place: int, target: str, minute: int) -> tuple[Any, ...]:
        """The cell as it is given to the file, at its place in the batch."""
        return (
            place,
            target,
            self.provider,
            self.model,
            minute,
            self.prompt_tokens,
            self.completion_tokens,
            self.cost_usd,
            sum(self.latencies.values()),
            self.latency_sum,
            sum(self.ttfts.values()),
            self.ttft_sum,
            self.pace_count,
            self.pace_sum,
            self.cached_prompt_tokens,
            self.last_success,
            self.last_failure,
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """One write. `number` counts the writer's batches: a batch that is there already is not added again.

    `calls` is how many observations it holds; `rows` are those of each of the connection's own tables (writing.py).
    """

    number: int
    calls: int
    rows: Mapping[str, Sequence[Row]]


class Delta:
    """Everything observed and not yet written: at most `limit` cells; beyond that the oldest go and are counted.

    A batch has at most `BATCH_CELLS` cells and `BATCH_ROWS` rows of a table, so that no
    transaction takes long.
    """

    BATCH_CELLS = 32
    BATCH_ROWS = 1_000

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._cells: dict[tuple[str, int], DeltaCell] = {}
        self._notes: dict[str, deque[Row]] = {name: deque(maxlen=limit) for name in ("new_event", "new_request")}
        self.calls = 0
        self.lost = 0

    def __bool__(self) -> bool:
        return bool(self._cells or any(self._notes.values()))

    @property
    def batches(self) -> int:
        """The number of its batches."""
        rows = max(len(notes) for notes in self._notes.values())
        return max(-(-len(self._cells) // self.BATCH_CELLS), -(-rows // self.BATCH_ROWS))

    def add(self, event: AttemptFinished, wall: float) -> None:
        """Take one call that ended at `wall` seconds since the epoch (>= 0). Raises ValueError for no figures."""
        if not math.isfinite(event.seconds + (event.ttft_seconds or 0.0) + (event.cost_usd or 0.0)):
            raise ValueError("seconds, ttft_seconds and cost_usd must be finite")
        key = (event.target, int(wall // 60))
        cell = self._cells.get(key)
        if cell is None:
            if len(self._cells) >= self._limit:
                self._lose_oldest()
            cell = self._cells[key] = DeltaCell(event.provider, event.model)
        cell.add(event, wall)
        self.calls += 1

    def note(self, table: str, row: Row) -> None:
        """Take a row of `new_event` or `new_request`; they are kept as they are, the newest `limit` of each."""
        self._notes[table].append(row)

    def take(self, number: int) -> Batch:
        """Take out what fits one batch, oldest first."""
        keys = list(self._cells)[: self.BATCH_CELLS]
        cells = {key: self._cells.pop(key) for key in keys}
        calls = sum(cell.calls for cell in cells.values())
        self.calls -= calls
        rows: dict[str, Sequence[Row]] = {
            "cell": [cell.row(place, *key) for place, (key, cell) in enumerate(cells.items())],
            "outcome": [
                (place, name, count)
                for place, cell in enumerate(cells.values())
                for name, count in cell.outcomes.items()
            ],
            "bar": [
                (place, kind, bucket, count)
                for place, cell in enumerate(cells.values())
                for kind, counts in ((LATENCY, cell.latencies), (TTFT, cell.ttfts))
                for bucket, count in counts.items()
            ],
        }
        for table, notes in self._notes.items():
            rows[table] = [notes.popleft() for _ in range(min(len(notes), self.BATCH_ROWS))]
        return Batch(number, calls, rows)

    def _lose_oldest(self) -> None:
        calls = self._cells.pop(next(iter(self._cells))).calls
        self.calls -= calls
        self.lost += calls


_AT_ONCE = (128, 32, 8, 1)
"""Rows of one statement. One for each row would give the interpreter away, and wait for it, as often."""


def write(connection: GuardedConnection, batch: Batch, header: Sequence[Any]) -> None:
    """Add a batch to the file, all of it or nothing; one that is there already changes nothing.

    `header` is what GIVE_BATCH takes. An error leaves no transaction open. Raises sqlite3.Error.
    """
    rows = {**batch.rows, **_told_once(batch.rows["new_request"])}
    connection.execute(GIVE_BATCH, header)
    for table in TABLES:
        _give(connection, table, rows[table])
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(ADD_UP)
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.rollback()
        raise


def _told_once(requests: Sequence[Row]) -> dict[str, list[Row]]:
    """The values that requests have in common, once: passing a value takes longer than all the rest."""
    places: dict[Row, int] = {}
    own = [(*row[:-1], places.setdefault(row[-1], len(places))) for row in requests]
    return {"same": [(place, *row) for row, place in places.items()], "new_request": own}


def _give(connection: GuardedConnection, table: str, rows: Sequence[Sequence[Any]]) -> None:
    begin = 0
    for size in _AT_ONCE:
        while len(rows) - begin >= size:
            values = list(chain.from_iterable(rows[begin : begin + size]))
            try:
                connection.execute(_insert(table, size), values)
            except UnicodeEncodeError:
                connection.execute(_insert(table, size), list(_speakable(values)))
            begin += size


@lru_cache(maxsize=len(TABLES) * len(_AT_ONCE))
def _insert(table: str, rows: int) -> str:
    columns = TABLES[table]
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO temp.{table} ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"  # noqa: S608 - names of our own tables


def _speakable(values: Iterable[Any]) -> Iterable[Any]:
    """A lone surrogate can be in a name that a caller chose, and in no file."""
    return (value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for value in values)
