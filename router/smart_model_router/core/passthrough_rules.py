"""Paths whose requests pass through to a provider as they came, and the meaning of an answer for their state.

Pure. The body is unknown here: the client names the model, by the provider's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from smart_model_router.domain.outcome import Failure, FailureClass

T = TypeVar("T")
KNOWN = (
    "/v1/moderations", "/v1/rerank", "/v1/audio/speech", "/v1/audio/transcriptions", "/v1/audio/translations",
    "/v1/images/generations", "/v1/images/edits", "/v1/images/variations",
)  # fmt: skip
"""Paths that providers document. Each has a state of its own, also where a route with a `*` names it."""

_SEGMENT = r"[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,99}"
_PATH = rf"/v1/(?:moderations|rerank|(?:audio|images)/(?:{_SEGMENT}/){{0,3}}{_SEGMENT})"
_PATTERN = rf"/v1/(?:audio|images)/(?:{_SEGMENT}/){{0,3}}\*"
_IS_PATH = re.compile(_PATH)
_IS_ROUTE = re.compile(rf"{_PATH}|{_PATTERN}")
_CALLERS = frozenset(
    {
        FailureClass.INVALID_REQUEST,
        FailureClass.CONTEXT_LENGTH,
        FailureClass.TOO_LARGE,
        FailureClass.CONTENT_FILTERED,
        FailureClass.MODEL_GONE,
        FailureClass.MISCONFIGURED,
    }
)
"""Verdicts of a provider on the request, or on its path, that its caller has to read. Others are about our account, or
about the provider's state."""
_NOT_FOUND = 404
_LACKING = frozenset({_NOT_FOUND, 405})
_OF_ACCOUNT = frozenset({FailureClass.AUTH, FailureClass.QUOTA, FailureClass.MODEL_GONE, FailureClass.MISCONFIGURED})
"""Verdicts that another account may not get."""


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """A provider on a path: the unit of health there. `id` is the name of its gate and of its statistics.

    `deployment` is the model that the configuration names beside the provider, "" where it names none; `beside` is the
    target of that name, with which it shares what the provider says of its rate.
    """

    id: str
    provider: str
    credential: int
    deployment: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """The targets that may serve a path, in order. `name` is the configured route; `known`: its paths are no guess."""

    name: str
    known: bool
    targets: tuple[RouteTarget, ...]


def is_path(path: str) -> bool:
    """True when a request for this path may pass through: no server reads its segments differently."""
    return _IS_PATH.fullmatch(path) is not None


def is_route(route: str) -> bool:
    """True when a configuration may name this path, or this pattern of paths (`/v1/audio/*`)."""
    return _IS_ROUTE.fullmatch(route) is not None


def paths_of(route: str) -> tuple[str, ...]:
    """The paths that have a state of their own: of a pattern the known ones that fit, and itself for all others."""
    if not route.endswith("*"):
        return (route,)
    return (*(path for path in KNOWN if path.startswith(route.removesuffix("*"))), route)


def by_path(routes: Mapping[str, T]) -> dict[str, tuple[str, T]]:
    """The route of each path that has a state of its own: its name, and what is configured for it."""
    found: dict[str, tuple[str, T]] = {}
    for name in sorted(routes, key=lambda route: route.endswith("*")):  # two patterns have no path in common
        for path in paths_of(name):
            found.setdefault(path, (name, routes[name]))
    return found


def route_of(path: str, routes: Mapping[str, Route]) -> Route | None:
    """The route of a path, None where it has none. `routes` are by the paths of `paths_of`."""
    if (found := routes.get(path)) is not None:
        return found
    folder = path
    while folder := folder.rpartition("/")[0]:
        if (found := routes.get(f"{folder}/*")) is not None:
            return found
    return None


def judged(
    failure: Failure, route: Route, target: RouteTarget, *, clients_account: bool = False, answered: bool = False
) -> Failure:
    """The failure as the route counts it, where the body is not read: the client answers for its own choices.

    Three failures become INVALID_REQUEST: a 404 for a model that the body names; a 404 for a path that only the client
    names, or that has `answered` before (the body may name a missing voice); a 401 for an account that the client names
    (`clients_account`). A connection that was made and then cut becomes TRUNCATED, which says nothing of the provider's
    other paths: servers reset the connection when an upload is too long for them.
    """
    found = failure.failure_class
    if found is FailureClass.TRANSPORT and not failure.unsent:
        return replace(failure, failure_class=FailureClass.TRUNCATED)
    clients_model = found is FailureClass.MODEL_GONE and not target.deployment
    clients_path = failure.status in _LACKING and not route.known
    clients_thing = failure.status == _NOT_FOUND and answered
    if clients_model or clients_path or clients_thing or (clients_account and found in _OF_ACCOUNT):
        return replace(failure, failure_class=FailureClass.INVALID_REQUEST)
    return failure


def is_passed_on(failure: Failure) -> bool:
    """True when the client gets the provider's own answer, status and body: it is about the request or its path."""
    told = failure.status is not None and 400 <= failure.status < 500
    return told and failure.failure_class in _CALLERS
