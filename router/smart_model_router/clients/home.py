"""Where a router lives: on one event loop, and how callers on other loops and threads reach it there."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from smart_model_router.router import SmartModelRouter

T = TypeVar("T")
Make = Callable[[], Coroutine[Any, Any, T]]


class WouldBlock(RuntimeError):
    """A synchronous call on the very thread that would have to answer it."""


class Home:
    """The event loop of one router.

    It is the loop of the first client that asks: an asynchronous client's own, or for a synchronous client that of
    the portal, a thread shared by the whole process. When that loop has stopped, the next one that asks takes over.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.open: set[object] = set()
        """Streams in use here: one that nobody holds may be collected on any thread, but must be ended on this loop."""

    async def reach(self, make: Make[T]) -> T:
        """Await a coroutine where the router lives. Cancellation reaches it."""
        here = asyncio.get_running_loop()
        loop = self._settled(lambda: here)
        if loop is here:
            return await make()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), loop))

    def run(self, make: Make[T]) -> T:
        """Run a coroutine where the router lives, and wait for it. Whatever interrupts the wait cancels it.

        Raises WouldBlock on the very thread that it would have to wait for.
        """
        loop = self._settled(_PORTAL.loop)
        if self.is_here(loop):
            raise WouldBlock(
                "this router is in use by asynchronous code on this thread, which a synchronous call would stop: "
                "use the asynchronous client, or give the synchronous one a router of its own"
            )
        future = asyncio.run_coroutine_threadsafe(make(), loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def tell(self, act: Callable[[], object]) -> None:
        """Have something done where the router lives, soon, without waiting; nothing when that loop has stopped."""
        loop = self._loop
        if loop is None or not loop.is_running():
            return
        if self.is_here(loop):
            act()
            return
        try:
            loop.call_soon_threadsafe(act)
        except RuntimeError:  # it stopped just now
            return

    @staticmethod
    def is_here(loop: asyncio.AbstractEventLoop) -> bool:
        """Whether this thread is running that loop."""
        try:
            return asyncio.get_running_loop() is loop
        except RuntimeError:
            return False

    def _settled(self, candidate: Callable[[], asyncio.AbstractEventLoop]) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or not self._loop.is_running():
                self._loop = candidate()
                self.open.clear()  # what was open ended with the loop before
            return self._loop


def home_of(router: SmartModelRouter) -> Home:
    """The home of a router, the same for every client of it."""
    with _HOMES_LOCK:
        return _HOMES.setdefault(router, Home())


class _Portal:
    """One daemon thread with an event loop, begun when first needed, begun anew in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or not self._loop.is_running():
                self._loop = self._begin()
            return self._loop

    def _begin(self) -> asyncio.AbstractEventLoop:
        loop, running = asyncio.new_event_loop(), threading.Event()
        loop.call_soon(running.set)
        threading.Thread(target=loop.run_forever, name="smart-model-router", daemon=True).start()
        running.wait()
        return loop

    def _forget(self) -> None:
        self._lock, self._loop = threading.Lock(), None


_PORTAL = _Portal()
_HOMES: WeakKeyDictionary[SmartModelRouter, Home] = WeakKeyDictionary()
_HOMES_LOCK = threading.Lock()
