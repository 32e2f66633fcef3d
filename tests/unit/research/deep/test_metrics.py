"""Metrics are computed from the claim graph and the configuration alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from smart_model_router_research.deep.claims import (
    CitedDocument,
    ClaimGraph,
    ClaimKind,
    ClaimStatus,
    Contradiction,
    QuotedEvidence,
    Relation,
    ResearchClaim,
    SourceTier,
    SubQuestion,
    are_independent,
)
from smart_model_router_research.deep.metrics import MetricsConfig, covers, is_single_source, metrics_of
from smart_model_router_scoring.confidence import TwoTier, compute_ci
from smart_model_router_scoring.options import ConfigError

CONFIG = MetricsConfig(as_of=datetime(2026, 7, 1, tzinfo=UTC))
A = CitedDocument(
    id="a", tier=SourceTier.A, domain="a.org", publisher="A", published="2026-07-01", date_confidence="high"
)
B = CitedDocument(
    id="b", tier=SourceTier.B, domain="b.org", publisher="B", published="2026-07-01", date_confidence="low"
)
C = CitedDocument(id="c", tier=SourceTier.C, domain="c.org", publisher="C")
DOCUMENTS = {document.id: document for document in (A, B, C)}


def claim(id: str, *documents: str, **rest: object) -> ResearchClaim:  # noqa: A002
    """Return a supported claim that these documents vouch for."""
    evidence = tuple(QuotedEvidence(doc_id=document, quote="q", span=(0, 1)) for document in documents)
    made = ResearchClaim(id=id, text=id, question_id="q1", evidence=evidence, status=ClaimStatus.SUPPORTED)
    return replace(made, **rest)  # type: ignore[arg-type]


def graph(
    *claims: ResearchClaim, questions: tuple[SubQuestion, ...] = (SubQuestion(id="q1", text="?"),), **rest: object
) -> ClaimGraph:
    """Return a graph of these claims about one question."""
    return ClaimGraph(questions=questions, claims=claims, documents=DOCUMENTS, **rest)  # type: ignore[arg-type]


def unresolved(one: str, other: str) -> Contradiction:
    """Return a contradiction that nothing decided."""
    return Contradiction(one=one, other=other, relation=Relation.UNRESOLVED)


def test_nothing_cited_is_nothing_known() -> None:
    """Without a citation every metric is 0, and so is the index."""
    found = metrics_of(graph(claim("x", "a", status=ClaimStatus.PARTIAL)), CONFIG)

    assert [found[name] for name in ("coverage", "source_quality", "agreement", "verification", "recency")] == [0] * 5
    assert found["ci_score"] == 0


def test_coverage_weighs_questions_by_priority() -> None:
    """Priority 1 counts three times as much as priority 3."""
    questions = (SubQuestion(id="q1", text="?", priority=1), SubQuestion(id="q2", text="?", priority=3))

    assert metrics_of(graph(claim("x", "a"), questions=questions), CONFIG)["coverage"] == 0.75
    assert metrics_of(graph(claim("x", "a"), questions=()), CONFIG)["coverage"] == 0


@pytest.mark.parametrize(
    ("documents", "covered", "single"),
    [(("a", "b"), True, False), (("a",), False, True), (("b",), False, True), (("a", "c"), False, True)],
)
def test_a_critical_claim_needs_two_sources(documents: tuple[str, ...], covered: bool, single: bool) -> None:
    """Two independent documents, one of tier A; a blocked one does not count."""
    critical = claim("x", *documents, critical=True)

    assert covers(critical, DOCUMENTS) is covered
    assert is_single_source(critical, DOCUMENTS) is single


def test_two_sources_of_tier_b_do_not_cover() -> None:
    """One of the two has to be of tier A."""
    documents = {"b": B, "d": replace(B, id="d", domain="d.org", publisher="D")}

    assert not covers(claim("x", "b", "d", critical=True), documents)


def test_one_document_of_a_corpus_that_vouches_for_it_covers() -> None:
    """With `alone_suffices` the question is covered, and the claim is a single source's all the same."""
    documents = {"a": replace(A, alone_suffices=True)}
    critical = claim("x", "a", critical=True)

    assert covers(critical, documents)
    assert is_single_source(critical, documents)


