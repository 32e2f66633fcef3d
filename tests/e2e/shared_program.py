"""Programs that share a state file, each run as a process of its own by test_shared_processes.py."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from smart_model_router import SmartModelRouter, SmartRouterError
from smart_model_router.events import Event, ProbeStarted
from smart_model_router.outcome import Failure, FailureClass
from smart_model_router.runtime import boot
from smart_model_router.shared import Here
from smart_model_router.testing import FakeProvider, FakeReply

DOWN = FakeReply(failure=Failure(FailureClass.SERVER_ERROR, "500", status=500))


def later(seconds: float) -> None:
    """Let this process believe that so much more time has passed since the boot."""
    real = boot.here

    def shifted() -> Here:
        now = real()
        return Here(now.boot, now.boottime + seconds, now.wall + seconds)

    vars(importlib.import_module("smart_model_router.assembly"))["here"] = shifted


class Probes:
    """A sink that keeps the targets that were probed."""

    def __init__(self) -> None:
        self.targets: list[str] = []

    def emit(self, event: Event) -> None:
        """Keep probes."""
        if isinstance(event, ProbeStarted):
            self.targets.append(event.target)


def make_router(
    path: str, providers: Mapping[str, FakeProvider], sink: Probes | None = None, **store: Any
) -> SmartModelRouter:
    """A router that has one model for each provider, with `spare` behind it."""
    spare = {"spare": FakeProvider()}
    names = [*providers, "spare"]
    config = {
        "version": 1,
        "providers": {name: {"kind": "openai_compatible", "base_url": "http://fake.invalid"} for name in names},
        "models": {
            name: {"tiers": [{"targets": [f"{name}/m"]}, {"targets": ["spare/m"]}], "last_resort": []}
            for name in providers
        },
        "store": {"path": path, **store},
    }
    sinks = [sink] if sink is not None else []
    return SmartModelRouter.from_config(config, providers={**providers, **spare}, sinks=sinks)


def tell(value: object) -> None:
    """One line of JSON for the test."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def ask(model: str) -> dict[str, Any]:
    """A request."""
    return {"model": model, "messages": [{"role": "user", "content": "hello"}]}


async def fail(path: str, *names: str) -> None:
    """Five failures of each: their breakers open, and this process ends."""
    async with make_router(path, {name: FakeProvider(DOWN) for name in names}) as router:
        await asyncio.gather(*(router.chat(ask(name)) for name in names for _ in range(5)))


async def race(path: str, rounds: str, seconds: str) -> None:
    """At every tenth of a second three requests to the next breaker that is due; what was probed, at the end.

    The instant of the first is read from the input.
    """
    later(float(seconds))
    sink = Probes()
    names = [f"t{number}" for number in range(int(rounds))]
    async with make_router(path, {name: FakeProvider(FakeReply(seconds=0.05)) for name in names}, sink) as router:
        tell("ready")
        start_at = float(await asyncio.to_thread(sys.stdin.readline))
        for number, name in enumerate(names):
            await asyncio.sleep(max(0.0, start_at + 0.1 * number - time.monotonic()))
            await asyncio.gather(*(router.chat(ask(name)) for _ in range(3)))
    tell(sink.targets)


async def probe(path: str, name: str, seconds: str, lasts: str) -> None:
    """One request to a target that is due; its answer takes `lasts` seconds. Told before and after."""
    later(float(seconds))
    sink = Probes()
    async with make_router(path, {name: FakeProvider(FakeReply(seconds=float(lasts)))}, sink) as router:
        request = asyncio.create_task(router.chat(ask(name)))
        await asyncio.sleep(0.5)
        tell(sink.targets)
        await request
        await asyncio.sleep(1.5)
        tell(router.targets()[0].state)


async def reopen(path: str, name: str, seconds: str) -> None:
    """One request to a target that is due, and it fails; the state that its breaker is in then."""
    later(float(seconds))
    async with make_router(path, {name: FakeProvider(DOWN)}) as router:
        await router.chat(ask(name))
        tell(router.targets()[0].state)


