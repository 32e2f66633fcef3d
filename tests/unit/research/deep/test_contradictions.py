"""Contradictions are found among all claims, and each claim bears what they do to it."""

from __future__ import annotations

from dataclasses import replace

from smart_model_router_research.deep.claims import ClaimKind, ClaimStatus, Relation, ResearchClaim, SourceTier
from smart_model_router_research.deep.contradictions import MAX_VALUES, find_contradictions, settle


def said(id: str, value: str, **rest: object) -> ResearchClaim:  # noqa: A002
    """Return a supported claim about the length of one border."""
    made = ResearchClaim(
        id=id, text=id, entity="A", other="B", attribute="borders", value=value, status=ClaimStatus.SUPPORTED
    )
    return replace(made, **rest)  # type: ignore[arg-type]


def fates(*claims: ResearchClaim) -> dict[str, str]:
    """Return the status of each claim after its contradictions."""
    return {claim.id: claim.status for claim in settle(claims, find_contradictions(claims))}


def test_both_sides_of_an_unresolved_contradiction_are_contradicted() -> None:
    """So is every other claim that says the same; one that agrees with nothing else is left alone."""
    claims = [said("x", "447 km"), said("y", "467 km", entity="B", other="A"), said("z", "447 km")]

    (found,) = find_contradictions(claims)
    assert (found.one, found.other, found.relation, found.kept) == ("x", "y", Relation.UNRESOLVED, "")
    assert set(fates(*claims).values()) == {"contradicted"}
    settled = {claim.id: claim for claim in settle(claims, [found])}
    assert settled["x"].contradicts == ("y",)
    assert "nothing decides" in settled["y"].reasons[0]


def test_an_older_value_is_superseded_and_a_worse_source_contradicted() -> None:
    """The claim that counts stays supported."""
    assert fates(said("new", "2 km", as_of="2025"), said("old", "1 km", as_of="2015")) == {
        "new": "supported",
        "old": "superseded",
    }
    assert fates(said("better", "2 km", tier=SourceTier.A), said("worse", "1 km")) == {
        "better": "supported",
        "worse": "contradicted",
    }


def test_what_is_reconciled_stays_supported_and_is_shown() -> None:
    """A qualifier explains the difference."""
    claims = [said("x", "327 km (20 km are within the Dead Sea)"), said("y", "307 km")]

    assert [each.relation for each in find_contradictions(claims)] == [Relation.RECONCILED]
    assert set(fates(*claims).values()) == {"supported"}


def test_values_that_agree_with_a_third_still_contradict_each_other() -> None:
    """84 million is either of them, rounded; they are not each other."""
    claims = [said("x", "84 million"), said("y", "84,012,284"), said("z", "83,960,000")]

    assert [(each.one, each.other) for each in find_contradictions(claims)] == [("y", "z")]


def test_only_supported_statements_contradict() -> None:
    """Unsupported claims and inferences are no side of a contradiction."""
    for rest in ({"status": ClaimStatus.PARTIAL}, {"kind": ClaimKind.INFERENCE}, {"attribute": ""}):
        assert find_contradictions([said("x", "1 km"), said("y", "2 km", **rest)]) == ()


def test_a_matter_without_end_is_compared_with_its_best_source() -> None:
    """Of more than a hundred values each is compared with the newest of the best tier alone."""
    claims = [said(f"c{n}", f"{1001 + 7919 * n} km", as_of=str(1900 + n)) for n in range(MAX_VALUES + 20)]

    found = find_contradictions(claims)
    assert len(found) == len(claims) - 1
    assert {each.kept for each in found} == {claims[-1].id}
