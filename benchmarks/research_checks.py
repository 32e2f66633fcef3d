"""The cost of checks: a claim on a window of 1,600 characters, its repair, and contradictions over 1,000 claims.

The baseline of a check reads claim and window as they come to the checker, folds them and splits them into words.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from benchmarks._measure import Figure, report

from smart_model_router_research.deep import (
    ClaimStatus,
    ResearchClaim,
    check_claim,
    find_contradictions,
    quotation,
    settle,
)
from smart_model_router_research.deep.folding import FoldedText

CLAIMS = Path(__file__).parents[1] / "tests" / "fixtures" / "claims"
WINDOW = 1_600
RUNS = 5
Row = tuple[str, str, str, str]


def rows() -> list[Row]:
    """Return claim, quote, window and title of each row of the fixture."""
    sources = json.loads((CLAIMS / "sources.json").read_text("utf-8"))
    found: list[Row] = []
    for line in (CLAIMS / "rows.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        text = sources[row["title"]]
        span = next(FoldedText(text).spans(row["quote"]), (0, 0))
        start = max(0, span[0] - WINDOW // 2)
        found.append((row["claim"], row["quote"], text[start : start + WINDOW], row["title"]))
    return found


def seconds_each(work: Callable[[Row], object], of: Sequence[Row]) -> float:
    """Return the median over runs of the CPU seconds that one row takes."""
    taken = []
    for _ in range(RUNS):
        start = time.process_time()
        for row in of:
            work(row)
        taken.append((time.process_time() - start) / len(of))
    return statistics.median(taken)


def compared(claim: Row) -> float:
    """Return how alike the words of claim and quote are: what a check by string comparison costs."""
    return SequenceMatcher(None, claim[0].split(), claim[2].split(), autojunk=False).ratio()


def contradictions(claims: Sequence[ResearchClaim]) -> float:
    """Return the CPU seconds of finding and settling all contradictions, the median over runs."""
    taken = []
    for _ in range(RUNS):
        start = time.process_time()
        settle(claims, find_contradictions(claims))
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def stated(count: int, matters: int) -> list[ResearchClaim]:
    """Return claims about so many matters, of which each has as many values as claims."""
    return [
        ResearchClaim(
            id=f"c{n}",
            text=f"The size of E{n % matters} is {n * 37 % 1009 + 1} km.",
            entity=f"E{n % matters}",
            attribute="size",
            value=f"{n * 37 % 1009 + 1} km",
            status=ClaimStatus.SUPPORTED,
        )
        for n in range(count)
    ]


def main() -> int:
    """Print the figures; 1 when one is over its limit by more than noise explains."""
    all_rows = rows()
    check = seconds_each(lambda row: check_claim(*row), all_rows)
    base = seconds_each(compared, all_rows)
    repair = seconds_each(lambda row: quotation(row[0], row[1], FoldedText(row[2]), row[3]), all_rows)
    ten, one = contradictions(stated(1_000, 100)), contradictions(stated(1_000, 1))
    read = contradictions(stated(1_000, 1_000))
    code: int = report(
        Figure("check of a claim", check * 1e3, "ms CPU", base * 1e3, "difflib over the same words", 2.0),
        Figure("check and repair", repair * 1e3, "ms CPU", base * 1e3, "difflib over the same words", 6.0),
        Figure("1,000 claims, 100 matters", ten, "s CPU", read, "1,000 matters", 1.0, "4,500 contradictions"),
        Figure("1,000 claims, one matter", one, "s CPU", read, "1,000 matters", 1.0),
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
