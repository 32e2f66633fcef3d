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
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from smart_model_router import SmartModelRouter, SmartRouterError
from smart_model_router.config import GatewayKeyConfig, Secret
from smart_model_router.domain.events import Event, ProbeStarted, StoreChanged
from smart_model_router.domain.outcome import Failure, FailureClass, Outcome
from smart_model_router.domain.ports import EventSink, ProviderCall
from smart_model_router.domain.shared_state import ClockReading
from smart_model_router.flow.clock import here
from smart_model_router.gateway.client_keys import KeyRing
from smart_model_router.http_api import ProblemError
from smart_model_router.testing import FakeProvider, FakeReply
from smart_model_router_stats.sqlite_file import SqliteFile
from tests.e2e.eventually import PATIENCE, becomes

DOWN = FakeReply(failure=Failure(FailureClass.SERVER_ERROR, "500", status=500))


def stand_at(boottime: str) -> None:
    """Stop the clocks that all processes have in common at this instant: how fast the machine is changes nothing."""
    real = here()
    now = ClockReading(real.boot, float(boottime), real.wall + float(boottime) - real.boottime)
    tell_time(lambda: now)


def tell_time(clock: Callable[[], ClockReading]) -> None:
    """Let this clock be the one that processes share, in a file and on a server."""

    class Told:
        """In the place of the server's clock."""

        far = 0.0

        def __init__(self, *_: object) -> None:
            """Measures nothing."""

        def __call__(self) -> ClockReading:
            return clock()

        def heard(self, epoch: str, at: float, sent: float, received: float) -> bool:
            """The server's clock is not listened to."""
            return False

    vars(importlib.import_module("smart_model_router.assembly"))["here"] = clock
    vars(importlib.import_module("smart_model_router_stats.server_clock"))["ServerClock"] = Told


def kept_at(where: str) -> dict[str, Any]:
    """The section `store` for a file, or for a server."""
    return {"shared_url": where} if "://" in where else {"path": where}


def trust_the_store() -> None:
    """Wait for the store however slow the machine is: a store that does not answer is the subject of other tests."""
    vars(importlib.import_module("smart_model_router.coordination.store_health"))["SLOW_SECONDS"] = PATIENCE
    vars(importlib.import_module("smart_model_router_stats.shared_sqlite"))["_BLOCKING_SECONDS"] = PATIENCE
    server_state = vars(importlib.import_module("smart_model_router_stats.shared_optimistic"))
    server_state["_BLOCKING_SECONDS"] = PATIENCE
    for kind in ("valkey", "postgres"):
        vars(importlib.import_module(f"smart_model_router_stats.shared_{kind}"))["_ANSWER_SECONDS"] = PATIENCE
    SqliteFile.opened.__defaults__ = (PATIENCE,)


class AnswersWhenTold(FakeProvider):
    """Answers once this process's input has ended."""

    async def call(self, call: ProviderCall) -> Outcome:
        """Wait for the end of the input."""
        await asyncio.to_thread(sys.stdin.read)
        return await super().call(call)


class Probes:
    """A sink that keeps the targets that were probed."""

    def __init__(self) -> None:
        self.targets: list[str] = []

    def emit(self, event: Event) -> None:
        """Keep probes."""
        if isinstance(event, ProbeStarted):
            self.targets.append(event.target)


