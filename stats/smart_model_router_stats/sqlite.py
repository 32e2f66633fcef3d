"""SqliteStore: statistics that survive the process, in one file that any number of processes write."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import random
import sqlite3
import time
import uuid
from collections import deque
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from smart_model_router.domain.events import RequestFinished
from smart_model_router.domain.fork_hooks import in_children
from smart_model_router_stats import statements
from smart_model_router_stats.delta import KEPT_EVENTS, Batch, Delta, clipped, event_row, shared_values, write
from smart_model_router_stats.housekeeping import RECENT_MINUTES, Housekeeper, Limits
from smart_model_router_stats.open_db import (
    BUSY_SECONDS,
    GuardedConnection,
    StoreUnavailableError,
    filesystem_of,
    is_busy,
    is_corrupt,
    open_store,
    set_aside,
)
from smart_model_router_stats.reading import read_past
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.sqlite_file import Database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smart_model_router.domain.events import AttemptFinished, Event
    from smart_model_router_stats.reading import Past

_LOG = logging.getLogger(__name__)

ROWS = 200
INTERVAL_SECONDS = 0.25
QUEUE_LIMIT = 10_000
CELL_LIMIT = 2_000
"""Sums of (target, minute) that wait while the file cannot be written: 60 MB at most, when all targets are busy."""
_CHUNK = 300
"""Observations, and requests, summed up at a time: about a millisecond of the loop."""
_EXIT_BUSY_SECONDS = 1.0
_PACE = 10.0
"""Writing takes at most one part in so many of the time while more than an interval's worth comes in."""
_LONGEST_RETRY_SECONDS = 30.0
_TELLING_BUSY = 3


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """`ok` while observations reach the file. While degraded, they are summed up in memory; `reason` says why."""

    state: Literal["ok", "degraded"]
    reason: str = ""


