"""Claims are examined against the documents of a run: whatever a model says of them, code decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_research.deep.claims import (
    ClaimKind,
    ClaimStatus,
    Contradiction,
    QuotedEvidence,
    Relation,
    ResearchClaim,
    SourceTier,
    SubQuestion,
)
from smart_model_router_research.deep.examining import ClaimExaminer, examine_claims, is_critical
from smart_model_router_research.deep.inferences import Operation, infer
from smart_model_router_research.deep.sources import DateConfidence, SourceDate, StoredDocument, sha256_of

TEXT = """# Options

## max_size

This option sets the limit. The default is 5.

## min_size

The default is 7. If the disk is full, the server will fail (2024 est.).

## Limits

The size is limited to 40 MB.
"""


def stored(id: str, text: str = TEXT, **rest: Any) -> StoredDocument:  # noqa: A002
    """Return a document as it was retrieved."""
    return StoredDocument(id=id, text=text, sha256=sha256_of(text), title="Guide", **rest)


DATED = SourceDate(day="2025-03-01", signal="meta", confidence=DateConfidence.HIGH)
DOCUMENTS = [stored("d", published=DATED), stored("a", tier=SourceTier.A), stored("c", tier=SourceTier.C)]


def claim(text: str, quote: str, doc: str = "d", **rest: Any) -> ResearchClaim:
    """Return a claim with one quote, at a place that is made up."""
    evidence = (QuotedEvidence(doc_id=doc, quote=quote, span=(0, 3)),)
    return ResearchClaim(id="x", text=text, evidence=evidence, **rest)


def examined(text: str, quote: str, doc: str = "d", **rest: Any) -> ResearchClaim:
    """Return such a claim after its examination without repair."""
    return ClaimExaminer(DOCUMENTS).examine(claim(text, quote, doc, **rest), repair=False)


def test_a_quote_counts_under_the_headings_it_stands_under() -> None:
    """The default of one option is not that of another, though the quote stands under both."""
    assert examined("The default of max_size is 5.", "The default is").status is ClaimStatus.SUPPORTED
    assert examined("The default of min_size is 7.", "The default is").status is ClaimStatus.SUPPORTED
    assert examined("The default of max_size is 7.", "The default is").status is ClaimStatus.PARTIAL


def test_evidence_is_put_where_it_stands() -> None:
    """The place that was given counts for nothing."""
    (evidence,) = examined("The default of min_size is 7.", "The default is 7").evidence
    assert TEXT[slice(*evidence.span)] == "The default is 7"
    assert evidence.method == "edited"
    assert examined("The size is limited to 40 MB.", "limited to 40 MB").evidence[0].method == "quoted"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (None, "not retrieved"),
        (stored("d", tier=SourceTier.C, tier_reason="a content farm"), "content farm"),
        (replace(stored("d"), text=TEXT + " "), "not what was retrieved"),
    ],
)
def test_a_document_that_is_gone_blocked_or_changed_supports_nothing(
    document: StoredDocument | None, reason: str
) -> None:
    """Also where the quote is still in it."""
    found = ClaimExaminer([document] if document else []).examine(claim("The default is 5.", "The default is 5."))
    assert found.status is ClaimStatus.UNSUPPORTED
    assert reason in found.reasons[0]


def test_repair_quotes_the_source_and_says_so() -> None:
    """The claim now says what the source says, with its condition; its other evidence is looked at again."""
    wrong = claim("The server will fail.", "the server will fail")
    found = ClaimExaminer(DOCUMENTS).examine(replace(wrong, evidence=(*wrong.evidence, *claim("", "40 MB").evidence)))
    assert (found.status, found.text) == (
        ClaimStatus.SUPPORTED,
        "If the disk is full, the server will fail (2024 est.).",
    )
    assert [each.method for each in found.evidence] == ["quoted"]


def test_what_cannot_be_repaired_says_why() -> None:
    """Partial where the quote is there, unsupported where it is not or where there is none."""
    assert examined("The server will fail.", "the server will fail").status is ClaimStatus.PARTIAL
    assert examined("The server will fail.", "the server may fail").status is ClaimStatus.UNSUPPORTED
    assert ClaimExaminer(DOCUMENTS).examine(ResearchClaim(id="x", text="It is.")).reasons == ("it has no evidence",)


def test_values_that_no_source_bears_out_are_taken_off() -> None:
    """A value, an attribute, an entity or a date that a model made up is not compared with anything."""
    stated: dict[str, Any] = {"entity": "max_size", "attribute": "default", "value": "5"}
    said = ("The default of max_size is 5.", "The default is 5.")
    assert examined(*said, **stated).value == "5"
    assert examined(*said, **stated | {"value": "6"}).value == ""
    assert examined(*said, **stated | {"entity": "buffer_size"}).value == ""
    assert examined(*said, **stated | {"attribute": "maximum"}).value == ""
    assert examined(*said, as_of="2025-03-01").as_of == "2025-03-01"
    assert examined(*said, as_of="2026-01-01").as_of == ""
    server = ("If the disk is full, the server will fail (2024 est.).", "the server will fail (2024 est.)")
    assert examined(*server, as_of="2024").as_of == "2024"


def test_an_attribute_is_stated_by_any_word_that_answers_it() -> None:
    """Analysts name it by the stems that were asked for; a source has another form, or a word of the same meaning."""
    said = ("Vardo has 90,000 inhabitants.", "Vardo has 90,000 inhabitants.")
    examiner = ClaimExaminer([stored("v", "# Vardo\n\nVardo has 90,000 inhabitants.\n")])
    for attribute in ("inhabit", "popul", "resid"):
        kept = examiner.examine(claim(*said, "v", entity="Vardo", attribute=attribute, value="90,000"), repair=False)
        assert (kept.status, kept.attribute, kept.value) == (ClaimStatus.SUPPORTED, attribute, "90,000")
    lost = examiner.examine(claim(*said, "v", entity="Vardo", attribute="area", value="90,000"), repair=False)
    assert (lost.status, lost.value) == (ClaimStatus.SUPPORTED, "")


def test_tier_and_weight_come_from_documents_and_words() -> None:
    """A model can neither raise a tier nor make a number uncritical."""
    assert examined("The size is limited to 40 MB.", "limited", tier=SourceTier.A).tier is SourceTier.B
    assert examined("The size is limited to 40 MB.", "limited", "a", tier=SourceTier.B).tier is SourceTier.A
    assert examined("The size is limited to 40 MB.", "limited").critical
    assert not is_critical("The server is fast.", ClaimKind.FACT)
    for text in ("Use of it is recommended.", "It was Ada.", "It has 3.", "It was on 3 May 2020."):
        assert is_critical(text, ClaimKind.FACT)


def test_a_graph_is_examined_as_a_whole() -> None:
    """Statuses, contradictions and inferences are computed again, and a critical question makes claims critical."""
    one = claim("The default of max_size is 5.", "The default is 5.", entity="max_size", attribute="default", value="5")
    other = replace(
        claim("The default of min_size is 7.", "The default is 7.", entity="min_size", attribute="default", value="7"),
        id="y",
        question_id="q",
    )
    premises = [ClaimExaminer(DOCUMENTS).examine(each) for each in (one, other)]
    largest = infer(Operation.LARGEST, premises, "options of the guide", claim_id="i")
    stale = Contradiction(one="gone", other="x", relation=Relation.UNRESOLVED, round=1)

    graph = examine_claims(
        [replace(one, status=ClaimStatus.UNSUPPORTED), other, largest],
        DOCUMENTS,
        [SubQuestion(id="q", text="?", critical=True)],
        known=[stale],
    )

    assert [each.status for each in graph.claims] == ["supported"] * 3
    assert graph.claims[1].critical
    assert graph.contradictions == (stale,)
    assert set(graph.documents) == {"d", "a", "c"}
    broken = examine_claims([one, largest], DOCUMENTS)
    assert [each.status for each in broken.claims] == ["supported", "unsupported"]


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=3), st.text(max_size=40))
def test_nothing_that_is_said_makes_it_raise(said: list[tuple[str, str, str]], document: str) -> None:
    """Whatever claims, quotes and documents hold."""
    claims = [
        replace(claim(text, quote or document, "z"), id=str(n), value=value, entity=value, attribute="a", as_of=value)
        for n, (text, quote, value) in enumerate(said)
    ]
    graph = examine_claims(claims, [stored("z", document)])
    assert len(graph.claims) == len(claims)
