"""The peers' servers: LiteLLM's proxy and Portkey's gateway, each in an environment of its own under .peers/."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks._environments import FOLDER, install
from benchmarks.gateway import Process

START_SECONDS = 300.0
PORTKEY = {"@portkey-ai/gateway": "1.15.2", "hono": "4.9.7", "@hono/node-server": "1.13.8"}


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
def litellm_proxy(config: Mapping[str, Any]) -> Generator[Process]:
    """LiteLLM's proxy with this configuration, without keys or a database."""
    interpreter = install("litellm_proxy", "litellm[proxy]", "opentelemetry-sdk")
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
            yield server


@contextmanager
def portkey_gateway() -> Generator[Process]:
    """Portkey's gateway, which takes its configuration with each request."""
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
    with listening(node, str(server), "--headless", "--port={port}", NODE_ENV="production") as process:
        yield process


def versions() -> str:
    """The measurement."""
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
