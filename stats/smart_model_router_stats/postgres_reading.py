"""Fleet statistics read from PostgreSQL: as `router.stats()` has them, and as the past of a new process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from smart_model_router_stats.estimators import RollingHistogram
from smart_model_router_stats.open_db import StoreUnavailableError
from smart_model_router_stats.reading import AVERAGED_MINUTES, Rows, StoreReader, pasts_of

if TYPE_CHECKING:
    from pathlib import Path

    from smart_model_router_stats.postgres_server import Connection, StatsServer
    from smart_model_router_stats.reading import Past

# ruff: noqa: S608 - made of the constants of this file

_ALL_TIME = """
SELECT t.name, h.kind, h.bucket, h.count FROM @schema@.hist_total h JOIN @schema@.target t ON t.id = h.target
"""
_MINUTES = """
SELECT t.name, h.kind, h.minute, h.bucket, h.count
FROM @schema@.hist_minute h JOIN @schema@.target t ON t.id = h.target
WHERE h.minute > %(minute)s::integer - %(minutes)s::integer AND h.minute <= %(minute)s::integer
"""
# A minute weighs half of the one after it, as in the views.
_WEIGHT = "(0.5::double precision ^ (%(minute)s::integer - s.minute))"
_AVERAGES = f"""
SELECT t.name, max(s.minute),
  sum(s.latency_sum * {_WEIGHT}) / nullif(sum(s.latency_count * {_WEIGHT}), 0),
  sum(s.ttft_sum * {_WEIGHT}) / nullif(sum(s.ttft_count * {_WEIGHT}), 0),
  sum(s.pace_sum * {_WEIGHT}) / nullif(sum(s.pace_count * {_WEIGHT}), 0)
FROM @schema@.sum_minute s JOIN @schema@.target t ON t.id = s.target
WHERE s.minute > %(minute)s::integer - %(minutes)s::integer AND s.minute <= %(minute)s::integer GROUP BY t.id
"""
_ONE_INSTANT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


def read_fleet_past(server: StatsServer, connection: Connection, wall: float, now: float) -> list[Past]:
    """Every target's past, `now` being the instant that is `wall` seconds since the epoch. Raises psycopg.Error."""
    spans = {"minute": int(wall // 60), "minutes": RollingHistogram.MINUTES}
    with connection.transaction():
        connection.execute(_ONE_INSTANT)
        everything = connection.execute(server.query(_ALL_TIME)).fetchall()
        minutes = connection.execute(server.query(_MINUTES), spans).fetchall()
        averages = connection.execute(server.query(_AVERAGES), {**spans, "minutes": AVERAGED_MINUTES}).fetchall()
    return pasts_of(everything, minutes, averages, wall, now)


class FleetReader(StoreReader):
    """Reads the statistics of a fleet from `server`, a replica included.

    `state` is the path of a store of this host, beside which its processes share what the operator said.
    """

    SCOPE = "fleet"
    _NOW = "extract(epoch FROM now())"

    def __init__(self, server: StatsServer, state: Path | None = None) -> None:
        super().__init__(server.name, server.name, state)
        self.server = server

    @contextmanager
    def looking(self) -> Generator[Rows]:
        """The database at one instant, through a connection of its own."""
        try:
            with self.server.connect() as connection:
                if self.server.number(connection) == 0:
                    others = ", ".join(self.server.others(connection))
                    hint = f"there are {others}" if others else "has a router with this store run?"
                    raise StoreUnavailableError(self.name, f"it has no schema {self.server.schema}: {hint}")
                with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
                    cursor.execute(_ONE_INSTANT)
                    cursor.execute("SELECT set_config('search_path', %s, true)", (self.server.search_path,))

                    def rows(query: str, *values: Any) -> list[dict[str, Any]]:
                        cursor.execute(self.server.query(query.replace("?", "%s")), values)
                        return cursor.fetchall()

                    yield rows
        except psycopg.Error as error:
            raise StoreUnavailableError(self.name, self.server.reason(error)) from None

    def _problem(self, rows: Rows) -> str | None:
        del rows  # a replica is read to spare the primary, to which processes may well write
        return None
