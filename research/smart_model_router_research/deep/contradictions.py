"""The contradictions among claims, in any round, and what they do to the claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from smart_model_router_research.deep.claims import ClaimKind, ClaimStatus, Contradiction, Relation, ResearchClaim
from smart_model_router_research.deep.comparing import Matter, StatedValue, compare_values, matter_of, value_of

MAX_VALUES = 100
"""A matter with more different values is compared with its best source alone: there is no end to their pairs."""
_COUNTED = (ClaimStatus.SUPPORTED, ClaimStatus.CONTRADICTED, ClaimStatus.SUPERSEDED)
_DECIDED = (Relation.RECONCILED, Relation.SUPERSEDED, Relation.RESOLVED, Relation.UNRESOLVED)


def find_contradictions(claims: Iterable[ResearchClaim]) -> tuple[Contradiction, ...]:
    """Return the pairs of supported claims that differ about one matter, each pair of values once.

    Inferences are left out: they say what their premises say. The pair is in the order of the claims.
    """
    matters: dict[Matter, dict[tuple[object, ...], ResearchClaim]] = {}
    for claim in claims:
        if claim.status in _COUNTED and claim.kind is not ClaimKind.INFERENCE and (matter := matter_of(claim)):
            values = matters.setdefault(matter, {})
            values.setdefault((claim.value, claim.unit, claim.as_of, claim.tier), claim)
    found: list[Contradiction] = []
    for values in matters.values():
        read = [(claim, value_of(claim)) for claim in values.values()]
        found += [contradiction for one, other in _pairs(read) if (contradiction := _between(*one, *other))]
    return tuple(found)


def settle(claims: Sequence[ResearchClaim], contradictions: Iterable[Contradiction]) -> tuple[ResearchClaim, ...]:
    """Return the claims as their contradictions leave them.

    Both sides of an unresolved one are contradicted, and so is the worse source of a resolved one; the older value of
    a superseded one is superseded. Whatever agrees with such a claim in value, date and tier shares its fate.
    """
    by_id = {claim.id: claim for claim in claims}
    fates: dict[tuple[object, ...], tuple[ClaimStatus, list[str], set[str]]] = {}
    for each in contradictions:
        for mine, other in ((each.one, each.other), (each.other, each.one)):
            if mine not in by_id or each.kept == mine or each.relation is Relation.RECONCILED:
                continue
            status = ClaimStatus.SUPERSEDED if each.relation is Relation.SUPERSEDED else ClaimStatus.CONTRADICTED
            _, reasons, against = fates.setdefault(_value_key(by_id[mine]), (status, [], set()))
            reasons.append(each.note)
            against.add(other)
            if status is ClaimStatus.SUPERSEDED:
                fates[_value_key(by_id[mine])] = (status, reasons, against)
    return tuple(_fated(claim, fates) for claim in claims)


def _fated(
    claim: ResearchClaim, fates: dict[tuple[object, ...], tuple[ClaimStatus, list[str], set[str]]]
) -> ResearchClaim:
    if (
        claim.status not in _COUNTED
        or claim.kind is ClaimKind.INFERENCE
        or (fate := fates.get(_value_key(claim))) is None
    ):
        return claim
    status, reasons, against = fate
    return replace(
        claim,
        status=status,
        reasons=tuple(dict.fromkeys([*claim.reasons, *reasons])),
        contradicts=tuple(sorted({*claim.contradicts, *against})),
    )


def _value_key(claim: ResearchClaim) -> tuple[object, ...]:
    return matter_of(claim), claim.value, claim.unit, claim.as_of, claim.tier


def _pairs(
    read: list[tuple[ResearchClaim, StatedValue]],
) -> Iterable[tuple[tuple[ResearchClaim, StatedValue], tuple[ResearchClaim, StatedValue]]]:
    if len(read) <= MAX_VALUES:
        return combinations(read, 2)
    best = max(read, key=lambda pair: (-ord(pair[0].tier), pair[0].as_of))
    return ((best, other) for other in read if other is not best)


def _between(one: ResearchClaim, mine: StatedValue, other: ResearchClaim, its: StatedValue) -> Contradiction | None:
    found = compare_values(one, mine, other, its)
    if found.relation not in _DECIDED:
        return None
    return Contradiction(
        one=one.id,
        other=other.id,
        relation=found.relation,
        kept=found.kept,
        note=found.note,
        round=max(one.round, other.round),
    )
