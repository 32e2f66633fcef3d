"""The definition of a workflow: what it refuses, all at once and by its place, and what its hash says."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from smart_model_router_research.workflow import (
    Costs,
    RoundScope,
    Step,
    StepInput,
    StepLoop,
    WorkflowDefinition,
    WorkflowError,
    WorkflowFault,
    WorkflowInput,
)


async def work(step: StepInput) -> Mapping[str, Any]:
    """Put nothing out."""
    return {}


def step(name: str, *needs: str, **options: Any) -> Step:
    """Make a step that works."""
    return Step(name, options.pop("run", work), needs, **options)


def refused(*steps: Step, **options: Any) -> dict[str, str]:
    """Return the faults of a workflow of these steps: what is needed, by key."""
    with pytest.raises(WorkflowError) as error:
        WorkflowDefinition(options.pop("name", "w"), steps, **options)
    return {fault.key: fault.expected for fault in error.value.faults}


# ------------------------------------------------------------------------------------------------ what it has


def test_a_definition_knows_the_needs_of_its_steps() -> None:
    """Each once, in the order in which they were written."""
    workflow = WorkflowDefinition("w", [step("a"), step("b"), step("c", "b", "a", "b")])
    assert workflow.needs_of("c") == ("b", "a")
    assert workflow.needs_of("a") == ()
    assert list(workflow.by_name) == ["a", "b", "c"]
    with pytest.raises(KeyError):
        workflow.needs_of("d")


def test_a_definition_stays_as_it_was_checked() -> None:
    """The lists and mappings that it was made of are the caller's, who may change them."""
    steps, needs, inputs = [step("a")], ["a"], {"x": {"y": [1]}}
    steps.append(Step("b", work, needs, inputs=inputs))
    workflow = WorkflowDefinition("w", steps)
    steps.clear()
    needs.append("b")
    inputs["x"]["y"].append(2)
    assert workflow.needs_of("b") == ("a",)
    assert workflow.by_name["b"].inputs == {"x": {"y": [1]}}


def test_a_definition_can_be_copied_and_pickled() -> None:
    """Another process gets it whole."""
    workflow = WorkflowDefinition("w", [step("a"), step("b", "a")])
    assert copy.deepcopy(workflow) == pickle.loads(pickle.dumps(workflow)) == workflow


def test_costs_add_up() -> None:
    """Each for itself."""
    assert Costs(1, 2.0, 3.0, 4) + Costs(10, 20.0, 30.0, 40) == Costs(11, 22.0, 33.0, 44)


@pytest.mark.asyncio
async def test_a_step_has_nothing_to_charge_by_default() -> None:
    """A step can be tried alone."""
    given = StepInput(run_id="r", step="a", inputs={})
    given.charge(Costs(tokens=1))
    assert await work(given) == {}


# ------------------------------------------------------------------------------------------------ the hash


def hashed(*steps: Step, **options: Any) -> str:
    """Return the hash of a workflow of these steps."""
    return WorkflowDefinition(options.pop("name", "w"), steps, **options).hash


def test_the_hash_does_not_depend_on_order_or_on_the_name() -> None:
    """Steps, keys and needs may be written in any order; a better name of the workflow changes no run."""
    a, b = step("a", inputs={"x": 1, "y": 2}), step("b", inputs={"y": 2, "x": 1})
    one = hashed(a, b, step("c", "a", "b"))
    assert hashed(step("c", "b", "a", "b"), b, a, name="other") == one
    assert len(one) == 64
    assert one == hashed(a, b, step("c", "a", "b"))


