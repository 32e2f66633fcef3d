"""A process of a machine that has clocks of its own, run by test_four_machines.py.

Until its input ends it asks a provider that is ill for a while, and one with a limit, each with a spare behind it. Then
it tells what became of that.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import tempfile
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from smart_model_router import SmartModelRouter, SmartRouterError
from smart_model_router.domain.events import AttemptFinished, Event, StoreChanged
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.shared_state import ClockReading
from smart_model_router.flow.clock import boottime, here
from tests.e2e.eventually import becomes
from tests.e2e.shared_program import ask, tell

EVERY = 0.2
"""Seconds between two questions of a worker."""
AT_ONCE = 5
"""Calls under way at the provider that falls ill: as many failures open its breaker."""


def live_on(machine: str, offset: float, files: str) -> None:
    """Give this process the name, clocks and files of a machine that booted at another time, its clock set wrong."""

    def told() -> ClockReading:
        real = here()
        return ClockReading(machine, real.boottime + offset, real.wall + offset)

    tempfile.tempdir = files
    parts = vars(importlib.import_module("smart_model_router.assembly"))
    parts["here"] = told
    parts["boottime"] = lambda: boottime() + offset
    parts["socket"] = SimpleNamespace(gethostname=lambda: machine)


class Diary:
    """Keeps, by the clock that all processes of this host have, when it probed, and when it decided alone."""

    def __init__(self) -> None:
        self.probes: list[tuple[float, float]] = []
        self.alone: list[tuple[float, bool]] = []

    @property
    def shares(self) -> bool:
        """False while it decides alone."""
        return not self.alone or not self.alone[-1][1]

    def emit(self, event: Event) -> None:
        """Keep probes and changes of the state's store."""
        now = time.monotonic()
        if isinstance(event, AttemptFinished) and event.probe:
            self.probes.append((now - event.seconds, now))
        elif isinstance(event, StoreChanged) and event.store == "state":
            self.alone.append((now, event.degraded))


async def main(store: str, machine: str, files: str, offset: str, ill: str, limited: str, spare: str) -> None:
    """Serve until the input ends and everything is well again. The word `isolate` in it is the operator's."""
    live_on(machine, float(offset), files)
    diary = Diary()
    urls = {"ill": ill, "limited": limited, "spare": spare, "kept": spare}
    config: dict[str, Any] = {
        "version": 1,
        "providers": {name: {"kind": "openai", "base_url": url, "api_key": "k"} for name, url in urls.items()},
        "models": {
            name: {"tiers": [{"targets": [f"{name}/m"]}, {"targets": ["spare/m"]}], "last_resort": []}
            for name in ("ill", "limited", "kept")
        },
        "store": {"shared_url": store},
    }
    answered, failed = 0, []
    async with SmartModelRouter.from_config(config, sinks=[diary]) as router:

        async def keep_asking(model: str) -> None:
            nonlocal answered
            while True:
                try:
                    await router.chat(ask(model))
                    answered += 1
                except SmartRouterError as error:
                    failed.append(str(error))
                await asyncio.sleep(EVERY)

        await router.chat(ask("kept"))
        tell("ready")
        workers = [asyncio.create_task(keep_asking(model)) for model in ("limited", *["ill"] * AT_ONCE)]
        while word := await asyncio.to_thread(sys.stdin.readline):
            if word == "isolate\n":
                router.isolate("kept/m", why="the key leaked")
        agree = await becomes(lambda: diary.shares and router.targets()[0].state == "closed")
        for worker in workers:
            worker.cancel()
        for worker in workers:
            with suppress(asyncio.CancelledError):
                await worker
        story = {
            "answered": answered,
            "failed": failed,
            "probes": diary.probes,
            "alone": diary.alone,
            "agrees": agree,
            "refused": router.stats().targets["limited/m"].failures.get(FailureClass.RATE_LIMITED, 0),
            "isolated": [target.id for target in router.targets() if target.isolated],
        }
    tell(story)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
