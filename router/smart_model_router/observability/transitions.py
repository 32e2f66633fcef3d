"""State changes in words: one row an event, whether it happens here or is read from a statistics file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Details = Mapping[str, Any]


class Move(NamedTuple):
    """A state change in words; `bad` marks a turn for the worse."""

    kind: str
    subject: str
    state: str
    text: str
    bad: bool


def move_of(event: str, details: Details) -> Move:
    """Describe an event by its name and its fields (see `details_of`). One of a newer version is shown as it is."""
    return MOVES.get(event, _unknown)({**details, "event": event})


def _breaker(of: Details) -> Move:
    run = f" ({of['run']})" if of.get("run") else ""
    seconds = of.get("open_seconds")
    lasts = "" if seconds is None else f", asked again in {max(0.0, seconds):.0f} s"
    text = f"{of['kind']} breaker {of['from_state']} -> {of['to_state']}: {of['reason']}{run}{lasts}"
    return Move("breaker", of["owner"], of["to_state"], text, of["to_state"] in ("open", "isolated"))


def _operator(of: Details) -> Move:
    isolated = of["word"] == "isolate"
    text = f"{'isolated' if isolated else 'enabled'} by {of['by']}{': ' if of['why'] else ''}{of['why']}"
    return Move("operator", of["target"], "isolated" if isolated else "closed", text, isolated)


def _probe(of: Details) -> Move:
    return Move(
        "probe", of["target"], "half_open", f"one call asks whether {of['kind']} calls succeed again", bad=False
    )


def _rest(of: Details) -> Move:
    says = "as the provider said" if of["hinted"] else "our guess"
    text = f"{of['reason']} of {of['seconds']:.1f} s after {of['failure_class']}, {says}"
    return Move("rest", of["target"], of["reason"], text, bad=True)


def _offline(of: Details) -> Move:
    text = "no remote provider can be reached" if of["offline"] else "a remote provider answered again"
    return Move("offline", "network", "offline" if of["offline"] else "online", text, of["offline"])


def _shedding(of: Details) -> Move:
    verb = "began" if of["shedding"] else "ended"
    text = f"load shedding {verb}: {of['open_ratio']:.0%} of the providers are open"
    return Move("shedding", "router", verb, text, of["shedding"])


def _shed(of: Details) -> Move:
    return Move("shed", of["request_id"], "shed", f"a {of['criticality']} request was turned away", bad=True)


def _store(of: Details) -> Move:
    text = f"out of reach: {of['reason']}" if of["degraded"] else "within reach again"
    return Move("store", f"{of['store']} store", "degraded" if of["degraded"] else "ok", text, of["degraded"])


def _unknown(of: Details) -> Move:
    text = ", ".join(f"{key} {value}" for key, value in of.items() if value is not None and key != "event")
    return Move(of["event"], of["event"], "", text, bad=False)


MOVES: dict[str, Callable[[Details], Move]] = {
    "BreakerChanged": _breaker,
    "OperatorSpoke": _operator,
    "ProbeStarted": _probe,
    "RestStarted": _rest,
    "OfflineChanged": _offline,
    "SheddingChanged": _shedding,
    "RequestShed": _shed,
    "StoreChanged": _store,
}
