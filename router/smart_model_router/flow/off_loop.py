"""Work on a large body, in a thread beside the loop: other requests go on meanwhile.

Two threads in all: the interpreter runs one at a time, and several that compute would each take their turn before the
loop gets its own. The second one is for bodies of many megabytes, which take seconds: those of a few hundred kilobytes,
as long conversations have, do not wait behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from smart_model_router.domain.fork_hooks import in_children

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

LONG_BYTES = 4 * 1024 * 1024
"""Work on a body that is longer has a thread of its own."""


class _Worker:
    """A thread, begun with the first body that it is for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pool: ThreadPoolExecutor | None = None
        in_children(self._forget)

    def pool(self) -> ThreadPoolExecutor:
        """The executor to give work to."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only large bodies pay

            self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"smart-model-router {self._name}")
        return self._pool

    def _forget(self) -> None:
        """A forked process has no thread of its parent's."""
        self._pool = None


_LARGE = _Worker("large bodies")
_LONG = _Worker("long bodies")


async def off_loop(work: Callable[[], T], size: int = 0) -> T:
    """Run `work` on a body of `size` bytes in a thread; return or raise as it does. Cancelled, it runs on, ignored."""
    worker = _LONG if size > LONG_BYTES else _LARGE
    return await asyncio.get_running_loop().run_in_executor(worker.pool(), work)
