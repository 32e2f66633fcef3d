"""Finished runs of research for tests, and the example folder of the repository.

`python -m tests.research_runs` writes tests/fixtures/research/example_run anew; a test compares it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from smart_model_router_research.deep import (
    AuditConfig,
    ClaimKind,
    DateConfidence,
    MetricsConfig,
    Operation,
    QuotedEvidence,
    ResearchClaim,
    ResearchFacts,
    ResearchRound,
    ResearchRun,
    SourceDate,
    SourceTier,
    StoredDocument,
    SubQuestion,
    examine_claims,
    infer,
    mended,
    report_of,
    write_artefacts,
)
from smart_model_router_research.deep.lookups import Extent, QuestionLookup
from smart_model_router_research.deep.sources import sha256_of

EXAMPLE = Path(__file__).parent / "fixtures" / "research" / "example_run"
CONFIG = AuditConfig(
    metrics=MetricsConfig(as_of=datetime(2026, 7, 1, tzinfo=UTC), domain="default", window_days=183),
    min_recent_sources=2,
)
FACTS = ResearchFacts(
    run_id="example",
    topic="The borders of Arland",
    workflow="deep_research",
    workflow_hash="0" * 64,
    engine="kahn",
    stop_reason="no_progress",
    usage={"model_calls": 0, "searches": 3},
)
ARLAND = """# Arland

## Geography

Arland lies between two seas. Its longest river is the Mur, which is 512 km long.

- Area: 84,012 sq km
- Land boundaries: Borland 447 km, Corland 327 km (20 km within the Dead Sea)

## Government

Capital: Arville

Arland joined the union in 1994. The parliament has 120 seats.
"""
BORLAND = """# Borland

## Geography

- Land boundaries: Arland 467 km

## Government

Capital: Bortown
"""
CORLAND = """CORLAND

Land boundaries: Arland 307 km

Capital: Corport
"""


def document(doc_id: str, text: str, **rest: object) -> StoredDocument:
    """Return a stored document of tier A with a recent date."""
    made = StoredDocument(
        id=doc_id,
        text=text,
        sha256=sha256_of(text),
        title=doc_id.partition(".")[0].title(),
        url=f"https://{doc_id.partition('.')[0]}.example.org/facts",
        publisher=f"{doc_id.partition('.')[0].title()} Office",
        domain=f"{doc_id.partition('.')[0]}.example.org",
        tier=SourceTier.A,
        tier_reason="official",
        published=SourceDate(day="2026-05-01", signal="meta", confidence=DateConfidence.HIGH),
        retrieved_at="2026-07-01T00:00:00+00:00",
        backend="corpus",
        corpus="atlas",
        alone_suffices=True,
    )
    return replace(made, **rest)  # type: ignore[arg-type]


def claim(claim_id: str, text: str, doc_id: str, quote: str, question_id: str = "q1", **rest: object) -> ResearchClaim:
    """Return a draft of a claim with a quote; where it stands is filled in when it is examined."""
    made = ResearchClaim(
        id=claim_id,
        text=text,
        question_id=question_id,
        evidence=(QuotedEvidence(doc_id=doc_id, quote=quote, span=(0, 1)),),
    )
    return replace(made, **rest)  # type: ignore[arg-type]


def border(claim_id: str, one: str, other: str, value: str, question_id: str = "q2") -> ResearchClaim:
    """Return a draft of a claim about a border on the page of the first country."""
    quote = f"{other} {value}"
    text = f"Land boundaries of {one}: {other} {value}"
    kind, label = ClaimKind.NUMBER, "land boundaries"
    suffix = "txt" if one == "Corland" else "md"
    doc_id = f"{one.lower()}.{suffix}"
    rest = {"kind": kind, "entity": one, "attribute": label, "other": other, "value": value}
    return claim(claim_id, text, doc_id, quote, question_id, **rest)


DOCUMENTS = (
    document("arland.md", ARLAND),
    document("borland.md", BORLAND),
    document(
        "corland.txt",
        CORLAND,
        published=SourceDate(day="2024-07-01", signal="url", confidence=DateConfidence.MEDIUM),
        modified=SourceDate(day="2026-02-03", signal="http", confidence=DateConfidence.LOW),
        url="",
    ),
)
QUESTIONS = (
    SubQuestion(id="q1", text="What is the capital of Arland?", kind="fact", priority=1),
    SubQuestion(id="q2", text="Which countries border Arland?", kind="list", critical=True),
    SubQuestion(id="q3", text="How many seats does the parliament of Arland have?", kind="number"),
    SubQuestion(id="q4", text="What is the anthem of Arland?", kind="fact", priority=3),
)
CAPITALS = tuple(
    claim(
        claim_id,
        f"Capital of {country}: {city}",
        doc_id,
        f"Capital: {city}",
        entity=country,
        attribute="capital",
        value=city,
    )
    for claim_id, country, city, doc_id in (
        ("c1", "Arland", "Arville", "arland.md"),
        ("c7", "Borland", "Bortown", "borland.md"),
        ("c8", "Corland", "Corport", "corland.txt"),
    )
)
DRAFTS = (
    CAPITALS[0],
    border("c2", "Arland", "Borland", "447 km"),
    border("c3", "Borland", "Arland", "467 km"),
    border("c4", "Corland", "Arland", "307 km"),
    border("c5", "Arland", "Corland", "327 km (20 km within the Dead Sea)"),
    claim("c6", "The parliament has 210 seats.", "arland.md", "The parliament has 120 seats.", "q3"),
)


def run_of_claims(
    rounds: Sequence[Sequence[ResearchClaim]],
    documents: Sequence[StoredDocument] = DOCUMENTS,
    questions: Sequence[SubQuestion] = QUESTIONS,
    facts: ResearchFacts = FACTS,
    config: AuditConfig = CONFIG,
) -> ResearchRun:
    """Return the run of these drafts of claims, examined round by round, with the report that needs no model."""
    made: list[ResearchRound] = []
    for number, drafts in enumerate(rounds, start=1):
        known = made[-1].graph.contradictions if made else ()
        graph = examine_claims(drafts, documents, questions, known=known)
        made.append(
            ResearchRound(
                graph=graph,
                mode="full" if number == 1 else "remediation",
                steps=("retrieval_react", "cove_verify"),
                new_documents=len(documents) if number == 1 else 0,
                changed_claims=len(graph.claims) if number == 1 else 1,
                lookups=tuple(QuestionLookup(question_id=each.id, extent=Extent.WHOLE) for each in questions),
            )
        )
    run = ResearchRun(
        facts=facts,
        config=config,
        rounds=tuple(made),
        documents={each.id: each for each in documents},
        report=report_of(made[-1].graph),
    )
    return replace(run, report=mended(report_of(run.graph), run.graph))


def example() -> ResearchRun:
    """Return the run of the example folder: two rounds, a contradiction, one that is explained, a computed claim."""
    capitals = examine_claims(CAPITALS, DOCUMENTS, QUESTIONS).claims
    count = infer(Operation.COUNT, capitals, "countries with a capital", claim_id="c9", question_id="q1")
    return run_of_claims([DRAFTS, [*CAPITALS, *DRAFTS[1:], count]])


def main() -> None:
    """Write the example folder anew."""
    shutil.rmtree(EXAMPLE, ignore_errors=True)
    write_artefacts(example(), EXAMPLE)


if __name__ == "__main__":
    main()