def make_router(
    path: str, providers: Mapping[str, FakeProvider], sink: EventSink | None = None, **store: Any
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
        "resilience": {"patience": {"minimum": "600s"}},  # a probe ends when the test says so
        "store": {**kept_at(path), **store},
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


async def race(path: str, rounds: str, boottime: str) -> None:
    """At every tenth of a second three requests to the next breaker that is due; what was probed, at the end.

    The instant of the first is read from the input. A probe that is granted too late for its request is made by the
    next one, so there are requests until all breakers are closed.
    """
    stand_at(boottime)
    trust_the_store()
    sink = Probes()
    names = [f"t{number}" for number in range(int(rounds))]
    async with make_router(path, {name: FakeProvider(FakeReply(seconds=0.05)) for name in names}, sink) as router:
        tell("ready")
        start_at = float(await asyncio.to_thread(sys.stdin.readline))
        for number, name in enumerate(names):
            await asyncio.sleep(max(0.0, start_at + 0.1 * number - time.monotonic()))
            await asyncio.gather(*(router.chat(ask(name)) for _ in range(3)))
        end = time.monotonic() + PATIENCE
        while names and time.monotonic() < end:
            names = [name for name in names if state_of(router, name) != "closed"]
            await asyncio.gather(*(router.chat(ask(name)) for name in names))
            await asyncio.sleep(0.1)
    tell(sink.targets)


def state_of(router: SmartModelRouter, name: str) -> str:
    """The state of its target's breaker."""
    return next(target.state for target in router.targets() if target.id == f"{name}/m")


async def ask_until_probed(router: SmartModelRouter, name: str, sink: Probes) -> asyncio.Task[Any]:
    """Requests, until one of them probes; that one."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        request = asyncio.create_task(router.chat(ask(name)))
        probed = lambda: bool(sink.targets) or request.done()  # noqa: B023, E731 - called in this round only
        assert await becomes(probed)
        if sink.targets:
            return request
        await asyncio.sleep(0.02)
    raise TimeoutError(name)


async def probe(path: str, name: str, boottime: str, wanted: str) -> None:
    """Probe a target that is due, and let the answer come when the input ends.

    Tells what it probed, and then the state of the breaker, once that is `wanted`.
    """
    stand_at(boottime)
    trust_the_store()
    sink = Probes()
    async with make_router(path, {name: AnswersWhenTold()}, sink) as router:
        request = await ask_until_probed(router, name, sink)
        tell(sink.targets)
        await request
        await becomes(lambda: state_of(router, name) == wanted)
        tell(state_of(router, name))


async def refrain(path: str, name: str, boottime: str) -> None:
    """Twenty requests to a target that another process probes. Tells what it probed, and when the breaker closes."""
    stand_at(boottime)
    trust_the_store()
    sink = Probes()
    async with make_router(path, {name: FakeProvider()}, sink) as router:
        for _ in range(20):
            await router.chat(ask(name))
            await asyncio.sleep(0.02)
        tell(sink.targets)
        await becomes(lambda: state_of(router, name) == "closed")
        tell(state_of(router, name))


async def reopen(path: str, name: str, boottime: str) -> None:
    """Probe a target that is due, and fail; the state that its breaker is in then."""
    stand_at(boottime)
    trust_the_store()
    sink = Probes()
    async with make_router(path, {name: FakeProvider(DOWN)}, sink) as router:
        await (await ask_until_probed(router, name, sink))
        tell(state_of(router, name))


async def keyed(path: str, key: str) -> None:
    """Five failures of a target that has a key."""
    config = {
        "version": 1,
        "providers": {"t": {"kind": "openai_compatible", "base_url": "http://fake.invalid", "api_key": key}},
        "models": {"t": {"tiers": [{"targets": ["t/m"]}], "last_resort": []}},
        "routing": {"max_wait": "1ms"},
        "store": kept_at(path),
    }
    async with SmartModelRouter.from_config(config, providers={"t": FakeProvider(DOWN)}) as router:
        await asyncio.gather(*(router.chat(ask("t")) for _ in range(5)), return_exceptions=True)


def fork(path: str) -> None:
    """Use a router, fork, let the child open a breaker, and see on a second loop that it is open here as well."""
    provider = FakeProvider()
    router = make_router(path, {"a": provider})

    async def once() -> None:
        await router.chat(ask("a"))
        await becomes(Path(path).with_name("state.db").exists)

    async def fail_often() -> None:
        provider.set(DOWN)
        await asyncio.gather(*(router.chat(ask("a")) for _ in range(5)))
        await router.aclose()

    async def state() -> str:
        await router.chat(ask("a"))
        await becomes(lambda: state_of(router, "a") != "closed")
        found = state_of(router, "a")
        await router.aclose()
        return found

    asyncio.run(once())
    child = os.fork()
    if child == 0:
        asyncio.run(fail_often())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    tell({"child": os.waitstatus_to_exitcode(status), "parent": asyncio.run(state())})


async def look(path: str, name: str, boottime: str) -> None:
    """What a new process knows of a target, before it has sent anything."""
    stand_at(boottime)
    async with make_router(path, {name: FakeProvider()}) as router:
        status = router.targets()[0]
        tell([status.state, status.refusal, round(status.retry_after or 0.0, 1), status.success_rate])


async def serve(path: str) -> None:
    """Requests over a target that works, one after the other.

    For each line of the input a hundred more have to be served; then it tells what was said of the stores until then.
    """
    events: list[list[Any]] = []

    class Listener:
        def emit(self, event: Event) -> None:
            if isinstance(event, StoreChanged):
                events.append([event.store, event.degraded])

    async with make_router(path, {"a": FakeProvider()}, Listener()) as router:
        while await asyncio.to_thread(sys.stdin.readline):
            for _ in range(100):
                await router.chat(ask("a"))
                await asyncio.sleep(0.002)
            tell(events)


async def read_only(path: str) -> None:
    """`serve` as a user who may read the files and write none of them."""
    with tempfile.TemporaryDirectory() as folder:  # loads what could not be loaded from root's folders afterwards
        async with make_router(f"{folder}/stats.db", {"a": FakeProvider(DOWN)}) as router:
            await router.chat(ask("a"))
            await asyncio.to_thread(int)
            assert await becomes(Path(folder, "stats.db").exists)
    os.setgid(65_534)
    os.setuid(65_534)
    await serve(path)


async def limited(path: str, url: str, count: str) -> None:
    """So many workers, until the input ends, against a provider that counts; how often it refused this process."""
    trust_the_store()
    config = {
        "version": 1,
        "providers": {"p": {"kind": "openai", "base_url": url, "api_key": "k", "bulkhead": 50}},
        "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
        "store": kept_at(path),
    }
    async with SmartModelRouter.from_config(config) as router:

        async def work() -> None:
            while True:
                await router.chat(ask("smart"), timeout=600)

        workers = [asyncio.create_task(work()) for _ in range(int(count))]
        await asyncio.to_thread(sys.stdin.read)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        failures = router.stats().targets["p/m"].failures
        tell({"refused": failures.get(FailureClass.RATE_LIMITED, 0)})


async def client(path: str, rpm: str) -> None:
    """A worker of a gateway with one key of so many requests a minute.

    For each line of the input, an instant and a number, so many questions are asked then; it tells how many were
    let in.
    """
    trust_the_store()
    vars(importlib.import_module("smart_model_router.gateway.client_keys"))["LEASE_WAIT"] = PATIENCE
    vars(importlib.import_module("smart_model_router.core.client_limits"))["LOOK_AGAIN"] = 1e-6
    clocks = [here()]
    tell_time(lambda: clocks[-1])
    async with make_router(path, {"a": FakeProvider()}) as router:
        ring = KeyRing({"team": GatewayKeyConfig(key=Secret("vk"), rpm=int(rpm))})
        ring.share(router.client_leases)
        api_client = ring.api_client({"x-api-key": "vk"})
        while line := await asyncio.to_thread(sys.stdin.readline):
            instant, count = line.split()
            clocks.append(replace(clocks[0], boottime=float(instant)))
            let_in = 0
            for _ in range(int(count)):
                with suppress(ProblemError):
                    await api_client.admit(0, 0.0)
                    let_in += 1
            tell(let_in)


def narrow(path: str, provider: FakeProvider) -> SmartModelRouter:
    """A router over one target with two slots."""
    config = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": "http://fake.invalid", "bulkhead": 2}},
        "models": {"a": {"tiers": [{"targets": ["a/m"]}], "last_resort": []}},
        "store": kept_at(path),
    }
    return SmartModelRouter.from_config(config, providers={"a": provider})


async def occupy(path: str, boottime: str) -> None:
    """Make two calls that are answered when the input ends; tell when both are in flight and have their slots."""
    stand_at(boottime)
    trust_the_store()
    provider = FakeProvider(FakeReply(seconds=600.0))
    async with narrow(path, provider) as router:
        asks = [asyncio.create_task(router.chat(ask("a"), timeout=900.0)) for _ in range(2)]
        tell("busy" if await becomes(lambda: provider.in_flight == 2) else "stuck")
        await asyncio.to_thread(sys.stdin.read)
        for one in asks:
            one.cancel()


async def queue_up(path: str) -> None:
    """Make a request at each instant of the input; tell of each if it was served within so many seconds."""
    trust_the_store()
    clocks = [here()]
    tell_time(lambda: clocks[-1])
    async with narrow(path, FakeProvider()) as router:
        while line := await asyncio.to_thread(sys.stdin.readline):
            instant, seconds = map(float, line.split())
            clocks.append(replace(clocks[0], boottime=instant))
            try:
                await router.chat(ask("a"), timeout=seconds)
            except SmartRouterError:
                tell(False)
            else:
                tell(True)


async def crowd(path: str, url: str, slots: str, model: str, patience: str) -> None:
    """Keep so many calls under way as the input says, a number a line, until it ends; what was said of the store."""
    if patience == "patient":
        trust_the_store()
    said: list[bool] = []

    class Listener:
        def emit(self, event: Event) -> None:
            if isinstance(event, StoreChanged) and event.store == "state":
                said.append(event.degraded)

    config = {
        "version": 1,
        "providers": {"p": {"kind": "openai", "base_url": url, "api_key": "k", "bulkhead": int(slots)}},
        "models": {"smart": {"tiers": [{"targets": [f"p/{model}"]}], "last_resort": []}},
        "resilience": {"adaptive": {"enabled": False}},
        "store": kept_at(path),
    }
    async with SmartModelRouter.from_config(config, sinks=[Listener()]) as router:
        wanted = 0

        async def work(number: int) -> None:
            while number < wanted:
                await router.chat(ask("smart"), timeout=600)

        workers: list[asyncio.Task[None]] = []
        tell("ready")
        while line := await asyncio.to_thread(sys.stdin.readline):
            wanted = int(line)
            workers = [worker for worker in workers if not worker.done()]
            workers += [asyncio.create_task(work(number)) for number in range(len(workers), wanted)]
        wanted = 0
        await asyncio.gather(*workers)
    tell(said)


_ONES = (
    *(fail, race, probe, refrain, reopen, keyed, fork, look, serve, read_only, limited, client, occupy, queue_up),
    crowd,
)
PROGRAMS: dict[str, Callable[..., Any]] = {program.__name__: program for program in _ONES}

if __name__ == "__main__":
    try:
        started = PROGRAMS[sys.argv[1]](*sys.argv[2:])
        if started is not None:
            asyncio.run(started)
    except SmartRouterError as error:
        tell({"error": str(error)})