@pytest.mark.parametrize(
    "changed",
    [
        step("b", when="1 < 2"),
        step("b", inputs={"x": 1}),
        step("b", always=True),
        step("b", on_error="continue"),
        step("b", timeout=2.0),
        step("b", attempts=2),
        step("b", outputs=["y"]),
        step("b", kind="own"),
        step("b", options={"body": "x"}),
        step("b", estimate={"usd": 1}),
        step("b", loop=StepLoop("b", "false")),
        step("b", round=RoundScope(1)),
        step("b", run=pytest.fail),
        Step("b", kind="approval", message="?"),
        Step("b", kind="workflow", workflow=WorkflowDefinition("v", [step("b")])),
    ],
)
def test_the_hash_says_which_steps_differ(changed: Step) -> None:
    """Any other value of a step is another hash of that step, and of the workflow."""
    one = WorkflowDefinition("w", [step("a"), step("b")])
    other = WorkflowDefinition("w", [step("a"), changed])
    assert one.hash != other.hash
    assert [name for name in one.by_name if one.step_hashes[name] != other.step_hashes[name]] == ["b"]


def test_the_hash_covers_inputs_and_outputs() -> None:
    """They decide what a run reads and returns."""
    plain = hashed(step("a"))
    assert hashed(step("a"), inputs={"x": WorkflowInput()}) != plain
    assert hashed(step("a"), outputs={"x": 1}) != plain


def test_a_callable_without_a_name_counts_by_its_class() -> None:
    """An object that works is as good as a function."""

    class Worker:
        async def __call__(self, given: StepInput) -> Mapping[str, Any]:
            return {}

    assert hashed(step("a", run=Worker())) == hashed(step("a", run=Worker())) != hashed(step("a"))


# ------------------------------------------------------------------------------------------------ refusals


def test_every_fault_is_found_at_once() -> None:
    """A workflow with five faults says all five, each with its place."""
    assert refused(
        step("a", "z"), step("a"), step("inputs"), step("b", "b"), step("c", attempts=0), checkpoint="maybe"
    ) == {
        "checkpoint": "one of optional, required is needed",
        "steps[0].needs[0]": "no step has that name; known: a, b, c, inputs",
        "steps[1].name": "steps[0] has that name; another is needed",
        "steps[2].name": "the name is reserved; another one is needed",
        "steps[3].needs[0]": "a step cannot need itself",
        "steps[4].attempts": "a whole number from 1 to 100 is needed",
    }


def test_the_error_shows_the_first_faults_and_carries_all() -> None:
    """Its text is for people: twenty lines; as an error of a configuration it has the others beside the first."""
    with pytest.raises(WorkflowError) as error:
        WorkflowDefinition("w", [step(f"a{number}", "zzz") for number in range(30)])
    assert len(error.value.faults) == 30
    assert len(error.value.others) == 29
    assert str(error.value).splitlines()[-1] == "and 10 more"
    assert str(error.value).startswith("steps[0].needs[0]: 'zzz' - no step has that name; known: a0")
    assert len(str(error.value).splitlines()) == 21
    same = pickle.loads(pickle.dumps(error.value))
    assert (str(same), same.faults) == (str(error.value), error.value.faults)


def test_a_fault_says_its_place_in_a_file() -> None:
    """The place stands at the end of its line."""
    error = WorkflowError([WorkflowFault((), 1, "a mapping is needed", "w.yaml:2:7")])
    assert str(error) == "workflow: 1 - a mapping is needed (w.yaml:2:7)"


@pytest.mark.parametrize("steps", [(), []])
def test_a_workflow_without_steps_is_refused(steps: Any) -> None:
    """Nothing to do is a mistake and not a success."""
    assert refused(*steps) == {"steps": "the workflow has no steps; at least one is needed"}


def test_too_many_steps_are_refused() -> None:
    """A file of a hundred thousand steps is one fault, found at once."""
    one = step("a")
    assert refused(*[one] * 100_000) == {"steps": "at most 10000 steps are allowed"}


