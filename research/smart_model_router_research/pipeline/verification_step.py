"""The step that verifies: every claim again from its sources, further evidence for it, and what contradicts it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from smart_model_router_research.deep.analysts import ClaimDrafter
from smart_model_router_research.deep.checking import SupportStatus
from smart_model_router_research.deep.claims import (
    ClaimGraph,
    ClaimKind,
    QuotedEvidence,
    ResearchClaim,
)
from smart_model_router_research.deep.comparing import matter_of, value_of
from smart_model_router_research.deep.contradictions import find_contradictions
from smart_model_router_research.deep.examining import ClaimExaminer, examine_claims
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.origins import with_origins
from smart_model_router_research.deep.records import decode
from smart_model_router_research.deep.session import SearchSession
from smart_model_router_research.deep.values import NUMBER_WORDS
from smart_model_router_research.model_forms.model_calls import StepCalls
from smart_model_router_research.model_forms.proposals import ProposedClaims
from smart_model_router_research.model_forms.questions_asked import is_broad
from smart_model_router_research.model_forms.verifier import CODE, confirmed
from smart_model_router_research.pipeline.analyst_step import DraftClaims
from smart_model_router_research.pipeline.planning_steps import calls_of, graph_of, questions_of, record_of
from smart_model_router_research.pipeline.retrieval_step import wanted_documents
from smart_model_router_research.pipeline.run_inputs import run_of
from smart_model_router_research.pipeline.tools import StepTools
from smart_model_router_research.workflow import StepInput

MOST_TRIED = 6
"""Documents in which a second source of a claim is looked for; a thorough verification looks in all."""
MAX_QUOTES = 3
"""Statements of one document that are tried."""
MAX_QUOTE = 300
_NUMBERS = re.compile(rf"\d[\d.,]*|\b(?:{'|'.join(NUMBER_WORDS)})\b")


async def verify_claims(step: StepInput, tools: StepTools) -> Mapping[str, Any]:
    """Examine the claims of earlier rounds and the new drafts, and return the graph that they make."""
    given = step.inputs
    questions = questions_of(given["questions"])
    before = await graph_of(tools, given["graph"])
    record = await record_of(tools, given["record"])
    documents = await tools.values.get_documents(record.documents)
    drafts = [await tools.values.get(DraftClaims, name) for name in given["drafts"] if name is not None]
    drafted = [claim for each in drafts for claim in each.claims]
    drafted += await _chosen(step, tools, documents, [*before.claims, *drafted])
    claims = _together(_standing(before, drafted), drafted, int(given["round"]))
    examiner = ClaimExaminer(each.stored for each in documents.values())
    claims = _merged(claims, examiner)
    if not drafts:  # no analyst reads what this round has found
        better = _better(documents, step)
        claims = [_with_sources(claim, better, examiner) for claim in claims]
    most = len(documents) if given["thorough"] else MOST_TRIED
    claims = [_with_second_source(claim, documents, examiner, most) for claim in claims]
    cited = dict.fromkeys(evidence.doc_id for claim in claims for evidence in claim.evidence)
    sources = with_origins([documents[each].stored for each in cited if each in documents])
    graph = examine_claims(claims, sources, questions, known=before.contradictions)
    found = {pair for each in before.contradictions for pair in [frozenset((each.one, each.other))]}
    contradictions = tuple(
        each if frozenset((each.one, each.other)) in found else replace(each, round=int(given["round"]))
        for each in graph.contradictions
    )
    graph = replace(graph, contradictions=contradictions)
    known = {claim.id: claim for claim in before.claims}
    changed = [claim.id for claim in graph.claims if known.get(claim.id) != claim]
    return {
        "graph": await tools.values.put(graph),
        "documents": await tools.values.put_documents(sources),
        "changed": changed,
        "changed_claims": sum(claim.is_counted for claim in graph.claims if claim.id in changed),
        "calls": calls_of(tools),
    }


async def _chosen(
    step: StepInput, tools: StepTools, documents: Mapping[str, ReadDocument], others: Sequence[ResearchClaim]
) -> list[ResearchClaim]:
    """Return the claims that models chose and that were confirmed, with those that say something else by code.

    A question that has a claim that counts gets none, unless several sentences together may answer it. One about which
    claims contradict each other gets none at all: a choice between them would hide that.
    """
    names = [name for name in step.inputs["proposals"] or () if name is not None]
    proposals = [each for name in names for each in (await tools.values.get(ProposedClaims, name)).claims]
    if not proposals or tools.models is None:
        return []
    questions = {each.id: each for each in questions_of(step.inputs["questions"])}
    others = [claim for claim in others if claim.is_counted]
    disputed = {each for pair in find_contradictions(others) for each in (pair.one, pair.other)}
    taken = {claim.question_id for claim in others}
    closed = {claim.question_id for claim in others if claim.id in disputed}
    closed |= {key for key, question in questions.items() if key in taken and not is_broad(question)}
    said = {(claim.question_id, evidence.quote) for claim in others for evidence in claim.evidence}
    proposals = [
        each
        for each in proposals
        if each.claim.question_id not in closed and (each.claim.question_id, each.claim.evidence[0].quote) not in said
    ]
    made_by = _targets_of(step)
    held = await confirmed(tools.models, proposals, documents, made_by)
    session = SearchSession((), ClaimDrafter(f"r{step.inputs['round']}-chosen."))
    chosen: list[ResearchClaim] = []
    for question in questions.values():
        mine = [claim for claim in held if claim.question_id == question.id]
        if not is_broad(question):
            mine = _compared(session.disputed(question, [_undisputed(each, documents) for each in mine], documents))
        chosen += mine
    return chosen


def _undisputed(claim: ResearchClaim, documents: Mapping[str, ReadDocument]) -> ResearchClaim:
    """Return a claim that a model chose; uncounted where a statement says the same with other numbers.

    Code cannot tell which of "Loans last three weeks" and "Loans last two weeks" is meant.
    """
    said, form = fold(claim.evidence[0].quote).casefold(), _without_numbers(claim.evidence[0].quote)
    for document in documents.values():
        for statement in document.statements:
            text = fold(statement.text).casefold()
            if text != said and len(text) < MAX_QUOTE and _without_numbers(statement.text) == form:
                return replace(claim, agreed_by="")
    return claim


def _without_numbers(text: str) -> str:
    return _NUMBERS.sub("#", fold(text).casefold()).strip(" .")


def _standing(before: ClaimGraph, drafted: Sequence[ResearchClaim]) -> list[ResearchClaim]:
    """Return the claims of earlier rounds, without a model's choice for what code has found by now."""
    answered = {claim.question_id for claim in drafted if claim.is_counted}
    disputed = {each for pair in before.contradictions for each in (pair.one, pair.other)}
    return [
        claim
        for claim in before.claims
        if claim.is_counted or claim.question_id not in answered or claim.id in disputed
    ]


