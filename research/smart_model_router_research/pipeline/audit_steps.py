"""The steps that judge: the audit of a round, which says what comes next, and the supervisor's last word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smart_model_router_research.deep.claims import ClaimGraph
from smart_model_router_research.deep.lookups import Extent, Obstacle, QuestionLookup, read_by
from smart_model_router_research.deep.quality import audits_of, best_of, quality_of
from smart_model_router_research.deep.records import decode, encode
from smart_model_router_research.deep.rounds import Mode, Next, RoundStep, delivery_of, next_round
from smart_model_router_research.model_forms.model_calls import StepCalls
from smart_model_router_research.pipeline.planning_steps import questions_of
from smart_model_router_research.pipeline.run_inputs import RunInputs, run_of
from smart_model_router_research.pipeline.tools import StepTools
from smart_model_router_research.workflow import StepInput
from smart_model_router_scoring.confidence import regression


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRound:
    """A round that was audited: the names of its graph and its documents, its mode and steps, and what it brought.

    `lookups` say how far it looked for each of its questions, `calls` are those of its steps that asked a model.
    """

    graph: str
    documents: str
    mode: str = Mode.FULL.value
    steps: tuple[str, ...] = ()
    new_documents: int = 0
    changed_claims: int = 0
    lookups: tuple[QuestionLookup, ...] = ()
    calls: tuple[StepCalls, ...] = ()


async def audit(step: StepInput, tools: StepTools) -> Mapping[str, Any]:
    """Return the metrics of a round, whether it passed its gate, and what the next round does."""
    given, run = step.inputs, run_of(step)
    before = rounds_of(given["history"])
    graph, documents = given["graph"], given["documents"]
    if graph is None and before:
        graph, documents = before[-1].graph, before[-1].documents
    elif graph is None:
        graph = await tools.values.put(ClaimGraph(questions=questions_of(given["questions"] or ())))
        documents = await tools.values.put_documents(())
    current = AuditedRound(
        graph=graph,
        documents=documents,
        mode=given["mode"] or Mode.FULL.value,
        steps=tuple(RoundStep) if given["steps"] is None else tuple(given["steps"]),
        new_documents=given["new_documents"] or 0,
        changed_claims=given["changed_claims"] or 0,
        lookups=_lookups(given),
        calls=calls_in([*given["calls"], *given["analyst_calls"]]),
    )
    rounds = [*before, current]
    audits = await _audits(rounds, run, tools)
    history = [{**found, **encode(each)} for found, each in zip(audits, rounds, strict=True)]
    following = next_round(history, run.rounds_config(), halt=_halt(given, step, tools, run))
    return {
        **audits[-1],
        "history": [encode(each) for each in rounds],
        "regression_count": regression([each["ci_score"] for each in audits]).count,
        **_next(following),
    }


async def supervise(step: StepInput, tools: StepTools) -> Mapping[str, Any]:
    """Return the round that is delivered, its quality, and why the run ended."""
    run, audited = run_of(step), latest_audit(step.inputs["audits"])
    rounds = rounds_of(audited["history"])
    audits = await _audits(rounds, run, tools)
    best = best_of(audits)
    stop_reason = audited["next_reason"] if audited["next_mode"] == Mode.STOP.value else "interrupted"
    quality = quality_of(audits, run.audit_config(), stop_reason)
    return {
        "best_round": best["round"],
        "confidence_level": quality["confidence_level"],
        "quality_metadata": quality,
        "stop_reason": stop_reason,
        "deliver": delivery_of(best["ci_score"], gate_passed=best["gate_passed"]).value,
        "graph": rounds[best["round"] - 1].graph,
        "history": audited["history"],
    }


def _lookups(given: Mapping[str, Any]) -> tuple[QuestionLookup, ...]:
    """Return how far this round looked for its questions; nothing for one that asks none."""
    if given["lookups"] is None and given["history"] is None:
        return tuple(
            QuestionLookup(question_id=each.id, extent=Extent.NONE, obstacles=(Obstacle.RETRIEVAL,))
            for each in questions_of(given["questions"] or ())
        )
    rows = [decode(QuestionLookup, row, f"lookups[{at}]") for at, row in enumerate(given["lookups"] or ())]
    return read_by(rows, given["looked_for"], is_verified=given["graph"] is not None)


def calls_in(rows: Sequence[Any] | None) -> tuple[StepCalls, ...]:
    """Return the model calls of steps; steps that asked no model have none."""
    return tuple(decode(StepCalls, row, f"calls[{at}]") for at, row in enumerate(rows or ()) if row is not None)


def rounds_of(rows: Sequence[Any] | None) -> list[AuditedRound]:
    """Return the rounds that an audit has put out."""
    return [decode(AuditedRound, row, f"history[{at}]") for at, row in enumerate(rows or ())]


def latest_audit(audits: Sequence[Mapping[str, Any] | None]) -> Mapping[str, Any]:
    """Return the audit of the last round that ran. Raises ValueError for none: the first one always runs."""
    ran = [each for each in audits if each is not None and each.get("history")]
    if not ran:
        raise ValueError("no round was audited")
    return ran[-1]


async def _audits(rounds: Sequence[AuditedRound], run: RunInputs, tools: StepTools) -> list[dict[str, Any]]:
    graphs = [await tools.values.get(ClaimGraph, each.graph) for each in rounds]
    return audits_of(graphs, run.audit_config())


def _halt(given: Mapping[str, Any], step: StepInput, tools: StepTools, run: RunInputs) -> str:
    """Return why no further round may begin; "" where one may."""
    if step.deadline - tools.clock.now() <= run.budget.seconds * run.budget.reserve:
        return "deadline"
    return given["halt"] or ("" if given["graph"] else "failed")


def _next(following: Next) -> dict[str, Any]:
    repair = following.remediation
    return {
        "next_mode": following.mode.value,
        "next_steps": [each.value for each in following.steps],
        "next_reason": following.reason,
        "next_retrieval": list(repair.retrieval) if repair else [],
        "next_thorough": bool(repair and repair.thorough),
    }
