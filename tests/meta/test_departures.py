"""Each founding rule that we changed on purpose is written down, with the test that shows our rule."""

from __future__ import annotations

import pytest

from tests.meta.repository import ROOT, names_a_test, node_ids, table_rows

ROWS = list(table_rows((ROOT / "docs" / "departures.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_departure_says_theirs_ours_why_and_shows_it(row: list[str]) -> None:
    """A row has all four cells, and every test in the last one exists."""
    founding_rule, ours, why, shown_by = row
    named = node_ids(shown_by)
    assert founding_rule
    assert ours
    assert why
    assert named
    assert [node_id for node_id in named if not names_a_test(node_id)] == []
