"""A history for people: what changed and when, and a verdict. Instants are minutes and seconds from the beginning."""

from __future__ import annotations

from collections.abc import Iterator

from smart_model_router.domain.events import (
    AttemptFinished,
    BreakerChanged,
    Event,
    OfflineChanged,
    RestStarted,
    SheddingChanged,
)
from smart_model_router.rehearsal.simulation.history import History
from smart_model_router.rehearsal.simulation.provider_behaviour import Spell

_SPAN = 60.0
"""Seconds that one line of traffic sums up."""


def timeline(history: History) -> Iterator[str]:
    """Each change of the weather, of a breaker, a rest, and each minute's traffic, in order."""
    moments = [(spell.start, f"{spell.provider} turns {_shown(spell)}") for spell in history.spells]
    moments += [(spell.end, f"{spell.provider} is well again") for spell in history.spells]
    moments += [(event.at - history.began, text) for event in history.events if (text := _told(event))]
    moments += _traffic(history)
    for at, text in sorted(moments, key=lambda moment: moment[0]):
        yield f"{int(at // 60):3d}:{at % 60:06.3f}  {text}"


def verdict(history: History) -> Iterator[str]:
    """The violations, if any, and one line that sums up."""
    for violation in history.violations:
        yield f"VIOLATED {violation}"
    attempts = sum(isinstance(event, AttemptFinished) for event in history.events)
    word = f"{len(history.violations)} violations" if history.violations else "every promise kept"
    yield (
        f"{history.scenario} --seed {history.seed}: {word}; {len(history.asked)} requests, "
        f"{history.served_share(0.0, float('inf')):.1%} of those that stayed served, {attempts} calls, "
        f"{history.wasted} wasted, log {history.digest}"
    )


def _shown(spell: Spell) -> str:
    return repr(spell.condition).replace("FailureClass.", "")


def _told(event: Event) -> str:
    match event:
        case BreakerChanged():
            until = "" if event.open_until is None else f" for {event.open_until - event.at:.1f} s"
            return f"{event.owner} ({event.kind}): {event.from_state} -> {event.to_state}{until} ({event.reason})"
        case RestStarted():
            word = "told to" if event.hinted else "takes a"
            return f"{event.target}: {word} {event.reason} for {event.seconds:.2f} s ({event.failure_class})"
        case OfflineChanged():
            return "offline: every remote is unreachable" if event.offline else "online again"
        case SheddingChanged():
            return f"shedding {'begins' if event.shedding else 'ends'} at {event.open_ratio:.0%} open"
        case _:
            return ""


def _traffic(history: History) -> Iterator[tuple[float, str]]:
    start = 0.0
    while start < history.lasted:
        asked = history.between(start, start + _SPAN)
        by: dict[str, int] = {}
        for one in asked:
            by[one.served_by or "nobody"] = by.get(one.served_by or "nobody", 0) + 1
        counts = ", ".join(f"{name} {count}" for name, count in sorted(by.items()))
        if asked:
            yield start + _SPAN, f"served in this minute: {counts}"
        start += _SPAN
