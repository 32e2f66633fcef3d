"""An inference is what its premises make it, and is computed again whenever it is looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from smart_model_router_research.deep.claims import ClaimKind, ClaimStatus, QuotedEvidence, ResearchClaim, SourceTier
from smart_model_router_research.deep.inferences import InferenceError, Operation, infer, recompute

IN_SOURCES = "land borders in these sources"


def fact(entity: str, attribute: str, value: str, other: str = "", **rest: Any) -> ResearchClaim:
    """Return a supported claim, cited from a page of its entity."""
    evidence = (QuotedEvidence(doc_id=entity, quote=value, span=(0, len(value))),)
    made = ResearchClaim(
        id=f"{entity}-{attribute}-{other or value}",
        text=f"{attribute} of {entity}: {value}",
        entity=entity,
        attribute=attribute,
        value=value,
        other=other,
        evidence=evidence,
        status=ClaimStatus.SUPPORTED,
    )
    return replace(made, **rest)


BORDERS = [
    fact("China", "borders", "4,179 km", "Russia"),
    fact("Mongolia", "borders", "4,630 km", "China"),
    fact("China", "borders", "91,000 m", "Afghanistan"),
]
RELEASES = [fact("walrus", "added in", "3.8"), fact("match", "added in", "3.10"), fact("tomllib", "added in", "3.11")]
AREAS = [fact("Chad", "area", "1,284,000 sq km"), fact("Mali", "area", "1,240,192 sq km")]


@pytest.mark.parametrize(
    ("operation", "premises", "text", "value"),
    [
        (Operation.COUNT, BORDERS, "There are 3 in all", "3"),
        (Operation.COUNT, [fact("X", "language", "Dutch"), fact("X", "language", "French")], "There are 2 in all", "2"),
        (Operation.SUM, BORDERS, "The sum of borders is 8,900 km", "8,900"),
        (Operation.DIFFERENCE, AREAS, "The area of Chad is 43,808 sq km more than that of Mali", "43,808"),
        (Operation.DIFFERENCE, AREAS[::-1], "The area of Mali is 43,808 sq km less than that of Chad", "43,808"),
        (Operation.SHARE, AREAS[::-1], "The area of Mali is 96.6 % of that of Chad", "96.6"),
        (Operation.LARGEST, BORDERS, "The largest borders is that of Mongolia, 4,630 km", "Mongolia"),
        (Operation.SMALLEST, BORDERS, "The smallest borders is that of Afghanistan, 91,000 m", "Afghanistan"),
        (Operation.EARLIEST, RELEASES, "The earliest added in is that of walrus, 3.8", "walrus"),
        (Operation.LATEST, RELEASES, "The latest added in is that of tomllib, 3.11", "tomllib"),
        (Operation.ORDER, BORDERS, "By borders, the largest first: Mongolia, Russia, Afghanistan", None),
        (
            Operation.JOIN,
            [fact("Niger", "neighbour", "Chad"), fact("Chad", "capital", "N'Djamena")],
            "The capital of Chad is N'Djamena, and Chad is the neighbour of Niger",
            "N'Djamena",
        ),
    ],
)
def test_code_computes_and_words_it(
    operation: Operation, premises: list[ResearchClaim], text: str, value: str | None
) -> None:
    """The words name the operation's result, the number of claims and the set that was looked at, and say computed."""
    found = infer(operation, premises, IN_SOURCES, claim_id="i")

    assert found.text == f"{text} (computed from {len(premises)} claims: {IN_SOURCES})."
    assert value is None or found.value == value
    assert (found.kind, found.status) == (ClaimKind.INFERENCE, ClaimStatus.SUPPORTED)
    assert {each.doc_id for each in found.evidence} == {premise.entity for premise in premises}
    assert recompute(found, {premise.id: premise for premise in premises}) == found


