"""Expressions and templates of workflows: a whitelist over Python's syntax, three-valued logic, values of JSON.

An expression reads `inputs`, the outputs of `steps` and, in rounds, `prev`, `last` and `round_number`. Null stands for
all that is missing, and an operation on null is null; a wrong type is an error. Nothing is called but `size()` and
`coalesce()`, nothing is looked up outside of the given scope, and the work is bounded by the text.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

from smart_model_router.domain.errors import SmartRouterError

MAX_CHARACTERS = 2_000
MAX_DEPTH = 32
FORMS = {
    "inputs": "inputs.NAME",
    "steps": "steps.STEP.outputs.NAME",
    "prev": "prev.STEP.NAME",
    "last": "last.STEP.NAME",
    "round_number": "round_number",
}
"""The names that an expression may begin with, and how each goes on."""
CONSTANTS: Mapping[str, object] = {"true": True, "false": False, "null": None}
FUNCTIONS = ("coalesce", "size")

_LARGEST = 2**63
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_BLANKS = re.compile(r"\s+")
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
Reference = tuple[str, ...]
Scope = Mapping[str, Any]


class ExpressionError(SmartRouterError):
    """The text is no expression; found when it is read. `text` is the expression, `reason` what is wrong with it."""

    def __init__(self, text: str, reason: str) -> None:
        shown = text if len(text) <= 120 else f"{text[:117]}..."
        super().__init__(f"{shown!r}: {reason}")
        self.text = text
        self.reason = reason


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


@dataclass(frozen=True, slots=True)
class Expression:
    """A read expression. `references` are the paths that it reads, such as ("steps", "gate", "outputs", "passed")."""

    text: str
    body: ast.expr
    references: tuple[Reference, ...]

    def evaluate(self, scope: Scope) -> Any:
        """Return its value. Raises ExpressionTypeError."""
        return _Evaluation(self, scope).value(self.body)

    def explain(self, scope: Scope) -> tuple[SubValue, ...]:
        """Return every part that was asked, in the order of asking, the whole expression last. Raises nothing."""
        parts: list[SubValue] = []
        try:
            _Evaluation(self, scope, parts).value(self.body)
        except ExpressionTypeError as error:
            parts.append(SubValue(self.text, error=error.message))
        return tuple(parts)


def evaluate(text: str, scope: Scope) -> Any:
    """Return the value of an expression; `${...}` around it may be left out.

    Raises ExpressionError and ExpressionTypeError.
    """
    return parse_expression(bare(text)).evaluate(scope)


def explain(text: str, scope: Scope) -> tuple[SubValue, ...]:
    """Return each part of an expression with its value, the whole last. Raises ExpressionError."""
    return parse_expression(bare(text)).explain(scope)


def bare(text: str) -> str:
    """Return the inside of `${...}` when it encloses the whole text, else the text."""
    stripped = text.strip()
    if stripped.startswith("${") and _end(stripped, 2) == len(stripped) - 1:
        return stripped[2:-1]
    return text


def holds(value: object) -> tuple[bool, str]:
    """Return the decision of a condition by its value, and a note where the value is no truth value.

    Only true is true: null, numbers and texts (also "true") are not.
    """
    if isinstance(value, bool):
        return value, ""
    return False, f"the condition is {_kind_of(value)}, not true or false"


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> Expression:
    """Read an expression without its braces. Raises ExpressionError."""
    return _read_expression(text)


def _read_expression(text: str) -> Expression:
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(text, f"{len(text)} characters; at most {MAX_CHARACTERS} are allowed")
    source = _BLANKS.sub(" ", text).strip()
    if not source:
        raise ExpressionError(text, "an expression is needed")
    if "#" in _STRING.sub("", source):
        raise ExpressionError(text, "an expression without a comment is needed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # unknown escapes, `1or 2`: Python still reads them
            body = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(text, f"no expression ({error.msg}, at character {error.offset or 1})") from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError(text, "no expression") from None
    reader = _Reader(text, source)
    reader.read(body, 1)
    return Expression(source, body, tuple(dict.fromkeys(reader.references)))


# ------------------------------------------------------------------------------------------------ templates


@dataclass(frozen=True, slots=True)
class Template:
    """A text with `${...}` in it: literal texts and expressions, in order."""

    parts: tuple[str | Expression, ...]

    @property
    def expressions(self) -> Iterator[Expression]:
        """The expressions, in order."""
        return (part for part in self.parts if isinstance(part, Expression))

    @property
    def alone(self) -> Expression | None:
        """The expression that is the whole text, None where there is more, or less."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only if isinstance(only, Expression) else None

    def fill(self, scope: Scope) -> Any:
        """Return the value of the one expression, or the text with the values in it. Raises ExpressionTypeError."""
        if (only := self.alone) is not None:
            return only.evaluate(scope)
        return "".join(part if isinstance(part, str) else _as_text(part.evaluate(scope)) for part in self.parts)


