"""`POST /query_documents` as an application of its own. The gateway has the same endpoint among its own."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from smart_model_router_scoring.retrieval.answering import PATH, Synthesise, answer
from smart_model_router_scoring.retrieval.orchestrator import QueryOrchestrator

MOST_BYTES = 65_536
"""Of a body: a question has at most 1,000 characters."""


def create_app(orchestrator: QueryOrchestrator, synthesise: Synthesise) -> Starlette:
    """An ASGI application with the one endpoint. It does not authenticate: put it behind a server that does."""

    async def query_documents(request: Request) -> JSONResponse:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BYTES:
                return JSONResponse({"detail": f"the body has more than {MOST_BYTES} bytes"}, 413)
        status, told = await answer(body, orchestrator, synthesise)
        return JSONResponse(told, status)

    return Starlette(routes=[Route(PATH, query_documents, methods=["POST"])])
