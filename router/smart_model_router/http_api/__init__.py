"""HTTP in a dialect on one side, the router on the other. Shared by the gateway and the drop-in clients.

api_request.py reads a request, handler.py has it answered or answers what needs no provider, event_stream.py turns a
stream into frames, api_errors.py says what went wrong in the client's own words.
"""

from __future__ import annotations

from smart_model_router.http_api.api_errors import Problem, ProblemError, bug, problem_of, rendered, stopping
from smart_model_router.http_api.api_request import ApiRequest, endpoint, family_of, read_ask
from smart_model_router.http_api.event_stream import PINGS, EdgeStream, error_frame
from smart_model_router.http_api.handler import answer_locally, dearest_usd, open_stream, serve
from smart_model_router.http_api.http_reply import EVENT_STREAM, Family, HttpReply, report_headers

__all__ = [
    "EVENT_STREAM",
    "PINGS",
    "ApiRequest",
    "EdgeStream",
    "Family",
    "HttpReply",
    "Problem",
    "ProblemError",
    "answer_locally",
    "bug",
    "dearest_usd",
    "endpoint",
    "error_frame",
    "family_of",
    "open_stream",
    "problem_of",
    "read_ask",
    "rendered",
    "report_headers",
    "serve",
    "stopping",
]