def test_subgraphs_count_and_are_nested_to_a_depth() -> None:
    """A few definitions within each other could make more steps than any run ends, or be too deep for recursion."""
    limits = "at most 10000 steps with those of subgraphs, nested 32 deep, are allowed"
    wide = deep = WorkflowDefinition("w", [step("a")])
    for _ in range(2):
        wide = WorkflowDefinition("w", [Step(f"s{n}", kind="workflow", workflow=wide) for n in range(50)])
    assert wide.extent == (5_050, 3)
    assert refused(*(Step(f"s{n}", kind="workflow", workflow=wide) for n in range(2))) == {"steps": limits}
    for _ in range(31):
        deep = WorkflowDefinition("w", [Step("s", kind="workflow", workflow=deep)])
    assert deep.extent == (32, 32)
    assert refused(Step("s", kind="workflow", workflow=deep)) == {"steps": limits}
    assert [name for name, _ in wide.walk()][:3] == ["s0", "s0.s0", "s0.s0.a"]


def test_a_chain_of_5000_steps_is_a_workflow() -> None:
    """No recursion anywhere: the last step may read the first."""
    chain = [step("s0"), *(step(f"s{n}", f"s{n - 1}") for n in range(1, 4_999))]
    last = step("s4999", "s4998", when="steps.s0.outputs.x == 1")
    assert WorkflowDefinition("w", [*chain, last]).needs_of("s4999") == ("s4998",)


def test_a_cycle_of_5000_steps_is_refused() -> None:
    """The path is shown in short."""
    steps = [step(f"s{n}", f"s{(n - 1) % 5_000}") for n in range(5_000)]
    with pytest.raises(WorkflowError) as error:
        WorkflowDefinition("w", steps)
    (fault,) = error.value.faults
    shown = str(fault.value)
    assert shown.startswith("s0 -> s1 -> ")
    assert " -> ... -> " in shown
    assert shown.endswith(" -> s0")


def test_a_cycle_names_its_path() -> None:
    """Each step stands before the one that needs it. Separate cycles are separate faults."""
    steps = [step("a", "c"), step("b", "a"), step("c", "b"), step("x", "y"), step("y", "x"), step("z", "x", "a")]
    with pytest.raises(WorkflowError) as error:
        WorkflowDefinition("w", steps)
    found = {str(fault.value) for fault in error.value.faults}
    assert found == {"a -> b -> c -> a", "x -> y -> x"}
    assert {fault.key for fault in error.value.faults} == {"steps[0].needs", "steps[3].needs"}


def test_at_most_20_cycles_are_listed() -> None:
    """Thousands of small cycles are not looked for one by one."""
    pairs = [step(f"s{n}", f"s{n ^ 1}") for n in range(60)]
    assert len(refused(*pairs)) == 20


def test_an_unknown_need_suggests_the_nearest_step() -> None:
    """Did you mean."""
    assert refused(step("gather"), step("b", "gater")) == {
        "steps[1].needs[0]": "no step has that name; did you mean 'gather'?"
    }


def test_suggestions_are_for_the_first_faults() -> None:
    """Each is a search through all names: a file of many faults is refused in time."""
    found = refused(*[step(f"s{n}", "none") for n in range(30)])
    assert sum("known:" in expected for expected in found.values()) == 20
    assert found["steps[29].needs[0]"] == "no step has that name; the name of a step is needed"


@pytest.mark.parametrize(
    "name", ["inputs", "steps", "prev", "last", "round_number", "true", "false", "null", "if", "None"]
)
def test_a_reserved_name_is_refused(name: str) -> None:
    """Expressions could not tell it from their own words."""
    assert refused(step(name)) == {"steps[0].name": "the name is reserved; another one is needed"}


@pytest.mark.parametrize("name", ["", "1a", "a b", "a.b", "ä", "a-b", "__a", "a" * 101, 3, None, "a\n"])
def test_a_name_that_expressions_cannot_read_is_refused(name: Any) -> None:
    """Letters, digits and underscores."""
    assert refused(step(name))["steps[0].name"].startswith("a name is needed")


def test_names_of_100_characters_and_one_underscore_are_allowed() -> None:
    """The longest, and a private one."""
    WorkflowDefinition("w" * 100, [step("a" * 100), step("_a"), step("match")])


