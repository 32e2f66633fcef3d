"""The steps at the end: the report from the claims of the best round, and the folder of artefacts."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from smart_model_router_research.deep.artefact_records import MANIFEST
from smart_model_router_research.deep.artefacts import beside, write_artefacts
from smart_model_router_research.deep.canonical_json import ArtefactError, canonical
from smart_model_router_research.deep.citation_completeness import mended
from smart_model_router_research.deep.claims import ClaimGraph
from smart_model_router_research.deep.lookups import furthest, open_question
from smart_model_router_research.deep.records import encode
from smart_model_router_research.deep.report import ReportPart, ResearchReport, report_of
from smart_model_router_research.deep.research_run import ResearchFacts, ResearchRound, ResearchRun
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_research.engine import RunInterrupted
from smart_model_router_research.model_forms.model_calls import notes_on, prompt_hash
from smart_model_router_research.model_forms.writer import summarised
from smart_model_router_research.pipeline.audit_steps import calls_in, rounds_of
from smart_model_router_research.pipeline.planning_steps import calls_of, open_among, questions_of
from smart_model_router_research.pipeline.run_inputs import run_of
from smart_model_router_research.pipeline.tools import StepTools
from smart_model_router_research.workflow import StepInput


async def synthesise(step: StepInput, tools: StepTools) -> Mapping[str, Any]:
    """Return the report: the claims of the best round, word by word, and the questions that it does not answer."""
    graph = await tools.values.get(ClaimGraph, step.inputs["graph"])
    report = mended(report_of(graph), graph)
    if tools.models:
        report = await summarised(tools.models, report, graph, str(step.inputs["certainty"]))
    lookups = furthest(each.lookups for each in rounds_of(step.inputs["history"]))
    missing = [
        open_question(each, graph, lookups) for each in open_among(questions_of(step.inputs["questions"] or ()), graph)
    ]
    answers = [
        each.text for section in report.sections if section.part is ReportPart.ANSWER for each in section.sentences
    ]
    return {
        "report": await tools.values.put(report),
        "executive_summary": answers,
        "unanswered": encode(tuple(missing)),
        "limitations": [each.sentence for each in missing],
        "next_search_actions": [each.next_action for each in missing],
        "calls": calls_of(tools),
    }


async def package(step: StepInput, tools: StepTools) -> Mapping[str, Any]:
    """Write the artefacts of the run, and return their folder and how the report is delivered."""
    given, run = step.inputs, run_of(step)
    rounds = rounds_of(given["history"])
    graphs = [await tools.values.get(ClaimGraph, each.graph) for each in rounds]
    report = await tools.values.get(ResearchReport, given["report"]) if given["report"] else ResearchReport()
    calls = (*calls_in(given["calls"]), *(call for each in rounds for call in each.calls))
    delivered = graphs[given["best_round"] - 1].documents
    documents: dict[str, StoredDocument] = {}
    for each in rounds:
        for key, document in (await tools.values.get_documents(each.documents)).items():
            origin = delivered[key].origin if key in delivered else document.stored.origin
            documents[key] = replace(document.stored, origin=origin)
    facts = ResearchFacts(
        run_id=step.run_id,
        topic=run.topic,
        goal=run.goal,
        finished_at=tools.moment(),
        workflow=tools.facts["workflow"],
        workflow_hash=tools.facts["workflow_hash"],
        engine=tools.facts["engine"],
        config_hash=hashlib.sha256(canonical(run.as_inputs())).hexdigest(),
        prompts={name: prompt_hash(name) for each in calls for name in each.prompts},
        models=tuple(dict.fromkeys(target for each in calls for target in each.targets)),
        model_notes=tuple(notes_on(calls)),
        usage={
            "searches": float(given["searches"] or 0),
            "documents": float(given["documents"] or 0),
            **({"model_calls": float(made)} if (made := sum(each.calls for each in calls)) else {}),
        },
        stop_reason=given["stop_reason"],
        accepted_by="the setting `deliver: always`" if run.deliver == "always" else "",
    )
    found = ResearchRun(
        facts=facts,
        config=run.audit_config(),
        rounds=tuple(
            ResearchRound(
                graph=graph,
                mode=each.mode,
                steps=each.steps,
                new_documents=each.new_documents,
                changed_claims=each.changed_claims,
                lookups=each.lookups,
            )
            for each, graph in zip(rounds, graphs, strict=True)
        ),
        documents=documents,
        report=report,
    )
    await _to_its_end(asyncio.to_thread(_written, found, tools.folder))
    return {"folder": str(tools.folder), "delivery": found.delivery.value}


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait for work in a thread, also when cancelled: nothing of it goes on then."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    finally:
        await asyncio.wait((task,))


def _written(run: ResearchRun, folder: Path) -> None:
    """Write the folder. What this run had written before it was interrupted is replaced: a folder, or half of one.

    Raises RunInterrupted where the disk is the reason, as that may pass, else ArtefactError.
    """
    try:
        _clear(folder)
        if (folder / MANIFEST).is_file():
            folder.rename(folder.with_name(f"{beside(folder)}before"))
            _clear(folder)
        write_artefacts(run, folder)
    except OSError as error:
        raise RunInterrupted(str(folder), f"it cannot be replaced: {error.strerror or error}") from error
    except ArtefactError as error:
        if isinstance(error.__cause__, OSError):
            raise RunInterrupted(error.place, error.problem) from error
        raise


def _clear(folder: Path) -> None:
    """Remove what an interrupted run has left beside its folder."""
    for each in folder.parent.iterdir() if folder.parent.is_dir() else ():
        if each.name.startswith(beside(folder)):
            shutil.rmtree(each)
