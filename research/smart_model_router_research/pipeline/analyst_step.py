"""The step of an analyst: draft claims with their quotes, from documents that were retrieved and no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from smart_model_router_research.deep.analysts import SWE_KINDS, ClaimDrafter
from smart_model_router_research.deep.claims import ResearchClaim, SubQuestion
from smart_model_router_research.deep.offline import OfflineSession
from smart_model_router_research.deep.questions import read_question
from smart_model_router_research.model_forms.analyst import proposals_for
from smart_model_router_research.model_forms.proposals import ProposedClaim, ProposedClaims
from smart_model_router_research.model_forms.questions_asked import asked_with, is_broad
from smart_model_router_research.pipeline.planning_steps import (
    aspects_in,
    calls_of,
    extra_of,
    questions_of,
    record_of,
)
from smart_model_router_research.pipeline.recorded_search import RecordedSearch
from smart_model_router_research.pipeline.tools import StepTools
from smart_model_router_research.workflow import StepInput


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftClaims:
    """The claims that an analyst drafts."""

    claims: tuple[ResearchClaim, ...] = ()


async def analyse_documents(step: StepInput, tools: StepTools) -> Mapping[str, Any]:
    """Draft the claims that answer the questions of this analyst, and say which questions it looked for."""
    given = step.inputs
    asked = given["open_questions"] or ()
    questions = [each for each in questions_of(given["questions"]) if each.id in asked]
    mine = [each for each in questions if _is_of(each, given["lens"])]
    record = await record_of(tools, given["record"])
    documents = await tools.values.get_documents(record.documents)
    searches = [RecordedSearch(at, record, documents) for at in range(len(record.topics))]
    drafter = ClaimDrafter(f"r{given['round']}.{given['name']}.")
    session = OfflineSession(searches, drafter, extra_of(given["search_plan"]))
    answering: set[str] = set()
    for question in mine:
        found = await session.ask(question)
        answering |= {claim.id for claim in found}
        if not found:  # what was claimed on the way to an answer that is not there is no answer
            session.claims = [claim for claim in session.claims if claim.question_id != question.id]
    proposals: list[ProposedClaim] = []
    if tools.models:
        answered = {claim.question_id for claim in session.claims if claim.id in answering}
        left = [question for question in mine if question.id not in answered or is_broad(question)]
        asked = asked_with(left, aspects_in(given["aspects"]))
        made = ClaimDrafter(f"r{given['round']}.{given['name']}.m")
        proposals = await proposals_for(tools.models, asked, list(documents.values()), made)
    return {
        "claims": await tools.values.put(
            DraftClaims(claims=tuple(_asked(claim, answering) for claim in session.claims))
        ),
        "proposals": await tools.values.put(ProposedClaims(claims=tuple(proposals))) if proposals else None,
        "looked_for": [question.id for question in mine],
        "calls": calls_of(tools),
    }


def _asked(claim: ResearchClaim, answering: set[str]) -> ResearchClaim:
    """Return the claim as one of no question where it answers none: a premise, or what was found on the way."""
    return claim if claim.id in answering else replace(claim, question_id="")


def _is_of(question: SubQuestion, lens: str) -> bool:
    """Return whether a question is of the kinds that an analyst looks for."""
    of_quantities = read_question(question.text).wanted in SWE_KINDS
    return lens == "any" or of_quantities is (lens == "quantities")
