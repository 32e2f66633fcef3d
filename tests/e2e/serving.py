"""Servers written by hand, for what no well-behaved server does."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    """The base URL below which `handler` serves each connection; all of them are closed at the end."""
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(cast("asyncio.Task[None]", asyncio.current_task()))
        with suppress(asyncio.CancelledError, ConnectionError):
            await handler(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        port = server.sockets[0].getsockname()[1]
        yield f"http{'s' if tls else ''}://127.0.0.1:{port}/v1"
    finally:
        server.close()
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections)
