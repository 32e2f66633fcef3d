"""`make agents`: real clients, as users install them, against the router in process and `smr serve`.

Prints a table of how they ran, and writes the lines of these clients in the client table of docs/dialects.md. The exit
code is 1 when a client noticed that it does not talk to its provider, took a shortened answer for whole, or hung.
Words on the command line choose clients by name (`make agents ONLY=codex`). The first time 2 GB are installed in
`.agents`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime

from tests.agents import coding, document, mcp_clients, programs, schemas
from tests.agents.environments import ROOT
from tests.agents.rows import Cell, Row, Verdict, table

ROWS: tuple[Row, ...] = (*programs.ROWS, *schemas.ROWS, *coding.ROWS, *mcp_clients.ROWS)
DOCUMENT = ROOT / "docs" / "dialects.md"


def main(wanted: list[str]) -> int:
    """Run them one by one; the exit code."""
    rows = [row for row in ROWS if not wanted or any(word.lower() in row.client.lower() for word in wanted)]
    told: list[Verdict | Cell] = []
    for row in rows:
        began = time.monotonic()
        mine = []
        for one in row.run():
            mine.append(one)
            print(one.client, one.how, _outcome(one), sep=": ", file=sys.stderr)
            for wrong in one.wrong:
                print(f"  {wrong}", file=sys.stderr, flush=True)
        print(f"{row.client}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        told += mine
        _write(one for one in mine if isinstance(one, Cell))
    print(table(one for one in told if isinstance(one, Verdict)))
    failed = [one for one in told if one.failed]
    print(f"failed: {len(failed)} of {len(told)}", *(f"{one.client}: {one.how}" for one in failed), sep="\n  ")
    return int(not rows or bool(failed))


def _write(cells: Iterable[Cell]) -> None:
    """Write a client's lines at once, so that a run that is ended keeps what it found."""
    clients = list(dict.fromkeys(row.client for row in ROWS))
    today = datetime.now(UTC).date().isoformat()  # noqa: TID251  the day of the run is written down
    text = document.updated(DOCUMENT.read_text(encoding="utf-8"), cells, clients, today)
    DOCUMENT.write_text(text, encoding="utf-8")


def _outcome(one: Verdict | Cell) -> str:
    if isinstance(one, Cell):
        return one.mark
    return "FAILED" if one.failed else "ok"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
