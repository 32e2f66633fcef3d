"""Claims that code computes from other claims: what they say is written by code, too, and can be computed again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum
from itertools import combinations
from typing import Any, NamedTuple

from smart_model_router_research.deep.claims import ClaimKind, ClaimStatus, QuotedEvidence, ResearchClaim, SourceTier
from smart_model_router_research.deep.comparing import matter_of, value_of
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.labels import SYMMETRIC
from smart_model_router_research.deep.naming import is_verbal
from smart_model_router_research.deep.quantities import Quantity
from smart_model_router_research.deep.words import read_items

MAX_PREMISES = 1_000
_VERSION = re.compile(r"v?(\d{1,6}(?:\.\d{1,6}){0,3})")
_BEFORE_CHRIST = re.compile(r"\bB\.?C\.?(?:E\.?)?(?!\w)")
_UNIT = re.compile(r"[^\d.,'_]+$")


class Operation(StrEnum):
    """The ways in which one claim follows from others. Nothing else is inferred."""

    COUNT = "count"
    """The number of different things the premises name."""
    SUM = "sum"
    DIFFERENCE = "difference"
    """By how much the first of two is more than the second."""
    SHARE = "share"
    """The first of two in per cent of the second, to one digit behind the point."""
    LARGEST = "largest"
    SMALLEST = "smallest"
    EARLIEST = "earliest"
    LATEST = "latest"
    ORDER = "order"
    """The entities, the largest first."""
    JOIN = "join"
    """The second claim says something of the thing that the first names."""


class InferenceError(ValueError):
    """Premises that nothing can be computed from; the text says why."""


def infer(
    operation: Operation,
    premises: Sequence[ResearchClaim],
    scope: str,
    *,
    claim_id: str,
    question_id: str = "",
) -> ResearchClaim:
    """Return the claim that follows from supported premises. Raises InferenceError.

    `scope` names the set that was looked at ("border countries of China in these sources"). The claim cites all that
    its premises cite, and is critical when one of them is.
    """
    if not 1 <= len(premises) <= MAX_PREMISES:
        raise InferenceError(f"an inference has 1 to {MAX_PREMISES:,} premises: these are {len(premises):,}")
    if not scope.strip():
        raise InferenceError("an inference names the set that it looked at")
    for premise in premises:
        if premise.status is not ClaimStatus.SUPPORTED:
            raise InferenceError(f"{premise.id} is {premise.status}: only supported claims are premises")
    scope = fold(scope)
    result = _OPERATIONS[operation](premises, scope)
    evidence: dict[QuotedEvidence, None] = dict.fromkeys(each for premise in premises for each in premise.evidence)
    return ResearchClaim(
        id=claim_id,
        question_id=question_id,
        kind=ClaimKind.INFERENCE,
        text=f"{result.text} (computed from {len(premises)} {'claims' if len(premises) > 1 else 'claim'}: {scope}).",
        critical=any(premise.critical for premise in premises),
        entity=result.entity,
        attribute=result.attribute,
        value=result.value,
        unit=result.unit,
        tier=max((premise.tier for premise in premises), key=list(SourceTier).index),
        evidence=tuple(evidence),
        status=ClaimStatus.SUPPORTED,
        operation=operation,
        premises=tuple(premise.id for premise in premises),
        scope=scope,
        round=max(premise.round for premise in premises),
    )


def recompute(claim: ResearchClaim, claims: Mapping[str, ResearchClaim]) -> ResearchClaim:
    """Return the inference as it follows from its premises now: supported, or unsupported with a reason.

    Never raises.
    """
    try:
        operation = Operation(claim.operation)
        missing = [each for each in claim.premises if each not in claims]
        if missing:
            raise InferenceError(f"premise {missing[0]} is no claim of this graph")
        premises = [claims[each] for each in claim.premises]
        again = infer(operation, premises, claim.scope, claim_id=claim.id, question_id=claim.question_id)
    except ValueError as problem:
        return replace(claim, status=ClaimStatus.UNSUPPORTED, reasons=(str(problem),))
    if fold(again.text) != fold(claim.text):
        reason = f"computed again, it says {again.text[:200]!r}"
        return replace(claim, status=ClaimStatus.UNSUPPORTED, reasons=(reason,))
    return replace(again, critical=again.critical or claim.critical, round=max(again.round, claim.round))


class _Result(NamedTuple):
    """The words and the value of what was computed."""

    text: str
    value: str
    unit: str = ""
    entity: str = ""
    attribute: str = ""


def _count(premises: Sequence[ResearchClaim], scope: str) -> _Result:
    named = {name.casefold() for name in _names(premises, or_values=True)}
    return _Result(f"There are {len(named)} in all", str(len(named)), entity=scope, attribute="count")


def _sum(premises: Sequence[ResearchClaim], scope: str) -> _Result:
    attribute = _one_attribute(premises)
    amounts = _amounts(premises)
    if len({matter_of(premise) for premise in premises}) < len(premises):
        raise InferenceError("two premises state one thing: a sum would count it twice")
    total = sum((amount.value * amount.factor for amount in amounts), Decimal(0)) / amounts[0].factor
    value, unit = _plain(total), _unit_of(premises[0])
    return _Result(f"The sum of {attribute} is {value}{_behind(unit)}", value, unit, scope, attribute)


def _difference(premises: Sequence[ResearchClaim], _scope: str) -> _Result:
    one, other, attribute, amounts = _pair(premises)
    apart = (amounts[0].value * amounts[0].factor - amounts[1].value * amounts[1].factor) / amounts[0].factor
    value, unit = _plain(abs(apart)), _unit_of(premises[0])
    than = "more" if apart >= 0 else "less"
    text = f"The {attribute} of {one} is {value}{_behind(unit)} {than} than that of {other}"
    return _Result(text, value, unit, one, f"difference of {attribute}")


def _share(premises: Sequence[ResearchClaim], _scope: str) -> _Result:
    one, other, attribute, amounts = _pair(premises)
    whole = amounts[1].value * amounts[1].factor
    if not whole:
        raise InferenceError(f"the {attribute} of {other} is 0: it has no shares")
    share = _plain((amounts[0].value * amounts[0].factor * 100 / whole).quantize(Decimal("0.1")))
    return _Result(
        f"The {attribute} of {one} is {share} % of that of {other}", share, "%", one, f"share of {attribute}"
    )


def _extreme(word: str, *, is_most: bool, of_times: bool = False) -> Callable[[Sequence[ResearchClaim], str], _Result]:
    def compute(premises: Sequence[ResearchClaim], _scope: str) -> _Result:
        attribute = _one_attribute(premises)
        keys: list[Any] = _times(premises) if of_times else [_size(amount) for amount in _amounts(premises)]
        best = max(keys) if is_most else min(keys)
        names = _names(premises)
        held = list(dict.fromkeys(name for name, key in zip(names, keys, strict=True) if key == best))
        first = premises[keys.index(best)]
        text = f"The {word} {attribute} is that of {' and '.join(held)}, {_stated(first)}"
        return _Result(text, " and ".join(held), attribute=f"{word} {attribute}")

    return compute


def _order(premises: Sequence[ResearchClaim], scope: str) -> _Result:
    attribute = _one_attribute(premises)
    sizes = [_size(amount) for amount in _amounts(premises)]
    ranked = sorted(zip(_names(premises), sizes, strict=True), key=lambda pair: -pair[1])
    names = ", ".join(dict.fromkeys(name for name, _ in ranked))
    return _Result(f"By {attribute}, the largest first: {names}", names, "", scope, f"order of {attribute}")


def _join(premises: Sequence[ResearchClaim], _scope: str) -> _Result:
    if len(premises) != 2:
        raise InferenceError(f"a join has two premises: these are {len(premises)}")
    first, second = premises
    other = first.other if fold(first.attribute).casefold() in SYMMETRIC else ""
    named = {fold(name).casefold() for name in (first.value, other, first.entity) if name}
    if not second.entity or fold(second.entity).casefold() not in named:
        raise InferenceError(f"{first.id} does not name {second.entity or 'an entity'!r}, which {second.id} is about")
    if not (first.attribute and second.attribute and second.value):
        raise InferenceError("a premise of a join has no attribute or no value")
    text = f"The {second.attribute} of {second.entity} is {_stated(second)}"
    if is_verbal(second.attribute):
        text = f"{second.entity}: {second.attribute} {_stated(second)}"
    if second.text.endswith("."):  # a sentence says it as it is said
        text = second.text.rstrip(".")
    if fold(second.entity).casefold() != fold(first.entity).casefold():
        text += f", and {second.entity} is the {first.attribute} of {first.entity}"
    return _Result(text, fold(second.value), second.unit, first.entity, f"{second.attribute} of {first.attribute}")


_OPERATIONS: Mapping[Operation, Callable[[Sequence[ResearchClaim], str], _Result]] = {
    Operation.COUNT: _count,
    Operation.SUM: _sum,
    Operation.DIFFERENCE: _difference,
    Operation.SHARE: _share,
    Operation.LARGEST: _extreme("largest", is_most=True),
    Operation.SMALLEST: _extreme("smallest", is_most=False),
    Operation.EARLIEST: _extreme("earliest", is_most=False, of_times=True),
    Operation.LATEST: _extreme("latest", is_most=True, of_times=True),
    Operation.ORDER: _order,
    Operation.JOIN: _join,
}


def _names(premises: Sequence[ResearchClaim], *, or_values: bool = False) -> list[str]:
    """Return what each premise is about beside what all are about: the neighbours, of borders of one country.

    Where all are about one entity alone, `or_values` takes their values.
    """
    pairs = [[fold(name) for name in (premise.entity, premise.other) if name] for premise in premises]
    if not all(pairs):
        raise InferenceError("a premise names no entity")
    common = set.intersection(*({name.casefold() for name in pair} for pair in pairs)) if len(pairs) > 1 else set()
    if len(pairs) == 1 and len(pairs[0]) == 2:
        common = {pairs[0][0].casefold()}
    rest = [[name for name in pair if name.casefold() not in common] for pair in pairs]
    if or_values and not any(rest):
        rest = [[fold(premise.value)] if premise.value else [] for premise in premises]
    if not all(len(names) == 1 for names in rest):
        raise InferenceError("it is open which entity each premise is about")
    return [names[0] for names in rest]


def _one_attribute(premises: Sequence[ResearchClaim]) -> str:
    attributes = {fold(premise.attribute).casefold() for premise in premises}
    if len(attributes) != 1 or "" in attributes:
        raise InferenceError(f"premises are about one attribute: these are about {sorted(attributes)}")
    return fold(premises[0].attribute)


def _amounts(premises: Sequence[ResearchClaim]) -> list[Quantity]:
    found = [value_of(premise).total for premise in premises]
    amounts = [amount for amount in found if amount is not None]
    if len(amounts) < len(found):
        raise InferenceError(f"the value of {premises[found.index(None)].id} is no number")
    units = {amount.unit or _unit_of(premise) for amount, premise in zip(amounts, premises, strict=True)}
    if len(units) > 1:
        raise InferenceError(f"the values have different units: {sorted(units)}")
    return amounts


def _pair(premises: Sequence[ResearchClaim]) -> tuple[str, str, str, list[Quantity]]:
    if len(premises) != 2:
        raise InferenceError(f"it takes two premises: these are {len(premises)}")
    one, other = _names(premises)
    return one, other, _one_attribute(premises), _amounts(premises)


def _times(premises: Sequence[ResearchClaim]) -> list[tuple[int, ...]]:
    found = [_time(premise) for premise in premises]
    for one, other in combinations(found, 2):
        if one != other and one[: len(other)] == other[: len(one)]:
            raise InferenceError(f"one of {_dotted(one)} and {_dotted(other)} is too coarse to be compared")
    return found


def _time(premise: ResearchClaim) -> tuple[int, ...]:
    """Return a value that is a date, a year or a version as numbers, the coarsest first."""
    for item in read_items(fold(premise.value)):
        if isinstance(item.key, tuple) and len(item.key) != 2:
            return item.key
        if isinstance(item.key, tuple) and item.key[0] > 12:
            return item.key
        if (match := _VERSION.fullmatch(item.written)) is not None:
            numbers = tuple(int(part) for part in match[1].split("."))
            return (-numbers[0],) if _BEFORE_CHRIST.search(premise.value) else numbers
    raise InferenceError(f"the value of {premise.id} is no date, year or version")


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _size(amount: Quantity) -> Decimal:
    return amount.value * amount.factor


def _unit_of(premise: ResearchClaim) -> str:
    """Return the unit as the premise writes it."""
    if premise.unit:
        return fold(premise.unit)
    items = [item for item in read_items(fold(premise.value)) if isinstance(item.key, Quantity)]
    match = _UNIT.search(items[0].written) if items else None
    if match and items[0].key.unit:  # type: ignore[union-attr]
        return match[0].strip()
    _, _, behind = fold(premise.value).partition(items[0].written) if items else ("", "", "")
    return re.sub(r"\(.*", "", behind).strip()


def _stated(premise: ResearchClaim) -> str:
    value, unit = fold(premise.value), fold(premise.unit)
    return f"{value} {unit}" if unit and unit not in value else value


def _behind(unit: str) -> str:
    return f" {unit}" if unit else ""


def _plain(number: Decimal) -> str:
    """Return a number with separators of thousands and no nought behind the last digit that counts."""
    text = f"{number:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
