"""A sink that raises, blocks or floods harms nobody, and is counted."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.events import Event, RequestFinished
from smart_model_router.flow import shutdown
from smart_model_router.observability.worker import SinkStatus, Worker
from smart_model_router.testing import FakeProvider
from tests.e2e.eventually import PATIENCE
from tests.world import BODY

CONFIG: dict[str, Any] = {
    "version": 1,
    "providers": {"a": {"kind": "openai_compatible", "base_url": "http://fake.invalid/v1"}},
    "models": {"smart": {"tiers": [{"targets": ["a/big"]}], "last_resort": []}},
}


class Raising:
    """A sink that raises at everything."""

    def emit(self, event: Event) -> None:
        raise OSError("full")


class Blocking:
    """A sink that takes the first event and never comes back."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def emit(self, event: Event) -> None:
        self.released.wait()


class Collecting:
    """A sink that is well."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.threads: set[str] = set()

    def emit(self, event: Event) -> None:
        self.threads.add(threading.current_thread().name)
        if isinstance(event, RequestFinished):
            self.requests.append(event.request_id)


class Closing(Collecting):
    """A sink that opened something."""

    def __init__(self, how: Callable[[], object] = bool) -> None:
        super().__init__()
        self.closed_by: list[str] = []
        self._how = how

    def close(self) -> None:
        self.closed_by.append(threading.current_thread().name)
        self._how()


def router(*sinks: Any) -> SmartModelRouter:
    """A router with these sinks."""
    return SmartModelRouter.from_config(CONFIG, providers={"a": FakeProvider()}, sinks=sinks)


@pytest.mark.asyncio
async def test_sinks_that_raise_or_block_are_isolated_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are answered, the sink beside them hears everything, and the end does not wait for what hangs."""
    monkeypatch.setattr(shutdown, "CLOSE_SECONDS", 5 * PATIENCE)  # the worker has a bound of its own
    blocking, good = Blocking(), Collecting()
    made = router(Raising(), blocking, good)
    for _ in range(20):
        assert (await made.chat(BODY)).report.target == "a/big"
    began = time.monotonic()
    await made.aclose()
    assert time.monotonic() - began < PATIENCE
    assert len(good.requests) == 20
    known = {status.name: status for status in made.monitor.sinks()}
    assert known["Raising"] == SinkStatus("Raising", errors=40, dropped=0)
    assert known["Collecting"] == SinkStatus("Collecting", errors=0, dropped=0)
    blocking.released.set()


@pytest.mark.asyncio
async def test_a_sink_whose_close_raises_or_blocks_keeps_no_other_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is closed on its own thread, also one that never heard anything; the end does not wait for what hangs."""
    monkeypatch.setattr(shutdown, "CLOSE_SECONDS", 5 * PATIENCE)  # the worker has a bound of its own
    released = threading.Event()

    def fail() -> None:
        raise OSError("full")

    raising, blocking, good = Closing(fail), Closing(released.wait), Closing()
    made = router(raising, blocking, good)
    began = time.monotonic()
    await made.aclose()
    assert time.monotonic() - began < PATIENCE
    assert [len(sink.closed_by) for sink in (raising, blocking, good)] == [1, 1, 1]
    assert good.closed_by == ["smart-model-router Closing"]
    assert [status.errors for status in made.monitor.sinks()] == [1, 0, 0]
    released.set()


UNCLOSED = """
from smart_model_router.flow import shutdown
from smart_model_router.observability.worker import Worker
worker = Worker("told", print)
worker.put("the last word")
other = Worker("other", print)
"""
FORKED = """
import os, time
from smart_model_router.flow import shutdown
from smart_model_router.observability.worker import Worker
worker = Worker("forked", lambda text: print(text, os.getpid() == parent, flush=True))
parent = os.getpid()
worker.put("before")
while not worker.idle:
    time.sleep(0.01)
shut = Worker("shut", print, on_end=lambda: print("closed", os.getpid() == parent, flush=True))
shut.close()
while not shut.ended:
    time.sleep(0.01)
child = os.fork()
if not child:
    shut.put("after")
    shut.close()
    worker.put("after")
    worker.close()
    while not worker.ended:
        time.sleep(0.01)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


