"""Workflows: the definition, its expressions, and the files it is read from. Names are imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.domain.lazy_names import lazy_names

if TYPE_CHECKING:
    from smart_model_router_research.workflow.definition import (
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
    from smart_model_router_research.workflow.evaluation import ExpressionTypeError
    from smart_model_router_research.workflow.expressions import ExpressionError, evaluate, explain
    from smart_model_router_research.workflow.kinds import STEP_KINDS, StepKind
    from smart_model_router_research.workflow.loading import load_workflow, parse_workflow
    from smart_model_router_research.workflow.model_step import ask_model
    from smart_model_router_research.workflow.schema import workflow_schema

__all__ = [
    "STEP_KINDS",
    "Costs",
    "ExpressionError",
    "ExpressionTypeError",
    "RoundScope",
    "Step",
    "StepInput",
    "StepKind",
    "StepLoop",
    "WorkflowDefinition",
    "WorkflowError",
    "WorkflowFault",
    "WorkflowInput",
    "ask_model",
    "evaluate",
    "explain",
    "load_workflow",
    "parse_workflow",
    "workflow_schema",
]

_HOMES = {
    "smart_model_router_research.workflow.definition": (
        "Costs",
        "RoundScope",
        "Step",
        "StepInput",
        "StepLoop",
        "WorkflowDefinition",
        "WorkflowError",
        "WorkflowFault",
        "WorkflowInput",
    ),
    "smart_model_router_research.workflow.evaluation": ("ExpressionTypeError",),
    "smart_model_router_research.workflow.expressions": (
        "ExpressionError",
        "evaluate",
        "explain",
    ),
    "smart_model_router_research.workflow.loading": ("load_workflow", "parse_workflow"),
    "smart_model_router_research.workflow.model_step": ("ask_model",),
    "smart_model_router_research.workflow.schema": ("workflow_schema",),
    "smart_model_router_research.workflow.kinds": ("STEP_KINDS", "StepKind"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
