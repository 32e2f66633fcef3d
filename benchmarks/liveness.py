"""Measures the wait of a caller of `smr serve` while another one posts bodies of 32 MB, one after the other.

Two figures for each body: the CPU time that the gateway itself spends during eight turns of its loop (as many as a
small request takes; p99), which no other program on the machine changes; and, as a note, the time that small questions
took from the moment each was due, one every 20 ms (p99, less that without the body, and the same of a bare relay).
The bodies are the worst of their size: deep arrays, small objects, base64, text full of quotes, and as many values as
`gateway.max_elements` lets through; asked of a provider of their dialect and of one to which they are translated.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

import aiohttp
from benchmarks._measure import Figure, report
from benchmarks.gateway import SMALL, Process, relay, started

SECONDS = 6.0
EVERY = 0.02
SIZE = 32_000_000
LIMIT_MS = 50.0
MODELS = ("smart", "translated")


def _chat(content: str) -> bytes:
    return b'{"model": "MODEL", "messages": [{"role": "user", "content": ' + content.encode() + b"}]}"


def _with(extra: str) -> bytes:
    return b'{"model": "MODEL", "messages": [{"role": "user", "content": "hi"}], "metadata": ' + extra.encode() + b"}"


def _image() -> bytes:
    url = "data:image/png;base64," + "iVBORw0K" * (SIZE // 8)
    return _chat(f'[{{"type": "image_url", "image_url": {{"url": "{url}"}}}}]')


def _messages() -> bytes:
    one = b'{"role": "user", "content": "' + b"word " * 85 + b'"}'
    return b'{"model": "MODEL", "messages": [' + b",".join([one] * 66_000) + b"]}"


BODIES: Mapping[str, Callable[[], bytes]] = MappingProxyType(
    {
        "deep arrays": lambda: _with("[" + ",".join(["[[[[[]]]]]"] * (SIZE // 11)) + "]"),
        "small objects": lambda: _with("[" + ",".join(['{"a":{}}'] * (SIZE // 9)) + "]"),
        "base64": _image,
        "quoted text": lambda: _chat(json.dumps('say "yes", or\n' * (SIZE // 18))),
        "text beyond ASCII": lambda: _chat(json.dumps("na\u00efve \u2603, " * (SIZE // 13), ensure_ascii=False)),
        "199,000 parts": lambda: _chat("[" + ",".join([_part("word " * 120)] * 49_700) + "]"),
        "198,000 objects": lambda: _with("[" + ",".join(['{"a":{}}'] * 66_000) + "]"),
        "198,000 messages": _messages,
    }
)


def _part(text: str) -> str:
    return f'{{"type": "text", "text": "{text}"}}'


@contextmanager
def gateway(upstream: str, file: Path) -> Generator[Process]:
    """`smr serve` before a provider; the turns of its loop are in `file` when it has ended."""
    shared = {"base_url": upstream, "api_key": "k", "bulkhead": 100}
    config = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", **shared}, "m": {"kind": "anthropic", **shared}},
        "models": {
            "smart": {"tiers": [{"targets": ["a/fault"]}], "last_resort": []},
            "translated": {"tiers": [{"targets": ["m/fault"]}], "last_resort": []},
        },
    }
    document = file.with_name("smart-router.yaml")
    document.write_text(json.dumps(config), encoding="utf-8")
    run = str(Path(__file__).with_name("_turns.py"))
    with started(sys.executable, run, str(file), "serve", "-c", str(document), "--port", "0", "--json") as process:
        yield process


async def ask(url: str, seconds: float) -> list[float]:
    """Milliseconds that each small question took, from when it was due."""
    taken: list[float] = []
    body = json.dumps(SMALL).encode()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(due: float) -> None:
            async with session.post(url + "/v1/chat/completions", data=body) as response:
                await response.read()
                assert response.status == 200, response.status
            taken.append((time.perf_counter() - due) * 1e3)

        start = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(int(seconds / EVERY)):
                due = start + number * EVERY
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                group.create_task(one(due))
    return taken


async def post(url: str, name: str, model: str) -> None:
    """Post a body for ever; print a line for each answer."""
    body = BODIES[name]().replace(b"MODEL", model.encode(), 1)
    async with aiohttp.ClientSession() as session:
        while True:
            answer = "cut"
            with suppress(aiohttp.ClientError):  # one that is refused early may be cut while it is still sent
                async with session.post(url + "/v1/chat/completions", data=body) as response:
                    await response.read()
                    answer = str(response.status)
            print(answer, flush=True)
            await asyncio.sleep(0.05)


@contextmanager
def posting(url: str, name: str, model: str) -> Generator[subprocess.Popen[str]]:
    """A process that posts a body again and again, its first answer being there."""
    command = [sys.executable, "-m", "benchmarks.liveness", url, name, model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own file
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.terminate()


def p99(figures: list[float]) -> float:
    """The 99th percentile."""
    return statistics.quantiles(figures, n=100)[98]


def measured(server: Process, name: str, model: str) -> tuple[tuple[float, float], float, str]:
    """When the body was posted, the milliseconds it added to the p99 of small questions, and how it was answered."""
    alone = p99(asyncio.run(ask(server.url, SECONDS / 2)))
    with posting(server.url, name, model) as process:
        begun = time.time()
        beside = p99(asyncio.run(ask(server.url, SECONDS)))
        window = (begun, time.time())
        process.terminate()
        assert process.stdout is not None
        answers = process.stdout.read().split()
    return window, beside - alone, f"{len(answers)} x {', '.join(sorted(set(answers)))}"


def cases(names: list[str], folder: Path) -> Iterator[Figure]:
    """A figure for each body and model."""
    sink, file = str(Path(__file__).with_name("_sink.py")), folder / "turns.json"
    found = []
    with (
        started(sys.executable, sink) as upstream,
        relay(upstream.url) as bare,
        gateway(upstream.url, file) as ours,
    ):
        asyncio.run(ask(bare.url, 1.0))
        asyncio.run(ask(ours.url, 1.0))
        quiet = (time.time() - 1.0, time.time())
        for name in names or BODIES:
            _, base, _ = measured(bare, name, "smart")
            found += [(f"{name}, {model}", base, *measured(ours, name, model)) for model in MODELS]
    turns = json.loads(file.read_text(encoding="ascii"))

    def within(window: tuple[float, float]) -> list[float]:
        return [taken for at, taken in turns if window[0] <= at <= window[1]]

    baseline = p99(within(quiet))
    for title, base, window, added, answers in found:
        late = within(window)
        note = f"longest {max(late):.0f}; small questions +{added:.0f}, a relay's +{base:.0f}; body {answers}"
        yield Figure(f"liveness, {title}", p99(late), "ms CPU in 8 turns (p99)", baseline, "idle", LIMIT_MS, note)


def main(names: list[str]) -> int:
    """Measure and report."""
    with tempfile.TemporaryDirectory() as folder:
        return report(*cases(names, Path(folder)))


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("http"):
        asyncio.run(post(*sys.argv[1:]))
    else:
        sys.exit(main(sys.argv[1:]))
