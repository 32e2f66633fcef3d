"""The client table of docs/dialects.md is as `make agents` writes it: a line for each API, a mark in each cell."""

from __future__ import annotations

import re

import pytest

from tests.agents import coding, document, programs
from tests.agents.faults import COLUMNS
from tests.agents.plan import DIALECTS
from tests.agents.rows import Cell, Mark
from tests.meta.repository import ROOT

TEXT = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")
LINES = document.lines(TEXT)
CLIENTS = [row.client for row in (*programs.ROWS, *coding.ROWS)]
FAILURES = [mark for mark in Mark if mark not in (Mark.WORKS, Mark.ERROR)]
_DIALECT = "|".join(name.capitalize() for name in DIALECTS)
_MARK = "|".join(re.escape(mark) for mark in Mark)
_SOME = rf"({_MARK}) \(({_DIALECT})(, ({_DIALECT}))*\)"
_CELL = rf"(-|{_MARK}|{_SOME}(, {_SOME})+)"
LINE = re.compile(rf"[^|]+ \| [^|]+ \| ({_DIALECT})( \| {_CELL}){{{len(COLUMNS)}}} \| \d{{4}}-\d\d-\d\d")


def cell(fault: str, dialect: str, mark: Mark, client: str = "codex") -> Cell:
    """A cell of a client."""
    return Cell(client, "1.2", "responses", dialect, fault, mark)


@pytest.mark.parametrize("client", dict.fromkeys(CLIENTS))
def test_every_client_of_the_lane_has_a_line(client: str) -> None:
    """The table was written by a run that had all of them."""
    assert any(named == client for named, _ in LINES)


def test_no_client_takes_a_shortened_answer_for_whole() -> None:
    """Where its provider fails a client works or sees an error; without a fault it works."""
    marks = {line[:3]: line[3:-1] for line in LINES.values()}
    assert [line for line, cells in marks.items() if cells[0] != Mark.WORKS] == []
    assert [line for line, cells in marks.items() if any(bad in cell for cell in cells for bad in FAILURES)] == []


def test_each_line_has_a_mark_in_each_cell() -> None:
    """Client, version and API, marks by dialect of the provider, and the day of the run."""
    assert [line for line in LINES.values() if not LINE.fullmatch(" | ".join(line))] == []
    assert {line[0] for line in LINES.values()} <= set(CLIENTS)


def test_the_head_names_the_columns() -> None:
    """Above the lines stand the column titles, as the lane has them."""
    found = document.BLOCK.search(TEXT)
    assert found is not None
    assert found[0].startswith(f"| {' | '.join(document.HEAD)} |\n| --- |")


def test_a_run_replaces_its_own_lines() -> None:
    """Lines of other clients stay, those of clients that the lane has no more go, and the order is the lane's."""
    cells = [cell("none", dialect, Mark.WORKS, client) for client in ("gone", "codex", "aider") for dialect in DIALECTS]
    bare = document.updated(TEXT, [], [], "")
    before = document.updated(bare, cells, ["aider", "codex", "gone"], "2026-01-01")
    after = document.updated(before, [cell("none", "chat", Mark.ERROR)], ["codex", "aider"], "2026-02-02")
    assert document.lines(after) == {
        ("codex", "Responses"): ("codex", "1.2", "Responses", "error", *("-",) * 5, "2026-02-02"),
        ("aider", "Responses"): ("aider", "1.2", "Responses", "works", *("-",) * 5, "2026-01-01"),
    }
    assert [key[0] for key in document.lines(after)] == ["codex", "aider"]


def test_marks_that_differ_name_their_dialects() -> None:
    """The best comes first; equal ones share a name."""
    cells = [cell("cut", "chat", Mark.ERROR), cell("cut", "messages", Mark.WORKS), cell("cut", "responses", Mark.ERROR)]
    (line,) = document.lines(document.updated(TEXT, cells, ["codex"], "2026-01-01")).values()
    assert line[6] == "works (Messages), error (Chat, Responses)"


@pytest.mark.parametrize(
    ("fault", "mark", "failed"),
    [
        ("none", Mark.WORKS, False),
        ("none", Mark.ERROR, True),
        ("cut", Mark.WORKS, False),
        ("cut", Mark.ERROR, False),
        ("cut", Mark.HANG, True),
        ("cut", Mark.SHORTENED, True),
    ],
)
def test_what_the_lane_fails_by(fault: str, mark: Mark, failed: bool) -> None:
    """A client may err where the provider fails; it may neither hang nor take a part for the whole."""
    assert cell(fault, "chat", mark).failed is failed
