"""What a forked process begins with: threads, locks and file handles stayed behind with its parent."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable

_METHODS: set[weakref.WeakMethod[Callable[[], None]]] = set()


def in_children(method: Callable[[], None]) -> None:
    """Call a bound method in every process that is forked from this one, before anything else is done there.

    Its object is not kept for it. To ask for the process's number instead is a system call, each time.
    """
    _METHODS.add(weakref.WeakMethod(method, _METHODS.discard))


def _begin() -> None:
    for reference in tuple(_METHODS):
        method = reference()
        if method is not None:
            method()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)
