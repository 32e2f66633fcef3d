"""Hooks that run before a fork and in the forked process, which has no threads, locks or file handles of its parent."""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from collections.abc import Callable

_LOG = logging.getLogger(__name__)
_METHODS: set[weakref.WeakMethod[Callable[[], None]]] = set()
_BEFORE: set[weakref.WeakMethod[Callable[[], None]]] = set()


def in_children(method: Callable[[], None]) -> None:
    """Call a bound method in every process that is forked from this one, before anything else is done there.

    The hook does not keep the method's object alive. Comparing process ids instead would cost a system call each time.
    A method that raises does not prevent the calls of the others.
    """
    _METHODS.add(weakref.WeakMethod(method, _METHODS.discard))


def before_forks(method: Callable[[], None]) -> None:
    """Call a bound method in this process whenever it is about to fork; else as `in_children`."""
    _BEFORE.add(weakref.WeakMethod(method, _BEFORE.discard))


def _call(methods: set[weakref.WeakMethod[Callable[[], None]]]) -> None:
    for reference in tuple(methods):
        method = reference()
        if method is not None:
            try:
                method()
            except Exception:  # noqa: BLE001 - a fork goes on whatever one of them does
                _LOG.exception("at a fork %s failed", method.__qualname__)


# While the interpreter takes itself apart, objects die after what their weak references would call.
atexit.register(_METHODS.clear)
atexit.register(_BEFORE.clear)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lambda: _call(_BEFORE), after_in_child=lambda: _call(_METHODS))
