"""The cost of `smr serve` against a bare relay (raw ASGI on uvicorn and aiohttp) in the same minutes: CPU a request.

Four loads: small requests of 8 clients at once, agent requests of 75 KB, one client alone (added latency), and streams
of 500 chunks 5 ms apart. The provider and the clients are other processes than the two that are measured.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from benchmarks._measure import Figure, report
from benchmarks._server import served

RUNS = 5
CLIENTS = 8
REQUESTS = 800
STREAMS = 4
CHUNKS = 500

SMALL: dict[str, Any] = {"model": "smart", "messages": [{"role": "user", "content": "How much is two and two?"}]}
SERVE = (sys.executable, "-c", "from smart_model_router.cli import main; main()", "serve")
AGENT: dict[str, Any] = {
    "model": "smart",
    "messages": [{"role": "system", "content": "You are an agent. " * 200}]
    + [{"role": ("user", "assistant")[n % 2], "content": f"Step {n}: " + "look at the file. " * 60} for n in range(40)],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": f"tool_{n}",
                "description": "What it does, at length. " * 30,
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            },
        }
        for n in range(30)
    ],
}


@dataclass(frozen=True, slots=True)
class Process:
    """A server that is measured."""

    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """Return the CPU time used so far, user and system."""
        times = (task.read_text(encoding="ascii") for task in Path(f"/proc/{self.pid}/task").glob("*/schedstat"))
        return sum(int(text.split()[0]) for text in times) / 1e9


@contextmanager
def started(*command: str) -> Generator[Process]:
    """A server that prints its address on its first line."""
    with subprocess.Popen([*command], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            yield Process(json.loads(line)["base_url"] if line.startswith("{") else line, process.pid)
        finally:
            process.terminate()


@contextmanager
def relay(upstream: str) -> Generator[Process]:
    """The baseline."""
    with started(sys.executable, str(Path(__file__).with_name("_relay.py")), upstream) as process:
        yield process


def gateway_config(upstream: str) -> dict[str, Any]:
    """Two providers at one address."""
    provider = {"kind": "openai_compatible", "base_url": upstream, "api_key": "k", "bulkhead": 100}
    return {
        "version": 1,
        "providers": {"a": provider, "b": provider},
        "models": {"smart": {"tiers": [{"targets": ["a/fault", "b/fault"]}], "last_resort": []}},
    }


@contextmanager
def gateway(upstream: str) -> Generator[Process]:
    """`smr serve`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "smart-router.yaml"
        file.write_text(json.dumps(gateway_config(upstream)), encoding="utf-8")
        with started(*SERVE, "-c", str(file), "--port", "0", "--json") as process:
            yield process


async def one(session: aiohttp.ClientSession, url: str, body: bytes) -> None:
    """One request, read to its end."""
    async with session.post(url + "/v1/chat/completions", data=body) as response:
        assert response.status == 200
        async for _ in response.content.iter_any():
            pass


async def many(session: aiohttp.ClientSession, url: str, body: bytes, requests: int, clients: int) -> None:
    """So many requests of so many clients at once."""

    async def client() -> None:
        for _ in range(requests // clients):
            await one(session, url, body)

    await asyncio.gather(*(client() for _ in range(clients)))


async def measured(
    servers: Mapping[str, Process], work: Callable[[str], Awaitable[None]], calls: int
) -> dict[str, float]:
    """The median microseconds of CPU a call of each server, in turn so that a busy moment hits both."""
    taken: dict[str, list[float]] = {name: [] for name in servers}
    for server in servers.values():
        await work(server.url)
    for _ in range(RUNS):
        for name, server in servers.items():
            before = server.cpu_seconds()
            await work(server.url)
            taken[name].append((server.cpu_seconds() - before) / calls * 1e6)
    return {name: statistics.median(figures) for name, figures in taken.items()}


async def latency_ms(session: aiohttp.ClientSession, url: str) -> float:
    """The median time of a request of one client alone."""
    times = []
    for _ in range(300):
        start = time.perf_counter()
        await one(session, url, json.dumps(SMALL).encode())
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


async def whole(servers: Mapping[str, Process]) -> list[Figure]:
    """Requests that are answered whole."""
    small, agent = json.dumps(SMALL).encode(), json.dumps(AGENT).encode()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        little = await measured(servers, lambda url: many(session, url, small, REQUESTS, CLIENTS), REQUESTS)
        large = await measured(servers, lambda url: many(session, url, agent, REQUESTS // 4, CLIENTS), REQUESTS // 4)
        waits: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(RUNS):
            for name, server in servers.items():
                waits[name].append(await latency_ms(session, server.url))
    wait = {name: statistics.median(figures) for name, figures in waits.items()}
    over = large["gateway"] - large["relay"]
    note = f"{len(agent) / 1000:.0f} KB, {over:.0f} us added"
    return [
        Figure(
            "gateway",
            little["gateway"],
            "us CPU a request",
            little["relay"],
            "bare relay",
            2.2 * little["relay"],
            "1.6 x is the stretch",
        ),
        Figure(
            "gateway_agent",
            large["gateway"],
            "us CPU a request",
            large["relay"],
            "bare relay",
            large["relay"] + 1500,
            note,
        ),
        Figure(
            "gateway_latency", wait["gateway"], "ms a request (p50)", wait["relay"], "bare relay", wait["relay"] + 3
        ),
    ]


async def streamed(servers: Mapping[str, Process]) -> list[Figure]:
    """Long streams."""
    body = json.dumps({**SMALL, "stream": True}).encode()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        taken = await measured(servers, lambda url: many(session, url, body, STREAMS, STREAMS), STREAMS)
    limit = 1.5 * taken["relay"]
    return [
        Figure("gateway_stream", taken["gateway"], f"us CPU a stream of {CHUNKS}", taken["relay"], "bare relay", limit)
    ]


def run(events: int, each: float, work: Callable[[Mapping[str, Process]], Awaitable[list[Figure]]]) -> list[Figure]:
    """Measure both servers before one provider."""
    with served(events=events, each=each) as upstream, relay(upstream) as bare, gateway(upstream) as ours:

        async def measure() -> list[Figure]:
            return await work({"relay": bare, "gateway": ours})

        return asyncio.run(measure())


def main() -> int:
    """Measure and report."""
    return report(*run(10, 0.0, whole), *run(CHUNKS, 0.005, streamed))


if __name__ == "__main__":
    sys.exit(main())
