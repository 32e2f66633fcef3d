"""A gigabyte up and a gigabyte down through `smr serve`: memory above that of the idle process.

The gateway, the provider and the client are three processes. Idle is after one small call each way; the figure is the
most resident memory that the gateway ever had, less that.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
from benchmarks._measure import Figure, report
from benchmarks._sink import PIECE, SPOKEN
from benchmarks.gateway import Process, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SENT = 4096
"""Pieces: 1 GiB."""
LIMIT_MB = 16.0
_UPLOAD, _SPEECH = "/v1/audio/transcriptions", "/v1/audio/speech"


def _memory_mb(process: Process, field: str) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


async def _pieces(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield PIECE


async def _upload(session: aiohttp.ClientSession, url: str, count: int) -> None:
    headers = {"content-length": str(count * len(PIECE)), "content-type": "multipart/form-data; boundary=b"}
    async with session.post(url + _UPLOAD, data=_pieces(count), headers=headers) as response:
        assert response.status == 200, await response.text()
        await response.read()


async def _speech(session: aiohttp.ClientSession, url: str) -> None:
    size = 0
    async with session.post(url + _SPEECH, data=b"{}") as response:
        async for piece in response.content.iter_any():
            size += len(piece)
    assert size == SPOKEN * len(PIECE), size


async def measure(gateway: Process) -> tuple[Figure, Figure]:
    """Up, then down: the peak of the second is that of both."""
    figures = []
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(None)) as session:
        await _upload(session, gateway.url, 1)
        idle = _memory_mb(gateway, "VmRSS")
        for name, work in (("up", _upload(session, gateway.url, SENT)), ("down", _speech(session, gateway.url))):
            began, cpu = time.monotonic(), gateway.cpu_seconds()
            await work
            note = f"{time.monotonic() - began:.1f} s, {gateway.cpu_seconds() - cpu:.1f} s of CPU"
            grown = _memory_mb(gateway, "VmHWM") - idle
            figures.append(
                Figure(f"passthrough_1gb_{name}", grown, "MB more", idle, "the idle process", LIMIT_MB, note)
            )
    up, down = figures
    return up, down


def main() -> int:
    """Run both."""
    here = Path(__file__)
    run = "from smart_model_router.cli import main; main()"
    with started(sys.executable, str(here.with_name("_sink.py"))) as sink, tempfile.TemporaryDirectory() as folder:
        config: dict[str, Any] = {
            "version": 1,
            "providers": {"a": {"kind": "openai_compatible", "base_url": sink.url + "/v1", "api_key": "k"}},
            "models": {"smart": {"targets": ["a/fault"], "last_resort": []}},
            "gateway": {"passthrough": {"routes": {"/v1/audio/*": ["a"]}, "max_body": 2_000_000_000}},
        }
        file = Path(folder) / "smart-router.yaml"
        file.write_text(json.dumps(config), encoding="utf-8")
        with started(sys.executable, "-c", run, "serve", "-c", str(file), "--port", "0", "--json") as gateway:
            return report(*asyncio.run(measure(gateway)))


if __name__ == "__main__":
    sys.exit(main())
