"""BatchedStore: observations are summed up in memory and written in batches; the same for a file and a server."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import random
import time
import uuid
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from smart_model_router.domain.events import RequestFinished
from smart_model_router.domain.fork_hooks import in_children
from smart_model_router_stats.delta import KEPT_EVENTS, Batch, Delta, clipped, event_row, shared_values
from smart_model_router_stats.open_db import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from smart_model_router.domain.events import AttemptFinished, Event
    from smart_model_router_stats.reading import Past

_LOG = logging.getLogger(__name__)

ROWS = 200
INTERVAL_SECONDS = 0.25
QUEUE_LIMIT = 10_000
CELL_LIMIT = 2_000
"""Sums of (target, minute) that wait while nothing can be written: 60 MB at most, when all targets are busy."""
_CHUNK = 300
"""Observations, and requests, summed up at a time: about a millisecond of the loop."""
_PACE = 10.0
"""Writing takes at most one part in so many of the time while more than an interval's worth comes in."""
_LONGEST_RETRY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """`ok` while observations are written. While degraded, they are summed up in memory; `reason` says why."""

    state: Literal["ok", "degraded"]
    reason: str = ""


Header = tuple[Any, ...]
"""The writer of a batch: id, process id, started_at, seen_at, number of the batch, observed, dropped."""


