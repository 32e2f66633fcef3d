"""Two claims about one matter are compared with their units, qualifiers, dates and sources."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from smart_model_router_research.deep.claims import Relation, ResearchClaim, SourceTier
from smart_model_router_research.deep.comparing import compare_claims


def border(one: str, other: str, value: str, **rest: object) -> ResearchClaim:
    """Return a claim about the border of two countries."""
    claim = ResearchClaim(
        id=f"{one}-{other}", text="", entity=one, other=other, attribute="border countries", value=value
    )
    return replace(claim, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        ("467 km", "467 km", Relation.AGREES),
        ("467.4 km", "467 km", Relation.AGREES),
        ("467,000 m", "467 km", Relation.AGREES),
        ("(southeast) 4,133 km and China (south) 46 km", "4,179 km", Relation.AGREES),
        ("447 km", "467 km", Relation.UNRESOLVED),
        ("327 km (20 km are within the Dead Sea)", "307 km", Relation.RECONCILED),
        ("307 km", "327 km (20 km are within the Dead Sea)", Relation.RECONCILED),
        ("327 km (21 km are within the Dead Sea)", "307 km", Relation.UNRESOLVED),
        ("467 km", "467 sq km", Relation.UNRELATED),
        ("467 km", "long", Relation.UNRELATED),
        ("Long", "long", Relation.AGREES),
        ("long", "short", Relation.UNRESOLVED),
        ("467 km and 3 days", "467 km", Relation.UNRELATED),
    ],
)
def test_values_are_compared_beyond_their_rounding(one: str, other: str, relation: Relation) -> None:
    """Numbers agree to the digits of the coarser one, sums and qualifiers included; other units are no comparison."""
    assert compare_claims(border("A", "B", one), border("B", "A", other)).relation is relation


def test_a_newer_value_of_a_source_as_good_supersedes() -> None:
    """The newer claim counts where both dates are known, and its source is not worse."""
    old, new = border("A", "B", "1 km", as_of="2015-01-01"), border("B", "A", "2 km", as_of="2025-01-01")

    for found in (compare_claims(old, new), compare_claims(new, old)):
        assert (found.relation, found.kept) == (Relation.SUPERSEDED, new.id)


@pytest.mark.parametrize(("as_of", "tier"), [("", SourceTier.B), ("2015-01-01", SourceTier.B)])
def test_without_two_dates_nothing_is_superseded(as_of: str, tier: SourceTier) -> None:
    """A date that is missing, or the same, decides nothing."""
    one, other = border("A", "B", "1 km", as_of="2015-01-01", tier=tier), border("B", "A", "2 km", as_of=as_of)

    assert compare_claims(one, other).relation is Relation.UNRESOLVED


def test_a_newer_value_of_a_worse_source_does_not_supersede() -> None:
    """The better source counts, and both are shown."""
    old = border("A", "B", "1 km", as_of="2015-01-01", tier=SourceTier.A)
    new = border("B", "A", "2 km", as_of="2025-01-01", tier=SourceTier.B)

    found = compare_claims(old, new)

    assert (found.relation, found.kept) == (Relation.RESOLVED, old.id)
    assert compare_claims(new, old) == replace(found, note=compare_claims(new, old).note)


def test_borders_that_both_pages_agree_on_are_no_contradictions() -> None:
    """Of 289 borders of the Factbook one is unresolved (447 and 467 km), and one is explained by its own page."""
    pairs = json.loads((Path(__file__).parents[3] / "fixtures" / "claims" / "borders.json").read_text())
    found = {
        (one, other): compare_claims(border(one, other, mine), border(other, one, its)).relation
        for one, other, mine, its in pairs
    }

    assert Counter(found.values()) == {Relation.AGREES: 287, Relation.UNRESOLVED: 1, Relation.RECONCILED: 1}
    assert found["Germany", "Poland"] is Relation.UNRESOLVED
    assert found["Israel", "Jordan"] is Relation.RECONCILED


def test_other_matters_are_not_compared() -> None:
    """Another entity, another attribute, or none: the claims are unrelated; an order matters unless it is symmetric."""
    one = border("A", "B", "1 km")

    assert compare_claims(one, border("A", "C", "2 km")).relation is Relation.UNRELATED
    assert compare_claims(one, replace(one, attribute="coast")).relation is Relation.UNRELATED
    assert compare_claims(replace(one, entity=""), replace(one, entity="")).relation is Relation.UNRELATED
    exports = replace(one, attribute="exports to")
    assert compare_claims(exports, replace(exports, entity="B", other="A")).relation is Relation.UNRELATED
