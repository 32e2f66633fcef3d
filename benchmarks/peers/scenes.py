"""The scenes that each row plays, and the figures taken of it."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

from benchmarks.peers.playing import SEED, Played, Scene

from smart_model_router_providers.fault import Fault, lognormal

Figures = Mapping[str, str]

# A primary that dies with slow errors, and comes back; its backup is well all the time.
RATE = 10.0
COUNTED_FROM, DEAD_FROM, DEAD_UNTIL, END = 1.0, 4.0, 34.0, 50.0
"""Seconds. What is asked before the first is not counted: connections open."""
GOOD_SECONDS = 2.0
_ERROR_SECONDS = 1.0
_HEALTHY = Fault.delay(lognormal(0.3, 0.3))


def _poisson(rate: float, end: float) -> tuple[float, ...]:
    dice, at, found = random.Random(SEED), 0.0, list[float]()  # noqa: S311 - a repeatable load, not a secret
    while (at := at + dice.expovariate(rate)) < end:
        found.append(at)
    return tuple(found)


OUTAGE = Scene(
    "dead primary",
    servers=(
        [
            Fault.delay(_ERROR_SECONDS, start=DEAD_FROM, stop=DEAD_UNTIL),
            Fault.status(500, start=DEAD_FROM, stop=DEAD_UNTIL),
            _HEALTHY,
        ],
        [_HEALTHY],
    ),
    keys=("k1", "k2"),
    arrivals=_poisson(RATE, END),
    timeout=30.0,
)

TWO_KEYS = tuple(
    Scene(
        f"two keys, {kind}",
        servers=([Fault.limit(rpm=30, kind=kind)],),
        keys=("k1", "k2"),
        arrivals=tuple(number / 4 for number in range(100)),
        timeout=90.0,
    )
    for kind in ("continuous", "window")
)

RETRY_AFTER = Scene(
    "Retry-After: 3",
    servers=([Fault.status(429, headers={"retry-after": "3"}, stop=3.0)],),
    keys=("k1",),
    arrivals=(),
    timeout=60.0,
)


def of_outage(played: Played) -> Figures:
    """The dead primary's calls, the herd when it is back, what callers got, and what it cost."""
    primary, backup = played.calls
    dead = [call for call in primary if DEAD_FROM <= call.at < DEAD_UNTIL]
    errors = [call.ended for call in dead if call.status == 500 and call.ended is not None]
    late = sum(call.at > min(errors) for call in dead) if errors else 0
    back = [call for call in primary if call.at >= DEAD_UNTIL]
    answers = [call.ended for call in back if not call.wasted and call.ended is not None]
    herd = sum(call.at < min(answers) for call in back) if answers else len(back)
    counted = [request for request in played.requests if request["at"] >= COUNTED_FROM]
    taken = sorted(request["seconds"] for request in counted if request["error"] is None)
    good = sum(seconds <= GOOD_SECONDS for seconds in taken)
    return {
        "calls to the dead primary": f"{len(dead)} ({late} after its first error)",
        "calls before its first answer": str(herd),
        "first call after": f"{back[0].at - DEAD_UNTIL:.1f} s" if back else "never",
        "answered": f"{len(taken) / len(counted):.1%}",
        "p50": f"{statistics.median(taken):.2f} s",
        "p99": f"{taken[int(0.99 * (len(taken) - 1))]:.2f} s",
        "wasted calls": str(sum(call.wasted for call in (*primary, *backup))),
        "goodput": f"{good / (END - COUNTED_FROM):.1f}/s",
        "CPU a request": f"{1000 * played.cpu_seconds / len(played.requests):.0f} ms",
        "load": f"{played.load:.1f}",
    }


def of_two_keys(played: Played) -> Figures:
    """Return the answered share, and how often the unluckier key was refused."""
    refused = Counter(call.key for call in played.calls[0] if call.status == 429)
    taken = sorted(request["seconds"] for request in played.requests if request["error"] is None)
    return {
        "answered": f"{len(taken)} of {len(played.requests)}",
        "429s of the worse key": str(max(refused.values(), default=0)),
        "wasted calls": str(sum(call.wasted for call in played.calls[0])),
        "longest answer": f"{taken[-1]:.1f} s" if taken else "-",
    }


def of_retry_after(played: Played) -> Figures:
    """When the caller was served, and how many calls were refused until then."""
    [request] = played.requests
    served = "never" if request["error"] is not None else f"{request['at'] + request['seconds']:.1f} s"
    return {"served after": served, "wasted calls": str(sum(call.wasted for call in played.calls[0]))}


FIGURES: Mapping[str, Callable[[Played], Figures]] = MappingProxyType(
    {
        OUTAGE.name: of_outage,
        **{scene.name: of_two_keys for scene in TWO_KEYS},
        RETRY_AFTER.name: of_retry_after,
    }
)


def broken_promises(played: Played) -> list[str]:
    """Of this router's own row: what it promises and did not keep (issue 5 and issue 3)."""
    figures, scene = FIGURES[played.scene.name](played), played.scene.name
    answered = sum(request["error"] is None for request in played.requests) / len(played.requests)
    broken = [] if answered >= 0.99 else [f"{scene}: {answered:.1%} answered, promised 99 %"]
    if played.scene in TWO_KEYS and int(figures["429s of the worse key"]) > 1:
        broken.append(f"{scene}: {figures['429s of the worse key']} refusals of one key, promised 1 at most")
    if played.scene is OUTAGE and int(figures["calls before its first answer"]) > 1:
        broken.append(f"{scene}: {figures['calls before its first answer']} calls at recovery, promised 1")
    if played.scene is RETRY_AFTER and int(figures["wasted calls"]) > 1:
        broken.append(f"{scene}: {figures['wasted calls']} refused calls, promised 1")
    return broken
