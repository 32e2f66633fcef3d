"""One request in each dialect it is sent in: translated before the first call that needs it, kept for the next one."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from smart_model_router.core.tiers import TargetFacts
from smart_model_router.domain.body_encoding import LARGE_BYTES
from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.request import CONTINUABLE, Dialect, Prefill, RouteRequest, peek
from smart_model_router.wires.outgoing import (
    SEALED,
    SEALING_DIALECTS,
    begun,
    holds_seals,
    is_asked,
    marked,
    with_defaults,
    without_seals,
)
from smart_model_router.wires.translate import Terms, Translation, Untranslatable, spoken, translate
from smart_model_router.wires.untooled import TOOLS_LEFT_OUT, without_tools
from smart_model_router.wires.values import decode_any, is_object

PREFILL = "prefill"
"""The place of the refusal by a target that does not continue another one's answer."""
_Key = tuple[Dialect, str, bool, bool, Prefill, str]


@dataclass(frozen=True, slots=True)
class Answers:
    """The names of answers of Responses that are made by translation: `issue` gives an id to one of a target.

    `kept` and `previous` are as in Terms.
    """

    issue: Callable[[str], str]
    kept: bool
    previous: str | None


@quick
@dataclass(frozen=True, slots=True)
class TranslatedRequest:
    """The request as sent to a target. `translation` is None where it speaks the caller's own dialect."""

    request: RouteRequest
    translation: Translation | None = None
    losses: tuple[str, ...] = ()
    asked: bool = False
    """True when the target is asked in words to continue an answer: its text has to prove that it does."""


@dataclass(slots=True)
class RequestTranslations:
    """One request in the dialects of its targets. `wall` gives epoch seconds for answers that are stamped with them.

    `has_begun`: its last message is the beginning of its answer (see `continued`): only targets that continue one can
    be asked. `answers` says how answers are named; None leaves them the providers' ids.
    """

    request: RouteRequest
    wall: Callable[[], float]
    has_begun: bool = False
    answers: Answers | None = None
    _refused_prefill: set[str] = field(default_factory=set, init=False)
    _native: dict[Prefill, TranslatedRequest] = field(default_factory=dict, init=False)
    _made: dict[_Key, TranslatedRequest | Untranslatable] = field(default_factory=dict, init=False)
    _by_target: dict[str, TranslatedRequest | Untranslatable] = field(default_factory=dict, init=False)
    """Those of `_made` by target: a target is asked for again at each step of its call."""
    _own: dict[str, TranslatedRequest] = field(default_factory=dict, init=False)
    """The requests for targets with defaults, by target."""
    _untooled: RequestTranslations | None = field(default=None, init=False)
    """The same request without its tools, for targets that answer so."""

    def refusal(self, facts: TargetFacts) -> Untranslatable | None:
        """The reason why the request would mean something else in the target's dialect; None when it can be sent."""
        if self._leaves_tools(facts):
            return self._without_tools().refusal(facts)
        if self.has_begun and facts.prefill == "none":
            return Untranslatable(PREFILL, f"{facts.id} does not go on with an answer that has begun")
        if self.request.dialect in facts.dialects:
            return None
        found = self._translated(facts)
        return found if isinstance(found, Untranslatable) else None

    def _leaves_tools(self, facts: TargetFacts) -> bool:
        return facts.leaves_tools and "tools" in self.request.needs

    def _without_tools(self) -> RequestTranslations:
        if self._untooled is None:
            body = without_tools(self.request.dialect, _plain(self.request))
            self._untooled = RequestTranslations(
                _again(self.request, self.request.dialect, body), self.wall, self.has_begun, self.answers
            )
        return self._untooled

    def prefill_refused(self, facts: TargetFacts) -> bool:
        """A target refused the request: return whether that was a prefill, which is asked for in words from now on."""
        if self._leaves_tools(facts):
            return self._without_tools().prefill_refused(facts)
        if not self.has_begun or self.sent(facts).asked:
            return False
        self._refused_prefill.add(facts.id)
        self._own.pop(facts.id, None)
        self._by_target.pop(facts.id, None)
        return True

    def _way(self, facts: TargetFacts) -> Prefill:
        if not self.has_begun:
            return "none"
        return "asked" if facts.id in self._refused_prefill else facts.prefill

    def sent(self, facts: TargetFacts) -> TranslatedRequest:
        """The request as sent to a target; only for targets without a `refusal`."""
        if self._leaves_tools(facts):
            sent = self._without_tools().sent(facts)
            return replace(sent, losses=(TOOLS_LEFT_OUT, *sent.losses))
        if facts.defaults:
            return self._with_defaults(facts)
        return self._sent(facts)

    def _with_defaults(self, facts: TargetFacts) -> TranslatedRequest:
        found = self._own.get(facts.id)
        if found is None:
            # Before translation, which gives Messages a cap of its own; after it for fields the caller's dialect lacks.
            filled = copy(self)
            filled.request = _filled(self.request, facts)
            filled._native, filled._made, filled._by_target = {}, {}, {}
            sent = filled._sent(facts)
            found = self._own[facts.id] = replace(sent, request=_filled(sent.request, facts))
        return found

    def _sent(self, facts: TargetFacts) -> TranslatedRequest:
        if self.request.dialect in facts.dialects:
            how = self._way(facts)
            sent = self._native.get(how)
            if sent is None:
                sent = self._native[how] = _marked(_native(self.request), how)
            return sent
        found = self._translated(facts)
        if isinstance(found, Untranslatable):
            raise TypeError(f"{facts.id} cannot be asked: {found}")
        return found

    def _translated(self, facts: TargetFacts) -> TranslatedRequest | Untranslatable:
        found = self._by_target.get(facts.id)
        if found is None:
            found = self._by_target[facts.id] = self._translation(facts)
        return found

    def _translation(self, facts: TargetFacts) -> TranslatedRequest | Untranslatable:
        goal = spoken(self.request.dialect, facts.dialects)
        if goal is None:
            return Untranslatable("body", f"{self.request.dialect} has no translation that {facts.id} speaks")
        how = self._way(facts)
        if self.has_begun and goal not in CONTINUABLE:
            return Untranslatable(PREFILL, f"{goal} has no way to go on with an answer that has begun")
        named, provider = self.answers, facts.target.provider
        key = (goal, provider, facts.reasoning, facts.newest_chat, how, "" if named is None else facts.id)
        if key not in self._made:
            terms = Terms(
                family=provider,
                reasoning=facts.reasoning,
                newest_chat=facts.newest_chat,
                created=int(self.wall()),
                hosted_tools=facts.hosted_tools,
            )
            if named is not None:
                made_id = named.issue(facts.id)
                terms = replace(terms, response_id=made_id, kept=named.kept, previous=named.previous)
            made = _in_dialect(self.request, goal, terms)
            self._made[key] = made if how == "none" or isinstance(made, Untranslatable) else _marked(made, how)
        return self._made[key]


