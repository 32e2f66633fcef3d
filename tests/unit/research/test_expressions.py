"""Expressions: values of JSON, three-valued logic, templates, and all that is refused."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from datetime import date
from types import MappingProxyType
from typing import Any

import pytest

from smart_model_router_research.workflow.evaluation import ExpressionTypeError, SubValue
from smart_model_router_research.workflow.expressions import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    ExpressionError,
    bare,
    evaluate,
    explain,
    fill,
    holds,
    parse_expression,
    parse_template,
)

NAN = float("nan")
SCOPE: dict[str, Any] = {
    "inputs": {
        "n": 3,
        "zero": 0,
        "half": 0.5,
        "yes": True,
        "no": False,
        "none": None,
        "text": "abc",
        "empty": "",
        "list": [1, "b", None, [2]],
        "map": {"a": {"b": 1}, "k": 2},
        "key": "k",
        "one": 1,
        "nan": NAN,
        "inf": math.inf,
        "huge": 2**63,
        "low": -(2**63),
        "day": date(2026, 1, 1),
        "days": [date(2026, 1, 1)],
        "pair": (1, 2),
        "ordered": OrderedDict(a=1),
    },
    "steps": {"gate": {"outputs": {"passed": "false", "score": 0.5}}, "gone": {"outputs": None}, "bare": None},
    "round_number": 2,
}

VALUES: dict[str, object] = {
    # literals, names, members, indices
    "1": 1,
    "-1": -1,
    "0.5": 0.5,
    "'a'": "a",
    '"a\\n"': "a\n",
    "true": True,
    "false": False,
    "null": None,
    "[1, 'b', null, [true]]": [1, "b", None, [True]],
    "[]": [],
    "(1)": 1,
    "inputs.n": 3,
    "inputs.low": -(2**63),
    "inputs.missing": None,
    "inputs.missing.more.and_more": None,
    "inputs.none.x": None,
    "null.x": None,
    "null['x']": None,
    "inputs['n']": 3,
    "inputs.map.a.b": 1,
    "inputs.map['a']['b']": 1,
    "inputs.map[inputs.key]": 2,
    "inputs.map[inputs.none]": None,
    "inputs.ordered.a": 1,
    "inputs.list[0]": 1,
    "inputs.list[3][0]": 2,
    "inputs.list[-1]": [2],
    "inputs.list[-4]": 1,
    "inputs.list[4]": None,
    "inputs.list[-5]": None,
    "inputs.list[inputs.one]": "b",
    "inputs.list[inputs.none]": None,
    "inputs.none[0]": None,
    "inputs.pair[1]": 2,
    "steps.gate.outputs.passed": "false",
    "steps.gate.outputs": {"passed": "false", "score": 0.5},
    "steps.gone.outputs.x": None,
    "steps.bare.outputs.x": None,
    "steps.unknown.outputs.x": None,
    "prev.gate.passed": None,
    "last.gate.passed": None,
    "round_number": 2,
    "  inputs.n\n  +\t1 ": 4,
    "'a  b\nc'": "a b c",
    "'#'": "#",
    # null
    "not null": None,
    "null < 1": None,
    "1 < null": None,
    "null + 1": None,
    "1 - null": None,
    "-null": None,
    "size(null)": None,
    "null + 'a'": None,
    "'a' * null": None,
    "null / 0": None,
    "null < true": None,
    "null == null": True,
    "null != null": False,
    "null == 0": False,
    "null != false": True,
    "null in [1]": False,
    "null in [null]": True,
    "null not in [1]": True,
    "1 in null": None,
    "1 not in null": None,
    # equality
    "1 == 1.0": True,
    "1 != 2": True,
    "true == 1": False,
    "true != 1": True,
    "0 == false": False,
    "true == true": True,
    "'1' == 1": False,
    "[1, [2]] == [1.0, [2.0]]": True,
    "[true] == [1]": False,
    "[1] == [1, 2]": False,
    "[1] == 1": False,
    "[] == null": False,
    "inputs.pair == [1, 2]": True,
    "inputs.map == inputs.map": True,
    "inputs.map == inputs.map.a": False,
    "inputs.map.a == inputs.ordered": False,
    "inputs.map == [1]": False,
    "inputs.ordered == inputs.ordered": True,
    "[1, inputs.ordered] == [2, inputs.ordered]": False,
    "[1, [2]] == [2, [2]]": False,
    "1e300": 1e300,
    # membership
    "1 in [1, 2]": True,
    "1.0 in [1]": True,
    "true in [1]": False,
    "3 in [1, 2]": False,
    "3 not in [1, 2]": True,
    "1 not in [1, 2]": False,
    "[2] in inputs.list": True,
    "1 in inputs.pair": True,
    # order
    "1 < 2": True,
    "2 <= 2.0": True,
    "2 > 3": False,
    "3 >= 3": True,
    "'a' < 'b'": True,
    "'a' < 'B'": False,
    "'é' > 'z'": True,
    "1 < 2 < 3": True,
    "1 < 2 > 3": False,
    "3 < 2 < 'a'": False,
    "1 < null < 3": None,
    "1 < null > 'a' == 1": False,
    "1 == 1 != 2": True,
    # logic
    "true and true": True,
    "true and false": False,
    "false and null": False,
    "null and false": False,
    "null and true": None,
    "true and null": None,
    "null and null": None,
    "true or null": True,
    "null or true": True,
    "false or null": None,
    "null or false": None,
    "false or false": False,
    "false or true": True,
    "null or null or true": True,
    "not true": False,
    "not false": True,
    "not not null": None,
    "false and 1": False,
    "true or 'a'": True,
    "false and inputs.n / 0": False,
    "not inputs.yes or inputs.no": False,
    # numbers
    "1 + 2": 3,
    "1 - 2.5": -1.5,
    "2 * 3": 6,
    "1 / 2": 0.5,
    "-inputs.n": -3,
    "--1": 1,
    "9223372036854775807": 2**63 - 1,
    "9223372036854775806 + 1": 2**63 - 1,
    "-9223372036854775807 - 1": -(2**63),
    # functions
    "size('abc')": 3,
    "size([])": 0,
    "size(inputs.map)": 2,
    "size(inputs.pair)": 2,
    "size(inputs.ordered)": 1,
    "coalesce(null, 0, 1)": 0,
    "coalesce(null, '', 'a')": "",
    "coalesce(null, false)": False,
    "coalesce(null)": None,
    "coalesce(1, 1 / 0)": 1,
    "coalesce(last.gate.passed, prev.gate.passed, 'none')": "none",
}


@pytest.mark.parametrize("text", VALUES)
def test_an_expression_has_its_value(text: str) -> None:
    """The same value, and the same type: 1 is not true, and 2 is not 2.0 where a template shows it."""
    found = evaluate(text, SCOPE)
    assert found == VALUES[text]
    assert repr(found) == repr(VALUES[text])


WRONG = {
    "1 + true": "true: a number is needed, not a truth value",
    "true + 1": "true: a number is needed, not a truth value",
    "'a' + 'b'": "'a': a number is needed, not a text",
    "1 + 'b'": "'b': a number is needed, not a text",
    "[1] * 2": "[1]: a number is needed, not a list",
    "1 / 0": "1 / 0: division by zero",
    "0.0 / 0.0": "0.0 / 0.0: division by zero",
    "-'a'": "'a': a number is needed, not a text",
    "-true": "true: a number is needed, not a truth value",
    "not 1": "1: a number is neither true nor false",
    "not 'false'": "'false': a text is neither true nor false",
    "1 and true": "1: a number is neither true nor false",
    "true and 'a'": "'a': a text is neither true nor false",
    "null or []": "[]: a list is neither true nor false",
    "not inputs.map": "inputs.map: a mapping is neither true nor false",
    "true < false": "true < false: a truth value and a truth value have no order",
    "1 < 'a'": "1 < 'a': a number and a text have no order",
    "'a' >= 1": "'a' >= 1: a text and a number have no order",
    "[1] < [2]": "[1] < [2]: a list and a list have no order",
    "1 < 2 < 'a'": "1 < 2 < 'a': a number and a text have no order",
    "1 in 'a'": "1 in 'a': a list is needed after `in`, not a text",
    "'a' in inputs.map": "'a' in inputs.map: a list is needed after `in`, not a mapping",
    "'a' not in 1": "'a' not in 1: a list is needed after `in`, not a number",
    "size(1)": "size(1): a number has no size",
    "size(true)": "size(true): a truth value has no size",
    "true.x": "true.x: a truth value has no entry by a text",
    "inputs.n.x": "inputs.n.x: a number has no entry by a text",
    "inputs.text.x": "inputs.text.x: a text has no entry by a text",
    "inputs.text[0]": "inputs.text[0]: a text has no entry by a number",
    "inputs.list.x": "inputs.list.x: a list has no entry by a text",
    "inputs.list[0.0]": "inputs.list[0.0]: a list has no entry by a number",
    "inputs.list[true]": "inputs.list[true]: a list has no entry by a truth value",
    "inputs.map[0]": "inputs.map[0]: a mapping has no entry by a number",
    "inputs.nan": "inputs.nan: the number is outside of the range of numbers",
    "inputs.inf == 1": "inputs.inf: the number is outside of the range of numbers",
    "inputs.huge": "inputs.huge: the number is outside of the range of numbers",
    "inputs.day": "inputs.day: a value of JSON is needed, not date",
    "9223372036854775807 + 1": "9223372036854775807 + 1: the number is outside of the range of numbers",
    "-inputs.low": "-inputs.low: the number is outside of the range of numbers",
    "1e308 * 10": "1e308 * 10: the number is outside of the range of numbers",
    "round_number[0]": "round_number[0]: a number has no entry by a number",
    "inputs.days[0]": "inputs.days[0]: a value of JSON is needed, not date",
    "coalesce(null, 1 / 0)": "1 / 0: division by zero",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_type_is_an_error_that_names_the_part(text: str) -> None:
    """Nothing is converted."""
    with pytest.raises(ExpressionTypeError) as error:
        evaluate(text, SCOPE)
    assert error.value.message == WRONG[text]
    assert WRONG[text] == f"{error.value.part}: {error.value.reason}"


REFUSED = {
    "": "an expression is needed",
    " \n ": "an expression is needed",
    "1 +": None,
    "always run": "no expression (invalid syntax, at character 8)",
    "1; 2": "no expression (invalid syntax, at character 2)",
    "a = 1": "no expression (invalid syntax, at character 3)",
    "1 or 2)": "no expression (unmatched ')', at character 7)",
    "1or 2": None,
    "'\\d'": None,
    "1 # one": "an expression without a comment is needed",
    "inputs.n # one\n + 1": "an expression without a comment is needed",
    "\0": None,
    "'\ud800'": None,
    "passed": "the name 'passed' is unknown; known: inputs, last, prev, round_number, steps",
    "passed.x": "the name 'passed' is unknown; known: inputs, last, prev, round_number, steps",
    "TRUE": "the name 'TRUE' is unknown; known: true",
    "True": "the name True is unknown; known: true",
    "False": "the name False is unknown; known: false",
    "None": "the name None is unknown; known: null",
    "inputs": "'inputs': inputs.NAME is needed",
    "steps": "'steps': steps.STEP.outputs.NAME is needed",
    "steps.a": "'steps.a': steps.STEP.outputs.NAME is needed",
    "steps." + "a" * 60: f"'steps.{'a' * 54}': steps.STEP.outputs.NAME is needed",
    "[]" + ".x" * MAX_DEPTH: "more than 32 levels deep",
    "[]" + "[0]" * MAX_DEPTH: "more than 32 levels deep",
    "true.__class__": "the member '__class__' is not allowed",
    "steps.a.state": "'steps.a.state': steps.STEP.outputs.NAME is needed",
    "prev": "'prev': prev.STEP.NAME is needed",
    "last": "'last': last.STEP.NAME is needed",
    "round_number.x": "'round_number.x': round_number is needed",
    "inputs[inputs.x]": "'inputs[inputs.x]' is computed; inputs.NAME is needed",
    "inputs[0]": "'inputs[0]' is computed; inputs.NAME is needed",
    "steps[inputs.x]": "'steps[inputs.x]' is computed; steps.STEP.outputs.NAME is needed",
    "steps.a[inputs.x]": "'steps.a[inputs.x]' is computed; steps.STEP.outputs.NAME is needed",
    "steps.a.outputs[inputs.x]": "'steps.a.outputs[inputs.x]' is computed; steps.STEP.outputs.NAME is needed",
    "prev[inputs.x]": "'prev[inputs.x]' is computed; prev.STEP.NAME is needed",
    "passed[inputs.x]": "the name 'passed' is unknown; known: inputs, last, prev, round_number, steps",
    "steps[inputs.x].outputs.y": "'steps[inputs.x]' is computed; steps.STEP.outputs.NAME is needed",
    "inputs.__class__": "the member '__class__' is not allowed",
    "inputs.x.__class__": "the member '__class__' is not allowed",
    "inputs['__class__']": "the member '__class__' is not allowed",
    "[1].__class__": "the member '__class__' is not allowed",
    "''.__class__.__mro__": "the member '__mro__' is not allowed",
    "2 ** 3": "the operator of '2 ** 3' is not allowed",
    "2 % 3": "the operator of '2 % 3' is not allowed",
    "2 // 3": "the operator of '2 // 3' is not allowed",
    "1 | 2": "the operator of '1 | 2' is not allowed",
    "~1": "the operator of '~1' is not allowed",
    "+1": "the operator of '+1' is not allowed",
    "1 is 2": "the operator of '1 is 2' is not allowed",
    "1 < 2 is 3": "the operator of '1 < 2 is 3' is not allowed",
    "len('a')": "len() is unknown; known: coalesce(), size()",
    "inputs.f(1)": "inputs.f() is unknown; known: coalesce(), size()",
    "size()": "size() takes one value",
    "size(1, 2)": "size() takes one value",
    "size(x=1)": "size() takes one value",
    "coalesce()": "coalesce() takes values",
    "coalesce(1, x=1)": "coalesce() takes values",
    "coalesce(*[1])": "'*[1]' is not allowed",
    "size": "the name 'size' is unknown; known: inputs, last, prev, round_number, steps",
    "(1, 2)": "'(1, 2)' is not allowed",
    "{}": "'{}' is not allowed",
    "{1}": "'{1}' is not allowed",
    "1 if true else 2": "'1 if true else 2' is not allowed",
    "[x for x in [1]]": "'[x for x in [1]]' is not allowed",
    "lambda: 1": "'lambda: 1' is not allowed",
    "(x := 1)": "'x := 1' is not allowed",
    "f'{1}'": "\"f'{1}'\" is not allowed",
    "b'a'": "\"b'a'\" is not allowed",
    "u'a'": "\"u'a'\" is not allowed",
    "1j": "'1j' is not allowed",
    "...": "'...' is not allowed",
    "inputs.list[1:2]": "'1:2' is not allowed",
    "await inputs.x": "'await inputs.x' is not allowed",
    "9223372036854775808": "9223372036854775808 is outside of the range of numbers",
    "1e999": "1e999 is outside of the range of numbers",
    "[9223372036854775808]": "9223372036854775808 is outside of the range of numbers",
    "x" * (MAX_CHARACTERS + 1): "2001 characters; at most 2000 are allowed",
    "(" * 300 + ")" * 300: None,
    "-" * 1_999 + "1": "more than 32 levels deep",
    "not " * 400 + "true": "more than 32 levels deep",
    "inputs" + ".x" * MAX_DEPTH: "more than 32 levels deep",
    "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH: "more than 32 levels deep",
    "[inputs.x[inputs" + ".y" * (MAX_DEPTH - 2) + "]]": "more than 32 levels deep",
    "lambda: " * 150 + "1": "'" + ("lambda: " * 8)[:57] + "...' is not allowed",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:40]))
def test_a_text_that_is_no_expression_is_refused(text: str) -> None:
    """When it is read, with the reason."""
    with pytest.raises(ExpressionError) as error:
        parse_expression(text)
    expected = REFUSED[text]
    assert error.value.text == text
    assert error.value.reason.startswith("no expression" if expected is None else expected)
    assert expected is None or error.value.reason == expected
    assert error.value.message.endswith(f": {error.value.reason}")
    assert len(error.value.message) < 350


def test_a_name_whose_value_is_no_json_is_named() -> None:
    """The scope is the engine's, and its numbers are not believed either."""
    with pytest.raises(ExpressionTypeError, match=r"^round_number: the number is outside of the range of numbers$"):
        evaluate("round_number", {"round_number": math.inf})


