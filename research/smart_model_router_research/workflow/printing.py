"""Workflows as text: YAML without templates, as an engine sees it, and a Mermaid flowchart."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import yaml

from smart_model_router_research.workflow.definition import WorkflowDefinition
from smart_model_router_research.workflow.expressions import bare, parse_expression, parse_template, static_path
from smart_model_router_research.workflow.kinds import STEP_KINDS
from smart_model_router_research.workflow.step import RoundScope, Step, WorkflowInput

_PLAIN = re.compile(r"(?!(?:true|false|null)$)[A-Za-z_][A-Za-z0-9_]*", re.IGNORECASE)
_NO_ROUNDS = RoundScope(1)


def as_yaml(workflow: WorkflowDefinition) -> str:
    """Return the workflow as YAML, its rounds as single steps, each with what it reads of the rounds before it.

    `load_workflow` reads it again, where functions are registered under their names in Python. `last.STEP` without the
    name of an output has no other form: it stays, and can be read no more.
    """
    return yaml.dump(_workflow(workflow), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    """Quotes every text but plain words: YAML 1.1, which it knows, and 1.2, which is read, differ in what is a text."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class names it
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if _PLAIN.fullmatch(text) else '"')


_Dumper.add_representer(str, _text)


def _workflow(workflow: WorkflowDefinition) -> dict[str, Any]:
    return _given(
        name=workflow.name,
        checkpoint=workflow.checkpoint if workflow.checkpoint != "optional" else None,
        stream=workflow.stream if workflow.stream != "optional" else None,
        inputs={name: _input(each) for name, each in workflow.inputs.items()},
        steps=[_step(step) for step in workflow.steps],
        outputs=workflow.outputs,
    )


def _input(given: WorkflowInput) -> dict[str, Any]:
    kind = given.type if given.type != "any" else None
    required = given.required or None
    enum = None if given.enum is None else [*given.enum]
    return _given(type=kind, default=given.default, required=required, enum=enum, min=given.minimum, max=given.maximum)


def _step(step: Step) -> dict[str, Any]:
    rounds = step.round or _NO_ROUNDS
    loop = step.loop
    function = None if step.kind != "call" else getattr(step.run, "__name__", type(step.run).__name__)
    return _given(
        name=step.name,
        kind=step.kind if step.kind != "call" else None,
        needs=[*dict.fromkeys(step.needs)],
        when=step.when if isinstance(step.when, bool) else step.when and f"${{{_bound(bare(step.when), rounds)}}}",
        run="always" if step.always else None,
        on_error=step.on_error if step.on_error != "fail" else None,
        timeout=step.timeout,
        retry={"attempts": step.attempts} if step.attempts > 1 else None,
        function=function,
        **{name: _filled(value, rounds) for name, value in step.options.items()},
        inputs=_filled(step.inputs, rounds),
        outputs=None if step.outputs in (None, _usual_outputs(step)) else [*(step.outputs or ())],
        estimate=step.estimate,
        workflow=None if step.workflow is None else _workflow(step.workflow),
        message=step.message and _filled(step.message, rounds),
        loop=loop and {"to": loop.to, "while": f"${{{_bound(bare(loop.condition), rounds)}}}", "max": loop.max_passes},
    )


def _usual_outputs(step: Step) -> tuple[str, ...] | None:
    kind = STEP_KINDS.get(step.kind)
    return None if kind is None else kind.outputs


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None and value not in ({}, [])}


def _filled(value: Any, rounds: RoundScope) -> Any:
    """Return JSON data with the names of rounds in its templates replaced."""
    if isinstance(value, str):
        parts = parse_template(value).parts
        return "".join(
            part.replace("${", "$${") if isinstance(part, str) else f"${{{_bound(part.text, rounds)}}}"
            for part in parts
        )
    if isinstance(value, Mapping):
        return {key: _filled(member, rounds) for key, member in value.items()}
    return [_filled(member, rounds) for member in value] if isinstance(value, list | tuple) else value


