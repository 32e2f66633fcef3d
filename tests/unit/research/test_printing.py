"""Workflows as text: what is printed is what runs, and a flowchart that other programs can draw."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from smart_model_router.testing import run_virtual
from smart_model_router_research.engine import ExecutionContext, KahnEngine
from smart_model_router_research.workflow import Step, StepInput, StepLoop, WorkflowDefinition, parse_workflow
from smart_model_router_research.workflow.printing import as_mermaid, as_yaml

ROUNDS = """\
name: deep
inputs: {n: {default: 1, type: integer, min: 0}, tone: {enum: ["yes", "1e5", null]}}
checkpoint: required
steps:
  - {name: plan, function: work}
  - name: report
    function: work
    needs: [gate_r3]
    run: always
    when: "${steps.gate_r1.outputs.score != 0}"
    inputs: {text: "round ${steps.gate_r2.outputs.score} costs $${x}, 'quoted'", list: ["${inputs.n}", "1e5", 7]}
templates:
  research:
    steps:
      - name: search
        function: work
        needs: [plan]
        outputs: [hits, score, gate]
        when: "${round_number == 1 or prev.gate.score < 3}"
        inputs: {round: "${round_number}", before: "${prev.gate.score}", all: "${last.hits}", odd: "${prev['gate']}"}
      - {name: gate, function: work, needs: [search], outputs: [score],
         inputs: {round: "${steps.search.outputs.score}", n: "${inputs.n}"}, timeout: 9, on_error: continue,
         retry: {attempts: 2}, estimate: {tokens: 5}}
