"""Workflows from YAML: what they come to, and every fault with file, line and column."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_research.engine.joining import consider
from smart_model_router_research.engine.states import StepResult, StepState
from smart_model_router_research.workflow import (
    Step,
    StepInput,
    StepLoop,
    WorkflowDefinition,
    WorkflowError,
    WorkflowInput,
    load_workflow,
    parse_workflow,
)
from tests.own_modules import install


async def work(step: StepInput) -> Mapping[str, Any]:
    """Put nothing out."""
    return {}


FUNCTIONS = {"work": work, "weigh": work}
WHOLE = """\
name: review
version: "1.0"
checkpoint: required
stream: optional
inputs:
  topic: {type: string, required: true}
  count: {type: integer, default: 3, min: 1, max: 5}
  style: {enum: [short, long]}
  notes:
defaults: &never
steps:
  - name: gather
    function: work
    inputs: {topic: "${inputs.topic}", deep: [1, 2.5, true, null, "no", no, 010, 1e3, -7]}
    outputs: [text, found]
    timeout: 30
    retry: {attempts: 3}
    estimate: {usd: 0.5, calls: 2}
  - name: judge
    kind: call
    depends_on: [gather]
    when: ${steps.gather.outputs.found > 0}
    function: weigh
    on_error: continue
  - {name: ask, agent: approval, needs: [judge], message: "Publish ${steps.gather.outputs.text}?", timeout: 3600}
  - {name: publish, needs: [ask], function: work, run: always, when: true}
outputs:
  text: ${steps.gather.outputs.text}
""".replace("defaults: &never\n", "")


def faults(text: str, **options: Any) -> list[str]:
    """Return the faults of a workflow as `LINE:COLUMN KEY: VALUE - EXPECTED`."""
    with pytest.raises(WorkflowError) as error:
        parse_workflow(text, "w.yaml", FUNCTIONS, **options)
    assert all(fault.place.startswith("w.yaml") for fault in error.value.faults)
    return [
        f"{fault.place.removeprefix('w.yaml:')} {fault.key}: {fault.value} - {fault.expected}"
        for fault in error.value.faults
    ]


def test_a_file_is_the_workflow_that_python_would_make() -> None:
    """Key by key."""
    assert parse_workflow(WHOLE, functions=FUNCTIONS) == WorkflowDefinition(
        "review",
        [
            Step(
                "gather",
                work,
                inputs={"topic": "${inputs.topic}", "deep": [1, 2.5, True, None, "no", "no", 10, 1000.0, -7]},
                outputs=["text", "found"],
                timeout=30,
                attempts=3,
                estimate={"usd": 0.5, "calls": 2},
            ),
            Step("judge", work, ["gather"], "${steps.gather.outputs.found > 0}", on_error="continue"),
            Step(
                "ask",
                needs=["judge"],
                kind="approval",
                message="Publish ${steps.gather.outputs.text}?",
                timeout=3600,
            ),
            Step("publish", work, ["ask"], True, always=True),
        ],
        {
            "topic": WorkflowInput("string", required=True),
            "count": WorkflowInput("integer", 3, minimum=1, maximum=5),
            "style": WorkflowInput(enum=["short", "long"]),
            "notes": WorkflowInput(),
        },
        {"text": "${steps.gather.outputs.text}"},
        "required",
    )


def test_anchors_and_merges_work() -> None:
    """A value is written once, and used twice."""
    found = parse_workflow(
        """
        name: w
        steps:
          - &base {name: a, function: work, inputs: &in {x: 1}, timeout: 5}
          - {<<: *base, name: b, needs: [a]}
          - {name: c, function: weigh, inputs: *in}
        """,
        functions=FUNCTIONS,
    )
    assert found.by_name["b"] == Step("b", work, ["a"], inputs={"x": 1}, timeout=5)
    assert found.by_name["c"].inputs == {"x": 1}


def test_a_subgraph_stands_in_its_step_or_is_named() -> None:
    """Both are whole workflows."""
    inner = WorkflowDefinition("inner", [Step("x", work)], {"q": WorkflowInput()}, {"y": 1})
    found = parse_workflow(
        """
        name: w
        steps:
          - {name: one, kind: workflow, workflow: known, inputs: {q: 2}}
          - name: two
            kind: workflow
            needs: [one]
            workflow:
              name: inner
              inputs: {q: {}}
              steps: [{name: x, function: work}]
              outputs: {y: 1}
        """,
        functions=FUNCTIONS,
        workflows={"known": inner},
    )
    assert [step.workflow for step in found.steps] == [inner, inner]


def test_a_loop_names_its_steps() -> None:
    """For engines with cycles."""
    text = "name: w\nsteps: [{name: a, function: work, loop: {to: a, while: '${steps.a.outputs.again}', max: 3}}]"
    assert parse_workflow(text, functions=FUNCTIONS).steps[0].loop == StepLoop("a", "${steps.a.outputs.again}", 3)
    plain = text.replace(", max: 3", "")
    assert parse_workflow(plain, functions=FUNCTIONS).steps[0].loop == StepLoop("a", "${steps.a.outputs.again}")


# ------------------------------------------------------------------------------------------------ rounds

ROUNDS = """\
name: deep
inputs: {n: {default: 1}}
steps:
  - {name: plan, function: work}
  - {name: report, function: work, needs: [gate_r3], run: always, when: "${steps.gate_r1.outputs.score == null}"}
