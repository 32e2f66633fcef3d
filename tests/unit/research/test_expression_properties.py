"""Expressions of any form, over any data: typed errors only, values of JSON, and the laws of three-valued logic."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_research.workflow.evaluation import ExpressionTypeError, same
from smart_model_router_research.workflow.expressions import ExpressionError, evaluate, explain, fill, parse_expression

NAMES = ("a", "b", "c")
LEAVES: st.SearchStrategy[str] = st.sampled_from(
    ["true", "false", "null", "0", "1", "2.5", "''", "'x'", "[]", "[1, 'x', null]", "9223372036854775807"]
    + [f"inputs.{name}" for name in NAMES]
    + ["steps.s.outputs.a", "prev.s.a", "round_number", "inputs.a[0]", "inputs.b.c"]
)
FORMS = (
    "({} and {})",
    "({} or {})",
    "not {}",
    "(-{})",
    "({} + {})",
    "({} - {})",
    "({} * {})",
    "({} / {})",
    "({} == {})",
    "({} != {})",
    "({} < {} <= {})",
    "({} > {})",
    "({} >= {})",
    "({} in {})",
    "({} not in {})",
    "size({})",
    "coalesce({}, {})",
    "[{}, {}]",
    "({})[{}]",
    "({}).k",
)


def _formed(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def filled(form: str) -> st.SearchStrategy[str]:
        return st.tuples(*[inside] * form.count("{}")).map(lambda parts: form.format(*parts))

    return st.sampled_from(FORMS).flatmap(filled)


EXPRESSIONS = st.recursive(LEAVES, _formed, max_leaves=12)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1e308, 2**63 - 1, "", "x", "false"])
)


def _data(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from("abck"), inside, max_size=3)


DATA: st.SearchStrategy[Any] = st.recursive(SCALARS, _data, max_leaves=6)
OUTPUTS = st.none() | st.dictionaries(st.just("a"), DATA)
SCOPES = st.fixed_dictionaries(
    {
        "inputs": st.fixed_dictionaries(dict.fromkeys(NAMES, DATA)),
        "steps": st.fixed_dictionaries({"s": st.fixed_dictionaries({"outputs": OUTPUTS})}),
        "prev": st.none() | st.fixed_dictionaries({"s": OUTPUTS}),
        "round_number": st.integers(1, 4),
    }
)
WORDS_AND_SIGNS = (
    *"()[]{}.,+-*/<>=!$#'\"\\\n :@é\0",
    *(
        "and",
        " or ",
        " not ",
        " in ",
        "if",
        "inputs.a",
        "1",
        "lambda ",
        "f'",
        "size(",
        "**",
        "await ",
        "1e999",
        "__x__",
    ),
)
TOKENS = st.sampled_from(WORDS_AND_SIGNS)
TRUTHS = st.sampled_from([True, False, None])
WORDS = {True: "true", False: "false", None: "null"}


def outcome(text: str, scope: dict[str, Any]) -> Any:
    """Return the value of an expression, or the error that it ends in."""
    try:
        return evaluate(text, scope)
    except ExpressionTypeError as error:
        return error.message


@given(st.lists(TOKENS, max_size=20).map("".join), SCOPES)
def test_any_text_is_refused_or_has_a_value(text: str, scope: dict[str, Any]) -> None:
    """No other exception, whatever is written."""
    try:
        evaluate(text, scope)
        fill(text, scope)
    except (ExpressionError, ExpressionTypeError):
        return


@given(EXPRESSIONS, SCOPES)
def test_the_value_of_an_expression_is_json(text: str, scope: dict[str, Any]) -> None:
    """Finite numbers, texts, lists and mappings; the same at every evaluation."""
    found = outcome(text, scope)
    assert same(json.loads(json.dumps(found, allow_nan=False)), found)
    assert same(outcome(text, scope), found)


@given(EXPRESSIONS, SCOPES)
def test_the_last_part_of_an_explanation_is_the_value(text: str, scope: dict[str, Any]) -> None:
    """Or the error; a literal has no parts."""
    parts = explain(text, scope)
    if parts and not text.startswith("["):
        found = outcome(text, scope)
        assert same(found, parts[-1].error or parts[-1].value)


@given(EXPRESSIONS, SCOPES, DATA)
def test_an_expression_reads_nothing_but_its_references(text: str, scope: dict[str, Any], other: Any) -> None:
    """An input that is not among them may be anything."""
    read = {path[1] for path in parse_expression(text).references if path[0] == "inputs"}
    changed = {name: value if name in read else other for name, value in scope["inputs"].items()}
    assert same(outcome(text, scope), outcome(text, {**scope, "inputs": changed}))


@given(TRUTHS, TRUTHS)
def test_logic_is_that_of_kleene(one: bool | None, other: bool | None) -> None:
    """`and` is the smaller, `or` the greater of false < null < true; `not` turns the order around."""
    rank = {False: 0, None: 1, True: 2}
    of_rank = {number: truth for truth, number in rank.items()}
    left, right = WORDS[one], WORDS[other]
    assert evaluate(f"{left} and {right}", {}) is of_rank[min(rank[one], rank[other])]
    assert evaluate(f"{left} or {right}", {}) is of_rank[max(rank[one], rank[other])]
    assert evaluate(f"not {left}", {}) is of_rank[2 - rank[one]]


@given(st.text(alphabet="a${}'\" ", max_size=12))
def test_any_text_can_be_written_in_a_template(text: str) -> None:
    """With `$${` for each `${`."""
    assert fill(text.replace("${", "$${"), {}) == text


@given(DATA, DATA)
def test_equality_is_that_of_json(one: Any, other: Any) -> None:
    """Two values are the same when their JSON is, but that 1 is 1.0."""

    def canonical(value: Any) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if isinstance(value, list):
            return f"[{','.join(map(canonical, value))}]"
        if isinstance(value, dict):
            return f"{{{','.join(f'{key}:{canonical(value[key])}' for key in sorted(value))}}}"
        return json.dumps(value)

    assert same(one, other) == (canonical(one) == canonical(other))
    assert same(one, other) == same(other, one)
    assert same(one, one)