@pytest.mark.parametrize("name", ["", "a\nb", "w" * 101, 3])
def test_a_workflow_has_a_name(name: Any) -> None:
    """One line of text."""
    assert "name" in refused(step("a"), name=name)


@pytest.mark.parametrize(
    ("options", "key", "expected"),
    [
        ({"always": 1}, "always", "true or false is needed"),
        ({"on_error": "ignore"}, "on_error", "one of fail, continue is needed"),
        ({"timeout": 0}, "timeout", "a number of seconds above 0 is needed"),
        ({"timeout": True}, "timeout", "a number of seconds above 0 is needed"),
        ({"timeout": float("inf")}, "timeout", "a number of seconds above 0 is needed"),
        ({"timeout": "5s"}, "timeout", "a number of seconds above 0 is needed"),
        ({"attempts": 101}, "attempts", "a whole number from 1 to 100 is needed"),
        ({"attempts": True}, "attempts", "a whole number from 1 to 100 is needed"),
        ({"attempts": 1.0}, "attempts", "a whole number from 1 to 100 is needed"),
        ({"outputs": "y"}, "outputs", "a list of names is needed"),
        ({"outputs": ["a b"]}, "outputs[0]", "a name is needed: letters, digits and _, no digit first"),
        ({"outputs": [None]}, "outputs[0]", "a name is needed: letters, digits and _, no digit first"),
        ({"outputs": ["y" * 101]}, "outputs[0]", "a name is needed: letters, digits and _, no digit first"),
        ({"outputs": ["y", "y"]}, "outputs[1]", "the name stands here twice; each name once is needed"),
        ({"estimate": [1]}, "estimate", "a mapping of tokens, usd, seconds, calls is needed"),
        ({"estimate": {"token": 1}}, "estimate.token", "unknown; did you mean 'tokens'?"),
        ({"estimate": {"usd": -1}}, "estimate.usd", "a number of at least 0 is needed"),
        ({"estimate": {"usd": True}}, "estimate.usd", "a number of at least 0 is needed"),
        ({"estimate": {"usd": float("nan")}}, "estimate.usd", "a number of at least 0 is needed"),
        ({"run": None}, "run", "a coroutine function that takes a StepInput is needed"),
        (
            {"run": None, "kind": "aproval"},
            "run",
            "a coroutine function that takes a StepInput is needed (kind 'aproval': did you mean 'approval'?)",
        ),
        ({"run": None, "kind": "zzz"}, "run", "a coroutine function that takes a StepInput is needed"),
        ({"kind": "approval"}, "run", "a step of kind approval runs no function"),
        ({"kind": "approval", "run": None, "attempts": 2}, "attempts", "a step of kind approval has one attempt"),
        ({"kind": "approval", "run": None, "message": 3}, "message", "a text is needed"),
        ({"message": "?"}, "message", "a message is for steps of kind approval"),
        ({"kind": "workflow", "run": None}, "workflow", "a WorkflowDefinition is needed"),
        ({"workflow": 3}, "workflow", "a subgraph is for steps of kind workflow"),
        ({"loop": "a"}, "loop", "a StepLoop is needed"),
        ({"loop": StepLoop("a", "true", 101)}, "loop.max", "a whole number from 1 to 100 is needed"),
        ({"loop": StepLoop("b", "true")}, "loop.to", "the step itself, or one before it, is needed"),
        ({"loop": StepLoop("z", "true")}, "loop.to", "the step itself, or one before it, is needed"),
        ({"loop": StepLoop("a", True)}, "loop.while", "an expression is needed"),  # type: ignore[arg-type]  # refused
        ({"needs": "b"}, "needs", "a list of the names of steps is needed"),
        ({"needs": [3]}, "needs[0]", "no step has that name; known: a, b"),
        ({"when": ["a"]}, "when", "an expression, true or false is needed"),
        ({"when": 1}, "when", "an expression, true or false is needed"),
        ({"when": "always run"}, "when", "no expression (invalid syntax, at character 8)"),
        ({"when": "x" * 2_001}, "when", "2001 characters; at most 2000 are allowed"),
        ({"inputs": [1]}, "inputs", "a mapping is needed"),
        ({"inputs": {1: 2}}, "inputs", "a key that is text is needed"),
        ({"inputs": {"x": {"y": float("nan")}}}, "inputs.x.y", "a finite number of at most 64 bits is needed"),
        ({"inputs": {"x": 2**63}}, "inputs.x", "a finite number of at most 64 bits is needed"),
        ({"inputs": {"x": [object]}}, "inputs.x[0]", "a value of JSON is needed"),
        ({"inputs": {"x": "${"}}, "inputs.x", "`${` without its `}`; `$${` is the text `${`"),
        ({"options": {"x": [{"y": "${z}"}]}}, "options.x[0].y", None),
    ],
    ids=repr,
)
def test_a_value_that_a_step_cannot_have_is_refused(options: dict[str, Any], key: str, expected: str | None) -> None:
    """The place, and what would be right."""
    needs = options.pop("needs", ())
    found = refused(Step("a", options.pop("run", work), needs, **options), step("b"))
    assert found.keys() == {f"steps[0].{key}"}
    assert expected is None or found[f"steps[0].{key}"] == expected


