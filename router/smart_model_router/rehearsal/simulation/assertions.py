"""Promises about a whole run: requests served, targets that carry their share again, targets left alone (I8, I14)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from smart_model_router.domain.errors import Overloaded
from smart_model_router.domain.events import (
    AttemptFinished,
    BreakerChanged,
    RequestFinished,
    SheddingChanged,
    TargetRefused,
)
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.simulation.scenario import Expectation, History

SLOW_START = 10.0
"""Seconds a target needs to take full load after its return (docs/design/routing.md section 3)."""


def served(at_least: float, start: float = 0.0, end: float = float("inf"), *, remotely: bool = False) -> Expectation:
    """Of the requests from `start` to `end` at least this share is served (`remotely`: by no last resort)."""

    def look(history: History) -> Iterator[str]:
        share = history.served_share(start, end, last_resort=not remotely)
        if share < at_least:
            yield f"{share:.1%} of the requests from {start:.0f} to {end:.0f} s were served, not {at_least:.1%}"

    return look


def quick_heads(at_least: float, within: float, start: float = 0.0) -> Expectation:
    """Of the streams asked for from `start` on at least this share begins within so many seconds."""

    def look(history: History) -> Iterator[str]:
        streams = [asked for asked in history.between(start, float("inf")) if asked.stream]
        quick = sum(a.first_content is not None and a.first_content - a.began <= within for a in streams)
        if quick < at_least * len(streams):
            yield f"{quick / len(streams):.1%} of the streams began within {within:.1f} s, not {at_least:.1%}"

    return look


def carries(
    target: str, recovered: float, *, at_least: float = 0.9, length: float = 60.0, within: float = 0.0
) -> Expectation:
    """I14: one probe interval after its recovery (and slow start) the target carries its share again.

    `within` so many seconds where no breaker and no rest, but its figures alone kept it from being asked.
    """

    def look(history: History) -> Iterator[str]:
        start = max(due(history, target, recovered), recovered + within) + SLOW_START
        share = history.share_of(target, start, start + length)
        if share < at_least:
            yield f"{target} is back since {recovered:.0f} s, served {share:.1%} from {start:.0f} s, not {at_least:.1%}"

    return look


def at_least_share(target: str, share: float, start: float, end: float) -> Expectation:
    """From `start` to `end` a target serves at least this share of the requests."""

    def look(history: History) -> Iterator[str]:
        if (served := history.share_of(target, start, end)) < share:
            yield f"{target} served {served:.1%} from {start:.0f} to {end:.0f} s, not {share:.1%}"

    return look


def trips_besides(provider: str, *, at_most: int) -> Expectation:
    """A provider's failure opens the breakers of at most so many others."""

    def look(history: History) -> Iterator[str]:
        opened = [e for e in history.of(BreakerChanged) if e.to_state == "open"]
        others = {event.owner.partition("/")[0] for event in opened} - {provider}
        if len(others) > at_most:
            yield f"besides {provider} these opened: {', '.join(sorted(others))}"

    return look


def nobody_opens(history: History) -> Iterator[str]:
    """No breaker opens."""
    for event in history.of(BreakerChanged):
        if event.to_state == "open":
            yield f"{event.owner} opened ({event.reason})"


def nobody_sheds(history: History) -> Iterator[str]:
    """Load shedding never begins."""
    if history.of(SheddingChanged):
        yield "requests were shed"


def calls(provider: str, *, at_most: int, start: float = 0.0, end: float = float("inf")) -> Expectation:
    """At most so many calls reach a provider from `start` to `end`."""

    def look(history: History) -> Iterator[str]:
        reached = history.calls(provider, start, end)
        if reached > at_most:
            yield f"{reached} calls reached {provider} from {start:.0f} to {end:.0f} s, not {at_most}"

    return look


def first_calls(target: str, recovered: float, *, within: float, at_most: int) -> Expectation:
    """`within` so many seconds of the first call that is answered again at most so many reach its provider."""

    def look(history: History) -> Iterator[str]:
        provider, start = target.partition("/")[0], history.began + recovered
        ended = history.of(AttemptFinished, start=recovered)
        good = [e.at for e in ended if e.target == target and e.failure_class is None and e.admitted_at >= start]
        if not good:
            yield f"{target} never answered after {recovered:.0f} s"
            return
        back = min(good) - history.began
        if (reached := history.calls(provider, back, back + within)) > at_most:
            yield f"{reached} calls reached {provider} in the {within:.1f} s after {back:.1f} s, not {at_most}"

    return look


