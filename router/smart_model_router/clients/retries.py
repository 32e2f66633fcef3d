"""Joins the reports of one question that an SDK asked several times: its retries are requests of their own."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from smart_model_router.clients.in_process import Sent
from smart_model_router.domain.report import RouteReport

_COUNT = "x-stainless-retry-count"
"""The header in which both SDKs count a question's retries: "0" with the first try."""
_DIGITS = 4
"""Of a count that can be one: Python refuses to read very long numbers."""


@dataclass(frozen=True, slots=True)
class _FailedTry:
    """A try that failed, as the next one of the same question is told by it."""

    count: int
    path: str
    body: int
    report: RouteReport


_LAST: ContextVar[_FailedTry | None] = ContextVar("smart_model_router_last_failed_try", default=None)
"""The last try that failed in this thread or task: an SDK makes all tries of a question in one of them."""


def join_earlier_tries(sent: Sent, report: RouteReport, *, failed: bool) -> None:
    """Add the reports of the tries before to that of an SDK's retry, and keep it for the next one if it failed too."""
    written = sent.headers.get(_COUNT, "")
    count = int(written) if written.isdecimal() and len(written) <= _DIGITS else 0
    before = _LAST.get()
    if before is None and not failed:
        return
    this = _FailedTry(count, sent.path, hash(sent.body), report)
    if count and before is not None and (before.count + 1, before.path, before.body) == (count, this.path, this.body):
        report.earlier = [*before.report.earlier, before.report]
    _LAST.set(this if failed else None)
