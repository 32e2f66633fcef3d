"""A thread with a bounded queue before it: what blocks, floods or raises there costs the request path nothing."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from smart_model_router.events import Event
from smart_model_router.ports import EventSink

T = TypeVar("T")
QUEUE_LIMIT = 10_000
CLOSING_SECONDS = 1.0
"""How long the end of a router waits for a sink that is behind."""
_GATHER_SECONDS = 0.02
"""After a round the thread lets work gather: at any load it is woken at most fifty times a second."""


class Worker(Generic[T]):
    """Calls `handle` with each item, in order, on a daemon thread that starts with the first one.

    At most `limit` items wait: beyond that the oldest are dropped and counted. An exception is counted, and the next
    item is handled. `caught_up` is called whenever nothing waits any more. A forked process begins with an empty queue
    and a thread of its own.
    """

    def __init__(
        self,
        name: str,
        handle: Callable[[T], None],
        *,
        caught_up: Callable[[], None] | None = None,
        limit: int = QUEUE_LIMIT,
    ) -> None:
        self.name = name
        self.errors = 0
        self.dropped = 0
        self._handle = handle
        self._caught_up = caught_up
        self._queue: deque[T] = deque(maxlen=limit)
        self._limit = limit
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._busy = False
        self._closed = False

    def put(self, item: T) -> None:
        """Hand an item over; returns at once. After `close` it is dropped."""
        if self._thread is None or self._pid != os.getpid():
            self._begin()
        if len(self._queue) >= self._limit or self._closed:
            self.dropped += 1
            if self._closed:
                return
        self._queue.append(item)
        if not self._wanted.is_set():
            self._wanted.set()

    @property
    def idle(self) -> bool:
        """Whether everything that was handed over has been handled."""
        return not self._queue and not self._busy

    def close(self) -> None:
        """Take nothing more; what waits is still handled, as long as the process lives."""
        self._closed = True
        self._wanted.set()

    def _begin(self) -> None:
        if self._pid != os.getpid():
            self._pid, self._queue, self._wanted = os.getpid(), deque(maxlen=self._limit), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"smart-model-router {self.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        queue, wanted = self._queue, self._wanted
        while True:
            wanted.wait()
            wanted.clear()
            self._busy = True
            while queue:
                try:
                    self._handle(queue.popleft())
                except IndexError:  # dropped for a newer one meanwhile
                    continue
                except Exception:  # noqa: BLE001 - somebody else's code, and nobody's reason to stop
                    self.errors += 1
            if self._caught_up is not None:
                try:
                    self._caught_up()
                except Exception:  # noqa: BLE001 - as above
                    self.errors += 1
            self._busy = False
            if self._closed:
                return
            time.sleep(_GATHER_SECONDS)  # noqa: TID251 - on a thread of its own


class ApartSink:
    """A sink on a thread of its own (ports.EventSink). One that gathers has a `caught_up`, see Worker."""

    inline = True
    """This one returns at once, whatever the sink behind it does."""

    def __init__(self, sink: EventSink) -> None:
        self.sink = sink
        self.worker: Worker[Event] = Worker(type(sink).__name__, sink.emit, caught_up=getattr(sink, "caught_up", None))

    def emit(self, event: Event) -> None:
        """Hand it over."""
        self.worker.put(event)

    def close(self) -> None:
        """Let the sink close what it opened, if it did."""
        close = getattr(self.sink, "close", None)
        if close is not None:
            close()


def kept_apart(sink: EventSink) -> EventSink:
    """The sink as the router may call it: behind a queue, unless it says (`inline = True`) that it returns at once."""
    return sink if getattr(sink, "inline", False) else ApartSink(sink)
