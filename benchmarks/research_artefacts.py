"""The cost of writing and verifying the artefacts of a run of 1,000 claims: verifying takes less than 5 s of CPU.

python -m benchmarks.research_artefacts
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks._measure import Figure, report

from smart_model_router_research.deep import (
    AuditConfig,
    MetricsConfig,
    QuotedEvidence,
    ResearchClaim,
    ResearchFacts,
    ResearchRound,
    ResearchRun,
    SourceTier,
    StoredDocument,
    SubQuestion,
    examine_claims,
    mended,
    report_of,
    verify,
    write_artefacts,
)
from smart_model_router_research.deep.canonical_json import sha256_bytes
from smart_model_router_research.deep.sources import sha256_of

DOCUMENTS, FACTS, ROUNDS = 50, 20, 2
MOST_SECONDS = 5.0


def run_of(documents: int, facts: int, rounds: int) -> ResearchRun:
    """Return a run of documents with so many facts each, each a claim in each round."""
    stored: dict[str, StoredDocument] = {}
    drafts: list[ResearchClaim] = []
    for page in range(documents):
        lines = [
            f"The station {page}-{fact} of the northern line was opened in {1900 + fact} and is {page + 10},{fact:03} "
            "m long, although two of its platforms are rarely used by trains."
            for fact in range(facts)
        ]
        paragraphs = [" ".join(lines[at : at + 4]) for at in range(0, facts, 4)]
        text = f"# Line {page}\n\n" + "\n\n".join(paragraphs) + "\n"
        doc_id = f"line-{page}.md"
        stored[doc_id] = StoredDocument(
            id=doc_id, text=text, sha256=sha256_of(text), title=f"Line {page}", tier=SourceTier.A, alone_suffices=True
        )
        for fact, line in enumerate(lines):
            quote = QuotedEvidence(doc_id=doc_id, quote=line, span=(0, 1))
            name, question = f"c{page}-{fact}", f"q{page % 12}"
            drafts.append(
                ResearchClaim(
                    id=name,
                    text=line,
                    question_id=question,
                    evidence=(quote,),
                    entity=f"station {page}-{fact}",
                    attribute="length",
                    value=f"{page + 10},{fact:03} m",
                )
            )
    questions = [SubQuestion(id=f"q{number}", text=f"Stations of line {number}?") for number in range(12)]
    graph = examine_claims(drafts, stored.values(), questions)
    return ResearchRun(
        facts=ResearchFacts(run_id="benchmark", topic="Stations"),
        config=AuditConfig(metrics=MetricsConfig(as_of=datetime(2026, 7, 1, tzinfo=UTC))),
        rounds=(ResearchRound(graph=graph),) * rounds,
        documents=stored,
        report=mended(report_of(graph), graph),
    )


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of CPU that a call takes; the middle of three."""
    taken: list[float] = []
    for _ in range(3):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return sorted(taken)[1]


def main() -> int:
    """Print the figures; 1 when one is over its limit by more than noise explains."""
    run = run_of(DOCUMENTS, FACTS, ROUNDS)
    with tempfile.TemporaryDirectory() as place:
        numbers = iter(range(10))
        write = seconds(lambda: write_artefacts(run, Path(place) / str(next(numbers))))
        folder = Path(place) / "0"
        hashed = seconds(lambda: [sha256_bytes(path.read_bytes()) for path in folder.rglob("*.*")])
        found = verify(folder)
        verified = seconds(lambda: verify(folder))
    if not found.is_sound or found.claims != DOCUMENTS * FACTS:
        raise SystemExit(f"the run is not sound: {found}")
    size = f"{found.claims:,} claims, {DOCUMENTS} documents, {ROUNDS} rounds"
    code: int = report(
        Figure(f"artefacts written, {size}", write, "s CPU", hashed, "SHA-256 of the files", MOST_SECONDS),
        Figure(f"artefacts verified, {size}", verified, "s CPU", hashed, "SHA-256 of the files", MOST_SECONDS),
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
