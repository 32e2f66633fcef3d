"""A question over HTTP, for any server: read, query, have an answer written, reply. Status and JSON, no server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from smart_model_router_scoring.fusion.pipeline import TOP_N, TOP_N_MAX
from smart_model_router_scoring.retrieval.index import IndexNotReady
from smart_model_router_scoring.retrieval.orchestrator import QueryOrchestrator
from smart_model_router_scoring.retrieval.results import NOTHING_FOUND, Explained, Passage, QueryResults

LONGEST_QUERY = 1000
"""Characters."""


def _not_blank(text: str) -> str:
    # Not by a pattern: Python's white space has control characters that pydantic's does not have.
    if not text.strip():
        raise ValueError("the question is blank")
    return text


class QueryRequest(BaseModel):
    """A question. `explain` adds `explanations` to the answer."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    query: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_QUERY), AfterValidator(_not_blank)]
    top_n: Annotated[int, Field(ge=1, le=TOP_N_MAX)] = TOP_N
    explain: bool = False


class QueryResponse(BaseModel):
    """The answer, and (chunk id, score) of what it is made from, best first; `degraded` is what was missing.

    `answers` is the confidence that the index answers the question, where the scale has one. Where it is too low there
    are no results, and `nearest` are those that would be.
    """

    model_config = ConfigDict(frozen=True)

    answer: str
    results: list[tuple[str, float]]
    degraded: dict[str, str] = {}
    answers: float | None = None
    nearest: list[tuple[str, float]] = []
    explanations: list[dict[str, Any]] | None = None


def response_of(answer: str, found: QueryResults, *, explain: bool) -> QueryResponse:
    """The response for these results."""
    told = [as_dict(one) for one in found.explained] if explain else None
    return QueryResponse(
        answer=answer,
        results=list(found),
        degraded=dict(found.degraded),
        answers=found.answers,
        nearest=[(one.chunk_id, one.score) for one in found.nearest],
        explanations=told,
    )


def as_dict(one: Explained) -> dict[str, Any]:
    """An explanation as JSON data: what is known of a result, and its computation line by line."""
    passage = one.passage
    return {
        "chunk_id": passage.chunk_id,
        "score": passage.score,
        "interpretation": one.interpretation,
        "path": passage.path,
        "heading": passage.heading,
        "ranks": dict(one.ranks),
        "relevance": dict(one.relevance),
        "age_days": one.age_days,
        "computation": list(one.term.lines()),
        "order": list(one.order.lines()),
    }


PATH = "/query_documents"
Synthesise = Callable[[str, Sequence[Passage]], Awaitable[str]]
"""A question and passages, best first, become an answer. It may raise; the server reports that."""


async def answer(body: bytes, orchestrator: QueryOrchestrator, synthesise: Synthesise) -> tuple[int, dict[str, Any]]:
    """Status and JSON body for a request's body. Without a result no answer is asked for.

    200; 422 for what is no question; 503 without an index, or when every strategy failed. Raises what `synthesise`
    raises.
    """
    try:
        request = QueryRequest.model_validate_json(body)
    except ValidationError as error:
        return 422, {"detail": [_fault(one) for one in error.errors(include_url=False, include_input=False)]}
    try:
        found = await orchestrator.query(request.query, top_n=request.top_n, explain=request.explain)
    except (IndexNotReady, RuntimeError) as error:
        return 503, {"detail": str(error)}
    written = await synthesise(request.query, found.passages) if found else NOTHING_FOUND
    return 200, response_of(written, found, explain=request.explain).model_dump(mode="json", exclude_none=True)


def _fault(error: Any) -> dict[str, Any]:
    return {"loc": ["body", *error["loc"]], "msg": error["msg"], "type": error["type"]}