def test_a_claim_that_is_not_supported_covers_nothing() -> None:
    """Partial claims count for nothing."""
    assert not covers(claim("x", "a", status=ClaimStatus.PARTIAL), DOCUMENTS)


def test_source_quality_is_the_mean_of_the_tiers() -> None:
    """Tier A counts 1.0, tier B 0.6, each document once; a blocked one is not cited."""
    assert metrics_of(graph(claim("x", "a", "b"), claim("y", "a", "c")), CONFIG)["source_quality"] == 0.8


def test_agreement_asks_matters_of_two_sources() -> None:
    """Where none is compared it is 0.5, with a flag; else the share that is not contradicted."""
    alone = metrics_of(graph(claim("x", "a")), CONFIG)
    assert (alone["agreement"], alone["nothing_compared"]) == (0.5, True)

    def stated(id: str, document: str, value: str) -> ResearchClaim:  # noqa: A002
        return claim(id, document, entity="E", attribute="size", value=value)

    both = metrics_of(
        graph(
            claim("x", "a", "b"), stated("y", "a", "1"), stated("z", "b", "2"), contradictions=(unresolved("y", "z"),)
        ),
        CONFIG,
    )
    assert (both["agreement"], both["nothing_compared"]) == (0.5, False)


def test_an_inference_is_no_voice_of_its_own() -> None:
    """It cites what its premises cite, and is no voice of its own."""
    computed = claim("x", "a", "b", kind=ClaimKind.INFERENCE)
    assert metrics_of(graph(computed), CONFIG)["nothing_compared"] is True


def test_an_inference_covers_what_its_premises_cover() -> None:
    """Two premises of one source each are not one of two."""
    one, other = claim("x", "a", critical=True), claim("y", "b", critical=True)
    computed = claim("z", "a", "b", critical=True, kind=ClaimKind.INFERENCE, premises=("x", "y"))
    known = {each.id: each for each in (one, other, computed)}
    assert not covers(computed, DOCUMENTS, known)
    assert is_single_source(computed, DOCUMENTS, known)
    both = {each.id: replace(each, evidence=computed.evidence) for each in (one, other)}
    assert covers(computed, DOCUMENTS, both)
    assert not is_single_source(computed, DOCUMENTS, both)
    assert not covers(replace(computed, premises=("z",)), DOCUMENTS, known)


@pytest.mark.parametrize("priority", [0, 4, -1])
def test_a_priority_that_is_none_is_refused(priority: int) -> None:
    """A weight below 1 would take coverage out of its range."""
    with pytest.raises(ConfigError, match="priority"):
        SubQuestion(id="q", text="?", priority=priority)


def test_window_and_half_life_are_two_settings() -> None:
    """A wider window makes more sources recent, and ages none of them more slowly."""
    old = replace(graph(claim("x", "a")), documents={"a": replace(A, published="2025-12-30")})
    found = metrics_of(old, replace(CONFIG, window_days=90))
    assert (found["recency"], found["recent_source_count"]) == (pytest.approx(0.5), 0)
    found = metrics_of(old, replace(CONFIG, half_life_days=366))
    assert (found["recency"], found["recent_source_count"]) == (pytest.approx(0.5**0.5), 1)
    with pytest.raises(ConfigError, match="half_life_days"):
        replace(CONFIG, half_life_days=0)


def test_verification_counts_critical_claims_twice() -> None:
    """Supported claims of all factual ones; what is superseded is left out."""
    claims = [
        claim("x", "a", critical=True),
        claim("y", "a", status=ClaimStatus.UNSUPPORTED),
        claim("z", "a", status=ClaimStatus.SUPERSEDED),
    ]

    assert metrics_of(graph(*claims), CONFIG)["verification"] == 2 / 3


