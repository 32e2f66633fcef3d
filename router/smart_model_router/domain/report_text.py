"""A request in plain words: what happened, why, and the way out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.remedies import CHANGE, CREDENTIAL, FORBIDDEN, NOT_FOUND, SHORTEN, is_page, remedy

if TYPE_CHECKING:
    from smart_model_router.domain.outcome import Failure, Refusal
    from smart_model_router.domain.report import Attempt, ReportedRefusal, RouteReport

_F = FailureClass
_WORDS_SHOWN = 3
"""Providers whose own words are quoted in one line, at most."""
_ENDINGS = MappingProxyType({1: "st", 2: "nd", 3: "rd"})
_CLOCK_SECONDS = 20.0
"""A wait as long as this is told with the time of its end."""


@dataclass(frozen=True, slots=True)
class ProviderAdvice:
    """The places where a provider's settings stand. `keys`: where each credential's key comes from, by its number.

    A key is `$VARIABLE`, or the path of its entry in the configuration. `address` is the path of its base URL there.
    `missing` is where a key is to be set, for a provider that needs one and has none. `proxy` is the variable that
    names the proxy by way of which it is asked.
    """

    keys: tuple[str, ...] = ()
    address: str = ""
    missing: str = ""
    proxy: str = ""

    def key(self, target: str) -> str:
        """The place of the key that a target is called with; `openai/gpt#2` is called with the second."""
        number = CREDENTIAL.search(target)
        index = int(number[0][1:]) - 1 if number else 0
        return self.keys[index] if 0 <= index < len(self.keys) else "its key"


_CAUSES: Mapping[FailureClass, str] = MappingProxyType(
    {
        _F.RATE_LIMITED: "is rate limited",
        _F.OVERLOADED: "is overloaded",
        _F.WARMING: "is still loading its model",
        _F.SERVER_ERROR: "failed",
        _F.TRANSPORT: "cannot be reached",
        _F.TIMEOUT: "timed out",
        _F.TRUNCATED: "broke off its answer",
        _F.MALFORMED: "sent an answer that cannot be read",
        _F.EMPTY: "sent an empty answer",
        _F.AUTH: "refused the key",
        _F.QUOTA: "says that the quota is used up",
        _F.MODEL_GONE: "has no such model for this key",
        _F.MISCONFIGURED: "cannot serve it as it is configured",
        _F.CONTEXT_LENGTH: "says that the prompt is too long",
        _F.TOO_LARGE: "says that the request is too large",
        _F.CONTENT_FILTERED: "blocked it by its content filter",
        _F.INVALID_REQUEST: "says that the request is not valid",
        _F.REJECTED_BY_FALLBACK: "did not take the request as it was translated",
        _F.CANCELLED: "was given up",
    }
)
_LEAST_ERROR = 400
_STATUS = re.compile(r"HTTP \d{3}: ")
_SLOW = frozenset({_F.CANCELLED, _F.TIMEOUT})
_WAYS_OUT = MappingProxyType({_F.CONTEXT_LENGTH: SHORTEN, _F.TOO_LARGE: SHORTEN, _F.CONTENT_FILTERED: CHANGE})
"""The ways out of requests that are at fault themselves."""

_REFUSALS: Mapping[str, str] = MappingProxyType(
    {
        "open": "is left alone after its failures",
        "half_open": "is being probed by another request",
        "isolated": "was isolated by the operator",
        "offline": "is not asked while this machine is offline",
        "cooldown": "rests after a failure",
        "probation": "is on probation after a failure",
        "wait": "asked to wait",
        "wall": "has its quota used up",
        "off": "is switched off after a permanent failure",
        "throttle": "turned too many calls away to be asked now",
        "requests": "has its requests per minute used up",
        "tokens": "has its tokens per minute used up",
        "too_large": "takes fewer tokens a minute than this request has",
        "bulkhead": "has all its slots in use",
        "slow_start": "takes few calls after its recovery",
        "paced": "takes few calls until it answers well again",
        "gone": "is not configured any more",
        "shed": "is kept for more important requests",
    }
)
_FILTERED: Mapping[str, str] = MappingProxyType(
    {
        "context": "has too small a context window",
        "max_cost": "costs more than the request may",
        "unpriced": "has no price, and the request a budget",
        "pinned": "is not the one that made what the request refers to",
        "wire": "does not speak this API",
    }
)


def headline(report: RouteReport) -> str:
    """The one line of a request: what served it and why not the first choice, or what went wrong and what to do."""
    causes = "; ".join(dict.fromkeys(cause for each in (*report.earlier, report) for cause in causes_of(each)))
    tries = len(report.earlier) + 1
    if report.target is None:
        asked = f"{causes} (asked by the SDK {tries} times)" if report.earlier else causes
        return asked or "no target was asked"
    retried = f", at the SDK's {_ordinal(tries)} try" if report.earlier else ""
    because = f": {causes}" if causes else ""
    waited = f", {report.waited_seconds:.1f} s of it waiting" if report.waited_seconds else ""
    cut = "" if report.complete else ", incomplete"
    return f"served by {report.target} ({_rank(report)}{cut}) in {report.seconds:.1f} s{waited}{retried}{because}"


def lines(report: RouteReport) -> Iterator[str]:
    """Yield the headline, then every attempt, refusal, wait and loss with its figures."""
    yield f"{report.request_id}: {headline(report)}"
    for number, earlier in enumerate(report.earlier, 1):
        yield f"  the SDK's {_ordinal(number)} try, {earlier.request_id}: {'; '.join(causes_of(earlier))}"
    for attempt in report.attempts:
        yield f"  asked    {_attempt_in_full(attempt)}"
    for refusal in report.refusals:
        later = "" if refusal.retry_after is None else f", free again in {refusal.retry_after:.2f} s"
        yield f"  not yet  {refusal.target} {_refused(refusal.reason)} ({refusal.reason}){later}"
    for target, reason in report.ruled_out.items():
        yield f"  instead of {target}: {reason}"
    if report.waited_seconds:
        yield f"  waited {report.waited_seconds:.2f} s for a target to come due"
    for loss in report.losses:
        yield f"  lost in translation: {loss}"
    if report.usage is not None:
        cost = "unknown" if report.cost_usd is None else f"{report.cost_usd:.6f} USD"
        usage = report.usage
        cached = f" ({usage.cached_prompt_tokens} of them cached)" if usage.cached_prompt_tokens else ""
        yield f"  tokens {usage.prompt_tokens} in{cached}, {usage.completion_tokens} out; cost {cost}"


def failure_text(report: RouteReport, *, seconds: float | None = None, retry_after: float | None = None) -> str:
    """The message of a request that nothing served: causes with their remedies, then the providers' own words.

    `seconds` is the deadline that passed; `retry_after` when it makes sense to ask again.
    """
    causes = causes_of(report)
    if seconds is not None:
        head = f"no answer within {seconds:.3g} s: "
    else:
        head = "" if len(causes) == 1 else "no target could answer: "
    told = "; ".join(causes) if causes else "no target was asked"
    if seconds is not None and report.attempts and all(a.failure_class in _SLOW for a in report.attempts):
        told += ": allow more time, or add a target that answers sooner"
    return f"{head}{told}{again_text(retry_after)}{_own_words(report.attempts)}"


def again_text(seconds: float | None) -> str:
    """The end of a message: when it makes sense to ask again; "" where that is not known."""
    return "" if seconds is None else f". Worth another try in {_length(seconds)}"


def rejection_text(target: str, failure: Failure) -> str:
    """The message of a request that is at fault itself: what the target said of it, and in which words."""
    kind = failure.failure_class
    facts = _facts(failure.status, failure.code)
    way = _WAYS_OUT.get(kind, "")
    return f"{target} {_CAUSES[kind]}{facts}: {_without_status(failure.message)}{f' ({way})' if way else ''}"


def attempt_text(attempt: Attempt, advice: ProviderAdvice) -> str:
    """The clause of one call that failed, with its remedy and the provider's own words."""
    words = _own(attempt)
    said = f'. It said: "{words}"' if words else ""
    return f"{attempt.target.partition('/')[0]} {_deed(attempt)}{_then(remedy(attempt, advice))}{said}"


