"""Machines that share their state on a server, and what becomes of the network, the server and the machines."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

Weather = Literal["away", "cut", "deaf", "mute", "slow", "lossy", "flush", "fail over", "stopped"]
SUDDEN: tuple[Weather, ...] = ("flush", "fail over")
"""These take no time."""
_LASTING: tuple[Weather, ...] = ("away", "cut", "deaf", "mute", "slow", "lossy", "stopped")
_CALM = 20.0
"""Seconds at the end."""


@dataclass(frozen=True, slots=True)
class Front:
    """Weather from `start` to `end`, over one machine (its number) or all (None).

    `figure` is the delay of each way in seconds (slow), the share of messages that are lost (lossy), the seconds of
    lost writes (fail over). `shift` is how far ahead the clock of the next server is.
    """

    kind: Weather
    start: float
    end: float
    machine: int | None = None
    figure: float = 0.0
    shift: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesSetting:
    """`machines` of `processes`, for `seconds`, of which the last `calm` are calm; instants count from the beginning.

    The provider `ill` fails from `ill_from` to `ill_until`. The provider `limited` takes `rpm` requests a minute; with
    `headers` its answers say what is left. `offsets` are how far the clock of each machine is ahead, in seconds.
    """

    machines: int
    processes: int
    seconds: float
    calm: float
    fronts: tuple[Front, ...]
    ill_from: float
    ill_until: float
    rpm: int
    headers: bool
    offsets: tuple[float, ...]


def draw_machines(
    seed: int, *, machines: int = 20, processes: int = 2, storm: float = 60.0, calm: float = _CALM
) -> MachinesSetting:
    """Draw a setting: one to four fronts within the first `storm` seconds, then `calm` ones."""
    dice = Random(f"machines/{seed}")  # noqa: S311 - chance to be repeated, not a secret
    fronts = tuple(sorted((_front(dice, machines, storm) for _ in range(dice.randint(1, 4))), key=lambda f: f.start))
    ill_from = dice.uniform(2.0, storm / 3)
    return MachinesSetting(
        machines=machines,
        processes=processes,
        seconds=storm + calm,
        calm=calm,
        fronts=fronts,
        ill_from=ill_from,
        ill_until=dice.uniform(storm / 2, storm),
        rpm=30 * max(1, machines // 2),
        headers=dice.random() < 0.5,
        offsets=tuple(dice.uniform(-36_000.0, 36_000.0) for _ in range(machines)),
    )


def _front(dice: Random, machines: int, storm: float) -> Front:
    kind = dice.choice((*_LASTING, *SUDDEN))
    start = dice.uniform(min(7.0, storm / 3), storm - 3.0)
    if kind in SUDDEN:
        return Front(kind, start, start, None, dice.uniform(0.0, 2.0), dice.choice([-1_000.0, 0.0, 1_000.0]))
    end = min(storm, start + dice.uniform(1.0, storm / 2))
    whole = kind == "away" or (kind in ("slow", "lossy") and dice.random() < 0.5)
    figures = {"slow": dice.choice([0.015, 0.05, 0.4]), "lossy": dice.uniform(0.02, 0.4)}
    return Front(kind, start, end, None if whole else dice.randrange(machines), figures.get(kind, 0.0))
