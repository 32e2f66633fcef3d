"""Scripts as YAML. Every mistake is named with its place and what would be right."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import yaml

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.fault.effects import Latency
from smart_model_router_providers.fault.faults import Fault, When, lognormal, uniform
from smart_model_router_providers.fault.script import Script, check

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
