"""The parts that the drivers share: a job on stdin, requests on time, what became of them as JSON on stdout.

Run by each peer's own interpreter, so the standard library is all there is.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

Ask = Callable[[], Awaitable[object]]
"""One request; returns its text, raises when no provider answered."""

_WARM_UPS = 5
QUESTION = "How do bees find their way home?"


@dataclass(frozen=True)
class Endpoint:
    """The address and the key of a served model."""

    name: str
    base_url: str
    key: str


@dataclass(frozen=True)
class Job:
    """The requests of a job: to which provider, and when.

    `warm_up` is well and not measured: libraries load what they load at their first call. `ranked`: the first endpoint
    is the primary, the others back it up; else they are alike. `arrivals` are seconds from the start; without any, one
    caller asks again and again, `pause` seconds apart, until one answers. With `callers` so many ask for `seconds`:
    again at once when they were answered, `pause` seconds after an error. A request has `timeout` seconds. `options`
    are the row's own.
    """

    warm_up: Endpoint
    endpoints: tuple[Endpoint, ...]
    ranked: bool
    arrivals: tuple[float, ...]
    timeout: float
    pause: float
    options: dict[str, Any]
    callers: int = 0
    seconds: float = 0.0


def drive(package: str, make: Callable[[Job], Ask]) -> None:
    """Read a job, make what is measured, and say that it is ready; then ask, and tell, for each line on stdin.

    A line has what this round changes of the job.
    """
    stdout, sys.stdout = sys.stdout, sys.stderr  # libraries print; stdout is for the result alone
    given = json.loads(sys.stdin.readline())
    endpoints, warm_up = given.pop("endpoints"), Endpoint(**given.pop("warm_up"))
    arrivals = tuple(given.pop("arrivals"))
    job = Job(warm_up=warm_up, endpoints=tuple(Endpoint(**one) for one in endpoints), arrivals=arrivals, **given)

    def tell(value: object) -> None:
        stdout.write(json.dumps(value) + "\n")
        stdout.flush()

    async def main() -> None:
        warm = make(replace(job, endpoints=(warm_up,)))
        for _ in range(_WARM_UPS):
            await warm()
        ask = make(job)
        tell({"version": f"{package} {version(package)}"})
        while changes := await asyncio.to_thread(sys.stdin.readline):
            began, spent = time.monotonic(), time.process_time()
            told = await _round(began, ask, replace(job, **json.loads(changes)))
            tell({"requests": told, "cpu_seconds": time.process_time() - spent})

    asyncio.run(main())


async def _round(began: float, ask: Ask, job: Job) -> list[dict[str, Any]]:
    if job.callers:
        return await _asked_by_all(began, ask, job)
    if job.arrivals:
        return await asyncio.gather(*(_asked_at(began, at, ask, job.timeout) for at in job.arrivals))
    return [await _until_answered(began, ask, job)]


async def _asked_by_all(began: float, ask: Ask, job: Job) -> list[dict[str, Any]]:
    """The requests that ended in time."""
    told: list[dict[str, Any]] = []

    async def caller() -> None:
        while True:
            told.append(await _asked(began, ask, job.timeout))
            await asyncio.sleep(0.0 if told[-1]["error"] is None else job.pause)

    callers = [asyncio.create_task(caller()) for _ in range(job.callers)]
    await asyncio.sleep(job.seconds)
    for each in callers:
        each.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    return told


async def _asked_at(began: float, at: float, ask: Ask, timeout: float) -> dict[str, Any]:
    await asyncio.sleep(max(0.0, began + at - time.monotonic()))
    return await _asked(began, ask, timeout)


async def _until_answered(began: float, ask: Ask, job: Job) -> dict[str, Any]:
    while True:
        told = await _asked(began, ask, job.timeout)
        if told["error"] is None or time.monotonic() - began > job.timeout:
            return told
        await asyncio.sleep(job.pause)


async def _asked(began: float, ask: Ask, timeout: float) -> dict[str, Any]:
    """When it was asked, how long it took, and the error's name; an answer without text is one, too."""
    asked, error = time.monotonic(), None
    try:
        async with asyncio.timeout(timeout):
            if not await ask():
                error = "empty"
    except Exception as failed:  # noqa: BLE001 - whatever a library raises, its caller got no answer
        error = type(failed).__name__
    ended = time.monotonic()
    return {"at": asked - began, "seconds": ended - asked, "error": error}