def test_a_thing_that_is_no_step_is_refused() -> None:
    """A coroutine function alone has no name."""
    assert refused(step("a"), work) == {"steps[1]": "a Step is needed"}  # type: ignore[arg-type]  # refused


def test_the_limits_themselves_are_allowed() -> None:
    """One hundred attempts, one hundred passes, the largest and the smallest number, a deep value."""
    deep: Any = 1
    for _ in range(63):
        deep = [deep]
    first = step("a", attempts=100, loop=StepLoop("a", "${steps.a.outputs.x}", 100), timeout=0.001, estimate={"usd": 0})
    again = step("b", "a", loop=StepLoop("b", "steps.b.outputs.x"), inputs={"x": [2**63 - 1, -(2**63)], "y": deep})
    WorkflowDefinition("w", [first, again])


def test_a_value_that_is_nested_or_shared_without_end_is_refused() -> None:
    """Neither hangs."""
    itself: list[Any] = []
    itself += [itself, itself]
    shared: Any = 1
    for _ in range(50):
        shared = [shared, shared]
    limits = "at most 100000 values, nested 64 deep, are allowed"
    assert refused(step("a", inputs={"x": itself})) == {"steps[0].inputs": limits}
    found = refused(Step("a", work, inputs={"x": tuple([tuple([1] * 400)] * 400)}))
    assert found == {"steps[0].inputs": limits}


def test_loops_that_share_a_step_are_refused() -> None:
    """One inside of the other, and two that overlap: the passes of a step could not be numbered."""
    steps = [step("a"), step("b", "a"), step("c", "b", loop=StepLoop("a", "true"))]
    expected = {"steps[3].loop": "loops without a step in common are needed; 'c' loops over 'b', too"}
    assert refused(*steps, step("d", "c", loop=StepLoop("b", "true"))) == expected
    inner = step("b", "a", loop=StepLoop("b", "true"))
    expected = {"steps[2].loop": "loops without a step in common are needed; 'b' loops over 'b', too"}
    assert refused(steps[0], inner, steps[2]) == expected


def test_steps_of_a_loop_read_the_pass_before() -> None:
    """No step outside does, and each output that is read is declared."""
    again = StepLoop("a", "steps.b.outputs.x")
    loop = [step("a", inputs={"x": "${prev.b.x}"}), step("b", "a", outputs=("x",), loop=again)]
    assert WorkflowDefinition("w", loop).loops == {"b": ("a", "b")}
    found = refused(step("a", inputs={"x": "${prev.b.xx}"}), loop[1], step("c", "b", inputs={"x": "${prev.b.x}"}))
    assert found == {
        "steps[0].inputs.x": "'b' declares no such output; did you mean 'x'?",
        "steps[2].inputs.x": "prev is for the steps of a template of rounds, and for those of one loop",
    }


