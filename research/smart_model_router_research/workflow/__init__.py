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
    from smart_model_router_research.workflow.expressions import (
        ExpressionError,
        ExpressionTypeError,
        evaluate,
        explain,
    )

__all__ = [
    "Costs",
    "ExpressionError",
    "ExpressionTypeError",
    "RoundScope",
    "Step",
    "StepInput",
    "StepLoop",
    "WorkflowDefinition",
    "WorkflowError",
    "WorkflowFault",
    "WorkflowInput",
    "evaluate",
    "explain",
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
    "smart_model_router_research.workflow.expressions": (
        "ExpressionError",
        "ExpressionTypeError",
        "evaluate",
        "explain",
    ),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