def test_a_long_text_is_shown_in_short() -> None:
    """The message of an error fits on a screen."""
    with pytest.raises(ExpressionError) as error:
        parse_expression("a" * 120)
    assert error.value.message.startswith(f"{'a' * 120!r}: ")
    with pytest.raises(ExpressionError) as error:
        parse_expression("a" * 121)
    assert error.value.message.startswith(f"{'a' * 117 + '...'!r}: the name {'a' * 60!r} is unknown")


def test_the_caps_themselves_are_allowed() -> None:
    """Two thousand characters, thirty-two levels."""
    assert evaluate("1" + " " * (MAX_CHARACTERS - 1), {}) == 1
    assert evaluate("inputs" + ".x" * (MAX_DEPTH - 1), {}) is None
    assert evaluate("[" * (MAX_DEPTH - 1) + "1" + "]" * (MAX_DEPTH - 1), {}) != []
    assert evaluate("[null][0]" + ".x" * (MAX_DEPTH - 3), {}) is None
    assert evaluate("[]" + "[0]" * (MAX_DEPTH - 1), {}) is None
    assert evaluate("[inputs.x[inputs" + ".y" * (MAX_DEPTH - 3) + "]]", {}) == [None]


def test_names_of_60_characters_are_shown_whole() -> None:
    """Longer parts end in dots."""
    with pytest.raises(ExpressionError, match=r"'\+{59}1' is not allowed"):
        parse_expression("+" * 59 + "1")
    with pytest.raises(ExpressionError, match=r"'\+{57}\.\.\.' is not allowed"):
        parse_expression("+" * 60 + "1")


