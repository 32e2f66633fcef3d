"""The step that retrieves: searches for each open question, and what a remediation asks for, within the limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from smart_model_router_research.deep.claims import ClaimGraph, ClaimStatus, SourceTier, SubQuestion
from smart_model_router_research.deep.corpus_search import HITS
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.lookups import QuestionLookup
from smart_model_router_research.deep.metrics import is_recent_source
from smart_model_router_research.deep.offline import OfflineSession
from smart_model_router_research.deep.records import decode, encode
from smart_model_router_research.deep.tiers import SourcePolicy
from smart_model_router_research.model_forms.questions_asked import asked_with, is_broad
from smart_model_router_research.model_forms.reader import look_further
from smart_model_router_research.pipeline.planning_steps import (
    TURNED,
    PlannedQuery,
    aspects_in,
    calls_of,
    extra_of,
    graph_of,
    questions_of,
)
from smart_model_router_research.pipeline.recorded_search import (
    Admits,
    RecordingSearch,
    RetrievalRecord,
    SearchLedger,
)
from smart_model_router_research.pipeline.run_inputs import ResearchBudget, RunInputs, run_of
from smart_model_router_research.pipeline.search_time import SearchTime
from smart_model_router_research.pipeline.tools import StepTools
from smart_model_router_research.web.diary import WebSource
from smart_model_router_research.web.query_words import QueryWords
from smart_model_router_research.web.web_search import WebSearch
from smart_model_router_research.workflow import StepInput

RECENT = "recent"
MAX_REPAIRS = 24
"""Claims that a remediation searches for."""
REPAIR_HITS = 64
"""Passages that are looked at for documents of one kind: what every search gives first is known already."""


def _any(_: ReadDocument) -> bool:
    return True


def _any_text(_: str) -> bool:
    return True


async def retrieve(step: StepInput, tools: StepTools) -> Mapping[str, Any]:
    """Search, and return the record of all searches of the run so far and what the limits kept away."""
    given = step.inputs
    run = run_of(step)
    before = None if given["record"] is None else await tools.values.get(RetrievalRecord, given["record"])
    ledger = await _ledger(step, tools, run.budget, before)
    known, asked = len(ledger.documents), len(ledger.searches)
    questions = questions_of(given["questions"])
    graph = await graph_of(tools, given["graph"])
    plan, wanted = _Plan(given, questions, graph), wanted_documents(run)
    words = QueryWords.of((run.topic, run.goal, *(each.text for each in questions)), TURNED.split())
    metrics = run.audit_config().metrics
    since = (metrics.as_of - timedelta(days=metrics.window)).date().isoformat()
    for text, only in plan.repairs():
        for search in _recording(tools, ledger, words, only, wanted[only], since if only == RECENT else ""):
            await search.search(text, REPAIR_HITS)
    searches = _recording(tools, ledger, words)
    session = OfflineSession(searches, extra=extra_of(given["search_plan"]))
    lookups: list[QuestionLookup] = []
    unanswered: list[SubQuestion] = []
    for question in plan.open_questions:
        ledger.begin()
        answered = await session.ask(question)
        lookups.append(ledger.lookup(question.id))
        unanswered += [question] * (not answered or is_broad(question))
    gaps, by_code = _gaps(ledger, run.budget), (len(ledger.searches), len(ledger.documents))
    further_gaps = await _further(step, tools, ledger, words, unanswered, before)
    topics = [await search.topics() for search in searches]
    for document in ledger.documents.values():
        tools.values.know(document)
    documents = [each.stored for each in ledger.documents.values()]
    record = RetrievalRecord(
        documents=await tools.values.put_documents(documents),
        searches=tuple(ledger.searches.values()),
        topics=tuple(tuple(sorted(each)) for each in topics),
        further_searches=_before(before)[0] + len(ledger.searches) - by_code[0],
        further_documents=_before(before)[1] + len(documents) - by_code[1],
    )
    return {
        "record": await tools.values.put(record),
        "documents": record.documents,
        "source_count": len(documents),
        "new_documents": len(ledger.documents) - known,
        "new_by_code": by_code[1] - known,
        "searches": len(ledger.searches),
        "new_searches": len(ledger.searches) - asked,
        "lookups": encode(tuple(lookups)),
        "gaps": gaps,
        "further_gaps": [each for each in further_gaps if each not in gaps],
        "refused": {**ledger.web.refused, **ledger.blocked},
        "web": {"hits": encode(tuple(ledger.web.hits)), "notes": encode(ledger.web.notes), "unread": _unread(ledger)},
        "halt": ledger.halt,
        "calls": calls_of(tools),
    }


def _before(record: RetrievalRecord | None) -> tuple[int, int]:
    """Return the searches and documents that a model has added so far."""
    return (0, 0) if record is None else (record.further_searches, record.further_documents)


async def _further(
    step: StepInput,
    tools: StepTools,
    ledger: SearchLedger,
    words: QueryWords,
    unanswered: Sequence[SubQuestion],
    before: RetrievalRecord | None,
) -> list[str]:
    """Let a model search for what the searches without it do not answer; returns what the limits kept away.

    It has the share of the limits that code leaves, for the whole run, and at most half of what is left: nothing that
    it searches for, and nothing that fails then, takes a search away from a later round, or ends the rounds.
    """
    if tools.models is None or not unanswered:
        return []
    budget, made = run_of(step).budget, _before(before)
    apart = ledger.apart(
        _room(budget.searches, budget.reserve, len(ledger.searches), made[0]),
        _room(budget.fetches, budget.reserve, len(ledger.documents), made[1]),
    )
    searches = _recording(tools, apart, words)

    async def search(text: str, most: int = apart.most_searches) -> list[ReadDocument] | None:
        room = apart.most_documents - len(apart.documents)
        if len(apart.searches) + len(searches) > most or room < len(searches) or apart.time.is_over:
            return None
        each = max(1, min(HITS, room) // len(searches))
        return [document for source in searches for document in await source.search(text, each)]

    planned = (len(apart.searches) + apart.most_searches + 1) // 2
    asked = asked_with(unanswered, aspects_in(step.inputs["aspects"]))
    ids = {each.question.id for each in asked}
    for at, row in enumerate(step.inputs["further_plan"] or ()):
        query = decode(PlannedQuery, row, f"further_plan[{at}]")
        if query.question_id in ids and await search(query.text, planned) is None:
            break
    await look_further(tools.models, asked, list(ledger.documents.values()), search)
    return _gaps(apart, budget)


def _room(cap: int, reserve: float, used: int, further: int) -> int:
    """Return how many more a model may add: of the share that code leaves, and at most half of what is left."""
    return max(0, min(cap - math.floor(cap * (1.0 - reserve)) - further, (cap - used + 1) // 2))


def _recording(
    tools: StepTools, ledger: SearchLedger, words: QueryWords, only: str = "", admits: Admits = _any, since: str = ""
) -> list[RecordingSearch]:
    """Return the sources, recorded. Beside a private one a public one is sent nothing but words of the questions.

    With `since`, a day, the web is searched for what was published since then.
    """
    sources = [each.since(since) if since and isinstance(each, WebSearch) else each for each in tools.searches]
    is_public = [isinstance(search, WebSource) and search.is_public for search in tools.searches]
    has_private = not all(is_public)
    return [
        RecordingSearch(at, search, ledger, only, admits, words.permit if has_private and is_public[at] else _any_text)
        for at, search in enumerate(sources)
    ]


async def _ledger(
    step: StepInput, tools: StepTools, budget: ResearchBudget, before: RetrievalRecord | None
) -> SearchLedger:
    usable = 1.0 - budget.reserve
    time = SearchTime.before(step.deadline, tools.clock, budget.seconds * budget.reserve)
    policy = decode(SourcePolicy, step.inputs["policy"], "policy")
    searches, documents = _before(before)  # what a model has added takes nothing from what code may have
    ledger = SearchLedger(
        math.floor(budget.searches * usable) + searches, math.floor(budget.fetches * usable) + documents, time, policy
    )
    if before is not None:
        ledger.topics = {at: frozenset(each) for at, each in enumerate(before.topics) if each}
        ledger.documents = await tools.values.get_documents(before.documents)
        ledger.searches = {(each.source, each.text, each.most, each.only): each for each in before.searches}
    return ledger


@dataclass(frozen=True)
class _Plan:
    """The questions and searches of one round."""

    given: Mapping[str, Any]
    questions: tuple[SubQuestion, ...]
    graph: ClaimGraph

    @property
    def open_questions(self) -> list[SubQuestion]:
        """The questions that are asked in this round, in the order of the plan."""
        asked = self.given["open_questions"] or ()
        return sorted((each for each in self.questions if each.id in asked), key=lambda each: asked.index(each.id))

    def repairs(self) -> list[tuple[str, str]]:
        """The searches of a remediation, each with the kind of documents that it takes."""
        wanted: Sequence[str] = self.given["purposes"] or ()
        claims = self.graph.claims
        disputed = {each for pair in self.graph.unresolved for each in (pair.one, pair.other)}
        texts: list[tuple[str, str]] = []
        if "tier_a" in wanted:
            texts += [(claim.text, "tier_a") for claim in claims if claim.tier is not SourceTier.A]
        if "conflicts" in wanted:
            texts += [
                (f"{claim.attribute} {claim.entity} {claim.other}", "") for claim in claims if claim.id in disputed
            ]
        if RECENT in wanted:
            texts += [(question.text, RECENT) for question in self.questions]
        if "unsupported" in wanted:
            texts += [(claim.text, "") for claim in claims if claim.status is not ClaimStatus.SUPPORTED]
        return texts[:MAX_REPAIRS]


def wanted_documents(run: RunInputs) -> Mapping[str, Admits]:
    """Return the documents that a remediation looks for, by its purpose: those of tier A, recent ones, or any."""
    metrics = run.audit_config().metrics
    return {
        "": _any,
        "tier_a": lambda document: document.stored.tier is SourceTier.A,
        RECENT: lambda document: is_recent_source(document.stored.cited(), metrics),
    }


def _gaps(ledger: SearchLedger, budget: ResearchBudget) -> list[str]:
    over = f"the time for them was over, budget.seconds is {budget.seconds:g}"
    counted = [
        (ledger.refused_searches, "search", f"not made: budget.searches is {budget.searches}"),
        (len(ledger.refused_documents), "document", f"not read: budget.fetches is {budget.fetches}"),
        (ledger.late, "search", f"not made: {over}"),
        (ledger.cut, "search", f"broken off: {over}"),
        (ledger.unsent, "search", "kept from the web: words of your documents would have been sent"),
        *((count, "search", f"failed: {error}") for error, count in sorted(ledger.failed.items())),
        *((count, "search", f"without a back-end: {error}") for error, count in sorted(ledger.web.failures.items())),
    ]
    return [f"{count} {_PLURALS[what] if count > 1 else what} {said}" for count, what, said in counted if count]


def _unread(ledger: SearchLedger) -> list[str]:
    """Return how many pages of the web were not read, by the kind of reason."""
    return [
        f"{count} {'page' if count == 1 else 'pages'} of the web not read: {kind.replace('_', ' ')}"
        for kind, count in sorted(ledger.web.kinds.items())
    ]


_PLURALS = {"search": "searches", "document": "documents"}