@lru_cache(maxsize=4096)
def parse_template(text: str) -> Template:
    """Read a text with `${...}` in it; `$${` is the text `${`. Raises ExpressionError."""
    return _read_template(text)


def _read_template(text: str) -> Template:
    parts: list[str | Expression] = []
    literal = ""
    at = 0
    while (found := text.find("${", at)) >= 0:
        if text[found - 1 : found] == "$":
            literal += text[at : found - 1] + "${"
            at = found + 2
            continue
        end = _end(text, found + 2)
        if end < 0:
            raise ExpressionError(text, "`${` without its `}`; `$${` is the text `${`")
        literal += text[at:found]
        if literal:
            parts.append(literal)
            literal = ""
        parts.append(parse_expression(text[found + 2 : end]))
        at = end + 1
    literal += text[at:]
    return Template((*parts, literal) if literal else tuple(parts))


def fill(value: Any, scope: Scope) -> Any:
    """Return JSON data with the templates in its texts filled; keys stay. Raises as `evaluate` does."""
    if isinstance(value, str):
        return parse_template(value).fill(scope)
    if isinstance(value, Mapping):
        return {key: fill(member, scope) for key, member in value.items()}
    return [fill(member, scope) for member in value] if isinstance(value, list | tuple) else value


def _end(text: str, at: int) -> int:
    """Return where the `}` of an expression stands that begins at `at`, -1 without one. Quotes may hold `}`."""
    quote = ""
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char == "}":
            return at
        elif char in "'\"":
            quote = char
        at += 1
    return -1


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------ reading


