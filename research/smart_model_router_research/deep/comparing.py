"""Two claims about one matter: they agree, one explains or supersedes the other, or they contradict each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from smart_model_router_research.deep.claims import Relation, ResearchClaim
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.labels import SYMMETRIC
from smart_model_router_research.deep.quantities import Quantity, is_same
from smart_model_router_research.deep.words import read_items

_PARENTHESIS = re.compile(r"\(([^()]*)\)")
_AND = re.compile(r"\s+(?:and|\+)\s+")
Matter = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimComparison:
    """The relation of two claims. `kept` is the id of the one that counts, "" for both; `note` says why."""

    relation: Relation
    kept: str = ""
    note: str = ""


def matter_of(claim: ResearchClaim) -> Matter | None:
    """Return what a claim is about, as far as it can be compared: entity and attribute, of a pair in either order."""
    if not (claim.entity and claim.attribute and claim.value):
        return None
    attribute = fold(claim.attribute).casefold()
    names = [fold(claim.entity).casefold(), fold(claim.other).casefold()]
    return (attribute, *(sorted(names) if attribute in SYMMETRIC else names))


def compare_claims(one: ResearchClaim, other: ResearchClaim) -> ClaimComparison:
    """Return how two claims stand to each other.

    Numbers are compared with their units, to the digits of the coarser one; names by their letters. Values that "and"
    joins are summed. Dates count only where both claims have one.
    """
    if (matter := matter_of(one)) is None or matter != matter_of(other):
        return ClaimComparison(Relation.UNRELATED)
    return compare_values(one, value_of(one), other, value_of(other))


def compare_values(one: ResearchClaim, mine: StatedValue, other: ResearchClaim, its: StatedValue) -> ClaimComparison:
    """Return how two claims about one matter stand to each other, by their values as they were read."""
    if is_polar(one) or is_polar(other):
        if not (is_polar(one) and is_polar(other)):
            return ClaimComparison(Relation.UNRELATED)
        if _denies(one.text) is _denies(other.text):
            return ClaimComparison(Relation.AGREES)
    elif mine.total is None or its.total is None:
        if (mine.total is None) != (its.total is None):
            return ClaimComparison(Relation.UNRELATED)
        if mine.name == its.name:
            return ClaimComparison(Relation.AGREES)
    elif mine.total.unit != its.total.unit:
        return ClaimComparison(Relation.UNRELATED)
    elif is_same(mine.total, its.total) or is_same(its.total, mine.total):
        return ClaimComparison(Relation.AGREES)
    elif (qualifier := _explained(mine, its) or _explained(its, mine)) is not None:
        return ClaimComparison(Relation.RECONCILED, note=f"{one.value!r} and {other.value!r} agree by {qualifier!r}")
    return _decided(one, other)


_DENIAL = re.compile(r"\b(?:not|no|never|neither|nor|cannot|without)\b|n['\u2019]t\b", re.IGNORECASE)


def _denies(text: str) -> bool:
    return _DENIAL.search(text) is not None


def is_polar(claim: ResearchClaim) -> bool:
    """Return whether the value of a claim is its whole sentence: another one contradicts it where one alone denies."""
    value = fold(claim.value).rstrip(".")
    return bool(value) and any(fold(evidence.quote).rstrip(".") == value for evidence in claim.evidence)


def differs(one: str, other: str, *, is_whole: bool = False) -> bool:
    """Return whether two values, or two whole sentences about one question, cannot both hold."""
    if is_whole:
        return _denies(one) is not _denies(other)
    mine, its = ([item.key for item in read_items(fold(text))] for text in (one, other))
    days = [next((key for key in keys if isinstance(key, tuple)), None) for keys in (mine, its)]
    if days[0] is not None and days[1] is not None:
        width = min(len(days[0]), len(days[1]))
        return bool(days[0][:width] != days[1][:width])
    numbers = [next((key for key in keys if isinstance(key, Quantity)), None) for keys in (mine, its)]
    if numbers[0] is not None and numbers[1] is not None:
        return numbers[0].unit == numbers[1].unit and not (
            is_same(numbers[0], numbers[1]) or is_same(numbers[1], numbers[0])
        )
    words = [set(re.findall(r"\w+", fold(text).casefold())) for text in (one, other)]
    return (numbers[0] is None) == (numbers[1] is None) and not (words[0] <= words[1] or words[1] <= words[0])


def _decided(one: ResearchClaim, other: ResearchClaim) -> ClaimComparison:
    said = f"{one.value!r} and {other.value!r}"
    if one.as_of and other.as_of and one.as_of != other.as_of:
        newer, older = (one, other) if one.as_of > other.as_of else (other, one)
        if newer.tier.is_at_least(older.tier):
            return ClaimComparison(Relation.SUPERSEDED, newer.id, f"{said}: that of {newer.as_of} is newer")
    if one.tier is not other.tier:
        better = one if one.tier.is_at_least(other.tier) else other
        return ClaimComparison(
            Relation.RESOLVED, better.id, f"{said}: a source of tier {better.tier} stands against another"
        )
    return ClaimComparison(Relation.UNRESOLVED, note=f"{said}: nothing decides between them")


@dataclass(frozen=True, slots=True)
class StatedValue:
    """A value as it was read: the sum of its numbers, the numbers of its qualifiers, and what it is without numbers."""

    total: Quantity | None
    qualifiers: tuple[tuple[Quantity, str], ...]
    name: str


def value_of(claim: ResearchClaim) -> StatedValue:
    """Return the value of a claim as it is compared."""
    text = fold(f"{claim.value} {claim.unit}" if claim.unit and claim.unit not in claim.value else claim.value)
    qualifiers = [
        (number, inner) for inner in _PARENTHESIS.findall(text) if (number := _first_number(inner, units_only=True))
    ]
    plain = _PARENTHESIS.sub(" ", text)
    numbers = [_first_number(part) for part in _AND.split(plain)]
    if any(item.kind == "sign" for item in read_items(plain)):
        numbers = [None]
    known = [number for number in numbers if number is not None]
    total = _sum(known) if known and len(known) == len(numbers) else None
    return StatedValue(total, tuple(qualifiers), " ".join(plain.casefold().split()))


def _first_number(text: str, *, units_only: bool = False) -> Quantity | None:
    found = [item.key for item in read_items(text) if isinstance(item.key, Quantity)]
    found = [number for number in found if number.unit] if units_only else found
    return found[0] if found else None


def _sum(numbers: list[Quantity]) -> Quantity | None:
    first = numbers[0]
    if any(number.unit != first.unit or number.factor != first.factor for number in numbers):
        return None
    value = sum((number.value for number in numbers), Decimal(0))
    if len(numbers) == 1:
        return first
    return Quantity(value, max(number.step for number in numbers), first.unit, first.factor, is_grouped=True)


def _explained(one: StatedValue, other: StatedValue) -> str | None:
    """Return the qualifier of one value that makes up the whole difference to the other."""
    if one.total is None or other.total is None:
        return None
    apart = abs(one.total.value * one.total.factor - other.total.value * other.total.factor)
    for number, text in one.qualifiers:
        if number.unit == one.total.unit and apart == number.value * number.factor:
            return text
    return None