def test_a_join_inside_of_a_loop_is_refused() -> None:
    """A step outside settles once: at the second pass an engine of supersteps would wait for it for ever."""
    loop = StepLoop("work", "steps.check.outputs.again")
    seeds = [step("seed"), step("outside")]
    inside = [
        step("work", "seed", "outside"),
        step("join", "work"),
        step("check", "join", loop=loop),
        step("end", "check", "outside"),
    ]
    WorkflowDefinition("w", [*seeds, *inside])
    joins = [step("work", "seed"), step("join", "outside", "work"), step("check", "join", loop=loop)]
    assert refused(*seeds, *joins) == {
        "steps[3].needs[0]": "a step of the loop from 'work' is needed; only 'work' may need others"
    }


# ------------------------------------------------------------------------------------------------ references


def test_a_step_reads_what_it_needs() -> None:
    """Inputs of the workflow, and the declared outputs of steps before it, however far."""
    WorkflowDefinition(
        "w",
        [
            step("a", outputs=["x"]),
            step("b", "a"),
            step("c", "b", when="${steps.a.outputs.x and inputs.q}", inputs={"t": "${steps.b.outputs.any[0]} $${x}"}),
            Step("d", needs=["c"], kind="approval", message="Is ${steps.a.outputs.x} right?"),
        ],
        inputs={"q": WorkflowInput()},
        outputs={"x": "${steps.a.outputs.x}", "all": ["${steps.c.outputs}", 1]},
    )


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("inputs.w", "the workflow declares no such input; did you mean 'q'?"),
        ("inputs.qq", "the workflow declares no such input; did you mean 'q'?"),
        ("steps.z.outputs.x", "no step is named 'z'; known: a, b, c"),
        ("steps.b.outputs.x", "'b' is not among the steps that 'c' needs"),
        ("steps.c.outputs.x", "'c' is not among the steps that 'c' needs"),
        ("steps.a.outputs.xx", "'a' declares no such output; did you mean 'x'?"),
        ("prev.a.x", "prev is for the steps of a template of rounds, and for those of one loop"),
        ("round_number == 1", "round_number is for the steps of a template of rounds"),
    ],
)
def test_a_reference_that_cannot_be_read_is_refused(when: str, expected: str) -> None:
    """In a condition, in inputs, options and messages alike."""
    inputs = {"q": WorkflowInput()}
    if "did you mean 'q'" in expected and when == "inputs.w":
        expected = "the workflow declares no such input; known: q"
    others = [step("a", outputs=["x"]), step("b")]
    text = f"see ${{{when}}}"
    assert refused(*others, step("c", "a", when=when), inputs=inputs) == {"steps[2].when": expected}
    assert refused(*others, step("c", "a", inputs={"k": [text]}), inputs=inputs) == {"steps[2].inputs.k[0]": expected}
    assert refused(*others, step("c", "a", options={"k": text}), inputs=inputs) == {"steps[2].options.k": expected}
    approval = Step("c", needs=["a"], kind="approval", message=text)
    assert refused(*others, approval, inputs=inputs) == {"steps[2].message": expected}


def test_the_outputs_of_the_workflow_read_any_step() -> None:
    """But none that is not there."""
    assert refused(step("a"), outputs={"x": "${steps.b.outputs.y}", "a b": 1}) == {
        "outputs.x": "no step is named 'b'; known: a",
        "outputs['a b']": "a name is needed: letters, digits and _, no digit first",
    }
    assert refused(step("a"), outputs=[1]) == {"outputs": "a mapping is needed"}
    assert refused(step("a"), outputs={"x": "${prev.a}"}).keys() == {"outputs.x"}


