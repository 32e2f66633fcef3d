"""The shipped workflow of research, as it is or with other analysts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from smart_model_router.domain.yaml_document import parse
from smart_model_router_research.pipeline.run_inputs import ANALYSTS, AnalystRole
from smart_model_router_research.pipeline.step_kinds import RESEARCH_KINDS
from smart_model_router_research.workflow import WorkflowDefinition, parse_workflow

NAME = "deep_research"
FILE = f"{NAME}.yaml"
_TEMPLATE = "research_round"
_FIRST, _SECOND = "analyst_ai", "analyst_swe"


def workflow_text() -> str:
    """Return the file of the workflow."""
    return files("smart_model_router_research.pipeline").joinpath(FILE).read_text(encoding="utf-8")


@lru_cache(maxsize=8)
def research_workflow(analysts: Sequence[AnalystRole] = ANALYSTS) -> WorkflowDefinition:
    """Return the workflow of research with these analysts, side by side in each round. Raises WorkflowError."""
    return parse_workflow(workflow_with(analysts), FILE, kinds=RESEARCH_KINDS)


def workflow_with(analysts: Sequence[AnalystRole]) -> str:
    """Return the file of the workflow with these analysts."""
    return workflow_text() if tuple(analysts) == ANALYSTS else json.dumps(_with_analysts(analysts))


def _with_analysts(analysts: Sequence[AnalystRole]) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(parse(workflow_text().encode(), FILE, typed=True).data))
    steps: list[dict[str, Any]] = data["templates"][_TEMPLATE]["steps"]
    at = next(place for place, step in enumerate(steps) if step["name"] == _FIRST)
    names = [f"analyst_{role.name}" for role in analysts]
    model = steps[at]
    made = [
        {**model, "name": name, "inputs": {**model["inputs"], "name": role.name, "lens": role.lens}}
        for name, role in zip(names, analysts, strict=True)
    ]
    steps[at : at + 2] = made
    for reader, given, output in (
        ("cove_verify", "drafts", "claims"),
        ("cove_verify", "proposals", "proposals"),
        ("cove_verify", "made_by", "calls"),
        ("coverage_confidence_audit", "looked_for", "looked_for"),
        ("coverage_confidence_audit", "analyst_calls", "calls"),
    ):
        step = next(step for step in steps if step["name"] == reader)
        step["needs"] = [need for need in step["needs"] if need not in (_FIRST, _SECOND, *names)] + names
        step["inputs"][given] = [f"${{steps.{name}.outputs.{output}}}" for name in names]
    return data