def test_every_reference_is_listed_once() -> None:
    """As far as its names are fixed, in the order of reading."""
    text = "inputs.a and steps.s.outputs.y[0].z == prev.g.x or size(last['g'].x) > round_number or inputs.a[inputs.b].c"
    assert parse_expression(text).references == (
        ("inputs", "a"),
        ("steps", "s", "outputs", "y"),
        ("prev", "g", "x"),
        ("last", "g", "x"),
        ("round_number",),
        ("inputs", "b"),
    )
    assert parse_expression("true and null or 1 == 2").references == ()


def test_data_nested_without_end_is_compared() -> None:
    """Without recursion."""
    deep: Any = 1
    other: Any = 1.0
    for _ in range(100_000):
        deep, other = [deep], [other]
    try:
        assert evaluate("inputs.a == inputs.b", {"inputs": {"a": deep, "b": other}}) is True
    finally:  # a list nested like that is freed without recursion, but not shown
        del deep, other


# ------------------------------------------------------------------------------------------------ explain, conditions


def test_explain_gives_each_value_that_was_asked() -> None:
    """In the order of asking; what decides early leaves the rest unasked."""
    assert explain("${inputs.n + 1 > 3 or inputs.missing.x}", SCOPE) == (
        SubValue("inputs.n", 3),
        SubValue("inputs.n + 1", 4),
        SubValue("inputs.n + 1 > 3", True),
        SubValue("inputs.n + 1 > 3 or inputs.missing.x", True),
    )