templates:
  research:
    steps:
      - {name: search, function: work, needs: [plan], outputs: [hits], when: "${round_number == 1 or not prev.passed}"}
      - name: gate
        function: work
        needs: [search]
        outputs: [passed, score]
        when: ${steps.search.outputs.hits > inputs.n and last.gate.score != 1}
rounds: {template: research, max: 3}
"""


def test_rounds_are_steps_with_numbers() -> None:
    """No loop is left: each step has a name, and needs what it reads of the rounds before."""
    found = parse_workflow(ROUNDS, functions=FUNCTIONS)
    assert {step.name: step.needs for step in found.steps} == {
        "plan": (),
        "report": ("gate_r3",),
        "search_r1": ("plan",),
        "gate_r1": ("search_r1",),
        "search_r2": ("plan", "gate_r1"),
        "gate_r2": ("search_r2", "gate_r1"),
        "search_r3": ("plan", "gate_r2"),
        "gate_r3": ("search_r3", "gate_r2", "gate_r1"),
    }


def test_the_steps_of_a_round_read_their_own_round() -> None:
    """`steps.search` inside of the template is the search of the same round; `prev` is null in round 1."""
    found = parse_workflow(ROUNDS, functions=FUNCTIONS)
    done = {"plan": StepResult(state=StepState.SUCCEEDED, outputs={})}
    assert consider(found, "search_r1", done, {"n": 1}) == StepResult(state=StepState.READY)
    done["search_r1"] = StepResult(state=StepState.SUCCEEDED, outputs={"hits": 2})
    assert consider(found, "gate_r1", done, {"n": 1}) == StepResult(state=StepState.READY)
    done["gate_r1"] = StepResult(state=StepState.SUCCEEDED, outputs={"passed": True, "score": 1})
    second = consider(found, "search_r2", done, {"n": 1})
    assert second is not None
    assert second.state is StepState.SKIPPED


def test_a_hundred_rounds_read_the_last_of_all_before() -> None:
    """As it was written, in every round."""
    found = parse_workflow(ROUNDS.replace("max: 3", "max: 100"), functions=FUNCTIONS)
    assert len(found.steps) == 202
    assert len(found.needs_of("gate_r100")) == 100


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("max: 3", "max: 101", "15:30 rounds.max: 101 - a whole number from 1 to 100 is needed"),
        ("max: 3", "max: true", "15:30 rounds.max: True - a whole number from 1 to 100 is needed"),
        ("max: 3", "max: 0", "15:30 rounds.max: 0 - a whole number from 1 to 100 is needed"),
        (
            "template: research,",
            "template: reserch,",
            "15:10 rounds.template: reserch - the name of a template is needed; did you mean 'research'?",
        ),
        (
            "prev.passed",
            "prev.pasd",
            (
                "9:72 templates.research.steps[0].when: prev.pasd - the template has no such step or output; "
                "did you mean 'passed'?"
            ),
        ),
        (
            "outputs: [hits]",
            "outputs: [hits, passed]",
            (
                "9:80 templates.research.steps[0].when: prev.passed - two steps of the template declare 'passed'; "
                "prev.STEP.passed is needed"
            ),
        ),
        (
            "steps.search.outputs.hits",
            "steps.search.outputs.hit",
            (
                "14:9 templates.research.steps[1].when: steps.search.outputs.hit - 'search_r1' declares no such "
                "output; did you mean 'hits'?"
            ),
        ),
        (
            "last.gate.score",
            "last.gate.scor",
            (
                "14:9 templates.research.steps[1].when: last.gate.scor - 'gate_r1' declares no such output; "
                "did you mean 'score'?"
            ),
        ),
        (
            "name: plan,",
            "name: plan, needs: [gate_r4],",
            "4:26 steps[0].needs[0]: gate_r4 - no step has that name; did you mean 'gate_r3'?",
        ),
    ],
)
def test_a_fault_of_a_template_is_told_once(old: str, new: str, expected: str) -> None:
    """At its place in the template, whatever the number of rounds."""
    assert faults(ROUNDS.replace(old, new, 1)) == [expected]


def test_a_name_that_an_expansion_makes_is_taken() -> None:
    """Another step cannot have it."""
    (found,) = faults(ROUNDS.replace("name: report", "name: gate_r2"))
    assert found == "10:9 templates.research.steps[1].name: gate_r2 - steps[1] has that name; another is needed"


def test_a_template_that_no_rounds_use_is_refused() -> None:
    """Its faults would be found by nobody."""
    lonely = ROUNDS.replace("rounds: {template: research, max: 3}\n", "").replace("[gate_r3]", "[]")
    assert any(one.startswith("7:3 templates.research: research - `rounds` with this") for one in faults(lonely))
    two = ROUNDS.replace("rounds:", "  other: {steps: []}\nrounds:")
    assert faults(two) == ["15:3 templates.other: other - `rounds` with this template is needed"]


def test_too_many_steps_of_rounds_are_refused_before_they_are_made() -> None:
    """A thousand steps a hundred times."""
    steps = "".join(f"      - {{name: s{n}, function: work}}\n" for n in range(101))
    text = f"name: w\ntemplates:\n  t:\n    steps:\n{steps}rounds: {{template: t, max: 100}}\nsteps: []"
    assert faults(text) == ["106:23 rounds.max: 100 - at most 10000 steps in all rounds are allowed"]


# ------------------------------------------------------------------------------------------------ faults

BROKEN = """\
name: w
stepz: []
inputs:
  q: {type: text, mini: 1}