def unable_text(model: str, left_out: Iterable[tuple[str, Refusal]]) -> str:
    """The message of a request that every target of `model` is unfit for, and why each is."""
    told = "; ".join(f"{target} {_refused(refusal.reason)}" for target, refusal in left_out)
    return f"no target of {model!r} can serve this request: {told}"


def breaker_text(owner: str, to_state: str, reason: str, seconds: float | None, free_at: float | None) -> str:
    """The line of a breaker that moved. It is OPEN for `seconds`, until `free_at`."""
    if to_state == "closed":
        return f"{owner} is back: its breaker closed ({reason.replace('_', ' ')})"
    if to_state == "isolated":
        return f"{owner} was isolated by the operator"
    return f"{owner} is left alone{_until(free_at, seconds)}: its breaker opened ({reason.replace('_', ' ')})"


def rest_text(target: str, kind: FailureClass, seconds: float, free_at: float) -> str:
    """The line of a target that is not called for a while: the failure before was of this kind."""
    return f"{target} is not called{_until(free_at, seconds)}: it {_CAUSES[kind]}"


def causes_of(report: RouteReport) -> list[str]:
    """Return a clause for each target that did not serve, in the order in which they were first asked or refused."""
    told: dict[str, str] = {}
    for target, attempts in groupby(sorted(_failed(report), key=lambda a: a.target), key=lambda a: a.target):
        told[target] = _cause(report, list(attempts))
    ordered = {a.target: told[a.target] for a in _failed(report)}
    for refusal in report.refusals:
        if refusal.target not in ordered and refusal.target != report.target:
            ordered[refusal.target] = _refusal(report, refusal)
    return list(dict.fromkeys(ordered.values()))


