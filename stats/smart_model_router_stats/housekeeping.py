"""Keeping the file in order: percentiles, the 15 minutes, retention and checkpoints, by one process at a time."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router_stats import statements
from smart_model_router_stats.open_db import BUSY_SECONDS, JOURNAL_BYTES, MIB, is_busy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smart_model_router_stats.sqlite_file import Database

RECENT_MINUTES = 15
LEASE_SECONDS = 30.0
_RENEW_SECONDS = LEASE_SECONDS / 3
_CHECKPOINT_BYTES = 4 * MIB
_TRUNCATE_BUSY_SECONDS = 0.1
_MINUTES_AT_ONCE = 5
_REFRESH_SECONDS = 1.0
_READINGS = 10
_PACE = 10.0
"""Keeping in order takes at most one part in so many of the time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a store: `retention` in seconds; bytes of the file, and of its WAL; rows of events and requests."""

    retention: float = 14 * 86_400.0
    size_bytes: int = 512 * MIB
    wal_bytes: int = 64 * MIB
    rows: int = 10_000


class Housekeeper:
    """Does what one of all processes has to do. `owner` is the writer's id; instants are monotonic, `wall` is not."""

    def __init__(self, database: Database, path: Path, owner: str, limits: Limits) -> None:
        self._database = database
        self._wal = path.with_name(path.name + "-wal")
        self._owner = owner
        self._limits = limits
        self._checkpoint_at = min(_CHECKPOINT_BYTES, limits.wal_bytes // 2)
        self._truncate_at = min(JOURNAL_BYTES, limits.wal_bytes // 2)
        self._elected = False
        self._ask_at = 0.0
        self._refresh_at = 0.0
        self._seen: tuple[object, ...] = ()

    @property
    def wal_is_full(self) -> bool:
        """True when writing has to wait until a checkpoint empties the WAL: a reader holds on to a snapshot."""
        return self._wal_bytes() > self._limits.wal_bytes

    async def tick(self, monotonic: Callable[[], float], wall: float) -> None:
        """Do what is due, when it is this process's turn: once a second at most, and for a tenth of the time."""
        now = monotonic()
        if now >= self._ask_at:
            self._ask_at = now + _RENEW_SECONDS
            values = {"owner": self._owner, "now": wall, "seconds": LEASE_SECONDS}
            self._elected = await self._database.execute(statements.TAKE_LEASE, values) == 1
        if not self._elected or now < self._refresh_at:
            return
        await self._checkpoint()
        if not self.wal_is_full:
            await self.refresh(wall)
            await self._forget(wall)
        ended = monotonic()
        self._refresh_at = ended + max(_REFRESH_SECONDS, _PACE * (ended - now))

    async def refresh(self, wall: float) -> bool:
        """Let minutes leave, and read the percentiles; False: nothing has changed."""
        floor = int(wall // 60) - RECENT_MINUTES
        seen = (floor, *await self._database.fetch(statements.CHANGED))
        if seen == self._seen:
            return False
        await self._database.execute(statements.GIVE_CHORE, (wall, floor))
        await self._database.run(statements.AGE)
        await self._database.run(statements.REFRESH)
        self._seen = seen
        return True

    async def leave(self, wall: float) -> None:
        """Leave the percentiles of now, and the turn to another process at once.

        Another one that leaves as well may write between our reading and our telling, and what we tell would stand.
        """
        for _ in range(_READINGS):
            if not await self.refresh(wall):
                break
        if self._elected:
            self._elected = False
            await self._database.execute("UPDATE keeping SET lease_until = 0 WHERE owner = ?", (self._owner,))

    async def _checkpoint(self) -> None:
        if self._wal_bytes() <= self._checkpoint_at:
            return
        # Most of the work, without blocking others.
        await self._database.fetch("PRAGMA wal_checkpoint(PASSIVE)")
        if self._wal_bytes() <= self._truncate_at:
            return
        # No process can write while this waits for a reader: briefly.
        await self._database.fetch(f"PRAGMA busy_timeout = {round(1000 * _TRUNCATE_BUSY_SECONDS)}")
        try:
            await self._database.fetch("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
        finally:
            await self._database.fetch(f"PRAGMA busy_timeout = {round(1000 * BUSY_SECONDS)}")

    async def _forget(self, wall: float) -> None:
        (oldest,) = await self._database.fetch(statements.OLDEST_MINUTE)
        (used,) = await self._database.fetch(statements.USED_BYTES)
        before = wall - self._limits.retention
        if oldest is not None:
            kept_from = int(wall // 60) if used > self._limits.size_bytes else int(before // 60)
            # The 15 minutes are subtracted from what is recent when they leave: they must be there until then.
            minute = min(kept_from, oldest + _MINUTES_AT_ONCE, int(wall // 60) - RECENT_MINUTES)
            if minute >= oldest:
                for statement in statements.FORGET_MINUTES:
                    await self._database.execute(statement, {"minute": minute})
        for statement in statements.FORGET_ROWS:
            await self._database.execute(statement, {"keep": self._limits.rows, "before": before})
        await self._database.execute(statements.FORGET_WRITERS, {"before": before, "owner": self._owner})

    def _wal_bytes(self) -> int:
        try:
            return os.stat(self._wal).st_size  # noqa: PTH116 - on the path of every write
        except OSError:
            return 0
