"""The client table of docs/dialects.md: a line for each client's API, written by the lane between two markers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from tests.agents.faults import COLUMNS
from tests.agents.plan import DIALECTS
from tests.agents.rows import Cell, Mark

BLOCK = re.compile(r"(?<=<!-- the client table: written by `make agents` -->\n).*?(?=<!-- end -->)", re.DOTALL)
HEAD = ("client", "version", "speaks", *(column.title for column in COLUMNS.values()), "run")
Line = tuple[str, ...]
Key = tuple[str, str]
"""Client and API."""


def updated(text: str, cells: Iterable[Cell], clients: Sequence[str], date: str) -> str:
    """Return the document with the lines of these cells anew; others of `clients` stay, and the rest is left out."""
    known = lines(text) | _written(cells, date)
    order = [(client, dialect.capitalize()) for client in clients for dialect in DIALECTS]
    rows = [HEAD, ("---",) * len(HEAD), *(known[key] for key in order if key in known)]
    block = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return BLOCK.sub(lambda _: block, text)


def lines(text: str) -> dict[Key, Line]:
    """Return the lines of a document's table."""
    found = BLOCK.search(text)
    if found is None:
        raise ValueError("docs/dialects.md has no markers of the client table")
    rows = [tuple(cell.strip() for cell in row.strip("| ").split(" | ")) for row in found[0].splitlines()[2:]]
    return {(row[0], row[2]): row for row in rows}


def _written(cells: Iterable[Cell], date: str) -> dict[Key, Line]:
    marks: dict[Key, dict[str, dict[str, Mark]]] = {}
    versions: dict[Key, str] = {}
    for cell in cells:
        key = cell.client, cell.api.capitalize()
        versions[key] = cell.version
        marks.setdefault(key, {}).setdefault(cell.fault, {})[cell.dialect] = cell.mark
    return {
        key: (key[0], versions[key], key[1], *(_cell(columns.get(fault, {})) for fault in COLUMNS), date)
        for key, columns in marks.items()
    }


def _cell(marks: Mapping[str, Mark]) -> str:
    """One mark where the provider's dialect makes no difference, else each with its dialects."""
    found = sorted(set(marks.values()), key=list(Mark).index)
    if len(found) < 2:
        return found[0] if found else "-"
    named = {mark: [name.capitalize() for name in DIALECTS if marks.get(name) is mark] for mark in found}
    return ", ".join(f"{mark} ({', '.join(names)})" for mark, names in named.items())
