"""The values of expressions: three-valued logic over JSON. Null is what is missing; a wrong type is an error."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from smart_model_router.domain.errors import SmartRouterError

CONSTANTS: Mapping[str, object] = {"true": True, "false": False, "null": None}
_LARGEST = 2**63
_KINDS: Mapping[type, str] = {
    type(None): "null",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    tuple: "a list",
    dict: "a mapping",
}
Scope = Mapping[str, Any]


class ExpressionTypeError(SmartRouterError):
    """A value has the wrong type for an operation; found when the expression is evaluated. `part` is the operation."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part}: {reason}")
        self.part = part
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SubValue:
    """One part of an expression with its value, or with the reason why it has none."""

    text: str
    value: Any = None
    error: str = ""


def in_range(value: float) -> bool:
    """Return whether a number is finite and, when it is whole, has 64 bits at most."""
    return -_LARGEST <= value < _LARGEST if isinstance(value, int) else math.isfinite(value)


_ORDER: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
COMPARISONS = frozenset({*_ORDER, ast.Eq, ast.NotEq, ast.In, ast.NotIn})
ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
UNARY = frozenset({ast.Not, ast.USub})


@dataclass(slots=True)
class Evaluator:
    """One evaluation of the expression `text`; `parts` takes the value of each node that was asked."""

    text: str
    scope: Scope
    parts: list[SubValue] | None = None

    def value(self, node: ast.expr) -> Any:
        """Return the value of a node."""
        found = _VALUES[type(node)](self, node)
        if self.parts is not None and not isinstance(node, ast.Constant) and self.source(node) not in CONSTANTS:
            self.parts.append(SubValue(self.source(node), found))
        return found

    def owner(self, node: ast.expr) -> Any:
        """Return the value whose entry is read. A path is one part: `inputs` alone tells a reader nothing."""
        inside = isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
        return _VALUES[type(node)](self, node) if inside else self.value(node)

    def source(self, node: ast.expr) -> str:
        """Return a node as it was written."""
        return ast.get_source_segment(self.text, node) or ""

    def wrong(self, node: ast.expr, reason: str) -> ExpressionTypeError:
        """Return the error about a node."""
        return ExpressionTypeError(self.source(node), reason)

    def json(self, node: ast.expr, value: Any) -> Any:
        """Return a value that came from outside when it is one of JSON, with numbers in range."""
        if type(value) not in _KINDS and not isinstance(value, Mapping | list | str):
            raise self.wrong(node, f"a value of JSON is needed, not {type(value).__name__}")
        return self.number_in_range(node, value) if is_number(value) else value

    def number_in_range(self, node: ast.expr, value: float) -> float:
        """Return a number unless it is NaN, infinite, or beyond 64 bits."""
        if not in_range(value):
            raise self.wrong(node, "the number is outside of the range of numbers")
        return value

    def name(self, node: ast.Name) -> Any:
        """Return the value of a name; one that the scope does not have is null."""
        return CONSTANTS[node.id] if node.id in CONSTANTS else self.json(node, self.scope.get(node.id))

    def member(self, node: ast.Attribute) -> Any:
        """Return the member of a mapping; one that is missing is null."""
        return self.entry(node, self.owner(node.value), node.attr)

    def index(self, node: ast.Subscript) -> Any:
        """Return the entry of a mapping by name or of a list by number; one that is missing is null."""
        return self.entry(node, self.owner(node.value), self.value(node.slice))

    def entry(self, node: ast.expr, owner: Any, key: Any) -> Any:
        """Return an entry of `owner`."""
        if owner is None or key is None:
            return None
        if isinstance(owner, Mapping) and isinstance(key, str):
            return self.json(node, owner.get(key))
        if isinstance(owner, list | tuple) and type(key) is int:
            return self.json(node, owner[key]) if -len(owner) <= key < len(owner) else None
        raise self.wrong(node, f"{kind_of(owner)} has no entry by {kind_of(key)}")

    def logic(self, node: ast.BoolOp) -> bool | None:
        """Return `and` or `or` as SQL has it: the first operand that decides ends it, else null if one was null."""
        deciding = isinstance(node.op, ast.Or)
        unknown = False
        for operand in node.values:
            value = self.truth(operand)
            if value is deciding:
                return deciding
            unknown = unknown or value is None
        return None if unknown else not deciding

    def truth(self, node: ast.expr) -> bool | None:
        """Return the value of an operand of `and`, `or` and `not`."""
        value = self.value(node)
        if value is None or isinstance(value, bool):
            return value
        raise self.wrong(node, f"{kind_of(value)} is neither true nor false")

    def unary(self, node: ast.UnaryOp) -> Any:
        """Return `not x` or `-x`."""
        if isinstance(node.op, ast.Not):
            truth = self.truth(node.operand)
            return None if truth is None else not truth
        value = self.value(node.operand)
        return None if value is None else self.number_in_range(node, -self.number(node.operand, value))

    def number(self, node: ast.expr, value: Any) -> Any:
        """Return a value that has to be a number."""
        if not is_number(value):
            raise self.wrong(node, f"a number is needed, not {kind_of(value)}")
        return value

    def arithmetic(self, node: ast.BinOp) -> Any:
        """Return `a + b`, `a - b`, `a * b` or `a / b`."""
        left, right = self.value(node.left), self.value(node.right)
        if left is None or right is None:
            return None
        self.number(node.left, left)
        self.number(node.right, right)
        try:
            return self.number_in_range(node, ARITHMETIC[type(node.op)](left, right))
        except ZeroDivisionError:
            raise self.wrong(node, "division by zero") from None

    def comparison(self, node: ast.Compare) -> bool | None:
        """Return the conjunction of the comparisons of a chain; the first false one ends it."""
        unknown = False
        left = self.value(node.left)
        for compared, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            found = self.compared(node, compared, left, right)
            if found is False:
                return False
            unknown = unknown or found is None
            left = right
        return None if unknown else True

    def compared(self, node: ast.expr, compared: ast.cmpop, left: Any, right: Any) -> bool | None:
        """Return one comparison."""
        if isinstance(compared, ast.Eq | ast.NotEq):
            return same(left, right) is isinstance(compared, ast.Eq)
        if isinstance(compared, ast.In | ast.NotIn):
            return self.contained(node, left, right, isinstance(compared, ast.In))
        if left is None or right is None:
            return None
        if (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
            return _ORDER[type(compared)](left, right)
        raise self.wrong(node, f"{kind_of(left)} and {kind_of(right)} have no order")

    def contained(self, node: ast.expr, left: Any, right: Any, wanted: bool) -> bool | None:
        """Return `left in right`, or `not in`."""
        if right is None:
            return None
        if not isinstance(right, list | tuple):
            raise self.wrong(node, f"a list is needed after `in`, not {kind_of(right)}")
        return any(same(left, member) for member in right) is wanted

    def call(self, node: ast.Call) -> Any:
        """Return `coalesce(...)`, the first value that is not null, or `size(x)`."""
        assert isinstance(node.func, ast.Name)  # noqa: S101 - reading it checked that
        if node.func.id == "coalesce":
            return next((value for argument in node.args if (value := self.value(argument)) is not None), None)
        value = self.value(node.args[0])
        if value is None:
            return None
        if not isinstance(value, str | list | tuple | Mapping):
            raise self.wrong(node, f"{kind_of(value)} has no size")
        return len(value)


_VALUES: Mapping[type[ast.expr], Callable[[Evaluator, Any], Any]] = {
    ast.Constant: lambda _, node: node.value,
    ast.Name: Evaluator.name,
    ast.Attribute: Evaluator.member,
    ast.Subscript: Evaluator.index,
    ast.List: lambda evaluation, node: [evaluation.value(member) for member in node.elts],
    ast.BoolOp: Evaluator.logic,
    ast.UnaryOp: Evaluator.unary,
    ast.BinOp: Evaluator.arithmetic,
    ast.Compare: Evaluator.comparison,
    ast.Call: Evaluator.call,
}


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number; truth values are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def kind_of(value: Any) -> str:
    """Return the name of the kind of a value, for errors: `a text`, `a list`."""
    return _KINDS.get(type(value), "a mapping" if isinstance(value, Mapping) else type(value).__name__)


def same(left: Any, right: Any) -> bool:
    """Return whether two values of JSON are the same; 1 is 1.0, and true is not 1. Without recursion: data is deep."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                return False
            pairs += [(one[key], other[key]) for key in one]
        elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif isinstance(one, bool) is not isinstance(other, bool) or one != other:
            return False
    return True
