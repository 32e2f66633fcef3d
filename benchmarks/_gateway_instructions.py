"""Instructions of `smr serve` a request, counted by valgrind: other work does not disturb them.

`python -m benchmarks._gateway_instructions` takes some minutes, and is no part of `make bench`: valgrind is Debian's.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import aiohttp
from benchmarks._server import served
from benchmarks.gateway import AGENT, CLIENTS, SERVE, SMALL, gateway_config, many

REQUESTS = (200, 1_000)
"""The difference between so many requests and so many is what a request takes; the rest is the start of the program."""
_VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={os.devnull}")
_PATIENCE = aiohttp.ClientTimeout(total=900)


async def _ask(url: str, body: bytes, requests: int) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=_PATIENCE) as session:
        await many(session, url, body, requests, CLIENTS)


def counted(body: bytes, requests: int) -> int:
    """Instructions of a gateway that answers so many requests."""
    with served(events=10) as upstream, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "smart-router.yaml"
        file.write_text(json.dumps(gateway_config(upstream)), encoding="utf-8")
        command = [*_VALGRIND, *SERVE, "-c", str(file), "--port", "0", "--json"]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        with subprocess.Popen(  # noqa: S603 - our own
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            url: str = json.loads(process.stdout.readline())["base_url"]
            asyncio.run(_ask(url, body, requests))
            process.terminate()
            told = process.communicate()[1]
    found = re.search(r"I\s+refs:\s+([\d,]+)", told)
    assert found is not None, told
    return int(found[1].replace(",", ""))


def main() -> int:
    """Count and print."""
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is needed: apt-get install valgrind")
    few, more = REQUESTS
    bodies: dict[str, Any] = {"small": SMALL, "agent": AGENT}
    for name, body in bodies.items():
        text = json.dumps(body).encode()
        print(f"{name}: {(counted(text, more) - counted(text, few)) / (more - few):,.0f} instructions a request")
    return 0


if __name__ == "__main__":
    sys.exit(main())
