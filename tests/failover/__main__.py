"""`make failoverbench`: sixteen failures against `smr serve` on shipped defaults and against a loop. Prints a table.

The exit code is 1 when a row does not pass on `smr serve`. About 80 seconds a run. LiteLLM's proxy and Portkey's
gateway can stand in its place (`--gateway litellm`); they are installed into environments of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.failover.bench import play
from tests.failover.gateways import GATEWAYS, OURS
from tests.failover.report import missing, table
from tests.failover.rows import ROWS, Row


def main(arguments: list[str]) -> int:
    """Play the rows and print them; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.failover", description="Plays failures one by one.")
    parser.add_argument("--rows", type=_rows, default=ROWS, metavar="S01,S05", help="these rows only")
    parser.add_argument("--runs", type=int, default=1, help="so many runs, each with a new gateway")
    parser.add_argument("--gateway", choices=GATEWAYS, default="defaults", help="`tuned` is `smr serve`, buffered")
    parser.add_argument("--shared", action="store_true", help="rows one after another, over one pair of providers")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs: at least 1")
    failed = False
    for number in range(1, options.runs + 1):
        gateway, loop = asyncio.run(play(options.rows, options.gateway, shared=options.shared))
        print(f"run {number} of {options.runs}\n\n{table(options.rows, gateway, loop)}")
        if options.gateway in OURS and (names := missing(options.rows, gateway)):
            print(f"MISSED: {', '.join(names)} did not pass")
            failed = True
        print(flush=True)
    return int(failed)


def _rows(text: str) -> tuple[Row, ...]:
    named = {row.name: row for row in ROWS}
    unknown = [name for name in text.split(",") if name not in named]
    if unknown:
        raise argparse.ArgumentTypeError(f"no row {', '.join(unknown)}; there are {', '.join(named)}")
    return tuple(named[name] for name in text.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
