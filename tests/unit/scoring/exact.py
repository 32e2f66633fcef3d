"""The formulas once more, in fractions and in decimals of fifty digits: what the code is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction


def sigmoid(x: Fraction) -> float:
    """1 / (1 + e^-x)."""
    with localcontext() as context:
        context.prec = 50
        return float(1 / (1 + (-Decimal(x.numerator) / Decimal(x.denominator)).exp()))


def power(base: Fraction, exponent: Fraction) -> float:
    """Base to the exponent."""
    with localcontext() as context:
        context.prec = 50
        number = Decimal(base.numerator) / Decimal(base.denominator)
        return float((number.ln() * Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


def rrf(results: Mapping[str, Sequence[str]], weights: Mapping[str, Fraction] | None = None) -> dict[str, Fraction]:
    """The sum of w / (60 + rank) of each id, exactly."""
    sums: dict[str, Fraction] = {}
    for name, ids in results.items():
        distinct = list(dict.fromkeys(ids))
        for key in distinct:
            rank = distinct.index(key) + 1
            sums[key] = sums.get(key, Fraction(0)) + (weights or {}).get(name, Fraction(1)) / (60 + rank)
    return sums
