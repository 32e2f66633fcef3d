"""A number that can explain itself: a tree of named terms which, computed again from its leaves, gives the number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType


def _sigmoid(values: Sequence[float]) -> float:
    return sigmoid(values[0])


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), in the form of two branches that overflows for no `x`."""
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    grown = math.exp(x)
    return grown / (1.0 + grown)


OPERATIONS: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType(
    {
        "sum": math.fsum,
        "product": math.prod,
        "ratio": lambda values: values[0] / values[1],
        "power": lambda values: values[0] ** values[1],
        "max": max,
        "min": min,
        "sigmoid": _sigmoid,
    }
)
"""The operations that make a term of its parts. A term without parts is given: the computation starts there."""


@dataclass(frozen=True, slots=True)
class Term:
    """A number with its name and, unless it was given, the operation of `OPERATIONS` and the parts that made it.

    `facts` are what a person wants to know beside the number (a rank, a date); they take no part in it.
    """

    name: str
    value: float
    operation: str = ""
    parts: tuple[Term, ...] = ()
    facts: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    def recompose(self) -> float:
        """The number again, from the leaves alone. It is `value` to 1e-12, or the explanation is wrong."""
        if not self.operation:
            return self.value
        return OPERATIONS[self.operation]([part.recompose() for part in self.parts])

    def find(self, name: str) -> Term | None:
        """The first term of this name, this one included, top down; None when there is none."""
        return next((term for term in self._walk() if term.name == name), None)

    def lines(self, depth: int = 0) -> Iterator[str]:
        """The tree as indented text, one term a line: `name = value (operation; fact: value)`."""
        told = [self.operation] if self.operation else []
        told += [f"{name}: {value}" for name, value in self.facts.items()]
        yield f"{'  ' * depth}{self.name} = {self.value:.6g}" + (f" ({'; '.join(told)})" if told else "")
        for part in self.parts:
            yield from part.lines(depth + 1)

    def _walk(self) -> Iterator[Term]:
        yield self
        for part in self.parts:
            yield from part._walk()


def combined(name: str, operation: str, parts: Sequence[Term], **facts: object) -> Term:
    """A term made of `parts` by an operation of `OPERATIONS`."""
    value = OPERATIONS[operation]([part.value for part in parts])
    return Term(name, value, operation, tuple(parts), MappingProxyType(facts))


def given(name: str, value: float, **facts: object) -> Term:
    """A term that is where the computation starts."""
    return Term(name, value, "", (), MappingProxyType(facts))
