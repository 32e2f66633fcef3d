"""A script at work: reads its lists of faults for every call and says what this one meets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.fault.effects import (
    Concurrency,
    Delay,
    Fate,
    Headers,
    Limit,
    Plain,
    Status,
)
from smart_model_router_providers.fault.faults import Fault
from smart_model_router_providers.fault.limits import Limiter
from smart_model_router_providers.fault.parsed_request import Reply

Script = Sequence[Fault] | Mapping[str, Sequence[Fault]] | None
"""None: always healthy. A list: for every call. A mapping: a list for each API key or model, `*` the rest."""

EVERYONE = "*"


@dataclass(frozen=True, slots=True)
class ScriptDecision:
    """The script's decision on one call: an effect instead of the good answer, delays, headers of the limits it passed.

    `reply` is what the good answer says, when a script has a say in it.
    """

    effect: Fate | None
    delays: tuple[Delay, ...]
    headers: Headers
    chance: Random
    reply: Reply | None = None


HEALTHY = ScriptDecision(None, (), (), Random(0))  # noqa: S311  nothing is drawn from it: there is no delay


class RunningScript:
    """A script with its state: what is used up, what the limits have counted. Instants are monotonic seconds.

    Its seconds begin at `now`; None: at its first call. The n-th call of a script meets the same luck
    whenever it comes: its dice are seeded with seed and n.
    """

    def __init__(self, script: Script, *, seed: int, now: float | None, wall: Callable[[], float]) -> None:
        self._lists = {name: [_Line(fault) for fault in faults] for name, faults in check(script).items()}
        self._whole = not isinstance(script, Mapping)
        self._started = now
        self._seed = seed
        self._wall = wall
        self._arrivals = 0

    def outages(self) -> list[tuple[float, float | None]]:
        """When the whole server is down: (start, stop) in seconds since the script was given."""
        lines = self._lists.get(EVERYONE, ()) if self._whole else ()
        return [(line.fault.start, line.fault.stop) for line in lines if line.fault.effect is Plain.DOWN]

    def decide(self, key: str, model: str, tokens: int, in_flight: Callable[[str], int], now: float) -> ScriptDecision:
        """Read the list of this call. `tokens` is what a good answer costs; `in_flight` counts this call too."""
        self._arrivals += 1
        started = now if self._started is None else self._started
        self._started = started
        name = next((name for name in (key, model, EVERYONE) if name in self._lists), None)
        if name is None:
            return HEALTHY
        chance = _Chance(self._seed, self._arrivals)
        effect: Fate | None = None
        delays: list[Delay] = []
        headers: Headers = ()
        reply: Reply | None = None
        counted = key if name == EVERYONE else name
        for line in self._lists[name]:
            if not line.applies(now - started, chance):
                continue
            match line.fault.effect:
                case Limit() as limit:
                    limiter = line.limiter(key, limit, started, self._wall() - (now - started))
                    wait = limiter.admit(tokens, now)
                    if not wait:
                        headers += limiter.headers(now, self._wall())
                        continue
                    effect = Status(429, limiter.refusal(wait, now, self._wall()))
                case Concurrency() as limit:
                    if in_flight(counted) <= limit.calls:
                        continue
                    effect = Status(429, limit.headers)
                case Delay() as delay:
                    delays.append(delay)
                    if line.fault.standing:
                        continue
                case Reply() as said:
                    reply = reply or said
                    line.taken += 1
                    continue
                case other:
                    effect = other
            line.taken += 1
            break
        return ScriptDecision(effect, tuple(delays), headers, chance.random, reply)


class _Chance:
    """The dice of one call, made only when they are rolled: seeding is not cheap."""

    def __init__(self, seed: int, number: int) -> None:
        self._of = f"{seed}/{number}"
        self._random: Random | None = None

    @property
    def random(self) -> Random:
        if self._random is None:
            self._random = Random(self._of)  # noqa: S311  repeatable, not secret
        return self._random


class _Line:
    """One fault of a list: how many calls it took, and its counts for each API key."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.taken = 0
        self._limiters: dict[str, Limiter] = {}

    def applies(self, elapsed: float, chance: _Chance) -> bool:
        fault = self.fault
        if fault.times is not None and self.taken >= fault.times:
            return False
        return fault.due(elapsed) and (fault.probability >= 1 or chance.random.random() < fault.probability)

    def limiter(self, key: str, limit: Limit, started: float, wall: float) -> Limiter:
        if key not in self._limiters:
            self._limiters[key] = Limiter(limit, started, wall)
        return self._limiters[key]


def check(script: object) -> dict[str, Sequence[Fault]]:
    """Return the lists of a script by name; ConfigurationError for what is none or could never happen."""
    if script is None:
        return {}
    if not isinstance(script, Mapping):
        return {EVERYONE: _checked("script", script)}
    for name in script:
        if not isinstance(name, str):
            raise ConfigurationError("script", name, "an API key or a model name as text")
    return {name: _checked(name, faults) for name, faults in script.items()}


def _checked(where: str, faults: object) -> Sequence[Fault]:
    if isinstance(faults, (str, bytes)) or not isinstance(faults, Sequence):
        raise ConfigurationError(where, faults, "a list of faults is needed")
    for number, fault in enumerate(faults):
        if not isinstance(fault, Fault):
            raise ConfigurationError(f"{where}[{number}]", fault, "a Fault is needed, such as Fault.status(500)")
        if fault.decides_every_call and number < len(faults) - 1:
            raise ConfigurationError(
                f"{where}[{number + 1}]",
                faults[number + 1],
                f"can never happen: {where}[{number}] takes every call before it; give that one `times`",
            )
    return faults
