"""The request and the response of `POST /query_documents`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from smart_model_router_scoring.fusion.config import TOP_N, TOP_N_MAX
from smart_model_router_scoring.retrieval.results import Explained, QueryResults

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
    """The answer, and (chunk id, score) of what it is made from, best first; `degraded` is what was missing."""

    model_config = ConfigDict(frozen=True)

    answer: str
    results: list[tuple[str, float]]
    degraded: dict[str, str] = {}
    explanations: list[dict[str, Any]] | None = None


def response_of(answer: str, found: QueryResults, *, explain: bool) -> QueryResponse:
    """The response for these results."""
    told = [as_dict(one) for one in found.explained] if explain else None
    return QueryResponse(answer=answer, results=list(found), degraded=dict(found.degraded), explanations=told)


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
    }
