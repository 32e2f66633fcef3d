"""A thread with a bounded queue before it: what blocks, floods or raises there costs the request path nothing."""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from smart_model_router.events import Event
from smart_model_router.ports import EventSink

T = TypeVar("T")
QUEUE_LIMIT = 10_000
CLOSING_SECONDS = 1.0
"""How long the end of a router waits for a sink that is behind."""
_GATHER_SECONDS = 0.1
"""After a round the thread lets work gather: at any load it is woken ten times a second. Each waking takes the
interpreter away from the loop, and that costs more than what is done with it."""


class Worker(Generic[T]):
    """Calls `handle` with each item, in order, on a daemon thread that starts with the first one.

    At most `limit` items wait: beyond that the oldest are dropped and counted. An exception is counted, and the next
    item is handled. `caught_up` is called whenever nothing waits any more, `ended` when nothing will come any more. A
    forked process begins with an empty queue and a thread of its own.
    """

    def __init__(
        self,
        name: str,
        handle: Callable[[T], None],
        *,
        caught_up: Callable[[], None] | None = None,
        ended: Callable[[], None] | None = None,
        limit: int = QUEUE_LIMIT,
    ) -> None:
        self.name = name
        self.errors = 0
        self.dropped = 0
        self._handle = handle
        self._caught_up = caught_up
        self._ended = ended
        self._limit = limit
        self._begin_anew()
        atexit.register(self._finish)

    def _begin_anew(self) -> None:
        """Nothing waits and nobody works: at the start, and in a forked process, where a lock may be held for ever."""
        self._pid = os.getpid()
        self._queue: deque[T] = deque(maxlen=self._limit)
        self._wanted = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._busy = False

    def put(self, item: T) -> None:
        """Hand an item over; returns at once. After `close` it is dropped."""
        if self._pid != os.getpid():
            self._begin_anew()
        if self._closing.is_set():
            self.dropped += 1
            return
        if self._thread is None:
            self._start()
        if len(self._queue) >= self._limit:
            self.dropped += 1
        self._queue.append(item)
        if not self._wanted.is_set():
            self._wanted.set()

    @property
    def idle(self) -> bool:
        """Whether everything that was handed over has been handled."""
        return not self._queue and not self._busy

    @property
    def ended(self) -> bool:
        """Whether nobody works here: not yet, or, once it is closed, no more."""
        return self._thread is None or not self._thread.is_alive()

    def close(self) -> None:
        """Take nothing more; what waits is still handled, as long as the process lives."""
        if self._pid != os.getpid():
            self._begin_anew()
        if self._thread is None and self._ended is not None:
            self._start()
        self._closing.set()
        self._wanted.set()
        atexit.unregister(self._finish)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"smart-model-router {self.name}", daemon=True)
        self._thread.start()

    def _finish(self) -> None:
        """The program ends and nobody closed the router: what waits has a second."""
        self.close()
        if self._thread is not None:
            self._thread.join(CLOSING_SECONDS)

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
            self._tell(self._caught_up)
            self._busy = False
            if self._closing.wait(_GATHER_SECONDS) and not queue:
                self._tell(self._ended)
                return

    def _tell(self, listener: Callable[[], None] | None) -> None:
        if listener is not None:
            try:
                listener()
            except Exception:  # noqa: BLE001 - as above
                self.errors += 1


class ApartSink:
    """A sink on a thread of its own (ports.EventSink).

    One that gathers has a `caught_up`, one that opened something a `close`: both are called there, see Worker.
    """

    inline = True
    """This one returns at once, whatever the sink behind it does."""

    def __init__(self, sink: EventSink) -> None:
        self.sink = sink
        caught_up, close = getattr(sink, "caught_up", None), getattr(sink, "close", None)
        self.worker: Worker[Event] = Worker(type(sink).__name__, sink.emit, caught_up=caught_up, ended=close)

    def emit(self, event: Event) -> None:
        """Hand it over."""
        self.worker.put(event)


def kept_apart(sink: EventSink) -> EventSink:
    """The sink as the router may call it: behind a queue, unless it says (`inline = True`) that it returns at once."""
    return sink if getattr(sink, "inline", False) else ApartSink(sink)