@pytest.mark.parametrize(
    ("published", "mode", "recency", "count"),
    [
        ("2026-07-01", "decay", 1.0, 1),
        ("2025-12-30", "decay", 0.5, 1),
        ("2025-12-30", "binary", 1.0, 1),
        ("2025-12-29", "binary", 0.0, 0),
        ("", "decay", 0.25, 0),
        ("", "binary", 0.0, 0),
        ("tomorrow", "decay", 0.25, 0),
        ("2026-07-02", "decay", 1.0, 1),
        ("2026-07-03", "decay", 0.25, 0),
    ],
)
def test_recency_counts_days_to_as_of(published: str, mode: str, recency: float, count: int) -> None:
    """The window is 183 days, its last day included; an unknown date is worth 0.25 and never recent."""
    config = MetricsConfig(as_of=datetime(2026, 7, 1), recency_mode=mode)  # noqa: DTZ001 - naive is UTC
    documents = {"a": replace(A, published=published)}

    found = metrics_of(replace(graph(claim("x", "a")), documents=documents), config)

    assert found["recency"] == pytest.approx(recency)
    assert found["recent_source_count"] == count


def test_a_date_of_low_confidence_is_not_recent() -> None:
    """It counts no more than an unknown one, and less when it is old."""
    found = metrics_of(graph(claim("x", "b")), CONFIG)
    assert (found["recency"], found["recent_source_count"]) == (0.25, 0)

    old = replace(graph(claim("x", "b")), documents={"b": replace(B, published="2024-07-01")})
    assert metrics_of(old, CONFIG)["recency"] == pytest.approx(0.5 ** (730 / 183))


def test_contradictions_about_a_critical_claim_are_counted() -> None:
    """One of the two being critical is enough."""
    claims = [claim("x", "a", critical=True), claim("y", "b"), claim("z", "b")]

    found = metrics_of(graph(*claims, contradictions=(unresolved("x", "y"), unresolved("y", "z"))), CONFIG)

    assert found["critical_contradictions"] == 1


def test_the_index_is_given_in_both_means() -> None:
    """`ci_score` is the one that is configured."""
    found = metrics_of(graph(claim("x", "a", "b")), replace(CONFIG, aggregation="geometric"))

    assert found["ci_score"] == found["ci_geometric"] <= found["ci_arithmetic"]
    assert found["ci_arithmetic"] == compute_ci(found)


def test_a_floor_cannot_be_bought_off() -> None:
    """Verification of .39 with all else at 1.0 has an index of .878, and fails its gate."""
    scores = {**dict.fromkeys(("coverage", "source_quality", "agreement", "recency"), 1.0), "verification": 0.39}

    found = TwoTier().check({**scores, "recent_source_count": 10, "critical_contradictions": 0})

    assert found.ci == pytest.approx(0.878)
    assert found.floor_violations == ("verification",)


@pytest.mark.parametrize(
    ("other", "independent"),
    [
        (B, True),
        (A, False),
        (replace(B, domain="a.org"), False),
        (replace(B, publisher="a"), False),
        (replace(B, origin="o"), False),
        (replace(B, domain="", publisher=""), False),
        (replace(B, domain=""), True),
    ],
)
def test_copies_are_no_second_source(other: CitedDocument, independent: bool) -> None:
    """One domain, one publisher or one origin is one source, and so is what has no known publisher."""
    assert are_independent(replace(A, origin="o"), other) is independent


def test_documents_that_are_vouched_for_each_are_independent() -> None:
    """Two of a corpus with `independence: document` are two sources, copies excepted."""
    one = replace(A, alone_suffices=True, origin="o")

    assert are_independent(one, replace(one, id="d", origin="p"))
    assert not are_independent(one, replace(one, id="d"))


def test_a_mode_that_is_none_is_refused() -> None:
    """The error names those that there are."""
    with pytest.raises(ConfigError, match="decay"):
        replace(CONFIG, recency_mode="mean")


def test_what_one_model_alone_chose_changes_no_metric() -> None:
    """Its document is not cited, its question not covered, and its agreement none, whatever it says."""
    own, alone = claim("x", "a"), claim("y", "b", chosen_by="p/m", critical=True)
    agreed = replace(alone, agreed_by="q/m")

    assert metrics_of(graph(own, alone), CONFIG) == metrics_of(graph(own), CONFIG)
    assert metrics_of(graph(own, agreed), CONFIG) != metrics_of(graph(own), CONFIG)
