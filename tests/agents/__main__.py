"""`make agents`: real clients, as users install them, against the router in process and `smr serve`. Prints a table.

The exit code is 1 when any of them noticed that it does not talk to its provider. Words on the command line choose
clients by name (`python -m tests.agents codex`). Two minutes of CPU; the first time 1.2 GB are installed in `.agents`.
"""

from __future__ import annotations

import sys

from tests.agents import coding, programs
from tests.agents.rows import Row, Verdict, table

ROWS: tuple[Row, ...] = (*programs.ROWS, *coding.ROWS)


def main(wanted: list[str]) -> int:
    """Run them one by one; the exit code."""
    rows = [row for row in ROWS if not wanted or any(word.lower() in row.client.lower() for word in wanted)]
    verdicts: list[Verdict] = []
    for row in rows:
        for verdict in row.run():
            verdicts.append(verdict)
            print(verdict.client, verdict.how, "FAILED" if verdict.wrong else "ok", sep=": ", file=sys.stderr)
            for wrong in verdict.wrong:
                print(f"  {wrong}", file=sys.stderr)
    print(table(verdicts))
    return int(not rows or any(verdict.wrong for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