steps:
  - name: a
    function: wrok
    retry: {attempts: 0, times: 3}
  - name: b
    kind: cal
    needs: [a, c]
  - name: if
    function: work
    needs: [a]
    depends_on: [a]
    run: sometimes
  - just text
  - name: d
    kind: approval
    function: work
    when: steps.a.outputs.x
  - {name: e, function: work, when: [a], needs: [d], inputs: {x: "${steps.b.outputs.y}"}}
  - {name: f, kind: call}
  - {name: g, kind: workflow, workflow: other}
  - {name: h, kind: workflow, workflow: {name: inner, steps: [{name: x, function: wok}]}}
  - {name: i, function: work, loop: {to: i, while: again, until: x}}
"""


def test_every_fault_of_a_file_is_found_at_once() -> None:
    """In the order of the file, each with its line, its column and what would be right."""
    assert faults(BROKEN) == [
        "2:1 stepz: stepz - the key is unknown; did you mean 'steps'?",
        "4:7 inputs.q.type: text - one of any, string, number, integer, boolean, list, mapping is needed",
        "4:19 inputs.q.mini: mini - the key is unknown; did you mean 'min'?",
        "7:5 steps[0].function: wrok - no async function is registered under this name; did you mean 'work'?",
        "8:13 steps[0].retry.attempts: 0 - a whole number from 1 to 100 is needed",
        "8:26 steps[0].retry.times: times - the key is unknown; known: attempts",
        "10:5 steps[1].kind: cal - the kind is unknown; did you mean 'call'?",
        "11:16 steps[1].needs[1]: c - no step has that name; known: a, b, d, e, f, g, h, i, if",
        "12:5 steps[2].name: if - the name is reserved; another one is needed",
        "15:5 steps[2].depends_on: ['a'] - `needs` or `depends_on` is needed, not both",
        "16:5 steps[2].run: sometimes - `always` is needed, or no `run`",
        "17:5 steps[3]: just text - a mapping is needed",
        "20:5 steps[4].function: function - a step of kind approval has no such key; it is for kind call",
        "21:5 steps[4].when: steps.a.outputs.x - one expression in `${...}` is needed, or true or false",
        "22:31 steps[5].when: ['a'] - an expression, true or false is needed",
        "22:63 steps[5].inputs.x: steps.b.outputs.y - 'b' is not among the steps that 'e' needs",
        "23:5 steps[6]: f - a step of kind call needs `function`",
        "24:31 steps[7].workflow: other - no workflow is registered under this name; none is registered",
        (
            "25:73 steps[8].workflow.steps[0].function: wok - no async function is registered under this name; "
            "did you mean 'work'?"
        ),
        "26:45 steps[9].loop.while: again - one expression in `${...}` is needed, or true or false",
        "26:59 steps[9].loop.until: until - the key is unknown; known: max, to, while",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1 workflow: None - a mapping is needed"),
        ("- a", "1:1 workflow: ['a'] - a mapping is needed"),
        ("name: [", "1:8 workflow: expected the node content, but found '<stream end>' - YAML is needed"),
        ("name: a\nname: b", "2:1 workflow: name - the key stands here twice; each key once is needed"),
        ("name: !!python/object:os.system x", None),
        ("a: &a [*a]", None),
        ("\x01", None),
        ("\ud800", None),
        ("name: w\nsteps: {a: b}", "2:1 steps: {'a': 'b'} - a list of steps is needed"),
        ("name: w\nsteps: []", "2:1 steps: None - the workflow has no steps; at least one is needed"),
        ("name: w", "1:1 steps: None - the workflow has no steps; at least one is needed"),
        (
            "name: w\nsteps: [{name: a, function: work, inputs: {x: .nan}}]",
            "2:44 steps[0].inputs.x: nan - a finite number of at most 64 bits is needed",
        ),
        (
            "name: w\nsteps: [{name: a, function: work, inputs: {x: 99999999999999999999}}]",
            "2:44 steps[0].inputs.x: 99999999999999999999 - a finite number of at most 64 bits is needed",
        ),
        (
            "name: w\nsteps: [{name: a, function: 3}]",
            "2:19 steps[0].function: 3 - the name of a function is needed",
        ),
        (
            "name: w\nsteps: [{name: a, function: 'os:system'}]",
            "2:19 steps[0].function: os:system - no async function is registered under this name; known: weigh, work",
        ),
        (
            "name: w\nsteps: [{name: a, function: work, message: x}]",
            "2:35 steps[0].message: message - a step of kind call has no such key; it is for kind approval",
        ),
        (
            "name: w\nsteps: [{name: a, function: work, mesage: x}]",
            "2:35 steps[0].mesage: mesage - a step of kind call has no such key; did you mean 'message'?",
        ),
        (
            "name: w\nsteps: [{name: a, function: work, prompt: x}]",
            (
                "2:35 steps[0].prompt: prompt - a step of kind call has no such key; known: agent, depends_on, "
                "estimate, function, inputs, kind, loop, name, needs, on_error, outputs, retry, run, timeout, when"
            ),
        ),
        (
            "name: w\nbudget: {calls: 3}\nsteps: [{name: a, function: work}]",
            (
                "2:1 budget: budget - the key is unknown; a budget is given to a run: `--budget`, or "
                "ExecutionContext(budget=...)"
            ),
        ),
        (
            "name: w\nsteps: [{name: a, function: work, inputs: {x: '${inputs.q}'}}]",
            "2:44 steps[0].inputs.x: inputs.q - the workflow declares no such input; it declares none",
        ),
        (
            "name: w\nsteps: [{name: a, function: work, inputs: {x: '${input.q}'}}]",
            "2:44 steps[0].inputs.x: ${input.q} - the name 'input' is unknown; did you mean 'inputs'?",
        ),
        (
            "name: w\nsteps: [{name: a, function: work, when: '${1 == 1'}]",
            "2:35 steps[0].when: ${1 == 1 - one `${...}` around the whole expression is needed, or none",
        ),
        (
            "name: w\nsteps: [{name: a, function: work, when: '${1 +}'}]",
            None,
        ),
        (
            "name: w\nsteps: [{name: a, function: work, when: '${1} or ${2}'}]",
            None,
        ),
        (
            "name: w\nsteps: [{name: a, function: work, loop: 3}]",
            "2:35 steps[0].loop: 3 - a mapping is needed",
        ),
        ("name: w\nrounds: 3\nsteps: [{name: a, function: work}]", None),
    ],
    ids=lambda text: repr(text)[-50:],
)
def test_a_file_that_is_no_workflow_is_refused(text: str, expected: str | None) -> None:
    """With the place."""
    found = faults(text)
    assert found
    assert expected is None or found[0] == expected, found


def test_a_workflow_without_any_functions_says_how_they_are_given() -> None:
    """On the command line, and in Python."""
    with pytest.raises(WorkflowError) as error:
        parse_workflow("name: w\nsteps: [{name: a, function: work}]")
    assert error.value.faults[0].expected == (
        "no async function is registered under this name; none is registered: `--functions FILE.py`, or "
        "load_workflow(file, functions={...})"
    )


def test_faults_of_yaml_are_found_at_once() -> None:
    """Duplicate keys, keys that are no texts, and tags."""
    assert faults("name: w\nname: v\n? [a]\n: b\nsteps: !x []\n<<: 3") == [
        "2:1 workflow: name - the key stands here twice; each key once is needed",
        "3:3 workflow: a list or mapping - a key that is text is needed",
        "5:8 workflow: !x - a value without a YAML tag is needed",
        "6:5 workflow: no mapping - a mapping, or a list of them, is needed to merge",
    ]


def test_a_condition_of_a_megabyte_is_refused() -> None:
    """As too long, and shown in short."""
    (found,) = faults(f"name: w\nsteps: [{{name: a, function: work, when: '${{{'1' * 900_000}}}'}}]")
    assert found.endswith("900000 characters; at most 2000 are allowed")
    assert len(found) < 1_000


@pytest.mark.parametrize(
    "text",
    [
        "a: &k0 [x, x]\n" + "".join(f"k{n}: &k{n} [*k{n - 1}, *k{n - 1}]\n" for n in range(1, 30)),
        "[" * 70 + "]" * 70,
        "x: " + "a" * 1_048_576,
    ],
    ids=["aliases", "nesting", "size"],
)
def test_a_file_that_explodes_is_refused(text: str) -> None:
    """Before it is built."""
    (found,) = faults(text)
    assert "many values" in found or "at most 1048576 bytes" in found


def test_ten_thousand_steps_that_share_a_value_are_not_an_explosion() -> None:
    """Aliases count, what was written does not."""
    steps = "\n".join(f"  - {{name: s{n}, function: work}}" for n in range(3_000))
    assert len(parse_workflow(f"name: w\nsteps:\n{steps}", functions=FUNCTIONS).steps) == 3_000


# ------------------------------------------------------------------------------------------------ files


def test_a_file_is_read_from_disk(tmp_path: Path) -> None:
    """Its path is in every fault."""
    file = tmp_path / "w.yaml"
    file.write_text(WHOLE, encoding="utf-8")
    assert load_workflow(file, FUNCTIONS) == parse_workflow(WHOLE, functions=FUNCTIONS)
    assert load_workflow(str(file), FUNCTIONS).name == "review"
    file.write_text("name: w", encoding="utf-8")
    with pytest.raises(WorkflowError) as error:
        load_workflow(file)
    assert error.value.faults[0].place == f"{file}:1:1"


@pytest.mark.parametrize("name", ["missing.yaml", ".", "a\0b", "a" * 300])
def test_a_file_that_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    """Missing, a folder, or no path at all."""
    with pytest.raises(WorkflowError, match="file is needed"):
        load_workflow(f"{tmp_path}/{name}")


def test_a_function_may_be_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an installed package; one that cannot be imported is a fault of the workflow."""
    source = "async def count(step):\n    return {'n': 1}\n"
    entries = {"count": "own_steps:count", "gone": "own_steps:gone", "broken": "broken_steps:x"}
    install(tmp_path, monkeypatch, name="steps", source=source, group="smart_model_router.steps", entries=entries)
    found = parse_workflow("name: w\nsteps: [{name: a, function: count}]")
    assert getattr(found.steps[0].run, "__name__", "") == "count"
    for name, reason in (("gone", "own_steps:gone cannot be imported: AttributeError"), ("broken", "no licence")):
        (fault,) = faults(f"name: w\nsteps: [{{name: a, function: {name}}}]")
        assert reason in fault


