"""Runs of research as JSON: their results, their events, and their standing while they go on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smart_model_router_research.deep.records import encode
from smart_model_router_research.engine import RunState, StepState, StoredRun
from smart_model_router_research.pipeline.deep_research import ResearchResult
from smart_model_router_research.pipeline.research_events import ResearchEvent

INTERRUPTED = "interrupted"
_AUDIT = "coverage_confidence_audit"


def result_as_json(result: ResearchResult, skipped: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a result as JSON. `skipped` says what of the corpora could not be read."""
    return {
        "run": result.run_id,
        "status": result.status,
        "delivery": result.delivery,
        "report": result.report,
        "answers": list(result.answers),
        "unanswered": [encode(each) for each in result.unanswered],
        "quality_metadata": dict(result.quality_metadata),
        "artefacts": None if result.artefacts is None else str(result.artefacts),
        "usage": dict(result.usage),
        "stop_reason": result.stop_reason,
        "problems": list(result.problems),
        "model_notes": list(result.model_notes),
        "engine": result.engine,
        "skipped": list(skipped),
    }


def event_as_json(event: ResearchEvent) -> dict[str, Any]:
    """Return an event as JSON."""
    return {
        "seq": event.seq,
        "run": event.run_id,
        "kind": event.kind.value,
        "time": event.time,
        "step": event.step,
        "data": dict(event.data),
    }


def state_of(run: StoredRun) -> str:
    """Return the state of a run in a word: `interrupted` where it is to go on, and no process holds it."""
    return INTERRUPTED if run.state is RunState.RUNNING and not run.owner else run.state.value


def is_audit(step: str) -> bool:
    """Return whether a step, by its name, audits a round."""
    return step.startswith(_AUDIT)


def standing_of_run(run: StoredRun) -> dict[str, Any]:
    """Return how a run stands, as JSON: its latest round that was audited, 0 before the first, and what it has spent.

    Round and index are those of a run that was loaded with its steps. Instants are seconds since 1970.
    """
    audited = _latest_audit(run)
    return {
        "run": run.run_id,
        "topic": run.inputs.get("topic", ""),
        "state": state_of(run),
        "delivery": run.outputs.get("delivery") or "",
        "round": audited.get("round", 0),
        "max_rounds": run.inputs.get("max_rounds", 0),
        "ci": audited.get("ci_score"),
        "spent": {"usd": run.spent.usd, "tokens": run.spent.tokens, "model_calls": run.spent.calls},
        "budget": run.inputs.get("budget", {}),
        "created_at": run.created_at,
        "changed_at": run.changed_at,
        "engine": run.engine,
    }


def _latest_audit(run: StoredRun) -> Mapping[str, Any]:
    found: Mapping[str, Any] = {}
    for name, step in run.steps.items():
        outputs = step.result.outputs or {}
        has_audited = is_audit(name) and step.result.state is StepState.SUCCEEDED
        if has_audited and outputs.get("round", 0) > found.get("round", 0):
            found = outputs
    return found
