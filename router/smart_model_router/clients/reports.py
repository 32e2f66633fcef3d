"""Finds the report of a request behind a client's return value or exception."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator

from smart_model_router.domain.report import RouteReport

EXTENSION = "smart_model_router_report"
"""The key of a response's report in `response.extensions`."""
KEPT = 1_000
"""The number of reports that are kept for parsed objects, which carry no more than their request's id."""

_IDS = ("_request_id", "request_id")
_WAYS = ("http_response", "response", "_response", "_raw_stream", "_ResponseStreamManager__response")


def report_of(thing: object) -> RouteReport:
    """The report of a parsed object, a raw response, a stream, or an error that a drop-in client returned or raised.

    A parsed object is known by its request id, for the newest 1,000 requests of the process; a stream's report is
    live. Raises LookupError when there is none.
    """
    pending: list[object] = [thing]
    seen: set[int] = set()
    while pending:
        found = pending.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        report = _own(found)
        if report is not None:
            return report
        pending += _behind(found)
    raise LookupError(f"no router's report is behind this {type(thing).__name__}")


def remember(report: RouteReport) -> str:
    """Keep a report; the id by which it is found again, its request's own if no other report has that."""
    return _BOOK.remember(report)


def _own(thing: object) -> RouteReport | None:
    for candidate in (thing, getattr(thing, "report", None)):
        if isinstance(candidate, RouteReport):
            return candidate
    extensions = getattr(thing, "extensions", None)
    found = extensions.get(EXTENSION) if isinstance(extensions, dict) else None
    if isinstance(found, RouteReport):
        return found
    ids = (getattr(thing, name, None) for name in _IDS)
    return next((report for known in ids if isinstance(known, str) and (report := _BOOK.find(known))), None)


def _behind(thing: object) -> Iterator[object]:
    if isinstance(thing, BaseException):
        yield from (thing.__context__, thing.__cause__)
    yield from (getattr(thing, name, None) for name in reversed(_WAYS))


class _Book:
    """The newest reports by request id. Thread-safe: sync clients ask from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: OrderedDict[str, RouteReport] = OrderedDict()

    def remember(self, report: RouteReport) -> str:
        with self._lock:
            name, copies = report.request_id, 1
            while self._reports.get(name, report) is not report:  # two routers with one seed count alike
                copies += 1
                name = f"{report.request_id}~{copies}"
            self._reports[name] = report
            if len(self._reports) > KEPT:
                self._reports.popitem(last=False)
            return name

    def find(self, name: str) -> RouteReport | None:
        with self._lock:
            return self._reports.get(name)


_BOOK = _Book()
