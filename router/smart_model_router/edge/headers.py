"""The headers an answer carries: what it is, and what a client may want to know of its routing."""

from __future__ import annotations

import secrets
from functools import lru_cache

from smart_model_router.request import RouteReport

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_MOST_HEADER = 1000


def report_headers(report: RouteReport, *, stream: bool) -> dict[str, str]:
    """What a client may want to know of the routing. A stream's head cannot know its cost."""
    headers = {
        "x-request-id": report.request_id,
        "request-id": report.request_id,
        "x-router-attempts": str(len(report.attempts) + stream),  # a stream's own attempt is noted when it ends
    }
    if report.target is None:
        return headers
    provider, _, model = report.target.partition("/")
    headers |= {
        "x-router-provider": _header(provider),
        "x-router-model": _header(model.rpartition("#")[0] or model),
        "x-router-tier": _header(report.actual_tier or ""),
        "x-router-degraded": "true" if report.degraded else "false",
    }
    if report.cost_usd is not None:
        headers["x-router-cost-usd"] = f"{report.cost_usd:.8f}"
    if report.losses:
        headers["x-router-lossy"] = _header("; ".join(report.losses))
    return headers


def unrouted_headers() -> dict[str, str]:
    """The headers of an answer that no routing led to: an id by which people can speak of it."""
    request_id = f"req-{secrets.token_hex(8)}"
    return {"x-request-id": request_id, "request-id": request_id}


@lru_cache(maxsize=1024)
def _header(text: str) -> str:
    """Text as a header may carry it."""
    return text[:_MOST_HEADER].encode("ascii", "replace").decode().translate(_CONTROLS)


_CONTROLS = dict.fromkeys((*range(32), 127), " ")