def test_explain_shows_a_path_as_one_part() -> None:
    """Its owners tell a reader nothing; a computed index does. Literals are as they are written."""
    assert explain("size([1, true][inputs.one]) and inputs.list[inputs.one] == null", SCOPE)[:1] == (
        SubValue("[1, true]", [1, True]),
    )
    assert explain("inputs.list[inputs.one] == null", SCOPE) == (
        SubValue("inputs.one", 1),
        SubValue("inputs.list[inputs.one]", "b"),
        SubValue("inputs.list[inputs.one] == null", False),
    )


def test_explain_ends_with_the_error() -> None:
    """And raises none."""
    assert explain("size(1) > 2", SCOPE) == (SubValue("size(1) > 2", error="size(1): a number has no size"),)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, (True, "")),
        (False, (False, "")),
        (None, (False, "the condition is null, not true or false")),
        ("false", (False, "the condition is a text, not true or false")),
        ("true", (False, "the condition is a text, not true or false")),
        (1, (False, "the condition is a number, not true or false")),
        (0.5, (False, "the condition is a number, not true or false")),
        ([True], (False, "the condition is a list, not true or false")),
        (OrderedDict(), (False, "the condition is a mapping, not true or false")),
        (frozenset(), (False, "the condition is frozenset, not true or false")),
    ],
    ids=str,
)
def test_a_condition_holds_only_when_it_is_true(value: object, expected: tuple[bool, str]) -> None:
    """Everything else is false, with a note when it is no truth value."""
    assert holds(value) == expected