def _bound(text: str, rounds: RoundScope) -> str:
    """Return an expression that reads the same without the names `prev`, `last` and `round_number`."""
    expression = parse_expression(text)
    if rounds is _NO_ROUNDS:
        return expression.text
    return ast.unparse(_Binding(rounds).visit(deepcopy(expression.body)))


class _Binding(ast.NodeTransformer):
    """Replaces the references of one round. It changes the tree."""

    def __init__(self, rounds: RoundScope) -> None:
        self._rounds = rounds

    def visit(self, node: ast.AST) -> Any:
        path = static_path(node) if isinstance(node, ast.expr) else None
        return self.generic_visit(node) if path is None else ast.parse(self._written(path), mode="eval").body

    def _written(self, path: Sequence[str]) -> str:
        rounds, (root, *rest) = self._rounds, path
        if root == "round_number":
            return str(rounds.number)
        if root == "steps":
            return _dotted("steps", rounds.same.get(rest[0], rest[0]), *rest[1:])
        if root not in ("prev", "last"):
            return _dotted(*path)
        if not rounds.prev:
            return "null"
        if rest[0] not in rounds.prev:
            rest = [rounds.short[rest[0]], *rest]
        elif root == "last" and len(rest) == 1:
            return _dotted(*path)
        steps = [rounds.prev[rest[0]]] if root == "prev" else rounds.last[rest[0]]
        found = [_dotted("steps", step, "outputs", *rest[1:]) for step in steps]
        return found[0] if len(found) == 1 else f"coalesce({', '.join(found)})"


def _dotted(*path: str) -> str:
    first, *rest = path
    return first + "".join(f".{name}" if name.isidentifier() else f"[{name!r}]" for name in rest)


# ------------------------------------------------------------------------------------------------ Mermaid

_WORDS = frozenset(
    {
        *("end", "graph", "flowchart", "subgraph", "style", "linkstyle", "class", "classdef", "interpolate"),
        *("click", "call", "href", "default", "direction"),
    }
)
_SHAPES = {"model": ("([", "])"), "approval": ("{{", "}}")}


def as_mermaid(workflow: WorkflowDefinition) -> str:
    """Return a Mermaid flowchart: a box a step with its kind and condition, an arrow a need, a frame a subgraph."""
    return "\n".join(["flowchart TD", *_drawn(workflow, "", 1)]) + "\n"


def _drawn(workflow: WorkflowDefinition, prefix: str, depth: int) -> Iterator[str]:
    pad = "  " * depth
    for step in workflow.steps:
        name = _named(prefix, step.name)
        label = [step.name, *([step.kind] if step.kind != "call" else [])]
        if step.when is not None:
            label.append(f"when {step.when if isinstance(step.when, bool) else bare(step.when).strip()}")
        shown = '"' + "<br/>".join(map(_escaped, label)) + '"'
        if step.workflow is None:
            opening, closing = _SHAPES.get(step.kind, ("[", "]"))
            yield f"{pad}{name}{opening}{shown}{closing}"
        else:
            yield f"{pad}subgraph {name}[{shown}]"
            yield from _drawn(step.workflow, f"{prefix}{step.name}.", depth + 1)
            yield f"{pad}end"
    for step in workflow.steps:
        for need in dict.fromkeys(step.needs):
            yield f"{pad}{_named(prefix, need)} --> {_named(prefix, step.name)}"
        if step.loop is not None:
            condition = _escaped(f"while {bare(step.loop.condition).strip()}")
            yield f'{pad}{_named(prefix, step.name)} -. "{condition}" .-> {_named(prefix, step.loop.to)}'


def _named(prefix: str, step: str) -> str:
    """Return the name of a box: the full name, behind a dot where a word of the language begins it."""
    return "." * ((prefix + step).partition(".")[0].lower() in _WORDS) + prefix + step


def _escaped(text: str) -> str:
    found = " ".join(text.split())
    return "".join(char if char.isalnum() or char in " _.,:()+-*/=!?'" else f"#{ord(char)};" for char in found)