def _compared(claims: Sequence[ResearchClaim]) -> list[ResearchClaim]:
    """Return claims that answer one question; where their values differ and cannot be compared, none of them counts."""
    values = {fold(claim.value).casefold() for claim in claims}
    matters = {matter_of(claim) for claim in claims}
    if len(values) < 2 or (len(matters) == 1 and None not in matters):
        return list(claims)
    return [replace(claim, agreed_by="", chosen_by=claim.chosen_by or CODE) for claim in claims]


def _targets_of(step: StepInput) -> tuple[str, ...]:
    """Return the targets that served the analysts."""
    calls = [decode(StepCalls, row, "made_by") for row in step.inputs["made_by"] or () if row is not None]
    return tuple(dict.fromkeys(target for each in calls for target in each.targets))


def _together(before: Iterable[ResearchClaim], drafts: Iterable[ResearchClaim], number: int) -> list[ResearchClaim]:
    """Return the claims of earlier rounds and those drafts that say something new; premises are kept."""
    claims = list(before)
    drafts = list(drafts)
    needed = {premise for claim in drafts for premise in claim.premises}
    said = {_saying(claim) for claim in claims}
    for claim in drafts:
        if _saying(claim) not in said or claim.id in needed:
            said.add(_saying(claim))
            claims.append(replace(claim, round=number))
    return claims


def _saying(claim: ResearchClaim) -> tuple[object, ...]:
    sources = frozenset(evidence.doc_id for evidence in claim.evidence)
    said = (claim.question_id, claim.text.casefold(), claim.value, claim.entity.casefold(), claim.operation)
    return (*said, sources, claim.is_counted)