def clock_time(epoch_seconds: float) -> str:
    """Return the time of day here, as 12:03:20."""
    return datetime.fromtimestamp(epoch_seconds).astimezone().strftime("%H:%M:%S")


def _failed(report: RouteReport) -> list[Attempt]:
    return [a for a in report.attempts if a.failure_class is not None and not (a.hedge and a.target == report.target)]


def _cause(report: RouteReport, attempts: list[Attempt]) -> str:
    """A target's failures in one clause: its last one that is no giving up, the others counted."""
    telling = [a for a in attempts if a.failure_class is not _F.CANCELLED] or attempts
    last = telling[-1]
    alike = sum(a.failure_class is last.failure_class for a in telling)
    times = f" ({alike} times)" if alike > 1 else ""
    advice = report.advice.get(last.target.partition("/")[0], ProviderAdvice())
    return f"{_name(report, last)} {_deed(last)}{times}{_then(remedy(last, advice))}"


def _deed(attempt: Attempt) -> str:
    """The deed of a target in one attempt, with the facts of it."""
    kind = attempt.failure_class or _F.SERVER_ERROR
    shown = _facts(attempt.status, attempt.code)
    what = _CAUSES[kind]
    if kind is _F.AUTH and attempt.status == FORBIDDEN:
        what = "does not allow this with its key"
    elif kind is _F.MISCONFIGURED and attempt.status == NOT_FOUND:
        what = "does not know this path"
    elif kind is _F.TRANSPORT and attempt.reason:
        return f"{what}: {attempt.reason}"
    elif kind is _F.MALFORMED and is_page(attempt.message):
        return f"sent a web page in the place of an answer{shown}"
    elif kind is _F.MALFORMED and attempt.message:
        return f"{what}: {attempt.message}"
    elif kind is _F.TIMEOUT:
        return f"{what} after {_length(attempt.seconds)}"
    elif kind is _F.CANCELLED:
        return f"had not answered after {_length(attempt.seconds)}"
    return f"{what}{shown}{_until(attempt.free_at, attempt.retry_after)}"