class _Reader:
    """One pass over the syntax: refuses all that is not listed, and collects the references."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self.references: list[Reference] = []

    def read(self, node: ast.expr, depth: int) -> None:
        """Check a node, which stands at `depth` below the root, and all below it."""
        if depth > MAX_DEPTH:
            raise self._refused(f"more than {MAX_DEPTH} levels deep")
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            self._read_access(node, depth)
            return
        inside = _INSIDE.get(type(node))
        if inside is None:
            raise self._refused(f"{self._written(node)!r} is not allowed")
        for part in inside(self, node):
            self.read(part, depth + 1)

    def _read_access(self, node: ast.expr, depth: int) -> None:
        """Check a name, and the members and indices after it as far as they are fixed."""
        path = _static_path(node)
        if path is not None:
            self._read_path(path)
            if depth + len(path) - 1 > MAX_DEPTH:
                raise self._refused(f"more than {MAX_DEPTH} levels deep")
            return
        if isinstance(node, ast.Attribute):
            self._read_member(node.attr)
            self.read(node.value, depth + 1)
            return
        assert isinstance(node, ast.Subscript)  # noqa: S101 - a name alone is a path
        base = _static_path(node.value)
        if base is not None and len(base) <= _FIXED.get(base[0], 0):
            raise self._refused(f"{self._written(node)!r} is computed; {FORMS[base[0]]} is needed")
        self.read(node.value, depth + 1)
        self.read(node.slice, depth + 1)

    def _read_path(self, path: Reference) -> None:
        root, *members = path
        if root in CONSTANTS:
            return
        if root not in FORMS:
            known = root.lower() if root.lower() in CONSTANTS else ", ".join(sorted(FORMS))
            raise self._refused(f"the name {root[:60]!r} is unknown; known: {known}")
        for member in members:
            self._read_member(member)
        complete = path[2:3] == ("outputs",) if root == "steps" else bool(members) is (root != "round_number")
        if not complete:
            raise self._refused(f"{'.'.join(path)[:60]!r}: {FORMS[root]} is needed")
        self.references.append(path)

    def _read_member(self, name: str) -> None:
        if name.startswith("__"):
            raise self._refused(f"the member {name!r} is not allowed")

    def constant(self, node: ast.Constant) -> list[ast.expr]:
        """Check a literal: true, false and null are names."""
        value = node.value
        if value is None or isinstance(value, bool):
            raise self._refused(f"the name {value!r} is unknown; known: {_as_text(value) or 'null'}")
        if not isinstance(value, str | int | float) or node.kind:
            raise self._refused(f"{self._written(node)!r} is not allowed")
        if not isinstance(value, str) and not _in_range(value):
            raise self._refused(f"{self._written(node)} is outside of the range of numbers")
        return []

    def call(self, node: ast.Call) -> list[ast.expr]:
        """Check a call: its function is listed, its arguments are plain and as many as the function takes."""
        name = self._written(node.func)
        if name not in FUNCTIONS:
            raise self._refused(f"{name}() is unknown; known: {', '.join(f'{known}()' for known in FUNCTIONS)}")
        if node.keywords or not node.args or (name == "size" and len(node.args) > 1):
            raise self._refused(f"{name}() takes {'one value' if name == 'size' else 'values'}")
        return node.args

    def listed(
        self, node: Any, operators: Mapping[Any, Any], used: list[Any], inside: list[ast.expr]
    ) -> list[ast.expr]:
        """Check that the operators of a node are listed."""
        for each in used:
            if type(each) not in operators:
                raise self._refused(f"the operator of {self._written(node)!r} is not allowed")
        return inside

    def _written(self, node: ast.expr) -> str:
        # Not ast.unparse: below a node that is not allowed there may be more levels than Python recurses.
        text = ast.get_source_segment(self._source, node) or ""
        return text if len(text) <= 60 else f"{text[:57]}..."

    def _refused(self, reason: str) -> ExpressionError:
        return ExpressionError(self._text, reason)


_FIXED = {"inputs": 1, "steps": 3, "prev": 1, "last": 1}
"""The number of names of a path that have to be written: after them comes data, whose members may be computed."""


def _static_path(node: ast.expr) -> Reference | None:
    """Return the names of `a.b["c"]`, None where another expression is part of it, or a constant its root."""
    names: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is str:
            names.append(node.slice.value)
        else:
            return None
        node = node.value
    return None if names and node.id in CONSTANTS else (node.id, *reversed(names))


def _in_range(value: float) -> bool:
    return -_LARGEST <= value < _LARGEST if isinstance(value, int) else math.isfinite(value)


# ------------------------------------------------------------------------------------------------ evaluating

_ORDER: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_COMPARISONS = frozenset({*_ORDER, ast.Eq, ast.NotEq, ast.In, ast.NotIn})
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_UNARY = frozenset({ast.Not, ast.USub})
_INSIDE: Mapping[type[ast.expr], Callable[[_Reader, Any], list[ast.expr]]] = {
    ast.Constant: _Reader.constant,
    ast.List: lambda _, node: node.elts,
    ast.BoolOp: lambda _, node: node.values,
    ast.UnaryOp: lambda reader, node: reader.listed(node, dict.fromkeys(_UNARY), [node.op], [node.operand]),
    ast.BinOp: lambda reader, node: reader.listed(node, _ARITHMETIC, [node.op], [node.left, node.right]),
    ast.Compare: lambda reader, node: reader.listed(
        node, dict.fromkeys(_COMPARISONS), node.ops, [node.left, *node.comparators]
    ),
    ast.Call: _Reader.call,
}
"""Each node that is allowed, with the parts to check below it. Names, members and indices are checked as paths."""


@dataclass(slots=True)
class _Evaluation:
    """One evaluation; `parts` takes the value of each node that was asked."""

    expression: Expression
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
        return ast.get_source_segment(self.expression.text, node) or ""

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
        if not _in_range(value):
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
        raise self.wrong(node, f"{_kind_of(owner)} has no entry by {_kind_of(key)}")

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
        raise self.wrong(node, f"{_kind_of(value)} is neither true nor false")

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
            raise self.wrong(node, f"a number is needed, not {_kind_of(value)}")
        return value

    def arithmetic(self, node: ast.BinOp) -> Any:
        """Return `a + b`, `a - b`, `a * b` or `a / b`."""
        left, right = self.value(node.left), self.value(node.right)
        if left is None or right is None:
            return None
        self.number(node.left, left)
        self.number(node.right, right)
        try:
            return self.number_in_range(node, _ARITHMETIC[type(node.op)](left, right))
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
        raise self.wrong(node, f"{_kind_of(left)} and {_kind_of(right)} have no order")

    def contained(self, node: ast.expr, left: Any, right: Any, wanted: bool) -> bool | None:
        """Return `left in right`, or `not in`."""
        if right is None:
            return None
        if not isinstance(right, list | tuple):
            raise self.wrong(node, f"a list is needed after `in`, not {_kind_of(right)}")
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
            raise self.wrong(node, f"{_kind_of(value)} has no size")
        return len(value)


_VALUES: Mapping[type[ast.expr], Callable[[_Evaluation, Any], Any]] = {
    ast.Constant: lambda _, node: node.value,
    ast.Name: _Evaluation.name,
    ast.Attribute: _Evaluation.member,
    ast.Subscript: _Evaluation.index,
    ast.List: lambda evaluation, node: [evaluation.value(member) for member in node.elts],
    ast.BoolOp: _Evaluation.logic,
    ast.UnaryOp: _Evaluation.unary,
    ast.BinOp: _Evaluation.arithmetic,
    ast.Compare: _Evaluation.comparison,
    ast.Call: _Evaluation.call,
}


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number; truth values are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind_of(value: Any) -> str:
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
