"""Store files for tests: observations to put in, a reader that is none of ours, and files that cannot serve."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router_stats.estimators import LAST_BUCKET, middle_of


def attempt(
    target: str = "a/big",
    failure: FailureClass | None = None,
    *,
    seconds: float = 2.0,
    ttft: float | None = None,
    at: float | None = None,
    usage: Usage | None = None,
) -> AttemptFinished:
    """One attempt that ended at `at` (default: now); with `ttft` it was a stream."""
    provider, _, model = target.partition("/")
    ended = time.monotonic() if at is None else at
    return AttemptFinished(
        at=ended,
        admitted_at=ended - seconds,
        target=target,
        provider=provider,
        model=model,
        stream=ttft is not None,
        seconds=seconds,
        ttft_seconds=ttft,
        failure_class=failure,
        usage=usage,
    )


def rows(path: Path, query: str, *values: Any) -> list[Any]:
    """What any SQL tool would be told."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query, values).fetchall()


def one(path: Path, query: str, *values: Any) -> Any:
    """The only column of the only row."""
    ((value,),) = rows(path, query, *values)
    return value


def calls(path: Path) -> int:
    """How many calls are in the file."""
    total = one(path, "SELECT coalesce(sum(calls), 0) FROM v_target_now")
    assert isinstance(total, int)
    return total


def make_link(path: Path) -> None:
    """A symbolic link in the place of the file."""
    path.symlink_to(path.with_name("elsewhere.db"))


def make_folder(path: Path) -> None:
    """A folder in the place of the file."""
    path.mkdir()


def make_public(path: Path) -> None:
    """A file that everybody may write to."""
    path.touch()
    path.chmod(0o666)


def make_tomorrows(path: Path) -> None:
    """A file of a newer schema."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 99")


def make_first_schema(path: Path) -> None:
    """A stats.db that the release before the second schema made: ten calls of a/big, four of b/small."""
    script = (Path(__file__).parent / "fixtures" / "stats_schema_1.sql").read_text("utf-8")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(script)
        buckets = ((number, middle_of(number)) for number in range(LAST_BUCKET + 1))
        connection.execute("BEGIN")  # one write to the disk, not one for each row
        connection.executemany("INSERT INTO bucket VALUES (?, ?)", buckets)
        connection.execute("COMMIT")
    path.chmod(0o600)


UNFIT = (
    (make_link, "symbolic link"),
    (make_folder, "not a regular file"),
    (make_public, "every user may write to it"),
    (make_tomorrows, "newer"),
)
"""What may be in the place of a file of ours, and what is said of it."""