def _merged(claims: Sequence[ResearchClaim], examiner: ClaimExaminer) -> list[ResearchClaim]:
    """Return the claims without those whose evidence bears out an earlier one of the same matter: it has that too."""
    needed = {premise for claim in claims for premise in claim.premises}
    by_matter: dict[object, list[int]] = {}
    kept: list[ResearchClaim] = []
    for claim in claims:
        matter = (claim.question_id, matter_of(claim))
        places = by_matter.setdefault(matter, []) if matter[1] is not None else []
        merged = next((at for at in places if _merge_at(kept, at, claim, needed, examiner)), None)
        if merged is None:
            places.append(len(kept))
            kept.append(claim)
    return kept


def _merge_at(
    kept: list[ResearchClaim], at: int, claim: ResearchClaim, needed: set[str], examiner: ClaimExaminer
) -> bool:
    """Make one claim of that at this place and another, where they agree; what an inference rests on keeps its id."""
    one = kept[at]
    if not _is_same(one, claim) or {one.id, claim.id} <= needed:
        return False
    stays, goes = (claim, one) if claim.id in needed else (one, claim)
    mine = {evidence.doc_id for evidence in stays.evidence}
    more = [evidence for evidence in goes.evidence if evidence.doc_id not in mine]
    if any(examiner.support(stays.text, evidence).status is not SupportStatus.SUPPORTED for evidence in more):
        return False
    kept[at] = replace(stays, evidence=(*stays.evidence, *more))
    return True


def _is_same(one: ResearchClaim, other: ResearchClaim) -> bool:
    """Return whether two claims of one matter have one value, of one day and one tier: about the same is not enough."""
    if (one.as_of, one.tier, one.is_counted) != (other.as_of, other.tier, other.is_counted):
        return False
    mine, its = value_of(one), value_of(other)
    if mine.total is None or its.total is None:
        return mine.total is its.total and mine.name == its.name
    return (mine.total.value, mine.total.step, mine.total.unit) == (its.total.value, its.total.step, its.total.unit)


def _better(documents: Mapping[str, ReadDocument], step: StepInput) -> dict[str, ReadDocument]:
    """Return the documents that a remediation was for: of the kinds that it wants, and those that it has found."""
    wanted = wanted_documents(run_of(step))
    kinds = [wanted[each] for each in step.inputs["purposes"] or () if each in wanted]
    known = len(documents) - (step.inputs["new_documents"] or 0)
    return {
        key: document
        for at, (key, document) in enumerate(documents.items())
        if at >= known or any(admits(document) for admits in kinds)
    }


def _with_second_source(
    claim: ResearchClaim, documents: Mapping[str, ReadDocument], examiner: ClaimExaminer, most: int
) -> ResearchClaim:
    """Return the claim with the evidence of one further document, where one of `most` supports it word by word."""
    if len({evidence.doc_id for evidence in claim.evidence}) > 1:
        return claim
    found = (_evidence_in(claim, each, examiner) for each in islice(_mentioning(claim, documents), most))
    return next((replace(claim, evidence=(*claim.evidence, each)) for each in found if each is not None), claim)


def _with_sources(
    claim: ResearchClaim, documents: Mapping[str, ReadDocument], examiner: ClaimExaminer
) -> ResearchClaim:
    """Return the claim with the evidence of each of these documents that supports it word by word."""
    found = [_evidence_in(claim, each, examiner) for each in _mentioning(claim, documents)]
    return replace(claim, evidence=(*claim.evidence, *(each for each in found if each is not None)))


def _mentioning(claim: ResearchClaim, documents: Mapping[str, ReadDocument]) -> Iterator[ReadDocument]:
    """Yield the documents beside its own that have the value of a claim, and its name."""
    told, name = fold(claim.value).casefold(), fold(claim.entity).casefold()
    mine = {evidence.doc_id for evidence in claim.evidence}
    if not told or claim.kind is ClaimKind.INFERENCE:
        return
    for key, document in documents.items():
        text = document.stored.text.casefold()
        if key not in mine and told in text and name in text:
            yield document


def _evidence_in(claim: ResearchClaim, document: ReadDocument, examiner: ClaimExaminer) -> QuotedEvidence | None:
    """Return the statement of a document that supports a claim word by word."""
    told = fold(claim.value).casefold()
    for statement in [each.text for each in document.statements if told in each.text.casefold()][:MAX_QUOTES]:
        evidence = QuotedEvidence(doc_id=document.stored.id, quote=statement[:MAX_QUOTE], span=(0, 0), method="edited")
        if examiner.support(claim.text, evidence).status is SupportStatus.SUPPORTED:
            return evidence
    return None
