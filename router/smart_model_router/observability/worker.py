"""The parts that sinks share: a thread behind a bounded queue, batches of events, notes on open requests."""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from smart_model_router.domain.events import AttemptFinished, Event, RequestFinished, TargetRefused, WaitFinished
from smart_model_router.domain.fork_hooks import in_children
from smart_model_router.domain.ports import EventSink, SupportsBatches, SupportsClose, SupportsInline, SupportsSelection

_AT_ONCE = 128
"""Events that wait at most: about half a millisecond of the loop."""
_FREQUENT = frozenset((AttemptFinished, RequestFinished, TargetRefused, WaitFinished))
"""The events of ordinary requests; other events are rare and are handled at once."""


class Batcher:
    """Hands events to `handlers`, by type, in their order, in batches.

    A reader of the results calls `catch_up` first. Belongs to the router's loop.
    """

    inline = True

    def __init__(self, handlers: Mapping[type, Callable[[Any], None]]) -> None:
        self._handlers = handlers
        self._waiting: deque[Event] = deque()
        self._at_once = _AT_ONCE

    def emit(self, event: Event) -> None:
        """Keep the event until there are enough for a batch."""
        kind = type(event)
        if kind not in self._handlers:
            return
        waiting = self._waiting
        waiting.append(event)
        if len(waiting) >= self._at_once or kind not in _FREQUENT:
            self.catch_up()

    def stop_gathering(self) -> None:
        """Handle what waits, and every later event at once: nothing calls `catch_up` any more."""
        self.catch_up()
        self._at_once = 1

    def catch_up(self) -> None:
        """Handle the events that wait."""
        waiting, handlers = self._waiting, self._handlers
        while waiting:
            event = waiting.popleft()
            handlers[type(event)](event)


T = TypeVar("T")
REQUESTS = 4096
NOTES = 100


class OpenRequests(Generic[T]):
    """Notes by request. Beyond REQUESTS the oldest one is forgotten; of each the first NOTES are kept."""

    __slots__ = ("_notes",)

    def __init__(self) -> None:
        self._notes: dict[str, list[T]] = {}

    def note(self, request_id: str, what: T) -> None:
        """Remember a note for its request; the id "" is no request."""
        notes = self._notes
        known = notes.get(request_id)
        if known is not None:
            if len(known) < NOTES:
                known.append(what)
        elif request_id:
            notes[request_id] = [what]
            if len(notes) > REQUESTS:
                del notes[next(iter(notes))]

    def take(self, request_id: str) -> list[T]:
        """Return the notes of a request that has ended, and forget them."""
        return self._notes.pop(request_id, None) or []


QUEUE_LIMIT = 10_000
CLOSING_SECONDS = 1.0
"""Seconds for which the end of a router waits for a sink that is behind."""
_STEP_SECONDS = 0.01
_GATHER_SECONDS = 0.1
"""After a round the thread lets items collect: at any load it is woken ten times a second. Each waking takes the
interpreter lock from the loop, and that costs more than the work itself."""


