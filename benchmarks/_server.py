"""A fault server in a process of its own, so that only what the client costs counts. Run as a program by `served`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from smart_model_router_providers.fault import Fault, FaultServer

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def served(*, events: int, each: float = 0.0) -> Generator[str]:
    """The base URL of a server, until the block is left.

    Its streams have `events` events of content, `each` seconds apart; its whole answers have as much text.
    """
    command = [sys.executable, __file__, str(events), str(each)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - our own file
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


async def main(events: int, each: float) -> None:
    """Serve until terminated; the first line printed is the base URL."""
    script = [Fault.delay(each=each)] if each else None
    text = "word" * events  # the server puts four characters into an event
    async with FaultServer(script, text=text, keep_requests=1) as server:
        print(server.base_url, flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