NO_THREADS = """
import atexit, threading
from smart_model_router.flow import shutdown
from smart_model_router.observability.worker import Worker

def refuse(self):
    raise RuntimeError("can't create new thread at interpreter shutdown")

atexit.register(print, "the end")
worker = Worker("told", print, on_caught_up=lambda: print("caught up"), on_end=lambda: print("closed"))
atexit.register(setattr, threading.Thread, "start", refuse)
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (UNCLOSED, ["the last word"]),
        (NO_THREADS, ["caught up", "closed", "the end"]),
        (FORKED, ["before True", "closed True", "after False", "0"]),
    ],
    ids=["a program that closes nothing", "an interpreter that starts no thread any more", "a forked process"],
)
def test_what_was_handed_over_is_told(program: str, said: list[str]) -> None:
    """By a program that ends without closing anything, and by a child on a thread of its own.

    What a parent had closed stays closed in its child.
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == said
    assert done.stderr == ""


@pytest.mark.asyncio
async def test_a_sink_is_called_on_a_thread_of_its_own() -> None:
    """Not on the loop; one that promises to return at once is called there."""
    apart, inline = Collecting(), Collecting()
    inline.inline = True  # type: ignore[attr-defined]  # as a class would have it
    made = router(apart, inline)
    await made.chat(BODY)
    await made.aclose()
    assert inline.threads == {threading.current_thread().name}
    assert apart.threads == {"smart-model-router Collecting"}


@pytest.mark.asyncio
async def test_a_sink_gets_what_it_wants() -> None:
    """What it passes over does not wait in its queue."""

    class Choosing(Collecting):
        def __init__(self) -> None:
            super().__init__()
            self.heard: list[Event] = []

        def wants(self, event: Event) -> bool:
            return isinstance(event, RequestFinished)

        def emit(self, event: Event) -> None:
            self.heard.append(event)

    sink = Choosing()
    made = router(sink)
    await made.chat(BODY)
    await made.aclose()
    assert [type(event) for event in sink.heard] == [RequestFinished]


def test_a_flood_drops_the_oldest_and_counts_them() -> None:
    """A queue of ten that nobody reads keeps the newest ten."""
    released, handled = threading.Event(), list[int]()

    def handle(item: int) -> None:
        released.wait(PATIENCE)
        handled.append(item)

    worker = Worker("flood", handle, limit=10)
    for item in range(1_000):
        worker.put(item)
    released.set()
    until = time.monotonic() + PATIENCE
    while not worker.idle and time.monotonic() < until:
        time.sleep(0.001)  # noqa: TID251 - another thread's progress
    worker.close()
    assert handled[-10:] == list(range(990, 1_000))
    assert worker.dropped == 1_000 - len(handled)
    assert worker.dropped >= 980


def test_a_worker_that_has_nothing_left_says_so_before_it_is_idle() -> None:
    """What was gathered is out when the queue is called empty; a failure then is counted like any other."""
    told = list[int]()

    def caught_up() -> None:
        told.append(len(told))
        raise OSError("full")

    worker = Worker[int]("gathering", lambda _: None, on_caught_up=caught_up)
    worker.put(1)
    worker.close()
    assert worker._thread is not None
    worker._thread.join(PATIENCE)
    assert worker.idle
    assert told
    assert worker.errors == len(told)


def test_a_closed_worker_takes_nothing_and_ends() -> None:
    """What comes after the end is counted as dropped; the thread is gone."""
    handled = list[int]()
    worker = Worker("closing", handled.append)
    worker.put(1)
    worker.close()
    assert worker._thread is not None
    worker._thread.join(PATIENCE)
    assert not worker._thread.is_alive()
    worker.put(2)
    assert handled == [1]
    assert worker.dropped == 1


@pytest.mark.parametrize("name", ["log", "traces"])
def test_an_extra_that_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for and not installed is a configuration error that says how to get it."""
    from smart_model_router.domain.errors import ConfigurationError

    sections = {"log": {"log": {"to": "stderr"}}, "traces": {"traces": {"enabled": True}}}
    module = {"log": "smart_model_router.observability.log", "traces": "smart_model_router.observability.spans"}[name]
    package = {"log": "structlog", "traces": "opentelemetry"}[name]
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigurationError, match=r"pip install 'smart-model-router\["):
        SmartModelRouter.from_config({**CONFIG, "telemetry": sections[name]}, providers={"a": FakeProvider()})
