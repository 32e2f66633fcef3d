"""From plain data to a section of the tree: references are followed, units read, pydantic checks types and ranges.

Every fault is a ConfigurationError that names the key, the value as it was written, and what would be right.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from smart_model_router.config import conversion, hints
from smart_model_router.config.hints import Hint, SupportsShortForm
from smart_model_router.config.retired import RETIRED
from smart_model_router.config.secret import MASK, Secret, masked, masked_urls
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.domain.tree_path import Path, spelled

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

T = TypeVar("T")
_LARGEST = 10**18
_OTHER_NAMES = {"vision": "images", "context_window": "context_tokens", "function_calling": "tools"}
"""Names that other routers use for our keys, for "did you mean": the spelling alone would not suggest them."""
_LITELLM = frozenset({"model_list", "litellm_settings", "general_settings", "router_settings", "environment_variables"})
"""The sections of LiteLLM's configuration."""
_UNKNOWN_KEY = "unexpected_keyword_argument"

_Found = tuple[Path, ConfigurationError]
"""A fault and the path that can be left out to look beyond it."""


def read_mapping(section: type[T], mapping: object, environ: Mapping[str, str]) -> tuple[T, Mapping[Path, str]]:
    """The section that `mapping` describes, and its retired keys with what took their place.

    Raises ConfigurationError, with every further one in `others`.
    """
    reader = _Reader(environ)
    plain = reader.value(mapping, Hint(section), ())
    found = list(reader.faults.items())
    try:
        config: T = _validated(section, plain)
    except ValidationError as error:
        found += _translated(section, error, reader.faults)
        found += _beyond(section, plain, [path for path, _ in found])
    except ConfigurationError as error:
        found += [((), fault) for fault in (error, *error.others)]
    else:
        if not found:
            return config, reader.retired
    first, *others = [fault for _, fault in found]
    raise first.with_others(others)


def _validated(section: Any, plain: object) -> Any:
    # As JSON, strict mode takes lists for tuples and objects for dataclasses, and still no text for numbers.
    return _adapter(section).validate_json(json.dumps(plain), strict=True)


def _beyond(section: type, plain: Any, faulty: list[Path]) -> list[_Found]:
    """Return the faults that remain when the faulty keys are left out; none where that cannot be done."""
    for path in faulty:
        owner = plain
        for step in path[:-1]:
            owner = owner[step]
        if not path or not hints.at(section, path[:-1]).is_section:
            return []
        owner.pop(path[-1], None)
    try:
        _validated(section, plain)
    except ValidationError:
        return []
    except ConfigurationError as error:
        return [((), fault) for fault in (error, *error.others)]
    return []


@cache
def _adapter(section: Any) -> TypeAdapter[Any]:
    return TypeAdapter(section)