def second_choice(start: float, end: float, *, of: frozenset[str], instead: str) -> Expectation:
    """From `start` to `end`, after a failure at one of the providers `of` comes `instead`, not another of them.

    A probe that is due goes first, wherever it goes.
    """

    def look(history: History) -> Iterator[str]:
        last: dict[str, AttemptFinished] = {}
        for attempt in history.of(AttemptFinished, start=start, end=end):
            before = last.get(attempt.request_id)
            last[attempt.request_id] = attempt
            if before is None or before.failure_class is None or before.provider not in of:
                continue
            if not attempt.probe and attempt.provider not in (instead, before.provider):
                yield f"{attempt.request_id}: after {before.target} came {attempt.target}, of the same failure domain"

    return look


def sheds(start: float, end: float, *, at_least: float) -> Expectation:
    """Of the sheddable requests of a span at least this share is turned away as Overloaded, and no critical one is."""

    def look(history: History) -> Iterator[str]:
        asked = history.between(start, end)
        sheddable = [one for one in asked if one.criticality == "sheddable"]
        shed = sum(isinstance(one.error, Overloaded) for one in sheddable)
        if shed < at_least * len(sheddable):
            yield f"{shed} of {len(sheddable)} sheddable requests were shed, not {at_least:.0%}"
        if any(isinstance(one.error, Overloaded) for one in asked if one.criticality != "sheddable"):
            yield "a critical request was shed"

    return look


def opens_only(start: float, end: float) -> Expectation:
    """Breakers open between `start` and `end` alone (but for a probe that fails)."""

    def look(history: History) -> Iterator[str]:
        for event in history.of(BreakerChanged):
            if event.to_state != "open" or event.reason == "probe_failed":
                continue
            if not start <= event.at - history.began <= end:
                yield f"{event.owner} opened ({event.reason}) at {event.at - history.began:.1f} s"

    return look


def left_while(*reasons: str) -> Expectation:
    """Of the callers that left some met each of these refusals: the run went through the states it is about."""

    def look(history: History) -> Iterator[str]:
        left = {
            event.request_id
            for event in history.events
            if isinstance(event, RequestFinished) and event.outcome == "cancelled"
        }
        met = {
            event.reason for event in history.events if isinstance(event, TargetRefused) and event.request_id in left
        }
        if missing := set(reasons) - met:
            yield f"no caller left after a refusal for {', '.join(sorted(missing))}"

    return look


def at_once(provider: str, *, at_most: int) -> Expectation:
    """A provider never has more calls in flight than this."""

    def look(history: History) -> Iterator[str]:
        together = history.providers[provider].max_in_flight
        if together > at_most:
            yield f"{together} calls were in flight at {provider}, not {at_most}"

    return look


def sent_per_accepted(provider: str, *, at_most: float, slack: int = 10) -> Expectation:
    """I8: for each call a provider accepts at most so many are sent."""

    def look(history: History) -> Iterator[str]:
        ended = [e for e in history.of(AttemptFinished) if e.provider == provider]
        accepted = sum(e.failure_class is None or bool(e.failure_class.policy.accepted) for e in ended)
        if len(ended) > at_most * accepted + slack:
            yield f"{len(ended)} calls were sent to {provider} for {accepted} it accepted"

    return look


def sent_per_served(at_most: float, *, slack: int = 10) -> Expectation:
    """D2: for each request that is served at most so many calls are sent, to whomever."""

    def look(history: History) -> Iterator[str]:
        sent = sum(len(provider.arrivals) for provider in history.providers.values())
        served = sum(one.served_by is not None for one in history.asked)
        if sent > at_most * served + slack:
            yield f"{sent} calls were sent for {served} requests that were served"

    return look


def due(history: History, target: str, recovered: float) -> float:
    """The end of all restrictions of a target that were known at its recovery, in seconds from the beginning.

    The checkers compute it; the router's own report is not used. A probe that was sent before the recovery does not
    show it: its outcome is taken in as well.
    """
    at = recovered
    for attempt in history.of(AttemptFinished, start=recovered):
        before = attempt.admitted_at - history.began < recovered
        if before and attempt.target == target and attempt.failure_class:
            at = max(at, attempt.at - history.began)
    owners = {target, target.partition("/")[0]}
    bound = (until for owner, began, until in history.bound if owner in owners and began <= at + 1e-6)
    return max([at, *bound])


def nothing_was(failure_class: FailureClass) -> Expectation:
    """No call ends with this class."""

    def look(history: History) -> Iterator[str]:
        count = sum(event.failure_class is failure_class for event in history.of(AttemptFinished))
        if count:
            yield f"{count} calls ended with {failure_class}"

    return look


def all_closed(targets: Iterable[str]) -> Expectation:
    """I14: at the end no breaker of these targets, nor that of their providers, is anything but closed."""

    def look(history: History) -> Iterator[str]:
        owners = {owner for target in targets for owner in (target, target.partition("/")[0])}
        last = {(event.owner, event.kind): event for event in history.of(BreakerChanged)}
        for (owner, kind), event in last.items():
            if owner.partition("#")[0] in owners and event.to_state != "closed":
                yield f"{owner} ({kind}) is {event.to_state} since {event.at - history.began:.0f} s"

    return look
