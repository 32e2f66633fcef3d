"""What one request is in each dialect it is sent in: made when a target is about to be asked, kept for the next try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from smart_model_router.core.tiers import TargetFacts
from smart_model_router.errors import InvalidRequest
from smart_model_router.request import Dialect, RouteRequest, peek
from smart_model_router.wires.translate import (
    SEALED,
    Terms,
    Translation,
    Untranslatable,
    holds_seals,
    spoken,
    translate,
    without_seals,
)
from smart_model_router.wires.values import decode_object

_Key = tuple[Dialect, str, bool, bool]


@dataclass(frozen=True, slots=True)
class Sent:
    """What a target is sent. `translation` is None where it speaks the caller's own dialect."""

    request: RouteRequest
    translation: Translation | None = None
    losses: tuple[str, ...] = ()


class Translations:
    """One request in the dialects of its targets. `wall` gives epoch seconds for answers that are stamped with them."""

    def __init__(self, request: RouteRequest, wall: Callable[[], float]) -> None:
        self._request = request
        self._wall = wall
        self._native: Sent | None = None
        self._made: dict[_Key, Sent | Untranslatable] = {}

    def refusal(self, facts: TargetFacts) -> Untranslatable | None:
        """Why the request would mean something else in the target's dialect; None when it can be sent."""
        if self._request.dialect in facts.dialects:
            return None
        found = self._translated(facts)
        return found if isinstance(found, Untranslatable) else None

    def sent(self, facts: TargetFacts) -> Sent:
        """What a target is sent; only for targets without a `refusal`."""
        if self._request.dialect in facts.dialects:
            if self._native is None:
                self._native = _native(self._request)
            return self._native
        found = self._translated(facts)
        if isinstance(found, Untranslatable):
            raise TypeError(f"{facts.id} cannot be asked: {found}")
        return found

    def _translated(self, facts: TargetFacts) -> Sent | Untranslatable:
        goal = spoken(self._request.dialect, facts.dialects)
        if goal is None:
            return Untranslatable("body", f"{self._request.dialect} has no translation that {facts.id} speaks")
        key = (goal, facts.target.provider, facts.reasoning, facts.newest_chat)
        if key not in self._made:
            terms = Terms(facts.target.provider, facts.reasoning, facts.newest_chat, int(self._wall()))
            self._made[key] = _in_dialect(self._request, goal, terms)
        return self._made[key]


def _native(request: RouteRequest) -> Sent:
    """The body as it came; but for signatures of ours, which only look like the provider's own."""
    if not holds_seals(request.dialect, request.payload_rest):
        return Sent(request)
    body = without_seals(request.dialect, decode_object(request.payload_rest) or {})
    return Sent(_again(request, request.dialect, body), losses=(SEALED,))


def _in_dialect(request: RouteRequest, goal: Dialect, terms: Terms) -> Sent | Untranslatable:
    # What goes over the wire, not the caller's object: plain JSON values, whatever mapping that was.
    made = translate(request.dialect, goal, decode_object(request.payload_rest) or {}, terms)
    if isinstance(made, Untranslatable):
        return made
    try:
        return Sent(_again(request, goal, made.body), made, made.losses)
    except InvalidRequest as error:
        return Untranslatable("body", str(error))


def _again(request: RouteRequest, dialect: Dialect, body: object) -> RouteRequest:
    plain = dict(body) if isinstance(body, dict) else {}
    return peek(dialect, {**plain, "model": request.model}, stream=request.stream)