# ------------------------------------------------------------------------------------------------ templates


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ""),
        ("plain", "plain"),
        ("${inputs.n}", 3),
        ("${ inputs.list }", [1, "b", None, [2]]),
        ("${inputs.none}", None),
        ("${inputs.yes}", True),
        (" ${inputs.n}", " 3"),
        ("${inputs.n}\n", "3\n"),
        ("n=${inputs.n}, t=${inputs.text}, 0=${inputs.none}.", "n=3, t=abc, 0=."),
        ("${inputs.yes}${inputs.half}", "true0.5"),
        ("<${inputs.list}>", '<[1, "b", null, [2]]>'),
        ("<${inputs.map}>", '<{"a": {"b": 1}, "k": 2}>'),
        ("<${['é']}>", '<["é"]>'),
        ("$${inputs.n}", "${inputs.n}"),
        ("a $${b} ${inputs.n} $${c}", "a ${b} 3 ${c}"),
        ("$$${inputs.n}", "$${inputs.n}"),
        ("${inputs.n}$${x}", "3${x}"),
        ("${inputs.n}${'$'}", "3$"),
        ("${'$'}${inputs.n}", "$3"),
        ("$ 5 and {6} and }", "$ 5 and {6} and }"),
        ("${'}'}", "}"),
        ('${"}"}!', "}!"),
        ("${'\\'}'}", "'}"),
        ("${size('{')}", 1),
        ("$", "$"),
        ("${inputs.X}!", "!"),
        ("$${a}$${b}", "${a}${b}"),
    ],
)
def test_a_template_is_filled(text: str, value: object) -> None:
    """One `${...}` alone keeps its type; within a text null is nothing, and other values are their JSON."""
    assert fill(text, SCOPE) == value
    assert type(fill(text, SCOPE)) is type(value)


