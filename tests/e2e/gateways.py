"""`smr serve` in a process of its own, for tests: started with a configuration, asked over real sockets."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import httpx2
import pytest

from smart_model_router_providers.fault import FaultServer
from tests.e2e.command import program
from tests.e2e.eventually import PATIENCE
from tests.warm import Program, warm

SECONDS = 30.0
BRIEF = {"patience": {"minimum": "100ms", "stream": "100ms", "whole": "100ms"}}
"""Resilience for one target: a silent call whose caller left ends in 100 ms (ADR 0041; by default after 5 to 30 s).

Beside a second target it would have that one asked whenever the machine pauses for as long.
"""
MESSAGES: list[Any] = [{"role": "user", "content": "hello"}]
ECHO = "fault-server: echo of the last user message: hello"


def fleet(*servers: FaultServer, **sections: Any) -> dict[str, Any]:
    """A configuration over these servers, the first preferred: `smart` reaches them by Chat, `claude` by Messages."""
    names = "abc"[: len(servers)]
    providers = {
        name + kind[0]: {"kind": kind, "base_url": server.base_url, "api_key": f"upstream-{name}"}
        for name, server in zip(names, servers, strict=True)
        for kind in ("openai_compatible", "anthropic")
    }
    models = {
        "smart": {"tiers": [{"targets": [f"{name}o/big" for name in names]}], "last_resort": []},
        "claude": {"tiers": [{"targets": [f"{name}a/big" for name in names]}], "last_resort": []},
    }
    return {"version": 1, "providers": providers, "models": models, **sections}


@dataclass
class Served:
    """A running gateway."""

    base_url: str
    process: Program | subprocess.Popen[bytes]
    file: Path

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.base_url)
        return str(parts.hostname), int(parts.port or 0)

    def health(self) -> dict[str, Any]:
        """What /health says."""
        with urlopen(self.base_url + "/health", timeout=SECONDS) as response:
            told: dict[str, Any] = json.loads(response.read())
        return told

    def in_flight(self) -> int:
        """Requests inside the gateway and calls inside its router."""
        told = self.health()
        return int(told["in_flight"]) + sum(int(target["in_flight"]) for target in told["targets"])

    def send(self, raw: bytes, *, silence: float = 5.0) -> bytes:
        """What comes back for raw bytes, until the server closes or has been silent for so many seconds."""
        with socket.create_connection(self.address, timeout=silence) as wire:
            wire.sendall(raw)
            return read_all(wire)

    def post(self, path: str, body: bytes, *headers: str) -> tuple[int, dict[str, Any]]:
        """Status and JSON of one POST."""
        length = f"content-length: {len(body)}"
        lines = [f"POST {path} HTTP/1.1", "host: localhost", "connection: close", length, *headers]
        head, _, rest = self.send("\r\n".join([*lines, "", ""]).encode() + body, silence=SECONDS).partition(b"\r\n\r\n")
        told: dict[str, Any] = json.loads(rest)
        return int(head.split()[1]), told

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stop it; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


def cut_short(url: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """Status and body of a streamed answer that has no end."""
    pieces: list[bytes] = []
    with httpx2.stream("POST", url, json=body, headers=headers, timeout=SECONDS) as answer:
        with pytest.raises(httpx2.RemoteProtocolError, match="incomplete"):
            pieces.extend(answer.iter_bytes())
        return answer.status_code, b"".join(pieces)


def read_all(wire: socket.socket) -> bytes:
    """Everything that arrives until the other side closes or falls silent."""
    pieces = []
    try:
        while piece := wire.recv(65_536):
            pieces.append(piece)
    except TimeoutError:
        pass
    return b"".join(pieces)


@contextmanager
def served(
    config: Mapping[str, Any],
    folder: Path,
    *,
    arguments: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    **sections: Any,
) -> Generator[Served]:
    """A gateway on a free port, until the block is left. It must end by itself when told to, without a trace."""
    file, log = folder / "smart-router.yaml", folder / "gateway.log"
    file.write_text(json.dumps({**config, **sections}), encoding="utf-8")
    with log.open("w", encoding="utf-8") as stderr:
        argv = [program(), "serve", "--config", str(file), "--port", "0", "--json", *arguments]
        env = {**os.environ, "PYTHONWARNINGS": "default", **(environ or {})}
        told, tell = os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            process: Program | subprocess.Popen[bytes]
            if "SMR_PROGRAM" in os.environ:
                process = subprocess.Popen(argv, stdin=nothing, stdout=tell, stderr=stderr, env=env)
            else:
                streams = [nothing.fileno(), tell, stderr.fileno()]
                process = warm("-W", "default").start(argv, streams, cwd=Path.cwd(), env=env)
        os.close(tell)
    stdout = os.fdopen(told, encoding="utf-8")
    try:
        line = stdout.readline()
        assert line, log.read_text(encoding="utf-8")
        yield Served(json.loads(line)["base_url"], process, file)
    finally:
        process.terminate()
        process.wait(SECONDS)
        stdout.close()
        logged = log.read_text(encoding="utf-8")
        assert "Traceback" not in logged, logged
        assert "Warning" not in logged, logged


def becomes(condition: Callable[[], bool]) -> bool:
    """Whether something in another process becomes true, however slow the machine is."""
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)  # noqa: TID251 - a socket's other end, which no fake clock can hurry
    return condition()


def footprint(pid: int) -> tuple[int, int]:
    """Open files, and resident memory in KiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found is not None
    return len(list(Path(f"/proc/{pid}/fd").iterdir())), int(found[1])
