"""Kept responses in memory: of a router without a store, and the verified fake of ports.ResponseStore."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from smart_model_router.domain.shared_state import SharedStateError
from smart_model_router_stats.responses_schema import SECRET_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from smart_model_router.domain.shared_state import KeptResponse


class MemoryResponses:
    """It passes tests/conformance/response_stores.py. `failure`, when set, is what every question is answered with."""

    in_memory = True

    def __init__(self, *, ttl: float, most: int, wall: Callable[[], float]) -> None:
        self._ttl = ttl
        self._most = most
        self._wall = wall
        self._secret = secrets.token_bytes(SECRET_BYTES)
        self._rows: dict[str, tuple[KeptResponse, float]] = {}
        self._size = 0
        self.failure = ""

    async def secret(self) -> bytes:
        """The secret under which the ids of these answers are made."""
        self._ask()
        return self._secret

    async def add(self, rows: Sequence[KeptResponse]) -> None:
        """Keep these."""
        now = self._ask()
        for row in rows:
            if row.id not in self._rows and row.size <= self._most:
                self._size += row.size
                for kept in (*self._chain(row.parent, row.owner)[::-1], row):
                    self._rows.pop(kept.id, None)
                    self._rows[kept.id] = kept, now + self._ttl
        for oldest, (_, until) in tuple(self._rows.items()):
            if now < until <= now + self._ttl and self._size <= self._most:
                break
            self._forget(oldest)

    async def chain(self, response: str, owner: str, generations: int | None = None) -> tuple[KeptResponse, ...]:
        """An answer and those it goes on from, the newest first; () when it is not there."""
        now = self._ask()
        found = self._chain(response, owner)[:generations]
        return found if found and self._rows[response][1] > now else ()

    async def remove(self, response: str, owner: str) -> bool:
        """Forget an answer. False when it is not there."""
        self._ask()
        row = self._rows.get(response)
        if row is None or row[0].owner != owner:
            return False
        self._forget(response)
        return True

    async def aclose(self) -> None:
        """Nothing to let go of."""

    def _chain(self, response: str | None, owner: str) -> tuple[KeptResponse, ...]:
        found: list[KeptResponse] = []
        while response is not None and response in self._rows and self._rows[response][0].owner == owner:
            found.append(self._rows[response][0])
            response = found[-1].parent
        return tuple(found)

    def _forget(self, response: str) -> None:
        row, _ = self._rows.pop(response)
        self._size -= row.size

    def _ask(self) -> float:
        if self.failure:
            raise SharedStateError(self.failure)
        return self._wall()