def continued(request: RouteRequest, text: str) -> RouteRequest:
    """Return the request with the beginning of its answer as its last message."""
    return _again(request, request.dialect, begun(_plain(request), text))


def _filled(request: RouteRequest, facts: TargetFacts) -> RouteRequest:
    """The request with the target's defaults for what its caller left out."""
    plain = _plain(request)
    body = with_defaults(request.dialect, plain, facts.defaults, newest_chat=facts.newest_chat)
    return request if body is plain else _again(request, request.dialect, body)


def _marked(sent: TranslatedRequest, how: Prefill) -> TranslatedRequest:
    """The request with the marker asking the target to continue its last message."""
    if how == "none":
        return sent
    asked = is_asked(sent.request.body, how)
    if how == "plain" and not asked:
        return sent
    body = marked(_plain(sent.request), how)
    return replace(sent, request=_again(sent.request, sent.request.dialect, body), asked=asked)


def _native(request: RouteRequest) -> TranslatedRequest:
    """The body as it came, without signatures of ours, which only look like the provider's own."""
    if request.dialect not in SEALING_DIALECTS or not holds_seals(request.before, request.after):
        return TranslatedRequest(request)
    body = without_seals(request.dialect, _plain(request))
    return TranslatedRequest(_again(request, request.dialect, body), losses=(SEALED,))


def _in_dialect(request: RouteRequest, goal: Dialect, terms: Terms) -> TranslatedRequest | Untranslatable:
    made = translate(request.dialect, goal, _plain(request), terms)
    if isinstance(made, Untranslatable):
        return made
    try:
        return TranslatedRequest(_again(request, goal, made.body), made, made.losses)
    except InvalidRequest as error:
        return Untranslatable("body", str(error))


def _plain(request: RouteRequest) -> dict[str, Any]:
    """The body without `model`, read from the wire format: the caller's own object may be any mapping."""
    body = decode_any(request.payload(request.model))
    if not is_object(body):
        return {}
    body.pop("model", None)
    return body


def _again(request: RouteRequest, dialect: Dialect, body: object) -> RouteRequest:
    plain = dict(body) if isinstance(body, dict) else {}
    large = request.prompt_bytes > LARGE_BYTES
    return peek(dialect, {**plain, "model": request.model}, stream=request.stream, large=large)
