"""The steps that plan: the questions of a topic, the policy on sources, and what is searched for in a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smart_model_router_research.deep.claims import ClaimGraph, ClaimStatus, SubQuestion
from smart_model_router_research.deep.matching import alternatives
from smart_model_router_research.deep.metrics import covers
from smart_model_router_research.deep.questions import read_question
from smart_model_router_research.deep.records import decode, encode
from smart_model_router_research.deep.report import in_order
from smart_model_router_research.deep.topics import plan_questions
from smart_model_router_research.model_forms.questions_asked import asked_with
from smart_model_router_research.model_forms.replies import Aspect
from smart_model_router_research.model_forms.scope import aspects_of
from smart_model_router_research.model_forms.tree import searches_of
from smart_model_router_research.pipeline.recorded_search import RetrievalRecord
from smart_model_router_research.pipeline.run_inputs import run_of
from smart_model_router_research.pipeline.tools import StepTools
from smart_model_router_research.workflow import StepInput

MAX_QUERIES = 24
CONFIRM, DISCONFIRM, BACKGROUND = "confirm", "disconfirm", "background"
TURNED = "not no longer except changed corrected"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedQuery:
    """A text to search for. `purpose` is confirm, disconfirm or background."""

    question_id: str
    text: str
    purpose: str


async def intake_scope(step: StepInput, tools: StepTools) -> Mapping[str, Any]:
    """Return the questions of a topic, each checkable by itself, the first the most important, and their aspects."""
    run = run_of(step)
    questions = plan_questions(run.topic)
    aspects = await aspects_of(tools.models, questions, run.goal) if tools.models else ()
    return {
        "sub_questions": encode(tuple(questions)),
        "out_of_scope": left_out(run.topic, questions),
        "aspects": encode(aspects),
        "calls": calls_of(tools),
    }


async def source_policy(step: StepInput, tools: StepTools) -> Mapping[str, Any]:
    """Return the operator's policy on sources; without a model nothing narrows it."""
    del tools
    found: dict[str, Any] = encode(run_of(step).policy())
    return found


async def plan_searches(step: StepInput, tools: StepTools) -> Mapping[str, Any]:
    """Return what is searched for in a round: for each open question its confirmation and, later, other words.

    A critical question also has a query for what speaks against its answer.
    """
    questions = questions_of(step.inputs["questions"])
    graph = await graph_of(tools, step.inputs["graph"])
    open_questions = in_order(open_among(questions, graph))
    queries = [query for question in open_questions for query in queries_of(question, int(step.inputs["round"]))]
    queries = queries[:MAX_QUERIES]
    further: list[PlannedQuery] = []
    if tools.models:
        asked = asked_with(open_questions, aspects_in(step.inputs["aspects"]))
        known = [claim.text for claim in graph.claims if claim.status is ClaimStatus.SUPPORTED]
        found = await searches_of(tools.models, asked, [query.text for query in queries], known)
        further = [PlannedQuery(question_id=each.question, text=each.text, purpose=each.purpose) for each in found]
    return {
        "search_plan": encode(tuple(queries)),
        "further_plan": encode(tuple(further)),
        "open_questions": [question.id for question in open_questions],
        "calls": calls_of(tools),
    }


def calls_of(tools: StepTools) -> dict[str, Any] | None:
    """Return the model calls of a step, as its output; None where it may ask no model."""
    found: dict[str, Any] | None = encode(tools.models.told) if tools.models else None
    return found


def aspects_in(rows: Sequence[Any] | None) -> tuple[Aspect, ...]:
    """Return the parts of questions that a step has put out."""
    return tuple(decode(Aspect, row, f"aspects[{at}]") for at, row in enumerate(rows or ()))


def questions_of(rows: Sequence[Any]) -> tuple[SubQuestion, ...]:
    """Return the questions that a step has put out."""
    return tuple(decode(SubQuestion, row, f"questions[{at}]") for at, row in enumerate(rows))


def extra_of(search_plan: Sequence[Any] | None) -> dict[str, list[str]]:
    """Return what is searched for beside the questions themselves, by their ids."""
    found: dict[str, list[str]] = {}
    for at, row in enumerate(search_plan or ()):
        query = decode(PlannedQuery, row, f"search_plan[{at}]")
        if query.purpose != CONFIRM:
            found.setdefault(query.question_id, []).append(query.text)
    return found


async def graph_of(tools: StepTools, name: str | None) -> ClaimGraph:
    """Return the graph of that name; an empty one where no round has made one yet."""
    return ClaimGraph() if name is None else await tools.values.get(ClaimGraph, name)


async def record_of(tools: StepTools, name: str | None) -> RetrievalRecord:
    """Return the searches of that name. Raises ValueError where no round has made any."""
    if name is None:
        raise ValueError("nothing was retrieved, since retrieval_react failed")
    return await tools.values.get(RetrievalRecord, name)


def open_among(questions: Sequence[SubQuestion], graph: ClaimGraph) -> list[SubQuestion]:
    """Return the questions that no claim covers."""
    claims = {claim.id: claim for claim in graph.claims}
    covered = {
        claim.question_id
        for claim in graph.claims
        if claim.status is ClaimStatus.SUPPORTED and covers(claim, graph.documents, claims)
    }
    return [question for question in questions if question.id not in covered]


def queries_of(question: SubQuestion, number: int) -> list[PlannedQuery]:
    """Return what is searched for in round `number` for one question."""
    pattern = read_question(question.text)
    names = " ".join(pattern.entities)
    stems = [term.stem for term in pattern.terms]
    others = [word for stem in stems for word in (stem, *sorted(alternatives(stem) - {stem}))]
    texts = [(question.text, CONFIRM)]
    further = (" ".join(others), f"{names} {pattern.asked_noun}".strip(), " ".join(sorted(stems)))
    texts += [(text, BACKGROUND) for text in further[: number - 1]]
    if question.critical:
        texts.append((f"{names or question.text} {TURNED}", DISCONFIRM))
    return [PlannedQuery(question_id=question.id, text=text, purpose=purpose) for text, purpose in texts if text]


def left_out(topic: str, questions: Sequence[SubQuestion]) -> list[str]:
    """Return what of a topic is not asked: it is long, or has too many questions."""
    asked = sum(len(question.text) for question in questions)
    rest = len(" ".join(topic.split())) - asked
    many = f"{len(questions)} questions are asked; about {rest} characters of the topic are not"
    return [many] if rest > max(80, asked // 2) else []
