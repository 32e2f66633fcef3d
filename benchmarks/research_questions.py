"""Questions answered from corpora without a model, judged by answers that independent scripts computed.

    python -m benchmarks.research_questions [factbook|pydoc ...]

`factbook` asks 30 questions and 212 more of the same kinds about the World Factbook (the wheel among the tools to
develop, and the extract of 2015). `pydoc` asks 300 for the version in which something in Python's documentation was
added, changed or deprecated, from the sources in Debian's package python3.11-doc, which apt fetches. Time is CPU, with
the reading of each document when it is first met.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.search.collections import debian_package

from smart_model_router_research.deep import CorpusSearch, answer_offline
from tests.fixtures.research.judging import Row, corpus, factbooks, is_right, rows_of

SOURCES = "usr/share/doc/python3.11/html/_sources"


async def _print_figures(name: str, rows: Sequence[Row], corpora: Sequence[CorpusSearch]) -> None:
    """Print a line for each kind of question."""
    figures: dict[str, list[float]] = {}
    for row in rows:
        begun = time.process_time()
        answer = await answer_offline(row["question"], corpora)
        of_kind = figures.setdefault(row["kind"], [0.0, 0.0, 0.0, 0.0])
        is_fine = is_right(row, answer)
        spent = time.process_time() - begun
        counted = (1.0, float(bool(answer.answers)), float(is_fine), spent)
        of_kind[:] = [a + b for a, b in zip(of_kind, counted, strict=True)]
        if not is_fine and answer.answers:
            print(f"wrong: {row['question']} {answer.values[:2]}")
    print("| set | kind | questions | answered | right | CPU a question |\n| --- | --- | --- | --- | --- | --- |")
    for kind, (asked, answered, right, spent) in figures.items():
        print(f"| {name} | {kind} | {asked:.0f} | {answered:.0f} | {right:.0f} | {spent / asked * 1000:.0f} ms |")


async def _factbook(folder: Path) -> None:
    corpora = await factbooks(folder)
    await _print_figures("factbook", rows_of("factbook_questions"), corpora)
    await _print_figures("factbook, more", rows_of("factbook_more"), corpora[:1])


async def _pydoc(folder: Path) -> None:
    try:
        sources = debian_package("python3.11-doc") / SOURCES
    except (OSError, subprocess.SubprocessError) as error:
        print(f"without Python's documentation: {error}", file=sys.stderr)
        return
    (folder / "python").symlink_to(sources)
    await _print_figures("pydoc", rows_of("version_questions"), [await corpus(folder / "python")])


SETS = {"factbook": _factbook, "pydoc": _pydoc}


def main(names: Sequence[str]) -> None:
    """Ask the questions of these sets, of all without a name."""
    for name in names or SETS:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(SETS[name](Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
