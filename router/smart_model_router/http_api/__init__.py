"""The edge: HTTP in a dialect on one side, the router on the other. Shared by the gateway and the drop-in clients.

asking.py reads a request, serving.py has it answered, streaming.py turns a stream into frames, problems.py says what
went wrong in the client's own words, local.py answers what needs no provider.
"""

from __future__ import annotations

from smart_model_router.http_api.asking import Ask, endpoint, family_of, read_ask
from smart_model_router.http_api.headers import EVENT_STREAM, report_headers
from smart_model_router.http_api.http import Family, HttpReply
from smart_model_router.http_api.local import answer_locally
from smart_model_router.http_api.problems import Problem, ProblemError, bug, problem_of, rendered, stopping
from smart_model_router.http_api.serving import dearest_usd, open_stream, serve
from smart_model_router.http_api.streaming import PINGS, EdgeStream, error_frame

__all__ = [
    "EVENT_STREAM",
    "PINGS",
    "Ask",
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
