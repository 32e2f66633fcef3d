"""The portal: how callers on every event loop and thread reach the one loop that a router lives on."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent import futures
from typing import Any, TypeVar
from weakref import WeakSet

from smart_model_router.domain.errors import RouterUnavailable

T = TypeVar("T")
Make = Callable[[], Coroutine[Any, Any, T]]

_running = asyncio._get_running_loop
_LOOK = 1.0
"""Seconds between two checks that the home loop still runs: a loop that stops gives no notice."""


class WouldBlock(RuntimeError):
    """A synchronous call on the very thread that would have to answer it."""


class Portal:
    """The way to a router's home loop.

    Home is the loop of the first call: an asynchronous caller's own; for a synchronous caller that of one thread
    which the process keeps for all of its routers. When home has stopped, the loop of the next call becomes home;
    `moved` is called there first, to give back what the old one left open. Calls under way on the old loop end as
    RouterUnavailable for callers elsewhere.
    """

    def __init__(self, moved: Callable[[], object]) -> None:
        self._moved = moved
        self._lock = threading.RLock()  # the collector may end a stream in the middle of anything
        self._loop: asyncio.AbstractEventLoop | None = None
        self._orphaned = False
        _PORTALS.add(self)

    @property
    def here(self) -> bool:
        """True when the running code is on the home loop: one comparison, the only cost for callers there."""
        return self._loop is not None and _running() is self._loop

    async def reach(self, make: Make[T]) -> T:
        """Await a coroutine at home. Cancellation reaches it; what it held is given back there a moment later.

        Raises what it raises, and RouterUnavailable when home stops meanwhile.
        """
        here = asyncio.get_running_loop()
        while True:
            home = self._settled(lambda: here)
            if home is here:
                return await make()
            future = _sent(make, home)
            if future is not None:
                return await _answer(future, home)

    def run(self, make: Make[T]) -> T:
        """Run a coroutine at home, and wait for it. Whatever interrupts the wait cancels it.

        Raises WouldBlock on the very thread that it would have to wait for, else as `reach`.
        """
        while True:
            home = self._settled(_THREAD.loop)
            if _running() is home:
                raise WouldBlock(
                    "this router is in use by asynchronous code on this thread, which a synchronous call would stop: "
                    "use the asynchronous client, or give the synchronous one a router of its own"
                )
            future = _sent(make, home)
            if future is not None:
                return _result(future, home)

    def call(self, act: Callable[[], T]) -> T:
        """Call a short function on the home loop, and wait for it; while no home loop runs it is called here."""
        if self.here:
            return act()
        with self._lock:
            if not self._alive():
                return act()

        async def there() -> T:
            return act()

        return self.run(there)

    def tell(self, act: Callable[[], object]) -> None:
        """Call a function on the home loop without waiting for it; while no home loop runs it is called here."""
        if self.here:
            act()
            return
        with self._lock:
            home = self._loop
            if home is None or not self._alive():
                act()
                return
        try:
            home.call_soon_threadsafe(act)
        except RuntimeError:  # it stopped just now
            act()

    def _alive(self) -> bool:
        return self._loop is not None and self._loop.is_running() and not self._orphaned

    def _settled(self, candidate: Callable[[], asyncio.AbstractEventLoop]) -> asyncio.AbstractEventLoop:
        """The home loop, which runs; `candidate` becomes it when there is none."""
        with self._lock:
            if self._loop is not None and self._alive():
                return self._loop
            first, home = self._loop is None, candidate()
            self._loop, self._orphaned = home, False
            if first:
                return home
            if home is _running():
                self._moved()
            else:
                home.call_soon_threadsafe(self._moved)
            return home

    def _forked(self) -> None:
        """Count the loop as stopped in a forked child: no other thread lives there."""
        self._lock, self._orphaned = threading.RLock(), True


def _sent(make: Make[T], home: asyncio.AbstractEventLoop) -> futures.Future[T] | None:
    """A coroutine begun on a loop; None when that was closed just now."""
    coroutine = make()
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, home)
    except RuntimeError:
        coroutine.close()
        return None


async def _answer(future: futures.Future[T], home: asyncio.AbstractEventLoop) -> T:
    mine, silent = asyncio.wrap_future(future), 0
    try:
        while not mine.done() and silent < 2:  # between two `run_until_complete` a loop stands still, too
            await asyncio.wait((mine,), timeout=_LOOK)
            silent = 0 if home.is_running() else silent + 1
    except asyncio.CancelledError:
        mine.cancel()
        raise
    if not mine.done() or mine.cancelled():
        mine.cancel()
        raise _lost()
    return mine.result()


def _result(future: futures.Future[T], home: asyncio.AbstractEventLoop) -> T:
    silent = 0
    try:
        while not future.done() and silent < 2:
            futures.wait((future,), timeout=_LOOK)
            silent = 0 if home.is_running() else silent + 1
    except BaseException:
        future.cancel()
        raise
    if not future.done() or future.cancelled():
        future.cancel()
        raise _lost()
    return future.result()


def _lost() -> RouterUnavailable:
    return RouterUnavailable("the event loop that this router lived on stopped before it had answered; ask again")


class _Thread:
    """One daemon thread with an event loop, begun when first needed, begun anew in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

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

    def forget(self) -> None:
        self._lock, self._loop = threading.Lock(), None


_PORTALS: WeakSet[Portal] = WeakSet()
_THREAD = _Thread()


def _after_fork() -> None:
    _THREAD.forget()
    for portal in tuple(_PORTALS):
        portal._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
