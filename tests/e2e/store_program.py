"""Programs that share a statistics file, each run as a process of its own by test_store_processes.py."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smart_model_router import SmartModelRouter
from smart_model_router.domain.events import AttemptFinished, Event
from smart_model_router.domain.outcome import Failure, FailureClass, Usage
from smart_model_router.testing import FakeProvider, FakeReply
from smart_model_router_stats.batched_store import BatchedStore
from smart_model_router_stats.postgres_server import StatsServer
from smart_model_router_stats.postgres_stats import PostgresStatsStore
from smart_model_router_stats.sqlite import SqliteStore
from tests.e2e.eventually import becomes
from tests.store_files import attempt

USAGE = Usage(10, 20, 6)
BODY = {"model": "smart", "messages": [{"role": "user", "content": "hello"}]}


def make_router(path: str, sink: Any = None) -> SmartModelRouter:
    """A router over two fake providers, one of which fails now and then, with its statistics in `path`."""
    reply = FakeReply(usage=USAGE)
    failing = [reply, reply, FakeReply(failure=Failure(FailureClass.REJECTED_BY_FALLBACK, "no"))]
    config = {
        "version": 1,
        "providers": {name: {"kind": "openai_compatible", "base_url": "http://fake.invalid"} for name in ("a", "b")},
        "models": {"smart": {"tiers": [{"targets": ["a/big"]}, {"targets": ["b/small"]}], "last_resort": []}},
        "store": {"stats_url" if path.startswith("postgresql:") else "path": path},
    }
    providers = {"a": FakeProvider(failing * 2_000), "b": FakeProvider(reply)}
    return SmartModelRouter.from_config(config, providers=providers, sinks=[sink] if sink else [])


def tell(value: object) -> None:
    """One line of JSON for the test."""
    sys.stdout.write(json.dumps(value) + "\n")


class Samples:
    """A sink that keeps what each attempt came to."""

    inline = True

    def __init__(self) -> None:
        self.kept: list[tuple[str, str | None, float]] = []

    def emit(self, event: Event) -> None:
        """Keep attempts."""
        if isinstance(event, AttemptFinished):
            failure = event.failure_class
            self.kept.append((event.target, None if failure is None else failure.value, event.seconds))


async def serve(path: str, count: str, out: str) -> None:
    """`count` calls through a router, closed at the end; every attempt is told in the file `out` as well."""
    sink = Samples()
    async with make_router(path, sink) as router:
        for _ in range(int(count) // 20):
            await asyncio.gather(*(router.chat(BODY) for _ in range(20)))
    Path(out).write_text(json.dumps(sink.kept))  # noqa: ASYNC240 - nothing else runs any more


async def leave(path: str, count: str) -> None:
    """Some calls through a router that nobody closes; says when the program had nothing more to do."""
    router = make_router(path)
    for _ in range(int(count)):
        await router.chat(BODY)
    assert path.startswith("postgresql:") or await becomes(Path(path).exists)
    for _ in range(int(count)):
        await router.chat(BODY)
    tell(time.monotonic())


def leave_loop(path: str, count: str) -> None:
    """The same on a loop that is closed without being told that tasks are left."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave(path, count))
    loop.close()


def opened(place: str) -> BatchedStore:
    """The store at a path, or at a URL."""
    if not place.startswith("postgresql:"):
        return SqliteStore(Path(place), interval=0.01)
    return PostgresStatsStore(StatsServer(place), interval=0.01)


async def write(path: str, count: str, target: str, out: str) -> None:
    """Observe and flush; add to the file `out` how many are acknowledged after each flush."""
    store = opened(path)
    with Path(out).open("a", buffering=1) as told:  # noqa: ASYNC230 - a line at a time, for who kills us
        for number in range(int(count)):
            store.observe(attempt(target, seconds=0.5 + number % 89, usage=USAGE))
            if number % 7 == 0:
                await store.flush()
                told.write(f"{store.acknowledged}\n")
        while not await store.flush():  # noqa: ASYNC110 - a server that is away takes nothing at the end either
            await asyncio.sleep(0.05)
        await store.aclose()
        told.write(f"{store.acknowledged}\n")


async def fork(path: str) -> None:
    """Observe, fork with work in the queue and the store open, and observe on both sides."""
    store = opened(path)
    for _ in range(10):
        store.observe(attempt("a/parent"))
    await store.flush()
    for _ in range(10):
        store.observe(attempt("a/parent"))
    child = os.fork()
    if child == 0:
        os._exit(run_in_child(store))
    _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - the loop has nothing else to do
    for _ in range(10):
        store.observe(attempt("a/parent"))
    await store.aclose()
    tell({"child": os.waitstatus_to_exitcode(status)})


def run_in_child(store: BatchedStore) -> int:
    """The forked side: a loop of its own, and the same store. 1 when it came with the parent's handle."""
    asyncio.events._set_running_loop(None)  # the parent's does not run here
    if isinstance(store, SqliteStore) and store.path in {
        descriptor.resolve() for descriptor in Path("/proc/self/fd").iterdir()
    }:
        return 1

    async def observe() -> None:
        for _ in range(7):
            store.observe(attempt("a/child"))
        await store.aclose()

    asyncio.run(observe())
    return 0


async def cramped(path: str, room: str) -> None:
    """A router on a disk that is full after so many bytes goes on serving, and says so."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), int(room)))
    store = SqliteStore(Path(path), interval=0.01)
    sent = 0
    while store.status.state == "ok":
        for _ in range(200):
            store.observe(attempt(f"a/m{sent}", seconds=0.5 + sent % 89))
            sent += 1
        await asyncio.sleep(0.01)
    served = 0
    for _ in range(200):
        store.observe(attempt())
        served += 1
        await asyncio.sleep(0)
    tell({"served": served, "reason": store.status.reason, "acknowledged": store.acknowledged})
    await store.aclose()


async def unwritable(path: str) -> None:
    """A router whose statistics file cannot be made serves, and says so."""
    await asyncio.to_thread(int)  # loads what could not be loaded from root's folders afterwards
    os.setuid(65_534)
    store = SqliteStore(Path(path))
    store.observe(attempt())
    tell({"flushed": await store.flush(), "reason": store.status.reason})
    await store.aclose()


PROGRAMS: dict[str, Callable[..., Any]] = {
    program.__name__: program for program in (serve, leave, leave_loop, write, fork, cramped, unwritable)
}

if __name__ == "__main__":
    logging.getLogger("smart_model_router").addHandler(logging.NullHandler())  # failures are meant to be, and many
    started = PROGRAMS[sys.argv[1]](*sys.argv[2:])
    if started is not None:
        asyncio.run(started)
