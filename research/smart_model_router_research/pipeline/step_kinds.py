"""The kinds of step of research: the work of each, what it puts out, and the tools that it may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from smart_model_router_research.pipeline.analyst_step import analyse_documents
from smart_model_router_research.pipeline.audit_steps import audit, supervise
from smart_model_router_research.pipeline.planning_steps import intake_scope, plan_searches, source_policy
from smart_model_router_research.pipeline.report_steps import package, synthesise
from smart_model_router_research.pipeline.retrieval_step import retrieve
from smart_model_router_research.pipeline.tools import StepTools, tools_of
from smart_model_router_research.pipeline.verification_step import verify_claims
from smart_model_router_research.workflow import STEP_KINDS, StepInput, StepKind
from smart_model_router_research.workflow.step import Run

Work = Callable[[StepInput, StepTools], Awaitable[Mapping[str, Any]]]
ALLOWED: Mapping[str, frozenset[str]] = {
    "intake_scope": frozenset({"model"}),
    "source_policy": frozenset(),
    "hypothesis_tree_tot": frozenset({"model"}),
    "retrieval_react": frozenset({"search", "model"}),
    "analyst": frozenset({"model"}),
    "cove_verify": frozenset({"search", "model"}),
    "coverage_confidence_audit": frozenset(),
    "supervisor_decide": frozenset(),
    "final_synthesis": frozenset({"model", "prose"}),
    "rag_package": frozenset({"write"}),
}
"""The tools that each kind may use beside the values of its run: what is not listed is refused."""
_WORK: Mapping[str, Work] = {
    "intake_scope": intake_scope,
    "source_policy": source_policy,
    "hypothesis_tree_tot": plan_searches,
    "retrieval_react": retrieve,
    "analyst": analyse_documents,
    "cove_verify": verify_claims,
    "coverage_confidence_audit": audit,
    "supervisor_decide": supervise,
    "final_synthesis": synthesise,
    "rag_package": package,
}


def _run(kind: str) -> Run:
    work, allowed = _WORK[kind], ALLOWED[kind]

    async def run(step: StepInput) -> Mapping[str, Any]:
        return await work(step, tools_of(step, allowed))

    run.__qualname__ = f"research.{kind}"  # names the work in the hash of the workflow
    return run


RESEARCH_KINDS: Mapping[str, StepKind] = {**STEP_KINDS, **{kind: StepKind(run=_run(kind)) for kind in _WORK}}
"""The kinds of a workflow of research: those that are built in, and its own."""
