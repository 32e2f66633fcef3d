"""Promises about a whole run: who was served, who carries its share again, who was left alone (I8, I14)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from smart_model_router.events import AttemptFinished, BreakerChanged, RestStarted, SheddingChanged
from smart_model_router.outcome import FailureClass
from smart_model_router.simulation.history import History
from smart_model_router.simulation.setting import Expectation

SLOW_START = 10.0
"""Seconds a target needs to take full load after its return (routing.md section 3)."""


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


def carries(target: str, recovered: float, *, at_least: float = 0.9, length: float = 60.0) -> Expectation:
    """I14: one probe interval after its recovery (and slow start) the target carries its share again."""

    def look(history: History) -> Iterator[str]:
        start = due(history, target, recovered) + SLOW_START
        share = history.share_of(target, start, start + length)
        if share < at_least:
            yield f"{target} is back since {recovered:.0f} s, served {share:.1%} from {start:.0f} s, not {at_least:.1%}"

    return look


def admits_again(targets: tuple[str, ...], recovered: float, *, at_least: float = 0.95) -> Expectation:
    """I8: after a total outage this share is served one open interval and a second after the recovery."""

    def look(history: History) -> Iterator[str]:
        start = min(due(history, target, recovered) for target in targets) + 1.0
        share = history.served_share(start, start + 60.0, last_resort=False)
        if share < at_least:
            yield f"all are back since {recovered:.0f} s, served {share:.1%} from {start:.0f} s, not {at_least:.1%}"

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


def due(history: History, target: str, recovered: float) -> float:
    """When everything is over that was known against a target at its recovery, seconds from the beginning.

    A probe that was sent before the recovery says nothing of it: what it brings is taken in as well.
    """
    at = recovered
    for attempt in history.of(AttemptFinished, start=recovered):
        before = attempt.admitted_at - history.began < recovered
        if before and attempt.target == target and attempt.failure_class:
            at = max(at, attempt.at - history.began)
    owners, until = {target, target.partition("/")[0]}, at
    for moved in history.of(BreakerChanged, end=at + 1e-6):
        if moved.owner in owners and moved.open_until is not None:
            until = max(until, moved.open_until - history.began)
    for rest in history.of(RestStarted, end=at + 1e-6):
        if rest.target == target:
            until = max(until, rest.at + rest.seconds - history.began)
    return until


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
