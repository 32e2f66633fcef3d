"""`smr research check`: the statements of a file, each checked against its sources."""

from __future__ import annotations

import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from smart_model_router.cli.input_files import opening, tell_left_out
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line, printable
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep.checking import SupportStatus
from smart_model_router_research.deep.pairs import SearchedText, SourcedStatement, check_statement, read_pairs
from smart_model_router_scoring.options import Notes

if TYPE_CHECKING:
    from smart_model_router.cli.research_commands import ResearchCheck


def run_check(asked: ResearchCheck) -> int:
    """Print the result of each statement, and how many are supported.

    Raises ConfigurationError for a file without any.
    """
    notes = Notes()
    text = _read(asked.file)
    source = lru_cache(maxsize=100)(SearchedText)
    counts: Counter[SupportStatus] = Counter()
    for each in read_pairs(text, notes):
        found = check_statement(each.statement, [source(text, each.title) for text in each.sources], each.quote)
        counts[found.status] += 1
        if asked.as_json:
            print_json(
                {
                    "id": each.id,
                    "statement": each.statement,
                    "status": found.status,
                    "reasons": list(found.reasons),
                    "source": found.source,
                    "quote": found.quote,
                    "instead": found.instead,
                }
            )
        else:
            _print(each, found.status, found.reasons, found.instead)
    tell_left_out(Path(asked.file), notes)
    left_out = sum(notes.counts.values())
    if not counts:
        raise ConfigurationError("FILE", str(asked.file), "at least one line with a statement and its source is needed")
    total, supported = counts.total() + left_out, counts[SupportStatus.SUPPORTED]
    parts = [f"{counts[status]} {status}" for status in SupportStatus]
    parts += [f"{left_out} left out"] if left_out else []
    print_line(f"statements: {total}: {', '.join(parts)}; {supported / total:.1%} of all supported")
    below = asked.fail_below is not None and supported / total < asked.fail_below
    return ExitCode.DEGRADED if below else ExitCode.OK


def _read(file: Path) -> str:
    """Return the text of a file, or of stdin for `-`. Raises ConfigurationError for what is not UTF-8."""
    if str(file) == "-":
        content = sys.stdin.buffer.read()
    else:
        with opening("FILE", file):
            content = file.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError("FILE", str(file), f"text in UTF-8 is needed: byte {error.start} is none") from None


def _print(row: SourcedStatement, status: SupportStatus, reasons: tuple[str, ...], instead: str) -> None:
    print_answer(f"{_shown(row.id)}  {status}  {_shown(row.statement)}\n")
    for reason in reasons:
        print_answer(f"    {_shown(reason)}\n")
    if instead:
        print_answer(f"    the source says: {_shown(instead)}\n")


def _shown(text: str) -> str:
    """Return a text as one line: what a row says cannot look like another row, or repaint the screen."""
    return printable(" ".join(text.split()))
