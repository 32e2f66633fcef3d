"""The events of a run of research: read from those that its engine keeps, the same for each reader."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from smart_model_router_research.deep.claims import ClaimGraph
from smart_model_router_research.engine import RunEvent, RunEventKind
from smart_model_router_research.pipeline.recorded_search import RetrievalRecord
from smart_model_router_research.pipeline.stored_values import StoredValues

_MOST = 100_000
"""Events that one event of a run can become."""
_METRICS = ("coverage", "source_quality", "agreement", "verification", "recency", "ci_score")
_ENDS = (RunEventKind.RUN_ENDED, RunEventKind.RUN_PAUSED)


class ResearchEventKind(StrEnum):
    """The kinds of events."""

    RUN = "run"
    PLAN = "plan"
    STEP = "step"
    QUERY = "query"
    HIT = "hit"
    FETCHED = "fetched"
    REFUSED = "refused"
    CLAIM = "claim"
    METRIC = "metric"
    GATE = "gate"
    ROUND = "round"
    BUDGET = "budget"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchEvent:
    """One event. `seq` rises with gaps; a reader that gives one gets exactly what follows it. `data` is JSON.

    `time` is seconds since 1970, `step` the full name of the step it comes from, "" for the run itself.
    """

    seq: int
    run_id: str
    kind: ResearchEventKind
    time: float
    step: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


def first_to_read(after: int) -> int:
    """Return the seq of the run's event before the one that holds what follows `after`."""
    return max(0, after // _MOST - 1)


async def events_of(event: RunEvent, values: StoredValues) -> list[ResearchEvent]:
    """Return what an event of a run says of the research."""
    said = [each async for each in _said(event, values)]
    return [
        ResearchEvent(
            seq=event.seq * _MOST + at, run_id=event.run_id, kind=kind, time=event.time, step=event.step, data=data
        )
        for at, (kind, data) in enumerate(said)
    ]


Said = tuple[ResearchEventKind, Mapping[str, Any]]


async def _said(event: RunEvent, values: StoredValues) -> AsyncIterator[Said]:
    if event.kind in (RunEventKind.RUN_STARTED, RunEventKind.RUN_RESUMED):
        yield ResearchEventKind.RUN, {"state": event.kind.value}
    elif event.kind in _ENDS:
        yield ResearchEventKind.FINISHED, dict(event.data)
    elif event.step:
        kept = {key: value for key, value in event.data.items() if key != "outputs"}
        yield ResearchEventKind.STEP, {"event": event.kind.value, **kept}
        outputs = event.data.get("outputs") if event.kind is RunEventKind.STEP_SETTLED else None
        if outputs:
            async for said in _of_outputs(event.step, outputs, values):
                yield said


async def _of_outputs(step: str, outputs: Mapping[str, Any], values: StoredValues) -> AsyncIterator[Said]:
    if step == "intake_scope":
        yield ResearchEventKind.PLAN, {"questions": outputs["sub_questions"], "out_of_scope": outputs["out_of_scope"]}
    elif step.startswith("retrieval_react"):
        async for said in _of_retrieval(outputs, values):
            yield said
    elif step.startswith("cove_verify"):
        graph, changed = await values.get(ClaimGraph, outputs["graph"]), set(outputs["changed"])
        for claim in (each for each in graph.claims if each.id in changed):
            yield (
                ResearchEventKind.CLAIM,
                {"id": claim.id, "question_id": claim.question_id, "text": claim.text, "status": claim.status.value},
            )
    elif step.startswith("coverage_confidence_audit"):
        yield ResearchEventKind.METRIC, {name: outputs[name] for name in _METRICS}
        yield ResearchEventKind.GATE, {"passed": outputs["gate_passed"], "reasons": outputs["gate_reasons"]}
        yield (
            ResearchEventKind.ROUND,
            {"round": outputs["round"], "next": outputs["next_mode"], "reason": outputs["next_reason"]},
        )


async def _of_retrieval(outputs: Mapping[str, Any], values: StoredValues) -> AsyncIterator[Said]:
    record = await values.get(RetrievalRecord, outputs["record"])
    for search in record.searches[len(record.searches) - outputs["new_searches"] :]:
        yield ResearchEventKind.QUERY, {"text": search.text, "source": search.source, "hits": list(search.documents)}
    for hit in outputs["web"]["hits"]:
        yield ResearchEventKind.HIT, hit
    documents = [document.stored for document in (await values.get_documents(record.documents)).values()]
    for stored in documents[len(documents) - outputs["new_documents"] :]:
        told = {"id": stored.id, "title": stored.title, "tier": stored.tier.value, "backend": stored.backend}
        notes = outputs["web"]["notes"].get(stored.id, [])
        yield ResearchEventKind.FETCHED, {**told, **({"notes": notes} if notes else {})}
    for key, reason in outputs["refused"].items():
        yield ResearchEventKind.REFUSED, {"id": key, "reason": reason}
    for gap in outputs["gaps"]:
        yield ResearchEventKind.BUDGET, {"gap": gap}