class SqliteStore:
    """Sums observations up in memory and adds the sums to the file every `interval` seconds or 200 observations.

    Also an EventSink: state changes become v_events, requests v_requests; texts of prompts, answers and errors are
    never stored. Belongs to one loop at a time, as its router does. Nothing here fails a request: a file that cannot
    be written is said in `status` and in the log, and tried again.

    `wall` gives seconds since the epoch; `monotonic` is the clock of the observations' instants. `filesystem` names
    the type of the file system of a path.
    """

    def __init__(
        self,
        path: Path,
        *,
        wall: Callable[[], float] = time.time,  # noqa: TID251 - stamps for people; no decision rests on them
        monotonic: Callable[[], float] = time.monotonic,
        interval: float = INTERVAL_SECONDS,
        limits: Limits | None = None,
        filesystem: Callable[[Path], str] = filesystem_of,
    ) -> None:
        self._path = path.expanduser().absolute()
        self._wall = wall
        self._monotonic = monotonic
        self._interval = interval
        self._limits = limits or Limits()
        self._filesystem = filesystem
        self._database = Database(str(self._path), self._open)
        self._listener: Callable[[str], None] | None = None
        self._remember: Callable[[Past], None] | None = None
        self._closed = False
        self._begin_anew()
        in_children(self._forked)
        atexit.register(self._finish)

    def _begin_anew(self) -> None:
        """A new writer with nothing observed: at the start, and in a forked process."""
        self._pid = os.getpid()
        self._writer = uuid.uuid4().hex
        self._started_at = self._wall()
        self._queue: deque[AttemptFinished] = deque(maxlen=QUEUE_LIMIT)
        self._ended: deque[RequestFinished] = deque(maxlen=CELL_LIMIT)
        self._pending = Delta(CELL_LIMIT)
        self._unsure: Batch | None = None
        """Given to the file, and not known to be there."""
        self._number = 0
        self._observed = 0
        self._queue_dropped = 0
        self._acknowledged = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flusher: asyncio.Task[None] | None = None
        self._alarm = asyncio.Event()
        self._turn = asyncio.Lock()
        self._absorbing = False
        self._status = StoreStatus("ok")
        self._failures = 0
        self._retry_at = 0.0
        self._write_at = 0.0
        self._damaged: int | None = None
        self._keeper = Housekeeper(self._database, self._path, self._writer, self._limits)

    # Public ---------------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._path

    @property
    def status(self) -> StoreStatus:
        """The condition: ok, or degraded with the reason."""
        return self._status

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call `listener` whenever the status changes: with the reason, or "" when all is well again."""
        self._listener = listener

    def on_past(self, listener: Callable[[Past], None]) -> None:
        """Tell `listener`, once, what the file knows of before this process wrote to it, one target at a time.

        Soon where a loop runs, else after the first observation; as soon as the file can be read.
        """
        self._remember = listener
        if self._path.exists() and self._start():
            self._alarm.set()

    @property
    def observed(self) -> int:
        """The number of observations of this process."""
        return self._observed

    @property
    def acknowledged(self) -> int:
        """The number of them in the file: those survive any end of the process."""
        return self._acknowledged

    @property
    def stats_dropped(self) -> int:
        """The number of them that were given up, because neither file nor memory could take them."""
        return self._queue_dropped + self._pending.lost

    def observe(self, observation: AttemptFinished) -> None:
        """Take one observation; returns at once. After `aclose` it is dropped."""
        if self._closed:
            return
        queue = self._queue
        if len(queue) == QUEUE_LIMIT:
            self._queue_dropped += 1
        queue.append(observation)
        self._observed += 1
        flusher = self._flusher
        if flusher is None or len(queue) >= ROWS or flusher.done():
            self._wake()

    def emit(self, event: Event) -> None:
        """Keep a state change or a request's account; other events are not kept."""
        if self._closed:
            return
        if type(event) is RequestFinished:
            self._ended.append(clipped(event))
        elif type(event) in KEPT_EVENTS:
            self._pending.note("new_event", event_row(event, self._wall_of(event.at)))
        else:
            return
        if self._flusher is None or self._flusher.done():
            self._start()

    async def flush(self) -> bool:
        """Write what was observed until now; whether all of it is in the file."""
        self._start()
        async with self._turn:
            self._retry_at = self._write_at = 0.0
            return await self._work()

    async def aclose(self) -> None:
        """Write what is left, bring the percentiles up to date, and let go of the file. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self._start()
        if self._flusher is not None:
            self._flusher.cancel()
            await asyncio.wait([self._flusher])
        async with self._turn:
            self._retry_at = self._write_at = 0.0
            if self._unsure is not None or self._pending or self._queue or self._ended:
                await self._work()
            if self._database.is_open:
                await self._tidy_up()
            await self._database.close()
        if self._observed > self._acknowledged + self.stats_dropped:
            _LOG.warning("the last statistics are lost: %s: %s", self._path, self._status.reason)
        atexit.unregister(self._finish)

    async def _tidy_up(self) -> None:
        """Leave the file in order, and the housekeeping to another process."""
        try:
            await self._keeper.leave(self._wall())
        except sqlite3.Error as error:
            self._failed(error)

    # The flusher ------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        """Make sure that waiting observations are summed up."""
        if not self._start() or self._absorbing or len(self._queue) < ROWS or self._loop is None:
            return
        self._absorbing = True
        self._loop.call_soon(self._absorb)

    def _start(self) -> bool:
        """Have a flusher on the running loop; False when no loop runs: what was observed waits for one."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if loop is not self._loop:
            if self._loop is not None:
                self._database.retire()
            self._loop = loop
            self._alarm = asyncio.Event()
            self._turn = asyncio.Lock()
            self._absorbing = False
            self._flusher = None
        if not self._closed and (self._flusher is None or self._flusher.done()):
            self._flusher = loop.create_task(self._run(loop), name="smart-model-router statistics")
        return True

    async def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            timer = loop.call_later(self._interval, self._alarm.set)
            try:
                await self._alarm.wait()
                self._alarm.clear()
                async with self._turn:
                    await self._work()
            finally:
                timer.cancel()

    async def _work(self) -> bool:
        """Sum up, write, keep in order, as far as each is due; whether nothing is left to write."""
        while self._queue or self._ended:
            self._sum_up()
            await asyncio.sleep(0)
        now = self._monotonic()
        if now >= max(self._retry_at, self._write_at):
            try:
                await self._write(now)
            except (sqlite3.Error, ValueError, OSError, StoreUnavailableError) as error:
                self._failed(error)
        return self._unsure is None and not self._pending

    async def _write(self, now: float) -> None:
        if not self._database.is_open:
            await self._database.open()
            await self._database.run(statements.SETUP)
        await self._tell_past()
        full = self._keeper.wal_is_full and not self._closed  # what is left at the end has nowhere else to go
        if not full:
            for _ in range(self._pending.batches + (self._unsure is not None)):
                await self._write_one()
        wrote = self._monotonic()
        self._write_at = wrote + min(self._interval, _PACE * (wrote - now)) if wrote > now else 0.0
        await self._keeper.tick(self._monotonic, self._wall())
        if full:
            self._tell("its write-ahead log is full, because a reader holds on to a snapshot")
            return
        self._failures = 0
        self._tell("")

    async def _tell_past(self) -> None:
        """Before the first write: what this process observed the book knows already."""
        if self._remember is None or self._closed:
            return
        wall, now = self._wall(), self._monotonic()
        known = await self._database.call(lambda connection: read_past(connection, wall, now))
        remember, self._remember = self._remember, None
        for past in known:
            remember(past)
            await asyncio.sleep(0)  # a millisecond each, at most: requests go on in between

    async def _write_one(self) -> None:
        if self._unsure is None:
            self._number += 1
            self._unsure = self._pending.take(self._number)
        batch = self._unsure
        header = self._header(batch)
        await self._database.call(lambda connection: write(connection, batch, header))
        self._unsure = None
        self._acknowledged += batch.calls

    def _absorb(self) -> None:
        self._sum_up()
        if len(self._queue) >= ROWS and self._loop is not None:
            self._loop.call_soon(self._absorb)
        else:
            self._absorbing = False
            self._alarm.set()

    def _sum_up(self) -> None:
        queue, pending = self._queue, self._pending
        offset = self._wall() - self._monotonic()
        for _ in range(min(_CHUNK, len(queue))):
            observation = queue.popleft()
            try:
                pending.add(observation, max(0.0, observation.at + offset))
            except ValueError:
                self._queue_dropped += 1
        ended = self._ended
        for _ in range(min(_CHUNK, len(ended))):
            event = ended.popleft()
            own = (max(0.0, event.at + offset), event.request_id, event.seconds, event.ttft_seconds)
            pending.note("new_request", (*own, shared_values(event)))

    # What goes wrong --------------------------------------------------------------------------------------

    def _failed(self, error: Exception) -> None:
        """Try again later; the sums are kept."""
        self._failures += 1
        pause = min(_LONGEST_RETRY_SECONDS, self._interval * 2.0 ** min(self._failures, 16))
        self._retry_at = self._monotonic() + pause * random.uniform(0.5, 1.0)  # noqa: S311 - so that writers part
        if isinstance(error, sqlite3.Error):
            if is_busy(error) and self._failures < _TELLING_BUSY:
                return
            if is_corrupt(error):
                self._damaged = self._database.inode
            self._database.abandon(0.0)
        reason = error.reason if isinstance(error, StoreUnavailableError) else str(error)
        self._tell(reason or type(error).__name__)

    def _tell(self, reason: str) -> None:
        status = StoreStatus("degraded", reason) if reason else StoreStatus("ok")
        if status == self._status:
            return
        self._status = status
        if reason:
            _LOG.warning("statistics stay in memory: %s: %s", self._path, reason)
        else:
            _LOG.info("statistics reach %s again", self._path)
        if self._listener is not None:
            self._listener(reason)

    def _forked(self) -> None:
        """This is a copy of the process: what waits is the parent's to write."""
        self._database.forget()
        self._remember = None
        self._begin_anew()

    def _finish(self) -> None:
        """The program ends without closing the router: write what is left, without a loop."""
        while self._queue or self._ended:
            self._sum_up()
        self._database.abandon(_EXIT_BUSY_SECONDS)
        if self._unsure is None and not self._pending:
            return
        try:
            with closing(self._open(_EXIT_BUSY_SECONDS)) as connection:
                connection.executescript(statements.SETUP)
                while self._unsure is not None or self._pending:
                    if self._unsure is None:
                        self._number += 1
                        self._unsure = self._pending.take(self._number)
                    write(connection, self._unsure, self._header(self._unsure))
                    self._unsure = None
                wall = self._wall()
                connection.execute(statements.GIVE_CHORE, (wall, int(wall // 60) - RECENT_MINUTES))
                connection.executescript(statements.AGE)
                connection.executescript(statements.REFRESH)
        except (sqlite3.Error, OSError, StoreUnavailableError) as error:
            _LOG.warning("the last statistics are lost: %s", error)

    # Small change -----------------------------------------------------------------------------------------

    def _open(self, busy_seconds: float = BUSY_SECONDS) -> GuardedConnection:
        """On the thread of the connection."""
        if self._damaged is not None:
            set_aside(self._path, self._damaged)
            self._damaged = None
        return open_store(self._path, STATS_MIGRATIONS, busy_seconds=busy_seconds, filesystem=self._filesystem)

    def _header(self, batch: Batch) -> tuple[Any, ...]:
        return (
            self._writer,
            self._pid,
            self._started_at,
            self._wall(),
            batch.number,
            self._observed,
            self.stats_dropped,
        )

    def _wall_of(self, instant: float) -> float:
        return max(0.0, instant + self._wall() - self._monotonic())
