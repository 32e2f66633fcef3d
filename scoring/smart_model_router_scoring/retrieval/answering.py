"""A question over HTTP, for any server: read, query, have an answer written, reply. Status and JSON, no server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import ValidationError

from smart_model_router_scoring.retrieval.errors import IndexNotReady
from smart_model_router_scoring.retrieval.models import QueryRequest, response_of
from smart_model_router_scoring.retrieval.orchestrator import QueryOrchestrator
from smart_model_router_scoring.retrieval.results import NOTHING_FOUND, Passage

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