rounds: {template: research, max: 3}
outputs: {found: "${steps.report.outputs.given}"}
"""


async def work(step: StepInput) -> Mapping[str, Any]:
    """Return what was given, and a score that grows with the round."""
    return {"given": dict(step.inputs), "hits": [step.step], "score": (step.inputs.get("round") or 0) + 1}


def run(workflow: WorkflowDefinition) -> Any:
    """Run a workflow to its end; the outputs and the states of its steps."""

    async def whole() -> Any:
        result = await KahnEngine().execute(workflow, ExecutionContext(run_id="r", inputs={"n": 2}))
        return result.status, result.outputs, {name: (each.state, each.outputs) for name, each in result.steps.items()}

    return run_virtual(whole())


def test_what_is_printed_runs_as_what_was_read() -> None:
    """Without a template, and with the same results of each step."""
    read = parse_workflow(ROUNDS, functions={"work": work})
    printed = as_yaml(read)
    again = parse_workflow(printed, functions={"work": work})
    assert "round_number" not in printed
    assert "prev." not in printed
    assert [step.name for step in again.steps] == [step.name for step in read.steps]
    assert {step.name: set(step.needs) for step in again.steps} == {step.name: set(step.needs) for step in read.steps}
    assert run(again) == run(read)
    assert as_yaml(again) == printed


def test_a_round_reads_the_rounds_before_it_by_their_names() -> None:
    """`prev` is one step, `last` the latest that has a value, and both are null in the first round."""
    steps = {
        step["name"]: step
        for step in yaml.safe_load(as_yaml(parse_workflow(ROUNDS, functions={"work": work})))["steps"]
    }
    assert steps["search_r1"]["inputs"] == {"round": "${1}", "before": "${null}", "all": "${null}", "odd": "${null}"}
    assert steps["search_r3"]["inputs"] == {
        "round": "${3}",
        "before": "${steps.gate_r2.outputs.score}",
        "all": "${coalesce(steps.search_r2.outputs.hits, steps.search_r1.outputs.hits)}",
        "odd": "${steps.gate_r2.outputs}",
    }
    assert steps["search_r2"]["when"] == "${2 == 1 or steps.gate_r1.outputs.score < 3}"
    assert steps["gate_r2"]["inputs"] == {"round": "${steps.search_r2.outputs.score}", "n": "${inputs.n}"}


def test_a_name_that_is_an_output_and_a_step_is_the_step() -> None:
    """An output of one step of the template is found without its step, unless a step has that name."""
    text = ROUNDS.replace('${prev.gate.score}"', '${prev.hits}"')
    steps = {
        step["name"]: step for step in yaml.safe_load(as_yaml(parse_workflow(text, functions={"work": work})))["steps"]
    }
    assert steps["search_r2"]["inputs"]["before"] == "${steps.search_r1.outputs.hits}"
    assert steps["search_r2"]["inputs"]["odd"] == "${steps.gate_r1.outputs}"


def test_a_latest_step_as_a_whole_stays() -> None:
    """There is no other way to write it."""
    text = ROUNDS.replace("${last.hits}", "${last.search}")
    assert "${last.search}" in as_yaml(parse_workflow(text, functions={"work": work}))


EVERY_KIND = WorkflowDefinition(
    "all of them",
    [
        Step("ask", kind="model", options={"body": {"messages": "${inputs.q}"}}, run=work, attempts=3),
        Step("end", kind="approval", needs=["ask"], message="Send ${steps.ask.outputs.text}?"),
        Step(
            "inner",
            kind="workflow",
            needs=["end"],
            workflow=WorkflowDefinition("w", [Step("end", run=work), Step("b", work, ["end"])]),
        ),
        Step(
            "again",
            work,
            ["inner"],
            when="inputs.q != '<b>'",
            loop=StepLoop("again", "size(steps.again.outputs.l) < 2", 4),
        ),
        Step("never", work, when=False, always=True),
    ],
    inputs={"q": parse_workflow(ROUNDS, functions={"work": work}).inputs["n"]},
)


def test_every_kind_of_step_is_printed_with_its_own_keys() -> None:
    """And nothing that says what is so anyway."""
    printed = yaml.safe_load(as_yaml(EVERY_KIND))
    assert printed["steps"] == [
        {"name": "ask", "kind": "model", "retry": {"attempts": 3}, "body": {"messages": "${inputs.q}"}},
        {"name": "end", "kind": "approval", "needs": ["ask"], "message": "Send ${steps.ask.outputs.text}?"},
        {
            "name": "inner",
            "kind": "workflow",
            "needs": ["end"],
            "workflow": {
                "name": "w",
                "steps": [{"name": "end", "function": "work"}, {"name": "b", "needs": ["end"], "function": "work"}],
            },
        },
        {
            "name": "again",
            "needs": ["inner"],
            "when": "${inputs.q != '<b>'}",
            "function": "work",
            "loop": {"to": "again", "while": "${size(steps.again.outputs.l) < 2}", "max": 4},
        },
        {"name": "never", "when": False, "run": "always", "function": "work"},
    ]


@pytest.mark.parametrize(
    "text", ["yes", "1e5", "0x1F", "null", "~", "a: b", "- x", "1:30", "ja\nnein", "é", "$${x}", ""]
)
def test_a_text_stays_a_text(text: str) -> None:
    """Whatever YAML would take it for."""
    workflow = WorkflowDefinition("w", [Step("a", work, inputs={"x": text})])
    again = parse_workflow(as_yaml(workflow), functions={"work": work})
    assert again.steps[0].inputs == {"x": text}


def test_no_two_boxes_of_a_flowchart_have_one_name() -> None:
    """Whatever steps are called; words that Mermaid's own parser refuses as names are behind a dot."""
    inner = WorkflowDefinition("inner", [Step("b", work)])
    names = ("end_", "end", "inner__b", "linkStyle", "call", "href", "interpolate")
    steps = [*(Step(name, work) for name in names), Step("inner", kind="workflow", workflow=inner)]
    drawn = re.findall(r"^ +(?:subgraph )?([\w.]+)\[", as_mermaid(WorkflowDefinition("w", steps)), re.MULTILINE)
    boxes = ["end_", ".end", "inner__b", ".linkStyle", ".call", ".href", ".interpolate", "inner", "inner.b"]
    assert drawn == boxes


def test_a_flowchart_shows_kinds_conditions_subgraphs_and_loops() -> None:
    """In Mermaid's own words; a step named like one of them has another box name, and no text leaves its quotes."""
    assert as_mermaid(EVERY_KIND).splitlines() == [
        "flowchart TD",
        '  ask(["ask<br/>model"])',
        '  .end{{"end<br/>approval"}}',
        '  subgraph inner["inner<br/>workflow"]',
        '    inner.end["end"]',
        '    inner.b["b"]',
        "    inner.end --> inner.b",
        "  end",
        """  again["again<br/>when inputs.q != '#60;b#62;'"]""",
        '  never["never<br/>when False"]',
        "  ask --> .end",
        "  .end --> inner",
        "  inner --> again",
        '  again -. "while size(steps.again.outputs.l) #60; 2" .-> again',
    ]