# ------------------------------------------------------------------------------------------------ any data

JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 101)
    | st.sampled_from(["a", "${steps.a.outputs.x}", "${", "", "if", 0.5]),
    lambda inside: (
        st.lists(inside, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "steps", "to", "max", "a", "while"]), inside, max_size=2)
    ),
    max_leaves=4,
)
SAMPLE: dict[str, Any] = {
    "name": "w",
    "checkpoint": "required",
    "inputs": {"q": {"type": "integer", "default": 1, "enum": [1, 2], "min": 0, "max": 3}},
    "steps": [
        {"name": "a", "function": "work", "outputs": ["x"], "retry": {"attempts": 2}, "estimate": {"usd": 1}},
        {
            "name": "b",
            "kind": "approval",
            "needs": ["a"],
            "message": "${steps.a.outputs.x}",
            "when": "${inputs.q == 1}",
        },
        {"name": "c", "kind": "workflow", "workflow": {"name": "v", "steps": [{"name": "x", "function": "work"}]}},
        {"name": "d", "function": "work", "loop": {"to": "d", "while": "${steps.d.outputs.x}", "max": 3}, "timeout": 1},
    ],
    "templates": {
        "t": {"steps": [{"name": "g", "function": "work", "outputs": ["x"], "inputs": {"p": ["${last.x}"]}}]}
    },
    "rounds": {"template": "t", "max": 2},
    "outputs": {"x": "${steps.a.outputs.x}"},
}


def paths(data: Any, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the path of every value in `data`."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [above, *(path for key, member in inside for path in paths(member, (*above, key)))]


def test_the_sample_is_a_workflow() -> None:
    """Else the property below would say little."""
    assert len(parse_workflow(json.dumps(SAMPLE), functions=FUNCTIONS).steps) == 6


@given(st.sampled_from(paths(SAMPLE)[1:]), JUNK)
def test_any_value_in_any_place_is_taken_or_refused(path: tuple[str | int, ...], junk: Any) -> None:
    """With a typed error that has a place, and no other."""
    data = json.loads(json.dumps(SAMPLE))
    owner = data
    for step in path[:-1]:
        owner = owner[step]
    owner[path[-1]] = junk
    try:
        parse_workflow(json.dumps(data), "w.yaml", FUNCTIONS)
    except WorkflowError as error:
        found = error.faults
    else:
        return
    assert all(fault.place.startswith("w.yaml:1:") and fault.expected for fault in found)