def test_an_approval_declares_its_outputs() -> None:
    """The decision, and what came with it."""
    ask = Step("ask", kind="approval")
    WorkflowDefinition("w", [ask, step("b", "ask", when="steps.ask.outputs.approved and steps.ask.outputs.payload.x")])
    assert refused(ask, step("b", "ask", when="steps.ask.outputs.answer")) == {
        "steps[1].when": "'ask' declares no such output; known: approved, payload"
    }


def test_rounds_read_the_steps_of_the_rounds_before() -> None:
    """`prev` is the round before, `last` each of them, and an output that one step declares needs no step."""

    def gate(number: int, when: str) -> Step:
        earlier = [f"gate_r{n}" for n in range(number - 1, 0, -1)]
        scope = (
            RoundScope(number, {}, {"gate": earlier[0]}, {"gate": earlier}, {"passed": "gate"})
            if earlier
            else RoundScope(1)
        )
        return step(f"gate_r{number}", *earlier[:1], outputs=["passed"], when=when, round=scope)

    def workflow(when: str) -> WorkflowDefinition:
        return WorkflowDefinition("w", [gate(number, when) for number in (1, 2, 3)])

    workflow("round_number == 1 or not prev.gate.passed and not prev.passed and last.gate.passed and last.passed")
    with pytest.raises(WorkflowError, match="declares no such output; did you mean 'passed'"):
        workflow("last.gate.passd")
    with pytest.raises(WorkflowError) as error:
        workflow("prev.gat.passed")
    assert [fault.expected for fault in error.value.faults] == [
        "the template has no such step; did you mean 'gate'?"
    ] * 2


def test_a_subgraph_declares_its_inputs_and_outputs() -> None:
    """A required input has to be given, and an input that is not declared is refused."""
    inner = WorkflowDefinition(
        "inner", [step("x")], {"q": WorkflowInput(required=True), "r": WorkflowInput()}, {"y": "${steps.x.outputs.y}"}
    )

    def outer(**options: Any) -> Step:
        return Step("o", kind="workflow", workflow=inner, **options)

    WorkflowDefinition("w", [outer(inputs={"q": 1}), step("p", "o", when="steps.o.outputs.y")])
    assert refused(outer(inputs={"qq": 1}), step("p", "o", when="steps.o.outputs.z")) == {
        "steps[0].inputs.qq": "unknown; did you mean 'q'?",
        "steps[0].inputs.q": "the workflow 'inner' requires this input",
        "steps[1].when": "'o' declares no such output; known: y",
    }
    assert refused(outer(inputs=[1])).keys() == {"steps[0].inputs", "steps[0].inputs.q"}


# ------------------------------------------------------------------------------------------------ inputs


@pytest.mark.parametrize(
    ("declared", "key"),
    [
        (3, "x"),
        (WorkflowInput("text"), "x.type"),  # type: ignore[arg-type]  # refused
        (WorkflowInput(required=1), "x.required"),  # type: ignore[arg-type]  # refused
        (WorkflowInput("string", minimum=1), "x.min"),
        (WorkflowInput("number", maximum=float("nan")), "x.max"),
        (WorkflowInput("number", minimum=True), "x.min"),
        (WorkflowInput("number", minimum=2, maximum=1), "x.min"),
        (WorkflowInput(enum=()), "x.enum"),
        (WorkflowInput(enum="ab"), "x.enum"),
        (WorkflowInput("integer", enum=(1, "b")), "x.enum[1]"),
        (WorkflowInput("integer", default="b"), "x.default"),
        (WorkflowInput("integer", default=3, enum=(1, 2)), "x.default"),
        (WorkflowInput("integer", default=3, maximum=2), "x.default"),
        (WorkflowInput(default=float("inf")), "x.default"),
        (WorkflowInput(default=1, required=True), "x.default"),
    ],
    ids=repr,
)
def test_an_input_that_cannot_be_declared_is_refused(declared: Any, key: str) -> None:
    """Types, bounds, choices and defaults fit each other."""
    assert refused(step("a"), inputs={"x": declared}).keys() == {f"inputs.{key}"}


