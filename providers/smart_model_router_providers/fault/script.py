"""Scripts: read from YAML with every mistake named, and asked for the faults of each call."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, cast

import yaml

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.fault.effects import (
    Concurrency,
    Delay,
    Fate,
    Headers,
    Latency,
    Limit,
    Plain,
    Status,
)
from smart_model_router_providers.fault.faults import Fault, When, lognormal, uniform
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
        """The times when the whole server is down: (start, stop) in seconds since the script was given."""
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
    """Return the lists of a script by name; ConfigurationError if it is none, or a fault can never be reached."""
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


FAULTS: Mapping[str, Callable[..., Fault]] = MappingProxyType(
    {name: getattr(Fault, name) for name, member in vars(Fault).items() if isinstance(member, staticmethod)}
)
"""Everything that can be written in a script, by name."""

_DISTRIBUTIONS: Mapping[str, Callable[[float, float], Latency]] = MappingProxyType(
    {"uniform": uniform, "lognormal": lognormal}
)


def load_script(source: str | Path) -> Script:
    """Read a script from a file, or from YAML text itself.

    A list of faults is for every call; a mapping has a list for each API key or model (`*` for the rest). A
    fault is a name (`- html`), a name with its first figure (`- status: 500`), its figures in order (`-
    down: [10, 20]`) or by name (`- delay: {first: 2, times: 3}`). A latency may be `{uniform: [1, 2]}` or
    `{lognormal: [median, sigma]}`. Raises ConfigurationError with the place, the value and what would be
    right.
    """
    try:
        given = yaml.safe_load(_text(source))
    except yaml.YAMLError as error:
        raise ConfigurationError("script", str(source), f"no YAML: {error}") from None
    script: Script
    if given is None:
        return None
    if isinstance(given, Mapping):
        script = {str(name): _faults(str(name), faults) for name, faults in given.items()}
    else:
        script = _faults("script", given)
    check(script)
    return script


def _text(source: str | Path) -> str:
    if isinstance(source, str) and ("\n" in source or ": " in source or source.lstrip()[:1] in ("-", "[", "{")):
        return source
    try:
        return Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError("script", str(source), f"a readable file or YAML text is needed ({error})") from None


def _faults(where: str, given: object) -> Sequence[Fault]:
    if not isinstance(given, list):
        raise ConfigurationError(where, given, "a list of faults is needed, such as [{status: 500}]")
    return [_fault(f"{where}[{number}]", fault) for number, fault in enumerate(given)]


def _fault(where: str, given: object) -> Fault:
    if isinstance(given, str):
        name, figures = given, None
    elif isinstance(given, Mapping) and len(given) == 1:
        name, figures = next(iter(given.items()))
    else:
        raise ConfigurationError(where, given, "one fault is needed: a name, or a name with its figures")
    make = FAULTS.get(name)
    if make is None:
        raise ConfigurationError(f"{where}.{name}", figures, f"no such fault; {_meant(name, FAULTS)}")
    order, allowed = _figures(make)
    args: Sequence[Any] = ()
    named: Mapping[str, Any] = {}
    if isinstance(figures, Mapping):
        named = cast("Mapping[str, Any]", figures)
    elif isinstance(figures, list):
        args = figures
    elif figures is not None:
        args = (figures,)
    if len(args) > len(order):
        raise ConfigurationError(f"{where}.{name}", figures, f"at most {len(order)} figures: {', '.join(order)}")
    named = {**dict(zip(order, args, strict=False)), **named}
    for key in named:
        if key not in allowed:
            raise ConfigurationError(f"{where}.{name}.{key}", named[key], f"no such figure; {_meant(key, allowed)}")
    try:
        return make(**{key: _latency(f"{name}.{key}", value) for key, value in named.items()})
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}.{error.key}", error.value, error.expected) from None
    except TypeError:
        needed = ", ".join(order)
        raise ConfigurationError(f"{where}.{name}", figures, f"not all figures are there: {needed}") from None


def _figures(make: Callable[..., Fault]) -> tuple[list[str], list[str]]:
    """Return the figures of a fault in order, and all that may be named."""
    parameters = inspect.signature(make).parameters.values()
    order = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    when = list(When.__annotations__) if len(order) < len(parameters) else []
    return order, order + when


def _latency(key: str, value: object) -> object:
    """Return a distribution where one is written, anything else as it is."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    kind, figures = next(iter(value.items()))
    if kind not in _DISTRIBUTIONS:
        return value
    if not isinstance(figures, list) or len(figures) != 2:
        raise ConfigurationError(f"{key}.{kind}", figures, "a list of two numbers is needed")
    try:
        return _DISTRIBUTIONS[kind](*figures)
    except ConfigurationError as error:
        raise ConfigurationError(f"{key}.{error.key}", error.value, error.expected) from None


def _meant(word: object, known: Sequence[str] | Mapping[str, object]) -> str:
    near = difflib.get_close_matches(str(word), list(known), n=1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
