"""Work on a large body, in a thread beside the loop: other requests go on meanwhile.

One thread in all: the interpreter runs one at a time, and several that compute would each take their turn before the
loop gets its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from smart_model_router.forks import in_children

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")


class _Worker:
    """The thread, begun with the first large body."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        in_children(self._forget)

    def pool(self) -> ThreadPoolExecutor:
        """Where work is given."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only large bodies pay

            self._pool = ThreadPoolExecutor(1, thread_name_prefix="smart-model-router large bodies")
        return self._pool

    def _forget(self) -> None:
        """A forked process has no thread of its parent's."""
        self._pool = None


_WORKER = _Worker()


async def off_loop(work: Callable[[], T]) -> T:
    """What `work` returns or raises, done in the thread. Cancelled, it ends unheard."""
    return await asyncio.get_running_loop().run_in_executor(_WORKER.pool(), work)