def test_two_that_are_equal_are_both_named() -> None:
    """Nothing decides between them."""
    premises = [fact("A", "height", "10 m"), fact("B", "height", "1,000 cm"), fact("C", "height", "3 m")]
    assert infer(Operation.LARGEST, premises, "towers", claim_id="i").value == "A and B"


def test_dates_are_compared_as_dates() -> None:
    """Years and days are, but not a year with a day in it."""
    treaties = [fact("A", "signed", "12 May 1999"), fact("B", "signed", "March 2001"), fact("C", "signed", "1995")]
    assert infer(Operation.EARLIEST, treaties, "treaties", claim_id="i").value == "C"
    with pytest.raises(InferenceError, match="too coarse"):
        infer(Operation.EARLIEST, [*treaties, fact("D", "signed", "1999")], "treaties", claim_id="i")


@pytest.mark.parametrize(
    ("operation", "premises", "why"),
    [
        (Operation.COUNT, [], "premises"),
        (Operation.COUNT, [replace(BORDERS[0], status=ClaimStatus.PARTIAL)], "only supported"),
        (Operation.COUNT, [fact("", "x", "y")], "no entity"),
        (Operation.SUM, [BORDERS[0], BORDERS[0]], "twice"),
        (Operation.SUM, [AREAS[0], BORDERS[0]], "one attribute"),
        (Operation.SUM, [AREAS[0], fact("X", "area", "12 km")], "different units"),
        (Operation.SUM, [AREAS[0], fact("X", "area", "large")], "no number"),
        (Operation.LARGEST, [AREAS[0], fact("Chad", "area", "1 sq km", as_of="2020")], "open which entity"),
        (Operation.DIFFERENCE, AREAS[:1], "two premises"),
        (Operation.SHARE, [AREAS[0], fact("X", "area", "0 sq km")], "is 0"),
        (Operation.EARLIEST, [AREAS[0], fact("Y", "area", "unknown")], "no date"),
        (Operation.JOIN, AREAS[:1], "two premises"),
        (Operation.JOIN, [fact("Niger", "neighbour", "Chad"), fact("Sudan", "capital", "Khartoum")], "does not name"),
        (Operation.JOIN, [fact("Niger", "", "Chad"), fact("Chad", "capital", "N'Djamena")], "no attribute"),
    ],
)
def test_what_cannot_be_computed_is_refused(operation: Operation, premises: list[ResearchClaim], why: str) -> None:
    """The error says why."""
    with pytest.raises(InferenceError, match=why):
        infer(operation, premises, IN_SOURCES, claim_id="i")


def test_an_inference_names_its_set() -> None:
    """The largest of what, it has to say."""
    with pytest.raises(InferenceError, match="names the set"):
        infer(Operation.LARGEST, BORDERS, " ", claim_id="i")


def test_an_inference_falls_with_its_premises_and_its_words() -> None:
    """A premise that is gone, contradicted or other, an unknown operation, and other words make it unsupported."""
    made = infer(Operation.LARGEST, BORDERS, IN_SOURCES, claim_id="i")
    claims = {premise.id: premise for premise in BORDERS}
    first = BORDERS[0]
    for graph, claim in (
        ({}, made),
        (claims | {first.id: replace(first, status=ClaimStatus.CONTRADICTED)}, made),
        (claims | {first.id: replace(first, value="9,999 km")}, made),
        (claims, replace(made, operation="guess")),
        (claims, replace(made, text=made.text.replace("Mongolia", "Russia"))),
    ):
        found = recompute(claim, graph)
        assert (found.status, len(found.reasons)) == (ClaimStatus.UNSUPPORTED, 1)


def test_an_inference_is_as_weak_and_as_critical_as_its_weakest_and_most_critical_premise() -> None:
    """Its tier is the worst of theirs."""
    premises = [replace(BORDERS[0], tier=SourceTier.A), replace(BORDERS[1], critical=True)]
    found = infer(Operation.LARGEST, premises, IN_SOURCES, claim_id="i")
    assert (found.tier, found.critical) == (SourceTier.B, True)
