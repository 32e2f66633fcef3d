"""docs/statistics.md is true: its SQL runs, and it describes every column of every view."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smart_model_router.domain.events import BreakerChanged
from smart_model_router.domain.outcome import Usage
from smart_model_router_stats.open_db import open_store
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.sqlite import SqliteStore
from tests.store_files import attempt, rows

DOCUMENT = (Path(__file__).parents[3] / "docs" / "statistics.md").read_text("utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.DOTALL)
SECTIONS = re.findall(r"^\*\*(.+?)\*\*(.*?)(?=^\*\*|^## )", DOCUMENT, re.DOTALL | re.MULTILINE)

ON_SERVERS_ALONE = {"machine"}
"""Columns that tests/conformance/test_fleet_statistics.py finds on a server."""


def described() -> dict[str, set[str]]:
    """The columns the document gives each view."""
    found = {}
    for heading, text in SECTIONS:
        cells = re.findall(r"^\| (`.+?) \|", text, re.MULTILINE)
        names = [name for cell in cells for name in re.findall(r"`(\S+?)`", cell)]
        columns = {name.replace("<span>", span) for name in names for span in ("15_min", "all_time")}
        for view in re.findall(r"`(v_\w+)`", heading):
            found[view] = columns
    return found


@pytest.mark.asyncio
@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
async def test_a_common_question_has_an_answer(tmp_path: Path, query: str) -> None:
    """Each of the document's queries runs as it is written over a file with calls in it."""
    store = SqliteStore(tmp_path / "s.db")
    for _ in range(20):
        store.observe(attempt(usage=Usage(10, 20, 6)))
        store.observe(attempt(ttft=0.5))
    event = BreakerChanged(at=0.0, owner="a/big", kind="whole", from_state="closed", to_state="open", reason="ratio")
    store.emit(event)
    await store.aclose()
    expected = "v_requests" not in query
    assert bool(rows(tmp_path / "s.db", query)) is expected


def test_every_column_is_described_and_there(tmp_path: Path) -> None:
    """No view, and no column of one, is missing from the document or invented by it."""
    open_store(tmp_path / "s.db", STATS_MIGRATIONS).close()
    views = {name for (name,) in rows(tmp_path / "s.db", "SELECT name FROM sqlite_master WHERE type = 'view'")}
    told = described()
    assert told.keys() == views
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        there = {view: {row[1] for row in connection.execute(f"PRAGMA table_info({view})")} for view in views}
    missing = {view: columns - told[view] for view, columns in there.items()}
    assert missing == {view: set() for view in views}
    everywhere = set().union(*there.values(), ON_SERVERS_ALONE)
    assert set().union(*told.values()) <= everywhere