def test_inputs_are_a_mapping_of_names() -> None:
    """Names as expressions read them."""
    assert refused(step("a"), inputs=["x"]) == {"inputs": "a mapping of names to WorkflowInput is needed"}
    assert refused(step("a"), inputs={"a b": WorkflowInput(), "null": WorkflowInput()}).keys() == {
        "inputs['a b']",
        "inputs.null",
    }


DECLARED = {
    "topic": WorkflowInput("string", required=True),
    "rounds": WorkflowInput("integer", default=4, minimum=1, maximum=4),
    "depth": WorkflowInput("string", enum=("shallow", "deep")),
    "share": WorkflowInput("number"),
    "sources": WorkflowInput("list"),
    "facts": WorkflowInput("mapping"),
    "draft": WorkflowInput("boolean"),
    "more": WorkflowInput(),
}


def test_the_inputs_of_a_run_have_their_defaults() -> None:
    """An input that is not given and has no default is null."""
    workflow = WorkflowDefinition("w", [step("a")], DECLARED)
    given = {"topic": "t", "share": 1, "sources": ["s"], "facts": {"f": 1}, "draft": False, "more": [1]}
    assert workflow.with_defaults(given) == {**given, "rounds": 4, "depth": None}
    assert workflow.with_defaults({"topic": "t", "depth": "deep", "rounds": 1})["depth"] == "deep"
    assert workflow.with_defaults({"topic": "t", "rounds": None})["rounds"] is None


def test_the_inputs_of_a_run_are_its_own() -> None:
    """A list that the caller changes later is not the run's."""
    workflow = WorkflowDefinition("w", [step("a")], {"x": WorkflowInput("list")})
    mine = [1]
    found = workflow.with_defaults({"x": mine})
    mine.append(2)
    assert found == {"x": [1]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"inputs.topic": "the input is required: a value of type string"}),
        ({"topic": None}, {"inputs.topic": "a value of type string is needed"}),
        (
            {"topic": "t", "rouns": 2},
            {"inputs.rouns": "the workflow has no such input; did you mean 'rounds'?"},
        ),
        ({"topic": "t", "rounds": 5}, {"inputs.rounds": "a value of type integer, at least 1, at most 4 is needed"}),
        ({"topic": "t", "rounds": 0}, {"inputs.rounds": "a value of type integer, at least 1, at most 4 is needed"}),
        ({"topic": "t", "rounds": 2.0}, {"inputs.rounds": "a value of type integer, at least 1, at most 4 is needed"}),
        ({"topic": "t", "rounds": True}, {"inputs.rounds": "a value of type integer, at least 1, at most 4 is needed"}),
        ({"topic": "t", "depth": "flat"}, {"inputs.depth": "one of 'shallow', 'deep' is needed"}),
        ({"topic": "t", "share": True}, {"inputs.share": "a value of type number is needed"}),
        ({"topic": "t", "share": float("nan")}, {"inputs.share": "a finite number of at most 64 bits is needed"}),
        ({"topic": "t", "sources": "s"}, {"inputs.sources": "a value of type list is needed"}),
        ({"topic": "t", "facts": []}, {"inputs.facts": "a value of type mapping is needed"}),
        ({"topic": "t", "draft": 0}, {"inputs.draft": "a value of type boolean is needed"}),
        ({"topic": "t", "more": {1: 2}}, {"inputs.more": "a key that is text is needed"}),
    ],
    ids=str,
)
def test_the_inputs_of_a_run_are_checked(given: dict[str, Any], expected: dict[str, str]) -> None:
    """Before anything runs."""
    with pytest.raises(WorkflowError) as error:
        WorkflowDefinition("w", [step("a")], DECLARED).with_defaults(given)
    assert {fault.key: fault.expected for fault in error.value.faults} == expected
