"""A reload, as a signal asks for it."""

from __future__ import annotations

import asyncio

from smart_model_router.gateway.asgi_app import Gateway
from smart_model_router.gateway.gc_tuning import settle


class Reloading:
    """Has the gateway reloaded, once at a time. Called on the loop."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._task: asyncio.Task[None] | None = None

    def __call__(self) -> None:
        """Begin, unless it is being done."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._reload())

    async def _reload(self) -> None:
        """Read the configuration again, and settle with the new one."""
        if await self._gateway.reload():
            settle()
