"""A store of runs in a PostgreSQL database, that any number of machines read and write."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

from smart_model_router.domain.shared_state import ClockReading
from smart_model_router_research.engine.postgres_schema import SCHEMA, SERVER_MIGRATIONS
from smart_model_router_research.engine.run_tables import RunTables
from smart_model_router_research.engine.server_database import CREATING, ServerDatabase, ServerSession
from smart_model_router_research.engine.store_port import StoreUnavailable
from smart_model_router_research.engine.table_store import RETENTION_DAYS, TableRunStore

T = TypeVar("T")
_LOCKED = "SELECT 1 FROM runs WHERE id = %s FOR UPDATE"
_ALONE = "SELECT pg_advisory_xact_lock(%s)"


def server_reading(seconds: float) -> ClockReading:
    """Return the server's time, since 1970, as the clocks by which leases and deadlines are compared."""
    return ClockReading("server", seconds, seconds)


class PostgresRunStore(TableRunStore):
    """Runs and documents in the schema `smr_runs` of a database, `url`: postgresql://user:password@host/database.

    Leases and time limits go by the server's clock, as `reading` has it: those of the machines may differ. Every write
    is one transaction, committed before it returns; a server that restarts is waited for, 10 s at most, but for a
    write of which it is not known whether it was committed. Needs the extra `postgres` (else ConfigurationError) and
    PostgreSQL 12 or later. An older server, a schema of a newer release, and one that is not there are
    StoreUnavailable.
    """

    def __init__(
        self,
        url: str,
        *,
        retention_days: float = RETENTION_DAYS,
        reading: Callable[[float], ClockReading] = server_reading,
    ) -> None:
        super().__init__(retention_days)
        self._url = url
        self._database = ServerDatabase(url, SCHEMA, SERVER_MIGRATIONS)
        self._reading = reading

    @property
    def place(self) -> str:
        """The URL, without user, password and options."""
        return self._database.place

    @property
    def url(self) -> str:
        """The URL with all of it, for what else has its state in the database."""
        return self._url

    async def standing(self) -> str:
        """Return the version of the server, and the number of the schema. Raises StoreUnavailable."""
        await self._database.read(lambda _: None)
        major, minor = divmod(self._database.version, 10_000)
        return f"PostgreSQL {major}.{minor}, schema {len(SERVER_MIGRATIONS)}"

    async def put_document(self, content: bytes) -> str:
        """Keep a document; returns its id, the SHA-256 of its content in hex."""
        name = hashlib.sha256(content).hexdigest()
        if not await self._database.read(lambda session: _document(session, name, "1")):
            keep = "INSERT INTO documents (id, content) VALUES (?, ?) ON CONFLICT DO NOTHING"
            await self._database.write(lambda session: session.execute(keep, (name, content)), "SELECT 1", twice=True)
        return name

    async def get_document(self, document: str) -> bytes:
        """Return a document. Raises KeyError when it is not there."""
        found = await self._database.read(lambda session: _document(session, document, "content"))
        if found is None:
            raise KeyError(document)
        content = bytes(found[0])
        if hashlib.sha256(content).hexdigest() != document:
            raise StoreUnavailable(self.place, f"document {document} is damaged: its content has another SHA-256")
        return content

    async def aclose(self) -> None:
        """Close the connections; safe to call twice."""
        await self._database.aclose()

    async def _read(self, work: Callable[[RunTables], T]) -> T:
        return await self._database.read(lambda session: work(self._tables(session)))

    async def _write(self, run_id: str | None, work: Callable[[RunTables], T], *, twice: bool = False) -> T:
        lock, parameter = (_ALONE, CREATING) if run_id is None else (_LOCKED, run_id)
        return await self._database.write(lambda session: work(self._tables(session)), lock, (parameter,), twice=twice)

    def _tables(self, session: ServerSession) -> RunTables:
        return RunTables(session, self.place, self._reading(session.now), one_host=False)


def _document(session: ServerSession, name: str, column: str) -> tuple[bytes] | None:
    query = f"SELECT {column} FROM documents WHERE id = ?"  # noqa: S608 - a constant
    found: tuple[bytes] | None = session.execute(query, (name,)).fetchone()
    return found
