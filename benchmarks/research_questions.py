"""Questions answered from corpora without a model, judged by answers that independent scripts computed.

    python -m benchmarks.research_questions [factbook|pydoc|postgresql|everyday|frozen ...]

It ends with 1 where a goal is missed: 28 of 30 and no invented answer about countries; 65 % of 300 versions answered,
and 96 % of those right; of the frozen questions 60 % answered, 90 % of those right, and none invented.

`factbook` asks 30 questions and 212 more of the same kinds about the World Factbook (the wheel among the tools to
develop, and the extract of 2015). `pydoc` asks 300 for the version in which something in Python's documentation was
added, changed or deprecated, from the sources in Debian's package python3.11-doc, which apt fetches. Time is CPU, with
the reading of each document when it is first met. `postgresql` asks what the author of the reader wrote by hand before
the reader met the manual. `everyday` asks questions in everyday words on eleven collections of documentation in HTML,
of Debian's packages; a claim is right that says what was expected. `frozen` asks the questions on a corpus that was
frozen before the reader met it.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.search.collections import debian_package

from smart_model_router_research.deep import CorpusSearch, answer_offline
from tests.fixtures.research.judging import (
    FROZEN,
    Row,
    ask_all,
    corpus,
    everyday_rows,
    factbooks,
    frozen_rows,
    is_right,
    rows_of,
    says,
)

SOURCES = "usr/share/doc/python3.11/html/_sources"


Figures = dict[str, list[float]]
"""Questions, answered, right and seconds of CPU, by the kind of question."""


async def _print_figures(name: str, rows: Sequence[Row], corpora: Sequence[CorpusSearch]) -> Figures:
    """Print a line for each kind of question."""
    figures: Figures = {}
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
    return figures


async def _factbook(folder: Path) -> bool:
    corpora = await factbooks(folder)
    figures = await _print_figures("factbook", rows_of("factbook"), corpora)
    more = await _print_figures("factbook, more", rows_of("factbook_more"), corpora[:1])
    invented = figures["unanswerable"][1] + more["unanswerable"][1]
    return sum(right for _, _, right, _ in figures.values()) >= 28 and not invented


async def _pydoc(folder: Path) -> bool:
    try:
        sources = debian_package("python3.11-doc") / SOURCES
    except (OSError, subprocess.SubprocessError) as error:
        print(f"without Python's documentation: {error}", file=sys.stderr)
        return False
    (folder / "python").symlink_to(sources)
    figures = await _print_figures("pydoc", rows_of("versions"), [await corpus(folder / "python")])
    asked, answered, right, _ = figures["version"]
    return answered >= 0.65 * asked and right >= 0.96 * answered


async def _postgresql(folder: Path) -> bool:
    """Ask about PostgreSQL's manual, in HTML; no figure of it is a goal, but nothing may be invented."""
    try:
        pages = debian_package("postgresql-doc-15") / "usr/share/doc/postgresql-doc-15/html"
    except (OSError, subprocess.SubprocessError) as error:
        print(f"without PostgreSQL's manual: {error}", file=sys.stderr)
        return False
    (folder / "manual").symlink_to(pages)
    rows = rows_of("postgresql_questions")
    figures = await _print_figures("postgresql", rows, [await corpus(folder / "manual")])
    return not figures["unanswerable"][1]


EVERYDAY = {
    "debian_faq": ("debian-faq", "debian/FAQ", "*.en.html", ""),
    "privoxy": ("privoxy", "privoxy", "**/*.html", ""),
    "ntpsec": ("ntpsec-doc", "ntpsec-doc/html", "*.html", ""),
    "mutt": ("mutt", "mutt/html", "*.html", "manual.html"),
    "exim": ("exim4-doc-html", "exim4-doc-html/spec_html", "*.html", ""),
    "postfix": ("postfix-doc", "postfix/html", "*.html", ""),
    "history": ("debian-history", "debian-history/docs", "*.en.html", ""),
    "harden": ("harden-doc", "harden-doc/html/en-US", "*.html", ""),
    "handbook": ("debian-handbook", "debian-handbook/html/en-US", "*.html", ""),
    "varnish": ("varnish-doc", "varnish/html", "**/*.html", "genindex.html search.html"),
    "rsyslog": ("rsyslog-doc", "rsyslog-doc/html", "**/*.html", "genindex.html search.html"),
}
"""Packages, their folders of documentation, the files that are read, and those that are not."""


async def _everyday(folder: Path) -> bool:
    """Ask questions in everyday words; no figure of them is a goal, but nothing may be invented."""
    print("| collection | questions | answered | right | without an answer | abstained | CPU a question |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    is_invented = False
    for name, (package, inside, files, left_out) in EVERYDAY.items():
        try:
            pages = debian_package(package) / "usr/share/doc" / inside
        except (OSError, subprocess.SubprocessError) as error:
            print(f"without {package}: {error}", file=sys.stderr)
            return False
        for page in pages.glob(files):
            if not page.is_symlink() and page.name not in left_out.split():
                copy = folder / name / page.relative_to(pages)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(page, copy)
        searched = [await corpus(folder / name)]
        rows = everyday_rows(name)
        for row in rows:  # each document is read once
            await answer_offline(row["question"], searched)
        begun = time.process_time()
        judged = await ask_all(rows, searched)
        spent = (time.process_time() - begun) / len(rows) * 1000
        known = [(row, answer) for row, answer in judged if row["answers"]]
        answered = sum(bool(answer.answers) for _, answer in known)
        right = sum(says(row, answer) for row, answer in known)
        abstained = sum(not answer.answers for row, answer in judged if not row["answers"])
        unknown = len(rows) - len(known)
        is_invented = is_invented or abstained < unknown
        print(f"| {name} | {len(known)} | {answered} | {right} | {unknown} | {abstained} | {spent:.0f} ms |")
    return not is_invented


async def _frozen(folder: Path) -> bool:
    """Ask the questions on the frozen corpus; `tests/fixtures/research/frozen/README.md` describes them."""
    (folder / "sqlite").symlink_to(FROZEN / "corpus")
    rows = frozen_rows()
    judged = await ask_all(rows, [await corpus(folder / "sqlite")])
    kinds = dict.fromkeys(row["kind"] for row in rows)
    counted = {
        kind: (
            sum(row["kind"] == kind for row in rows),
            sum(bool(answer.answers) for row, answer in judged if row["kind"] == kind),
            sum(
                says(row, answer)
                for row, answer in judged
                if row["kind"] == kind and (answer.answers or not row["answers"])
            ),
        )
        for kind in kinds
    }
    print("| kind | questions | answered | right |\n| --- | --- | --- | --- |")
    for kind, figures in counted.items():
        print(f"| {kind} | {' | '.join(map(str, figures))} |")
    invented = counted.pop("unanswerable")[1]
    asked, answered, right = (sum(each) for each in zip(*counted.values(), strict=True))
    print(f"| all that can be answered | {asked} | {answered} | {right} |")
    return answered >= 0.6 * asked and right >= 0.9 * answered and not invented


SETS = {
    "factbook": _factbook,
    "pydoc": _pydoc,
    "postgresql": _postgresql,
    "everyday": _everyday,
    "frozen": _frozen,
}


def main(names: Sequence[str]) -> int:
    """Ask the questions of these sets, of all without a name; return 1 when a goal is missed."""
    met = []
    for name in names or SETS:
        with tempfile.TemporaryDirectory() as folder:
            met.append(asyncio.run(SETS[name](Path(folder))))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
