"""Options and arguments that several commands of `smr` have."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer


def _prompt(given: str) -> str:
    """The prompt itself, or that on stdin for `-`."""
    raw = sys.stdin.buffer.read() if given == "-" else os.fsencode(given)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"it is not UTF-8 (byte {error.start})") from None
    if not text.strip():
        raise typer.BadParameter("it is empty")
    return text


Prompt = Annotated[str, typer.Argument(help="What to ask; - reads it from stdin.", callback=_prompt)]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="The configuration; else it is looked for (see smr doctor)."),
]
Model = Annotated[str | None, typer.Option("--model", "-m", help="A public model name (see smr models).")]
Tier = Annotated[str | None, typer.Option("--tier", "-t", help="A tier other than the first.")]
Db = Annotated[Path | None, typer.Option("--db", metavar="FILE", help="The file; else the configuration's store.")]
Index = Annotated[
    Path | None, typer.Option("--db", metavar="FILE", help="The index; else search.index, else the user's own.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Url = Annotated[str | None, typer.Option("--url", help="The gateway's address; else the configuration's.")]
Through = Annotated[
    str | None, typer.Option("--url", help="Ask through the gateway at this address; its key: see smr targets.")
]
Timeout = Annotated[float | None, typer.Option(min=0.001, help="Seconds in all.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A target (see smr targets), or a provider: all of its.")]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, shown with the target and in the log.")]