@pytest.mark.parametrize("text", ["${", "a ${b", "${'}", "${inputs.n} ${", "${}", "${1 +}", "${a}"])
def test_a_template_that_cannot_be_filled_is_refused(text: str) -> None:
    """Also where the rest of it is right."""
    with pytest.raises(ExpressionError):
        parse_template(text)


def test_an_open_brace_says_how_it_would_be_text() -> None:
    """A shell script in a prompt is the usual case."""
    with pytest.raises(ExpressionError) as error:
        parse_template("echo ${x")
    assert error.value.reason == "`${` without its `}`; `$${` is the text `${`"


def test_data_is_filled_in_its_depth() -> None:
    """Keys and what is no text stay; tuples are lists, as JSON has them."""
    data = {"a": ["${inputs.n}", {"b": "${inputs.text}!"}], "${inputs.n}": 1, "t": (1.5, None, True)}
    assert fill(data, SCOPE) == {"a": [3, {"b": "abc!"}], "${inputs.n}": 1, "t": [1.5, None, True]}
    assert fill(MappingProxyType(data), SCOPE) == fill(data, SCOPE)


def test_a_template_knows_its_expressions() -> None:
    """For the references of a step; and the one expression that is all of it."""
    template = parse_template("${inputs.n} and ${inputs.text}")
    assert [expression.text for expression in template.expressions] == ["inputs.n", "inputs.text"]
    assert template.alone is None
    assert parse_template("text").alone is None
    assert parse_template("").alone is None
    alone = parse_template("${inputs.n}").alone
    assert alone is not None
    assert alone.text == "inputs.n"


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("${a}", "a"),
        (" ${ a } ", " a "),
        ("a", "a"),
        ("${a} and ${b}", "${a} and ${b}"),
        ("${'}'}", "'}'"),
        ("${a", "${a"),
    ],
)
def test_the_braces_of_a_condition_may_be_left_out(text: str, inside: str) -> None:
    """Only those that enclose the whole of it."""
    assert bare(text) == inside


def test_values_of_templates_are_json() -> None:
    """A value that a template puts into a text can be read back."""
    assert json.loads(fill("x${inputs.map}", SCOPE)[1:]) == SCOPE["inputs"]["map"]