async def keyed(path: str, key: str) -> None:
    """Five failures of a target that has a key."""
    config = {
        "version": 1,
        "providers": {"t": {"kind": "openai_compatible", "base_url": "http://fake.invalid", "api_key": key}},
        "models": {"t": {"tiers": [{"targets": ["t/m"]}], "last_resort": []}},
        "routing": {"max_wait": "1ms"},
        "store": {"path": path},
    }
    async with SmartModelRouter.from_config(config, providers={"t": FakeProvider(DOWN)}) as router:
        await asyncio.gather(*(router.chat(ask("t")) for _ in range(5)), return_exceptions=True)


def fork(path: str) -> None:
    """Use a router, fork, let the child open a breaker, and see on a second loop that it is open here as well."""
    provider = FakeProvider()
    router = make_router(path, {"a": provider})

    async def once() -> None:
        await router.chat(ask("a"))
        await asyncio.sleep(0.5)

    async def fail_often() -> None:
        provider.set(DOWN)
        await asyncio.gather(*(router.chat(ask("a")) for _ in range(5)))
        await router.aclose()

    async def state() -> str:
        await router.chat(ask("a"))
        await asyncio.sleep(1.0)
        found = router.targets()[0].state
        await router.aclose()
        return found

    asyncio.run(once())
    child = os.fork()
    if child == 0:
        asyncio.run(fail_often())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    tell({"child": os.waitstatus_to_exitcode(status), "parent": asyncio.run(state())})


async def look(path: str, name: str) -> None:
    """What a new process knows of a target, before it has sent anything."""
    async with make_router(path, {name: FakeProvider()}) as router:
        status = router.targets()[0]
        tell([status.state, status.refusal, round(status.retry_after or 0.0, 1), round(status.success_rate, 3)])


async def serve(path: str, seconds: str) -> None:
    """Requests for so long, over a target that works; how long each took, and what was said of the store."""
    events: list[dict[str, Any]] = []

    class Listener:
        def emit(self, event: Event) -> None:
            if type(event).__name__ == "StoreChanged":
                events.append({"store": getattr(event, "store", ""), "degraded": getattr(event, "degraded", None)})

    taken = []
    async with make_router(path, {"a": FakeProvider()}, Listener()) as router:  # type: ignore[arg-type]
        tell("ready")
        until = time.monotonic() + float(seconds)
        while time.monotonic() < until:
            began = time.perf_counter()
            await router.chat(ask("a"))
            taken.append(time.perf_counter() - began)
            await asyncio.sleep(0.002)
        taken.sort()
        p99 = taken[int(0.99 * len(taken))]
        tell({"p99": p99, "slowest": taken[-1], "calls": len(taken), "events": events})


async def read_only(path: str, seconds: str) -> None:
    """`serve` as a user who may read the files and write none of them."""
    with tempfile.TemporaryDirectory() as folder:  # loads what could not be loaded from root's folders afterwards
        async with make_router(f"{folder}/stats.db", {"a": FakeProvider(DOWN)}) as router:
            await router.chat(ask("a"))
            await asyncio.gather(asyncio.to_thread(int), asyncio.sleep(0.5))
    os.setgid(65_534)
    os.setuid(65_534)
    await serve(path, seconds)


async def limited(path: str, url: str, seconds: str) -> None:
    """Two workers for so long against a provider that counts; how often it refused this process."""
    config = {
        "version": 1,
        "providers": {"p": {"kind": "openai", "base_url": url, "api_key": "k", "bulkhead": 50}},
        "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
        "routing": {"max_wait": "120s"},
        "store": {"path": path},
    }
    async with SmartModelRouter.from_config(config) as router:

        async def work() -> None:
            while True:
                await router.chat(ask("smart"))

        workers = [asyncio.create_task(work()) for _ in range(2)]
        await asyncio.sleep(float(seconds))
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        failures = router.stats().targets["p/m"].failures
        tell({"refused": failures.get(FailureClass.RATE_LIMITED, 0)})


PROGRAMS: dict[str, Callable[..., Any]] = {
    program.__name__: program for program in (fail, race, probe, reopen, keyed, fork, look, serve, read_only, limited)
}

if __name__ == "__main__":
    try:
        started = PROGRAMS[sys.argv[1]](*sys.argv[2:])
        if started is not None:
            asyncio.run(started)
    except SmartRouterError as error:
        tell({"error": str(error)})