class _Reader:
    """One pass over the data, led by the annotations of the tree; pydantic checks the values that it leaves.

    A value that it cannot read becomes None, and a fault at its path.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.faults: dict[Path, ConfigurationError] = {}
        self.retired: dict[Path, str] = {}
        """The keys that are there and no longer used, with what took their place."""

    def value(self, given: object, hint: Hint, path: Path) -> Any:
        """Return `given` as JSON data of the hinted type, as far as that is possible."""
        try:
            return self._value(given, hint, path)
        except ConfigurationError as fault:
            self.faults.setdefault(path, fault)
            return None

    def _value(self, given: object, hint: Hint, path: Path) -> Any:
        if hint.is_section:
            return self._section(given, hint, path)
        if hint.base is dict:
            members = {} if given is None else self._mapping(given, hint, "a mapping of keys to values", path)
            inner = hint.member
            return {key: self._named(key, member, inner, (*path, key)) for key, member in members.items()}
        if hint.base is tuple and not (given is None and hint.optional):
            inner = hint.member
            return [self.value(member, inner, (*path, n)) for n, member in enumerate(self._list(given, inner, path))]
        return self._leaf(given, hint, path)

    def _section(self, given: object, hint: Hint, path: Path) -> Any:
        if isinstance(hint.base, SupportsShortForm):
            given = hint.base.written_out(given)
        known, gone = hints.fields_of(hint.base), RETIRED.get(hint.base, {})
        if isinstance(given, (bool, str)) and hints.SWITCH in known:
            given = {hints.SWITCH: given}  # the short form of a section that can be switched on and off
        read: dict[str, Any] = {}
        wanted = "a mapping" if path else f"a mapping with keys such as {', '.join(list(known)[:3])}"
        for key, member in ({} if given is None else self._mapping(given, hint, wanted, path)).items():
            if key in gone:
                self.retired[(*path, key)] = gone[key]
                continue
            # The value of an unknown key may be a secret: the error has the key only.
            takes = known.get(key)
            read[key] = self.value(member, takes, (*path, key)) if takes else None
        return read

    def _named(self, key: str, given: object, hint: Hint, path: Path) -> Any:
        """Read a member of a mapping; a type with a field for its own key gets the key."""
        read = self.value(given, hint, path)
        own = hints.key_field(hint.base) if hint.is_section else None
        if own is None or read is None:
            return read
        if own in read:
            where = (*path, own)
            wanted = f"no such key: the name is {key!r} already, the key above"
            self.faults.setdefault(where, ConfigurationError(spelled(where), own, wanted))
        return {**read, own: key}

    def _mapping(self, given: object, hint: Hint, wanted: str, path: Path) -> Mapping[str, object]:
        if not isinstance(given, Mapping):
            raise ConfigurationError(spelled(path), _instead(given, hint), f"{wanted} is needed")
        for key in given:
            if not isinstance(key, str) or not _is_unicode(key):
                raise ConfigurationError(spelled(path), _shown(key), "keys that are text are needed")
        return given

    def _list(self, given: object, inner: Hint, path: Path) -> list[object] | tuple[object, ...]:
        if given is None:
            return ()
        if isinstance(given, (list, tuple)):
            return given
        if isinstance(given, str) and not inner.is_section:
            return [given] if self._expanded(given, inner, path) else []
        raise ConfigurationError(spelled(path), _instead(given, inner), "a list is needed")

    def _leaf(self, given: object, hint: Hint, path: Path) -> Any:
        if given is None or isinstance(given, bool):
            # In Python True equals 1, also for a Literal[1]; in a configuration it is a mistake.
            if given is not None and hint.base in (int, float):
                raise ConfigurationError(spelled(path), given, f"{hint.describe()} is needed")
            return given
        if isinstance(given, (int, float)):
            if not abs(given) <= _LARGEST:  # nor is NaN
                raise ConfigurationError(spelled(path), _shown(given), f"{hint.describe()} is needed")
            return given
        if not isinstance(given, str):
            raise ConfigurationError(spelled(path), _kind(given), f"{hint.describe()} is needed")
        if hint.by_reference and not conversion.references(given):
            wanted = "${NAME} is needed, the name of an environment variable, and not the key itself"
            raise ConfigurationError(spelled(path), MASK, wanted)
        text = self._expanded(given, hint, path)
        read: object = text
        if hint.base is bool:
            read = conversion.switch(text)
        elif hint.base in (int, float):
            read = conversion.number(text, hint.unit)
        if read is None:
            raise ConfigurationError(spelled(path), _written(given, hint), f"{hint.describe()} is needed")
        return read

    def _expanded(self, given: str, hint: Hint, path: Path) -> str:
        try:
            text = conversion.expand(given, self._environ)
        except conversion.UnknownReferenceError as error:
            raise ConfigurationError(spelled(path), _written(given, hint), str(error)) from None
        if not _is_unicode(text):
            raise ConfigurationError(spelled(path), _written(given, hint), "text without lone surrogates is needed")
        return text


def _translated(section: type, error: ValidationError, known: Container[Path]) -> list[_Found]:
    """Return pydantic's errors in our words, without those whose place is `known`; unknown keys come first."""
    errors = sorted(
        error.errors(include_url=False, include_context=False), key=lambda each: each["type"] != _UNKNOWN_KEY
    )
    return [(path, _worded(section, each, path)) for each in errors if (path := tuple(each["loc"])) not in known]


def _worded(section: type, error: ErrorDetails, path: Path) -> ConfigurationError:
    where = spelled(path)
    if error["type"] == _UNKNOWN_KEY:
        owner = hints.at(section, path[:-1]).base
        known, name = hints.fields_of(owner), hints.key_field(owner)
        word = str(path[-1])
        if word in _LITELLM and len(path) == 1:
            wanted = "no such key: this is LiteLLM's; `smr import litellm FILE` converts its configuration"
            return ConfigurationError(where, masked(word), wanted)
        meant = _OTHER_NAMES.get(word, word)
        meant = meant if meant in known else word
        return ConfigurationError(
            where, masked(word), f"no such key; {did_you_mean(meant, [k for k in known if k != name])}"
        )
    hint = hints.at(section, path)
    if error["type"] == "missing":
        return ConfigurationError(where, None, f"{hint.describe()} is needed")
    value = MASK if hint.base is Secret else _shown(error["input"])
    return ConfigurationError(where, value, f"{hint.describe()} is needed")


def _written(given: str, hint: Hint) -> str:
    """A value for an error: as it was written, so that the value behind a reference stays out of it."""
    return MASK if hint.base is Secret else _shown(given)


def _instead(given: object, hint: Hint) -> Any:
    """A value in the place of a list or mapping: as it was written, unless a secret may belong there."""
    return _kind(given) if hint.may_hold_secrets else _shown(given)


def _shown(value: object) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) > _LARGEST:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, (int, float)):
        return value
    return masked_urls(value[:200]) if isinstance(value, str) else _kind(value)


def _kind(value: object) -> str:
    """The type of a value, for errors about a wrong type: the content may be a secret."""
    if value is None:
        return "nothing"
    named = {str: "text", bool: "true or false", int: "a number", float: "a number"}
    for kind, word in named.items():
        if isinstance(value, kind):
            return word
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