class BatchedStore(ABC):
    """Sums observations up in memory and writes the sums every `interval` seconds or 200 observations.

    Also an EventSink: state changes become v_events, requests v_requests; texts of prompts, answers and errors are
    never stored. Belongs to one loop at a time, as its router does. Nothing here fails a request: what cannot be
    written is said in `status` and in the log, and tried again.

    `name` is for people. `wall` gives seconds since the epoch; `monotonic` is the clock of the observations' instants.
    """

    errors: ClassVar[tuple[type[Exception], ...]] = (ValueError, OSError, StoreUnavailableError)
    """The errors of writing and reading, after which it is tried again."""

    def __init__(
        self,
        name: str,
        *,
        wall: Callable[[], float] = time.time,  # noqa: TID251 - stamps for people; no decision rests on them
        monotonic: Callable[[], float] = time.monotonic,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        self._name = name
        self._wall = wall
        self._monotonic = monotonic
        self._interval = interval
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
        """Given away to be written, and not known to be there."""
        self._number = 0
        self._observed = 0
        self._given_up = 0
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

    # The place that is written to -----------------------------------------------------------------------------

    @abstractmethod
    async def _connect(self) -> None:
        """Have it open. Raises one of `errors`, as every method here that is async."""

    @property
    @abstractmethod
    def _is_open(self) -> bool:
        """True while it is open."""

    @property
    def _has_past(self) -> bool:
        """False when nothing can have been written before, and nothing needs to be opened to know."""
        return True

    @abstractmethod
    async def _read_past(self, wall: float, now: float) -> Sequence[Past]:
        """Read every target's past, `now` being the instant that is `wall` seconds since the epoch."""

    @abstractmethod
    async def _put(self, batch: Batch, header: Header) -> bool:
        """Write a batch, whole or not at all; one that is there already changes nothing. False: it never can be."""

    @property
    def _held_back(self) -> str:
        """The reason why nothing may be written now, "" when there is none."""
        return ""

    @abstractmethod
    async def _keep_in_order(self) -> None:
        """Do what is due of the housekeeping."""

    @abstractmethod
    async def _leave(self) -> None:
        """Leave everything in order before the end."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Close it; safe to call twice."""

    @abstractmethod
    def _put_now(self, batches: Iterator[tuple[Batch, Header]]) -> None:
        """At the end of the program, with no loop: write these, each as `_put` does. Blocks for a few seconds at most.

        Each counts as written when the next one is asked for.
        """

    @abstractmethod
    def _after(self, error: Exception) -> str | None:
        """Get ready to try again after an error. Returns the reason, None while it is not worth telling."""

    def _begin(self) -> None:  # noqa: B027 - as below
        """A loop runs, and will soon write. Returns at once."""

    def _change_loop(self) -> None:  # noqa: B027 - not every place has something of the loop
        """Let go of what belongs to the loop before."""

    def _forget(self) -> None:  # noqa: B027 - as above
        """In a forked process: let go of what is the parent's."""

    # Public ---------------------------------------------------------------------------------------------------

    @property
    def status(self) -> StoreStatus:
        """The condition: ok, or degraded with the reason."""
        return self._status

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call `listener` whenever the status changes: with the reason, or "" when all is well again."""
        self._listener = listener

    def on_past(self, listener: Callable[[Past], None]) -> None:
        """Tell `listener`, once, what is known of before this process wrote anything, one target at a time.

        Soon where a loop runs, else after the first observation; as soon as it can be read.
        """
        self._remember = listener
        if self._has_past and self._start():
            self._alarm.set()

    @property
    def observed(self) -> int:
        """The number of observations of this process."""
        return self._observed

    @property
    def acknowledged(self) -> int:
        """The number of them that are written: those survive any end of the process."""
        return self._acknowledged

    @property
    def stats_dropped(self) -> int:
        """The number of them that were given up, because no place and no memory could take them."""
        return self._given_up + self._pending.lost

    def observe(self, observation: AttemptFinished) -> None:
        """Take one observation; returns at once. After `aclose` it is dropped."""
        if self._closed:
            return
        queue = self._queue
        if len(queue) == QUEUE_LIMIT:
            self._given_up += 1
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
        """Write what was observed until now; True when all of it is written."""
        self._start()
        async with self._turn:
            self._retry_at = self._write_at = 0.0
            return await self._work()

    async def aclose(self) -> None:
        """Write what is left, leave the store in order, and let go of it. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self._start()
        if self._flusher is not None:
            self._flusher.cancel()
            await asyncio.wait([self._flusher])
        async with self._turn:
            self._retry_at = self._write_at = 0.0
            if self._has_more or self._queue or self._ended:
                await self._work()
            if self._is_open:
                await self._tidy_up()
            await self._disconnect()
        if self._observed > self._acknowledged + self.stats_dropped:
            _LOG.warning("the last statistics are lost: %s: %s", self._name, self._status.reason)
        atexit.unregister(self._finish)

    async def _tidy_up(self) -> None:
        try:
            await self._leave()
        except self.errors as error:
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
                self._change_loop()
            self._loop = loop
            self._alarm = asyncio.Event()
            self._turn = asyncio.Lock()
            self._absorbing = False
            self._flusher = None
        if not self._closed and (self._flusher is None or self._flusher.done()):
            self._begin()
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
            except self.errors as error:
                self._failed(error)
        return not self._has_more

    @property
    def _has_more(self) -> bool:
        """True while something that was summed up is left to write."""
        return self._unsure is not None or bool(self._pending)

    async def _write(self, now: float) -> None:
        await self._connect()
        await self._tell_past()
        held_back = self._held_back if not self._closed else ""  # what is left at the end has nowhere else to go
        if not held_back:
            for _ in range(self._pending.batches + (self._unsure is not None)):
                await self._write_one()
        wrote = self._monotonic()
        self._write_at = wrote + min(self._interval, _PACE * (wrote - now)) if wrote > now else 0.0
        await self._keep_in_order()
        if held_back:
            self._tell(held_back)
            return
        self._failures = 0
        self._tell("")

    async def _tell_past(self) -> None:
        """Before the first write: what this process observed the book knows already."""
        if self._remember is None or self._closed:
            return
        wall, now = self._wall(), self._monotonic()
        known = await self._read_past(wall, now)
        remember, self._remember = self._remember, None
        for past in known:
            remember(past)
            await asyncio.sleep(0)  # a millisecond each, at most: requests go on in between

    async def _write_one(self) -> None:
        batch = self._next()
        written = await self._put(batch, self._header(batch))
        self._unsure = None
        if written:
            self._acknowledged += batch.calls
        else:
            self._given_up += batch.calls

    def _next(self) -> Batch:
        if self._unsure is None:
            self._number += 1
            self._unsure = self._pending.take(self._number)
        return self._unsure

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
                self._given_up += 1
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
        reason = self._after(error)
        if reason is not None:
            self._tell(reason or type(error).__name__)

    def _tell(self, reason: str) -> None:
        status = StoreStatus("degraded", reason) if reason else StoreStatus("ok")
        if status == self._status:
            return
        self._status = status
        if reason:
            _LOG.warning("statistics stay in memory: %s: %s", self._name, reason)
        else:
            _LOG.info("statistics reach %s again", self._name)
        if self._listener is not None:
            self._listener(reason)

    def _forked(self) -> None:
        """This is a copy of the process: what waits is the parent's to write."""
        self._forget()
        self._remember = None
        self._begin_anew()

    def _finish(self) -> None:
        """The program ends without closing the router: write what is left, without a loop."""
        while self._queue or self._ended:
            self._sum_up()
        try:
            self._put_now(self._left())
        except self.errors as error:
            _LOG.warning("the last statistics are lost: %s: %s", self._name, self._after(error) or error)

    def _left(self) -> Iterator[tuple[Batch, Header]]:
        """Yield all that is left to write; each batch counts as written when the next one is asked for."""
        while self._has_more:
            batch = self._next()
            yield batch, self._header(batch)
            self._unsure = None

    def _header(self, batch: Batch) -> Header:
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
