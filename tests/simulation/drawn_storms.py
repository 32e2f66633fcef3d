"""Storms drawn from a seed, for D5 (routing.md 0a): all providers ill, then well again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from smart_model_router.domain.request import Criticality
from smart_model_router.testing import FakeReply, run_virtual
from tests.simulation.storms import (
    ERROR,
    OVERLOADED,
    PATIENCE,
    SILENCE,
    UNREACHABLE,
    WARMING,
    Storm,
    away,
    ladder,
    poisson,
    refused,
    share_served,
    well,
)

CALM = 20.0
"""Seconds of health before a storm: enough answers for a target's patience to be known."""
GRACE = 10.0
"""Seconds after a recovery within which a router has to be itself again (D5)."""
CALM_AFTER = 10.0
"""What shedding adds to that: the back-off of one more probe, and 5 s of calm."""
DUE = 0.95
"""The share of the requests after these seconds that has to be served (D5)."""
STORMS: Mapping[str, tuple[FakeReply, float]] = {
    # what every call is told, and how long a probe that was sent just before the recovery still takes
    "a 429 with a hint": (refused(2.0), 0.0),
    "a 429 without": (refused(None), 0.0),
    "warming up": (WARMING, 0.0),
    "overload": (OVERLOADED, 0.0),
    "500s": (ERROR, 0.0),
    "no connection": (UNREACHABLE, 0.0),
    "silence": (SILENCE, PATIENCE),
}
_MOST_JUDGED = 300
"""Requests after the recovery, but a minute of them at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnStorm:
    """`providers` fail every call for `seconds`; `rate` requests a second, each with a deadline of `timeout` seconds.

    A call takes `answer` seconds when they are well. `storm` is a key of `STORMS`.
    """

    seed: int
    storm: str
    providers: int
    seconds: float
    rate: float
    timeout: float
    answer: float
    stream: bool
    criticality: Criticality

    def violations(self) -> list[str]:
        """D5: too few were served before the storm, or from ten seconds after the recovery (and its probe) on."""
        failure, probe = STORMS[self.storm]
        recovered = CALM + self.seconds
        judged = recovered + GRACE + max(probe, self.answer)  # the first probe after it takes an answer
        judged += CALM_AFTER if self.criticality == "sheddable" else 0.0
        behaviour = away(CALM, recovered, failure, otherwise=well(self.answer))
        names = [target.partition("/")[0] for (target,) in ladder(self.providers)]
        slots = max(20, math.ceil(2.2 * self.rate * self.answer))
        fleet = Storm(*ladder(self.providers), behaviour=dict.fromkeys(names, behaviour), slots=slots, seed=self.seed)
        arrivals = poisson(self.rate, judged + min(60.0, _MOST_JUDGED / self.rate), seed=self.seed)
        asked = run_virtual(
            fleet.play(arrivals, timeout=self.timeout, stream=self.stream, criticality=self.criticality), limit=86_400
        )
        spans = {"before the storm": (0.0, CALM - self.timeout), "after it": (judged, math.inf)}
        served = {name: share_served(asked, *span) for name, span in spans.items()}
        return [f"D5: {share:.1%} served {name}, {self}" for name, share in served.items() if share < DUE]


def draw_storm(seed: int) -> DrawnStorm:
    """The storm of a seed."""
    dice = Random(f"storm/{seed}")
    return DrawnStorm(
        seed=seed,
        storm=dice.choice(list(STORMS)),
        providers=dice.randint(1, 3),
        seconds=dice.choice([3.0, 20.0, 60.0, 180.0]),
        rate=dice.choice([2.0, 5.0, 20.0]),
        timeout=dice.choice([8.0, 10.0, 15.0]),
        answer=dice.choice([0.31, 1.0, 3.0]),
        stream=dice.random() < 0.5,
        criticality=dice.choice(["critical", "critical", "critical", "sheddable"]),
    )
