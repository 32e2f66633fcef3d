"""`make bench-gateways`: CPU a request of `smr serve`, LiteLLM's proxy and Portkey's gateway, in the same minutes.

Each is a process of its own before the same scripted provider: small requests of 8 clients at once. LiteLLM is in its
best configuration: one worker, opentelemetry-sdk installed, a model name that it knows, no callbacks, no database, no
keys. Portkey is pinned, and so are the two packages below it. Needs npm for Portkey.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from benchmarks._environments import FOLDER, install
from benchmarks._measure import Figure, report
from benchmarks._server import served
from benchmarks.gateway import CLIENTS, SMALL, Process, gateway, many, measured, relay

REQUESTS = 240
START_SECONDS = 300.0
KNOWN_MODEL = "gpt-4o-mini"
PORTKEY = {"@portkey-ai/gateway": "1.15.2", "hono": "4.9.7", "@hono/node-server": "1.13.8"}
TIMES_LESS: Mapping[str, int] = {"LiteLLM's proxy": 20, "Portkey's gateway": 2}
"""How many times less than each of them ours is to use."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How a server is asked for the same."""

    server: Process
    model: str = "smart"
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        """The request."""
        return json.dumps({**SMALL, "model": self.model}).encode()


@contextmanager
def listening(*command: str, **environment: str) -> Generator[Process]:
    """A server whose command has `{port}` in it, once it takes connections."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [word.format(port=port) for word in command]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, env=os.environ | environment, **quiet) as process:  # type: ignore[call-overload]  # noqa: S603
        try:
            until = time.monotonic() + START_SECONDS
            while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{words[0]} did not begin to serve")
                time.sleep(0.2)
            yield Process(f"http://127.0.0.1:{port}", process.pid)
        finally:
            process.terminate()


@contextmanager
def litellm(upstream: str) -> Generator[Asked]:
    """LiteLLM's proxy."""
    interpreter = install("litellm_proxy", "litellm[proxy]", "opentelemetry-sdk")
    deployment = {"model": f"openai/{KNOWN_MODEL}", "api_base": upstream, "api_key": "k"}
    config = {
        "model_list": [{"model_name": KNOWN_MODEL, "litellm_params": deployment}],
        "litellm_settings": {"callbacks": [], "telemetry": False, "set_verbose": False},
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.yaml"
        file.write_text(json.dumps(config), encoding="utf-8")
        command = (str(interpreter.with_name("litellm")), "--config", str(file), "--host", "127.0.0.1")
        settings = {
            "LITELLM_MODE": "PRODUCTION",
            "LITELLM_LOG": "ERROR",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # ours has no keys either
        }
        with listening(*command, "--port", "{port}", "--num_workers", "1", **settings) as server:
            yield Asked(server, KNOWN_MODEL)


@contextmanager
def portkey(upstream: str) -> Generator[Asked]:
    """Portkey's gateway."""
    place, npm, node = FOLDER / "portkey", shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise RuntimeError("Portkey's gateway needs npm and node, which are not there")
    package = json.dumps({"private": True, "dependencies": PORTKEY, "overrides": PORTKEY})
    made_of = place / "complete"
    if not made_of.exists() or made_of.read_text(encoding="utf-8") != package:
        print(f"installing {' '.join(f'{name}@{version}' for name, version in PORTKEY.items())}", file=sys.stderr)
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text(package, encoding="utf-8")
        flags = ("--no-audit", "--no-fund", "--ignore-scripts", "--silent")
        subprocess.run([npm, "install", *flags], cwd=place, check=True)  # noqa: S603 - our own list
        made_of.write_text(package, encoding="utf-8")
    server = place / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    headers = {
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": upstream,
        "authorization": "Bearer k",
        "content-type": "application/json",
    }
    with listening(node, str(server), "--headless", "--port={port}", NODE_ENV="production") as process:
        yield Asked(process, KNOWN_MODEL, headers)


async def compare(asked: Mapping[str, Asked]) -> dict[str, float]:
    """Microseconds of CPU a request, by name."""
    by_url = {one.server.url: one for one in asked.values()}
    async with AsyncExitStack() as stack:
        sessions = {
            url: await stack.enter_async_context(aiohttp.ClientSession(headers=one.headers))
            for url, one in by_url.items()
        }
        return await measured(
            {name: one.server for name, one in asked.items()},
            lambda url: many(sessions[url], url, by_url[url].body, REQUESTS, CLIENTS),
            REQUESTS,
        )


def versions() -> str:
    """What was measured."""
    said = subprocess.run(  # noqa: S603 - our own environment
        [str(FOLDER / "litellm_proxy" / "bin" / "python"), "-m", "pip", "list", "--format=json"],
        check=True,
        capture_output=True,
        text=True,
    )
    theirs = {one["name"]: one["version"] for one in json.loads(said.stdout)}
    names = ("litellm", "uvicorn", "opentelemetry-sdk")
    pinned = [f"{name} {version}" for name, version in PORTKEY.items()]
    return "; ".join([*(f"{name} {theirs[name]}" for name in names), *pinned])


def main() -> int:
    """Install, measure, report."""
    with ExitStack() as stack:
        upstream = stack.enter_context(served(events=10))
        asked = {
            "ours": Asked(stack.enter_context(gateway(upstream))),
            "relay": Asked(stack.enter_context(relay(upstream))),
            "LiteLLM's proxy": stack.enter_context(litellm(upstream)),
            "Portkey's gateway": stack.enter_context(portkey(upstream)),
        }
        taken = asyncio.run(compare(asked))
    print(versions())
    print(f"bare relay: {taken['relay']:,.0f} us CPU a request")
    return report(
        *(
            Figure(
                "gateway",
                taken["ours"],
                "us CPU a request",
                taken[name],
                name,
                taken[name] / times,
                f"{taken[name] / taken['ours']:.1f} times less",
            )
            for name, times in TIMES_LESS.items()
        )
    )


if __name__ == "__main__":
    sys.exit(main())
