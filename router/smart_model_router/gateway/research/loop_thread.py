"""An event loop on a thread of its own, for work that would keep the loop of requests waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_HELPERS = 2
"""Threads for blocking work. Each that wants the interpreter makes the loop of requests wait longer for its turn."""


class LoopThread:
    """A loop that runs until `stop`; it does not keep the process alive."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(_HELPERS, thread_name_prefix=name))
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def call(self, made: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, from another one. It is cancelled with its caller."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(made, self._loop))

    async def stop(self) -> None:
        """End the loop and its thread; nothing may run on it any more."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()
