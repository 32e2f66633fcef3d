"""Runs of research drawn from a seed, for comparing the artefacts with figures that other code computes from them.

Half of the runs have claims that the checker judged (borders and capitals of invented countries, some of them wrong,
some in conflict); the other half have graphs with any statuses, tiers, dates, publishers and copies, as a run could
leave them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from smart_model_router_research.deep import (
    AuditConfig,
    ClaimGraph,
    ClaimKind,
    ClaimStatus,
    Contradiction,
    DateConfidence,
    MetricsConfig,
    QuotedEvidence,
    Relation,
    ResearchClaim,
    ResearchFacts,
    ResearchRound,
    ResearchRun,
    SourceDate,
    SourceTier,
    StoredDocument,
    SubQuestion,
    examine_claims,
    report_of,
)
from tests.research_runs import claim, document

COUNTRIES: tuple[str, ...] = ("Arland", "Borland", "Corland", "Dorland")
AGES = (-400, -2, -1, 0, 1, 30, 89, 90, 91, 182, 183, 184, 365, 1000)
MOMENTS = (
    datetime(2026, 7, 1, tzinfo=UTC),
    datetime(2026, 7, 1, 15, 30, tzinfo=UTC),
    datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC),
)
CONFIDENCES = (DateConfidence.HIGH, DateConfidence.MEDIUM, DateConfidence.LOW)


def drawn_run(seed: int, **settings: object) -> ResearchRun:
    """Return the run of a seed; `settings` replace those of its metrics."""
    dice = Random(seed)
    as_of = dice.choice(MOMENTS)
    config = _config(dice, as_of, settings)
    questions = tuple(
        SubQuestion(
            id=f"q{number}", text=f"Question {number}?", priority=dice.randint(1, 3), critical=dice.random() < 0.4
        )
        for number in range(dice.randint(1, 5))
    )
    documents = _documents(dice, as_of)
    draw = _judged if seed % 2 else _made_up
    rounds: list[ResearchRound] = []
    for number in range(1, dice.randint(1, 3) + 1):
        known = rounds[-1].graph.contradictions if rounds else ()
        rounds.append(ResearchRound(graph=draw(dice, number, documents, questions, known)))
    run = ResearchRun(
        facts=ResearchFacts(run_id=f"drawn-{seed}", topic="Borders", stop_reason="max_rounds"),
        config=config,
        rounds=tuple(rounds),
        documents={each.id: each for each in documents},
        report=report_of(rounds[-1].graph),
    )
    return replace(run, report=report_of(run.graph))


def _config(dice: Random, as_of: datetime, settings: dict[str, object]) -> AuditConfig:
    metrics = MetricsConfig(
        as_of=as_of,
        domain=dice.choice(("default", "ai_ml", "academic_research")),
        window_days=dice.choice((None, 30, 183, 365)),
        recency_mode=dice.choice(("decay", "binary")),
        aggregation=dice.choice(("arithmetic", "geometric")),
    )
    return AuditConfig(
        metrics=replace(metrics, **settings),  # type: ignore[arg-type]
        policy=dice.choice(("two_tier", "two_tier", "matrix")),
        min_ci=dice.choice((0.5, 0.65, 0.8, 0.9)),
        min_recent_sources=dice.choice((0, 1, 2, 10)),
    )


def _documents(dice: Random, as_of: datetime) -> tuple[StoredDocument, ...]:
    lengths = {
        frozenset((one, other)): dice.choice((327, 447, 784)) for one in COUNTRIES for other in COUNTRIES if one < other
    }
    made = []
    for country in COUNTRIES[: dice.randint(1, 4)]:
        others = [other for other in COUNTRIES if other != country]
        borders = [(other, lengths[frozenset((country, other))] + dice.choice((0, 0, 0, 20))) for other in others]
        listed = ", ".join(f"{other} {length} km" for other, length in borders)
        text = (
            f"# {country}\n\n## Geography\n\n- Land boundaries: {listed}\n\n## Government\n\nCapital: {country}ville\n"
        )
        made.append(
            document(
                f"{country.lower()}.md",
                text,
                tier=dice.choice((SourceTier.A, SourceTier.A, SourceTier.B)),
                domain=dice.choice(("", "a.example", "b.example", "c.example")),
                publisher=dice.choice(("", "Ministry", "Agency")),
                origin=dice.choice(("", "", "", "copy")),
                alone_suffices=dice.random() < 0.3,
                published=_date(dice, as_of),
                modified=_date(dice, as_of),
            )
        )
    return tuple(made)


def _date(dice: Random, as_of: datetime) -> SourceDate | None:
    day = (as_of - timedelta(days=dice.choice(AGES))).date().isoformat()
    return SourceDate(day=day, signal="meta", confidence=dice.choice(CONFIDENCES)) if dice.random() < 0.8 else None


def _judged(
    dice: Random,
    number: int,
    documents: tuple[StoredDocument, ...],
    questions: tuple[SubQuestion, ...],
    known: tuple[Contradiction, ...],
) -> ClaimGraph:
    """Return a graph of claims that the checker judged: what pages say, and now and then a wrong number."""
    drafts = []
    for each in documents:
        country = each.title
        quotes = each.text.partition("boundaries: ")[2].partition("\n")[0].split(", ")
        for quote in dice.sample(quotes, dice.randint(0, len(quotes))):
            other, value, _ = quote.split()
            said = dice.choice((f"{value} km", f"{value} km", "999 km"))
            text = f"Land boundaries of {country}: {other} {said}"
            facts = {"entity": country, "attribute": "land boundaries", "other": other, "value": f"{value} km"}
            drafts.append((text, each.id, quote, {"kind": ClaimKind.NUMBER, **facts}))
        capital = f"Capital: {country}ville"
        facts = {"entity": country, "attribute": "capital", "value": f"{country}ville"}
        drafts.append((f"Capital of {country}: {country}ville", each.id, capital, facts))
    asked = [question.id for question in questions]
    claims = [
        claim(f"c {text}", text, doc_id, quote, dice.choice(asked), round=number, **facts)
        for text, doc_id, quote, facts in drafts
    ]
    return examine_claims(claims, documents, questions, known=known)


def _made_up(
    dice: Random,
    number: int,
    documents: tuple[StoredDocument, ...],
    questions: tuple[SubQuestion, ...],
    known: tuple[Contradiction, ...],
) -> ClaimGraph:
    """Return a graph with claims of any status about nothing in particular, and an unresolved contradiction or none."""
    statuses = [*ClaimStatus, ClaimStatus.SUPPORTED, ClaimStatus.SUPPORTED, ClaimStatus.SUPPORTED]
    claims = []
    for at in range(dice.randint(0, 8)):
        question = dice.choice(questions)
        claims.append(
            ResearchClaim(
                id=f"c{number}{at}",
                text=f"Claim {at} of round {number}.",
                question_id=question.id,
                kind=dice.choice((ClaimKind.FACT, ClaimKind.NUMBER, ClaimKind.DATE)),
                critical=question.critical or dice.random() < 0.5,
                evidence=_evidence(dice, documents),
                status=dice.choice(statuses),
                round=number,
            )
        )
    contradicted = [each.id for each in claims if each.status is ClaimStatus.CONTRADICTED]
    fresh = [
        Contradiction(one=one, other=other, relation=Relation.UNRESOLVED, kept="", note="drawn", round=number)
        for one, other in zip(contradicted[::2], contradicted[1::2], strict=False)
    ]
    base = examine_claims((), documents, questions)
    return replace(base, claims=tuple(claims), contradictions=(*known, *fresh))


def _evidence(dice: Random, documents: tuple[StoredDocument, ...]) -> tuple[QuotedEvidence, ...]:
    quotes = []
    for each in dice.sample(documents, dice.randint(1, len(documents))):
        for line in dice.sample([line for line in each.text.split("\n") if line], dice.randint(1, 2)):
            start = each.text.index(line)
            quotes.append(QuotedEvidence(doc_id=each.id, quote=line, span=(start, start + len(line))))
    return tuple(quotes)
