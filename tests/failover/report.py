"""The report of `make failoverbench`, in Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from smart_model_router.rehearsal.chaos.scenario_context import Verdict
from tests.failover.bench import Result
from tests.failover.rows import Row

_HEAD = ("row", "primary", "gateway", "calls", "seconds", "loop", "calls", "seconds", "")
_REASON_LENGTH = 70


def table(rows: Sequence[Row], gateway: Sequence[Result], loop: Sequence[Result]) -> str:
    """A line for each row, and the number of passes."""
    lines = [_HEAD, ("---",) * len(_HEAD)]
    for row, ours, theirs in zip(rows, gateway, loop, strict=True):
        reasons = [f"{who}: {why}" for who, why in (("gateway", _reason(ours)), ("loop", _reason(theirs))) if why]
        lines.append((row.name, row.title, *_cells(ours), *_cells(theirs), "; ".join(reasons)))
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n\npasses of {len(rows)}: gateway {_passes(gateway)}, loop {_passes(loop)}"


def missing(rows: Sequence[Row], gateway: Sequence[Result]) -> list[str]:
    """The rows that the gateway did not pass."""
    pairs = zip(rows, gateway, strict=True)
    return [row.name for row, result in pairs if result.judgement.verdict is not Verdict.PASS]


def _cells(result: Result) -> tuple[str, str, str]:
    played = result.played
    return result.judgement.verdict, f"{len(played.primary)}/{len(played.fallback)}", f"{played.seconds:.1f}"


def _reason(result: Result) -> str:
    return textwrap.shorten(result.judgement.reason.replace("|", "/"), _REASON_LENGTH, placeholder=" ...")


def _passes(results: Sequence[Result]) -> int:
    return sum(result.judgement.verdict is Verdict.PASS for result in results)
