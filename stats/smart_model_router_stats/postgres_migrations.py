"""A schema of our own in a PostgreSQL database: numbered migrations under an advisory lock."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.shared_state import SharedStateError

if TYPE_CHECKING:
    from collections.abc import Sequence

OLDEST_SERVER = 120_000
"""PostgreSQL 12."""


async def prepare(connection: Any, schema: str, migrations: Sequence[str]) -> None:
    """Bring `schema` to the newest of `migrations`, statements with `{schema}` in the place of its name.

    Raises SharedStateError for a server or a schema that cannot be used. Safe to call from many processes at once.
    """
    version = connection.info.server_version
    if version < OLDEST_SERVER:
        raise SharedStateError(f"PostgreSQL {version // 10_000} is too old: 12 or later is needed")
    async with connection.transaction():
        is_there = await _is_there(connection, schema)
        if is_there and await _done(connection, schema, len(migrations)) == len(migrations):
            return
        cursor = await connection.execute("SELECT pg_is_in_recovery()")
        if (await cursor.fetchone())[0]:
            raise SharedStateError("the server is a read-only standby")
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [zlib.crc32(schema.encode())])
        if not await _is_there(connection, schema):
            cursor = await connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema])
            if await cursor.fetchone():
                wanted = f"drop it, or give the router a database in which it may create {schema}"
                raise SharedStateError(f"the schema {schema} is there and was not made by the router: {wanted}")
            await connection.execute(f"CREATE SCHEMA {schema}")
            columns = "number int PRIMARY KEY, at timestamptz NOT NULL"
            await connection.execute(f"CREATE TABLE {schema}.migration ({columns})")
        done = await _done(connection, schema, len(migrations))
        for number, statements in enumerate(migrations[done:], done + 1):
            await connection.execute(statements.format(schema=schema))
            await connection.execute(f"INSERT INTO {schema}.migration VALUES (%s, clock_timestamp())", [number])  # noqa: S608 - a constant


async def _is_there(connection: Any, schema: str) -> bool:
    """True when the schema was made by the router. By its tables: name look-ups remember what was not there before."""
    found = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    cursor = await connection.execute(f"{found} WHERE n.nspname = %s AND c.relname = 'migration'", [schema])
    return await cursor.fetchone() is not None


async def _done(connection: Any, schema: str, known: int) -> int:
    """The number of migrations that were done. Raises SharedStateError when a later version did more."""
    cursor = await connection.execute(f"SELECT coalesce(max(number), 0) FROM {schema}.migration")  # noqa: S608 - as above
    (done,) = await cursor.fetchone()
    if done > known:
        raise SharedStateError(f"the schema {schema} is of a later version of the router ({done}, not {known})")
    return int(done)
