"""The cost of sources: copies told among 500 documents of 20 KB, pages dated, and pages and files read and stored."""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable

from benchmarks._measure import Figure, report
from benchmarks.sources.pages import AS_OF
from trafilatura import extract

from smart_model_router_research.deep import (
    ReadingContext,
    StoredDocument,
    date_of,
    read_file,
    read_response,
    undeclared_corpus,
    with_origins,
)
from smart_model_router_scoring.tokens import document_words

DOCUMENTS = 500
WORDS = 2_900
RUNS = 5
CONTEXT = ReadingContext(as_of=AS_OF)
URL = "https://site.example/2024/05/06/page"


def seconds(work: Callable[[], object], runs: int = RUNS) -> float:
    """Return the median over runs of the CPU seconds that some work takes."""
    taken = []
    for _ in range(runs):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def texts(shared: float) -> list[str]:
    """Return the texts of documents of which the first part is the same in each; the rest is drawn."""
    drawn = random.Random(22)  # noqa: S311 - a benchmark
    vocabulary = ["".join(drawn.choices("abcdefghijklmnop", k=drawn.randint(3, 9))) for _ in range(20_000)]
    head = drawn.choices(vocabulary, k=int(WORDS * shared))
    return [" ".join(head + drawn.choices(vocabulary, k=WORDS - len(head))) for _ in range(DOCUMENTS)]


def stored(listed: list[str]) -> list[StoredDocument]:
    """Return documents of these texts."""
    return [StoredDocument(id=f"d{at:03}", text=text, sha256="") for at, text in enumerate(listed)]


def main() -> int:
    """Print the figures; 1 when one is over its limit by more than noise explains."""
    unlike, alike = texts(0.0), texts(0.85)
    words = seconds(lambda: [document_words(text) for text in unlike], 3)
    apart = seconds(lambda: with_origins(stored(unlike)), 3)
    template = seconds(lambda: with_origins(stored(alike)), 3)
    paragraph = "<p>The tide at this <b>coast</b> is <a href='/x'>high</a> twice a day, as the table of {} says.</p>"
    body = "".join(paragraph.format(number) for number in range(1_000))
    page = f"<html><head><title>Tides</title></head><body><article>{body}</article></body></html>"
    alone = seconds(lambda: extract(page, output_format="markdown"))
    dated = seconds(lambda: date_of(page, {}, URL, AS_OF))
    read = seconds(lambda: read_response(page.encode(), URL, {}, CONTEXT))
    markdown, corpus = f"# Tides\n\n{unlike[0]}\n".encode(), undeclared_corpus("notes")
    decoded = seconds(lambda: markdown.decode().split())
    file = seconds(lambda: read_file("a.md", markdown, corpus, CONTEXT))
    code: int = report(
        Figure("copies among 500 unlike documents", apart, "s CPU", words, "their words", 5.0),
        Figure("copies among 500 of one template", template, "s CPU", words, "their words", 5.0),
        Figure(
            f"a page of {len(page):,} characters dated", dated * 1e3, "ms CPU", alone * 1e3, "trafilatura alone", 100.0
        ),
        Figure("the same read and stored", read * 1e3, "ms CPU", alone * 1e3, "trafilatura alone", 300.0),
        Figure("a Markdown file of 20 KB read", file * 1e3, "ms CPU", decoded * 1e3, "its words", 20.0),
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
