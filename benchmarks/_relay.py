"""The least a gateway can do: raw ASGI on uvicorn and aiohttp, bytes in, bytes out. Run as a program by gateway.py."""

from __future__ import annotations

import sys
from typing import Any

import aiohttp
import uvicorn

_session: aiohttp.ClientSession | None = None


async def relay(scope: Any, receive: Any, send: Any) -> None:
    """Pass a request on to the server named on the command line, and its answer back, chunk by chunk."""
    global _session  # noqa: PLW0603 - a process of its own
    if scope["type"] != "http":
        return
    if _session is None:
        _session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    pieces = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    body = b"".join(pieces)
    url = sys.argv[1] + scope["path"].removeprefix("/v1")
    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    async with _session.post(url, data=body, headers=headers) as response:
        kept = [(b"content-type", response.headers["content-type"].encode())]
        await send({"type": "http.response.start", "status": response.status, "headers": kept})
        async for piece in response.content.iter_any():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


class Server(uvicorn.Server):
    """uvicorn's server, saying where it listens."""

    async def startup(self, sockets: Any = None) -> None:
        """Print the address on a line of its own."""
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"http://127.0.0.1:{port}", flush=True)


if __name__ == "__main__":
    Server(uvicorn.Config(relay, port=0, lifespan="off", ws="none", log_level="error", access_log=False)).run()
