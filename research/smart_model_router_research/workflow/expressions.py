"""Expressions and templates of workflows: a whitelist over Python's syntax, three-valued logic, values of JSON.

An expression reads `inputs`, the outputs of `steps` and, in rounds, `prev`, `last` and `round_number`. Null stands for
all that is missing, and an operation on null is null; a wrong type is an error. Nothing is called but `size()` and
`coalesce()`, nothing is looked up outside of the given scope, and the work is bounded by the text.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router_research.workflow.evaluation import (
    ARITHMETIC,
    COMPARISONS,
    CONSTANTS,
    UNARY,
    Evaluator,
    ExpressionTypeError,
    Scope,
    SubValue,
    in_range,
    kind_of,
)

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
FUNCTIONS = ("coalesce", "size")

_BRACES = "one `${...}` around the whole expression is needed, or none"
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_BLANKS = re.compile(r"\s+")
Reference = tuple[str, ...]


class ExpressionError(SmartRouterError):
    """The text is no expression; found when it is read. `text` is the expression, `reason` what is wrong with it."""

    def __init__(self, text: str, reason: str) -> None:
        shown = text if len(text) <= 120 else f"{text[:117]}..."
        super().__init__(f"{shown!r}: {reason}")
        self.text = text
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Expression:
    """A read expression. `references` are the paths that it reads, such as ("steps", "gate", "outputs", "passed")."""

    text: str
    body: ast.expr
    references: tuple[Reference, ...]

    def evaluate(self, scope: Scope) -> Any:
        """Return its value. Raises ExpressionTypeError."""
        return Evaluator(self.text, scope).value(self.body)

    def explain(self, scope: Scope) -> tuple[SubValue, ...]:
        """Return every part that was asked, in the order of asking, the whole expression last. Raises nothing."""
        parts: list[SubValue] = []
        try:
            Evaluator(self.text, scope, parts).value(self.body)
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
    return False, f"the condition is {kind_of(value)}, not true or false"


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
        reason = f"no expression ({error.msg}, at character {error.offset or 1})"
        raise ExpressionError(text, _BRACES if "${" in _STRING.sub("", source) else reason) from None
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
    if type(value) is dict or isinstance(value, Mapping):  # the former is asked much faster
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
        path = static_path(node)
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
        base = static_path(node.value)
        if base is not None and len(base) <= _FIXED.get(base[0], 0):
            raise self._refused(f"{self._written(node)!r} is computed; {FORMS[base[0]]} is needed")
        self.read(node.value, depth + 1)
        self.read(node.slice, depth + 1)

    def _read_path(self, path: Reference) -> None:
        root, *members = path
        if root in CONSTANTS:
            return
        if root not in FORMS:
            hint = f"known: {root.lower()}" if root.lower() in CONSTANTS else did_you_mean(root, FORMS)
            raise self._refused(f"the name {root[:60]!r} is unknown; {hint}")
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
        if not isinstance(value, str) and not in_range(value):
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


def static_path(node: ast.expr) -> Reference | None:
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


_INSIDE: Mapping[type[ast.expr], Callable[[_Reader, Any], list[ast.expr]]] = {
    ast.Constant: _Reader.constant,
    ast.List: lambda _, node: node.elts,
    ast.BoolOp: lambda _, node: node.values,
    ast.UnaryOp: lambda reader, node: reader.listed(node, dict.fromkeys(UNARY), [node.op], [node.operand]),
    ast.BinOp: lambda reader, node: reader.listed(node, ARITHMETIC, [node.op], [node.left, node.right]),
    ast.Compare: lambda reader, node: reader.listed(
        node, dict.fromkeys(COMPARISONS), node.ops, [node.left, *node.comparators]
    ),
    ast.Call: _Reader.call,
}
"""Each node that is allowed, with the parts to check below it. Names, members and indices are checked as paths."""
