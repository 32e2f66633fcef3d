"""Kept responses in a file: responses.db, which every process of the host reads and writes. Its owner's alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router_stats import responses_schema
from smart_model_router_stats.open_db import filesystem_of
from smart_model_router_stats.responses_schema import RESPONSE_MIGRATIONS
from smart_model_router_stats.sqlite_file import SqliteFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from smart_model_router.domain.shared_state import KeptResponse


class SqliteResponses:
    """One process's way to the file (ports.ResponseStore). `wall` gives epoch seconds.

    An answer is kept for `ttl` seconds; beyond `most` bytes (compressed) the oldest go.
    """

    in_memory = False

    def __init__(
        self,
        path: Path,
        *,
        ttl: float,
        most: int,
        wall: Callable[[], float],
        filesystem: Callable[[Path], str] = filesystem_of,
    ) -> None:
        # What was deleted is to be gone from the file, too.
        self._file = SqliteFile(path, RESPONSE_MIGRATIONS, filesystem=filesystem, pragmas=("secure_delete = ON",))
        self._ttl = ttl
        self._most = most
        self._wall = wall

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    async def secret(self) -> bytes:
        """The secret under which the ids of this file's answers are made."""
        return await self._file.ask(responses_schema.secret_of)

    async def add(self, rows: Sequence[KeptResponse]) -> None:
        """Keep these."""
        now = self._wall()
        await self._file.write(lambda connection: responses_schema.add(connection, rows, now, self._ttl, self._most))

    async def chain(self, response: str, owner: str, generations: int | None = None) -> tuple[KeptResponse, ...]:
        """An answer and those it goes on from, the newest first; () when it is not there."""
        now, most = self._wall(), -1 if generations is None else generations
        return await self._file.ask(lambda connection: responses_schema.chain(connection, response, owner, now, most))

    async def remove(self, response: str, owner: str) -> bool:
        """Forget an answer. False when it is not there."""
        removed = await self._file.write(lambda connection: responses_schema.remove(connection, response, owner))
        if removed:
            await self._file.empty_log()
        return removed

    async def aclose(self) -> None:
        """Close the file."""
        await self._file.aclose()