class Worker(Generic[T]):
    """Calls `handle` with each item, in order, on a daemon thread that starts with the first one.

    At most `limit` items wait: beyond that the oldest are dropped and counted. An exception is counted, and the next
    item is handled. `on_caught_up` is called whenever the queue is empty again, `on_end` after the last item. A forked
    process begins with an empty queue and a thread of its own; a closed worker stays closed there.
    """

    def __init__(
        self,
        name: str,
        handle: Callable[[T], None],
        *,
        on_caught_up: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
        limit: int = QUEUE_LIMIT,
    ) -> None:
        self.name = name
        self.errors = 0
        self.dropped = 0
        self._handle = handle
        self._on_caught_up = on_caught_up
        self._on_end = on_end
        self._limit = limit
        self._closed = False
        self._begin_anew()
        in_children(self._begin_anew)
        atexit.register(self._finish)

    def _begin_anew(self) -> None:
        """Begin with no items and no thread: at the start, and in a forked process, where a lock may stay held."""
        self._queue: deque[T] = deque(maxlen=self._limit)
        self._wanted = threading.Event()
        self._rung = False
        """True when `wanted` is set or about to be: reading this is much cheaper, and it is read for every item."""
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._busy = False

    def put(self, item: T) -> None:
        """Queue an item; returns at once. After `close` it is dropped."""
        queue = self._queue
        if self._closed or len(queue) >= self._limit:
            self.dropped += 1
            if self._closed:
                return
        queue.append(item)
        if not self._rung:
            self._rung = True
            if self._thread is None:
                self._start()
            self._wanted.set()

    @property
    def idle(self) -> bool:
        """True when every queued item has been handled."""
        return not self._queue and not self._busy

    @property
    def ended(self) -> bool:
        """True when no thread runs: not yet, or no more after `close`."""
        return self._thread is None or not self._thread.is_alive()

    def close(self) -> None:
        """Accept no further item; queued ones are still handled, as long as the process lives. Safe to call twice."""
        if self._closed:
            return
        if self._thread is None and self._on_end is not None:
            self._start()
        self._closed = True
        self._closing.set()
        self._wanted.set()
        atexit.unregister(self._finish)

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name=f"smart-model-router {self.name}", daemon=True)
        thread.start()
        self._thread = thread

    def _finish(self) -> None:
        """The program ends without closing the router: queued items have a second.

        Where no thread runs none is started: from 3.12 on the interpreter refuses one that late.
        """
        if self._thread is None:
            self._closed = True
            self._catch_up()
            self._tell(self._on_end)
        else:
            self.close()
            self._thread.join(CLOSING_SECONDS)

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            self._busy = True
            self._rung = False  # before the queue is read: a later `put` sets `wanted` again
            self._catch_up()
            self._busy = False
            if self._closing.wait(_GATHER_SECONDS) and not self._queue:
                self._tell(self._on_end)
                return

    def _catch_up(self) -> None:
        queue, handle = self._queue, self._handle
        while queue:
            try:
                item = queue.popleft()
            except IndexError:  # dropped for a newer one in the meantime
                continue
            try:
                handle(item)
            except Exception:  # noqa: BLE001 - foreign code; its failure must not end the thread
                self.errors += 1
        self._tell(self._on_caught_up)

    def _tell(self, listener: Callable[[], None] | None) -> None:
        if listener is not None:
            try:
                listener()
            except Exception:  # noqa: BLE001 - as above
                self.errors += 1


@runtime_checkable
class HasWorker(Protocol):
    """A sink of the router's own that hands its work to a Worker."""

    @property
    def worker(self) -> object:
        """The Worker; another object in a foreign sink that happens to have the attribute."""
        ...


class QueuedSink:
    """A sink on a thread of its own (ports.EventSink): `caught_up` and `close` are called there, `wants` here."""

    inline = True
    """`emit` returns at once, whatever the sink behind it does."""

    def __init__(self, sink: EventSink) -> None:
        self.sink = sink
        self._wants = sink.wants if isinstance(sink, SupportsSelection) else None
        self.worker: Worker[Event] = Worker(
            type(sink).__name__,
            sink.emit,
            on_caught_up=sink.caught_up if isinstance(sink, SupportsBatches) else None,
            on_end=sink.close if isinstance(sink, SupportsClose) else None,
        )

    def emit(self, event: Event) -> None:
        """Queue the event, if the sink wants it."""
        if self._wants is None or self._wants(event):
            self.worker.put(event)


def kept_apart(sink: EventSink) -> EventSink:
    """Return the sink as the router may call it: behind a queue, unless it is inline."""
    return sink if isinstance(sink, SupportsInline) and sink.inline else QueuedSink(sink)


def workers_of(sinks: Sequence[EventSink]) -> Iterator[Worker[Any]]:
    """Yield the workers of the sinks that work behind a queue."""
    for sink in sinks:
        if isinstance(sink, HasWorker) and isinstance(worker := sink.worker, Worker):
            yield worker


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """The condition of a sink on a thread of its own: events on which it raised, and those it was too slow for."""

    name: str
    errors: int
    dropped: int


def statuses(sinks: Sequence[EventSink]) -> tuple[SinkStatus, ...]:
    """Every sink that works behind a queue."""
    return tuple(SinkStatus(worker.name, worker.errors, worker.dropped) for worker in workers_of(sinks))


async def close(sinks: Sequence[EventSink]) -> None:
    """Let sinks behind queues catch up and close, for at most CLOSING_SECONDS; one that hangs is left behind."""
    waiting = list(workers_of(sinks))
    for worker in waiting:
        worker.close()
    until = time.monotonic() + CLOSING_SECONDS
    while not all(worker.ended for worker in waiting) and time.monotonic() < until:  # noqa: ASYNC110 - threads
        await asyncio.sleep(_STEP_SECONDS)