def _facts(status: int | None, code: str) -> str:
    """Return status and code as the answer had them, in parentheses; "" where there was neither."""
    facts = " ".join(filter(None, ("" if status is None or status < _LEAST_ERROR else str(status), code)))
    return f" ({facts})" if facts else ""


def _without_status(message: str) -> str:
    """Return a provider's own words: the message of a failure without the status before it."""
    return message.removeprefix(match[0]) if (match := _STATUS.match(message)) else message


def _until(free_at: float | None, seconds: float | None) -> str:
    if seconds is None:
        return ""
    if free_at is None or seconds < _CLOCK_SECONDS:
        return f" for {_length(seconds)}"
    return f" until {clock_time(free_at)} ({_length(seconds)})"


def _length(seconds: float) -> str:
    """Return a duration as people say it: 3 s, 1.5 s, 75 s, 20 min, 3 h."""
    if seconds >= 7200.0:
        return f"{seconds / 3600.0:.3g} h"
    return f"{seconds / 60.0:.3g} min" if seconds >= 300.0 else f"{seconds:.3g} s"


def _then(remedy: str) -> str:
    return f": {remedy}" if remedy else ""


def _name(report: RouteReport, told: Attempt | ReportedRefusal) -> str:
    """The provider alone where only one of its targets took part, else the target."""
    provider = told.target.partition("/")[0]
    asked, refused = (a.target for a in report.attempts), (r.target for r in report.refusals)
    taking_part = {target for target in (*asked, *refused) if target.startswith(f"{provider}/")}
    return provider if taking_part == {told.target} else told.target


def _refusal(report: RouteReport, refusal: ReportedRefusal) -> str:
    return f"{_name(report, refusal)} {_refused(refusal.reason)}{_until(refusal.free_at, refusal.retry_after)}"


def _refused(reason: str) -> str:
    family, _, need = reason.partition(":")
    if family == "filtered":
        return _FILTERED.get(need, f"cannot do what the request needs ({need})")
    return _REFUSALS.get(reason, f"was not asked ({reason})")


def _own_words(attempts: list[Attempt]) -> str:
    """The words of the providers themselves, each thing once."""
    words: dict[str, str] = {}
    for attempt in attempts:
        if said := _own(attempt):
            words.setdefault(said, attempt.target)
    shown = list(words.items())[:_WORDS_SHOWN]
    return "".join(f'. {target} said: "{said}"' for said, target in shown)


def _own(attempt: Attempt) -> str:
    """The provider's words in an attempt that failed; "" for our own, and for a page of HTML."""
    said = _without_status(attempt.message)
    return "" if said == attempt.message or said.startswith("<") else said


def _rank(report: RouteReport) -> str:
    if report.last_resort:
        return f"the last resort, {report.requested_tier} was asked for"
    rank = f"{_ordinal(report.choice)} choice"
    if report.actual_tier != report.requested_tier:
        rank += f", tier {report.actual_tier} in place of {report.requested_tier}"
    return rank


def _ordinal(number: int) -> str:
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else _ENDINGS.get(number % 10, 'th')}"


def _attempt_in_full(attempt: Attempt) -> str:
    what = "answered" if attempt.failure_class is None else attempt.failure_class.value
    status = "" if attempt.status is None else f" (HTTP {attempt.status})"
    first = "" if attempt.ttft_seconds is None else f", first words after {attempt.ttft_seconds:.2f} s"
    why = f": {attempt.message}" if attempt.message else ""
    probe = (", as a probe" if attempt.probe else "") + (", as a hedge" if attempt.hedge else "")
    return f"{attempt.target}: {what}{status} after {attempt.seconds:.2f} s{first}{probe}{why}"
