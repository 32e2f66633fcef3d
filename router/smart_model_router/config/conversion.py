"""Text to values: units (`15s`, `400k`, `50%`), switches, and where a value comes from (`${VAR}`, `file:`)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

UnitName = Literal["seconds", "ratio", "count"]

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_COUNTS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000}
_DECIMAL = r"\d{1,18}(?:\.\d{1,18})?"
_PLAIN = re.compile(rf"[+-]?{_DECIMAL}(?:[eE][+-]?\d{{1,3}})?", re.ASCII)
_DURATION = re.compile(rf"(?:{_DECIMAL} ?(?:ms|s|min|m|h|d) ?)+", re.ASCII)
_DURATION_PART = re.compile(rf"({_DECIMAL}) ?(ms|s|min|m|h|d)", re.ASCII)
_COUNT = re.compile(rf"({_DECIMAL}) ?([kKM])", re.ASCII)
_RATIO = re.compile(rf"({_DECIMAL}) ?%", re.ASCII)
_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

_REFERENCE = re.compile(r"(\$?)\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ENVIRON = "os.environ/"
_FILE = "file:"
_FILE_LIMIT_BYTES = 65_536


def switch(text: str) -> bool | None:
    """True or false as people write it; None when it is neither."""
    return _SWITCHES.get(text.strip().lower())


def number(text: str, unit: UnitName | None) -> float | int | None:
    """The number that `text` spells in `unit`; an int where it is whole. None when it spells none."""
    text = text.strip().replace("_", "")
    value: float
    if _PLAIN.fullmatch(text):
        value = float(text)
    elif unit == "seconds" and _DURATION.fullmatch(text):
        value = math.fsum(float(figure) * _SECONDS[name] for figure, name in _DURATION_PART.findall(text))
    elif unit == "count" and (counted := _COUNT.fullmatch(text)):
        value = float(counted[1]) * _COUNTS[counted[2]]
    elif unit == "ratio" and (shared := _RATIO.fullmatch(text)):
        value = float(shared[1]) / 100
    else:
        return None
    if not math.isfinite(value):
        return None
    # Whole numbers beyond a float's precision are outside every range; below it nothing is lost.
    return int(value) if value.is_integer() else value


class UnknownReferenceError(Exception):
    """A value refers to something that does not exist; the message names what is needed."""


def expand(text: str, environ: Mapping[str, str]) -> str:
    """`text` with its references replaced: `${VAR}`, `${VAR:-default}`, `os.environ/VAR`, `file:/a/path`.

    `$${VAR}` becomes `${VAR}`. The text that replaces a reference is not expanded again. Raises UnknownReferenceError.
    """
    if text.startswith(_ENVIRON):
        return _variable(text.removeprefix(_ENVIRON), None, environ)
    if text.startswith(_FILE):
        return _content(text.removeprefix(_FILE))
    if "${" not in text:
        return text

    def replaced(found: re.Match[str]) -> str:
        escape, inner = found.groups()
        if escape:
            return found[0][1:]
        name, has_default, default = inner.partition(":-")
        if "${" in default:
            raise UnknownReferenceError("a default without ${...} in it is needed")
        return _variable(name, default if has_default else None, environ)

    return _REFERENCE.sub(replaced, text)


def references(text: str) -> list[str]:
    """Yield the references that `expand` would look up: `$VAR` for a variable, `file:/a/path` for a file."""
    if text.startswith(_ENVIRON):
        return [f"${text.removeprefix(_ENVIRON)}"]
    if text.startswith(_FILE):
        return [text]
    return [f"${inner.partition(':-')[0]}" for escape, inner in _REFERENCE.findall(text) if not escape]


_LITERAL = re.compile(r"\$([A-Z_][A-Z0-9_]*)|%([A-Z_][A-Z0-9_]*)%")
"""Capitals alone: the text is shown, and `$ecret` may be a key."""


_QUOTED = re.compile(r"([\"']).*\1")


def is_quoted(text: str) -> bool:
    """Return whether quotation marks are part of a text."""
    return _QUOTED.fullmatch(text.strip()) is not None


def literal_variable(text: str) -> str:
    """The variable that a text names as shells do (`$VAR`, `%VAR%`), which is not followed; "" for other texts."""
    found = _LITERAL.fullmatch(text.strip())
    return "" if found is None else found[1] or found[2]


def _variable(name: str, default: str | None, environ: Mapping[str, str]) -> str:
    if not _NAME.fullmatch(name):
        raise UnknownReferenceError("the name of an environment variable is needed: letters, digits and _")
    # As in a shell, `:-` also replaces a variable that is set to nothing.
    value = environ.get(name) or default
    if value is None:
        wanted = f"must be set, or a default given: ${{{name}:-...}}"
        if name in environ:
            raise UnknownReferenceError(f"the environment variable {name} is empty: it {wanted}")
        near = get_close_matches(name, environ, n=1, cutoff=0.8)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UnknownReferenceError(f"the environment variable {name} {wanted}{hint}")
    return value


def _content(name: str) -> str:
    path = Path(name)
    try:
        if not path.is_file():
            raise UnknownReferenceError("the path of an existing file is needed after file:")
        with path.open("rb") as file:
            content = file.read(_FILE_LIMIT_BYTES + 1)
        if len(content) > _FILE_LIMIT_BYTES:
            raise UnknownReferenceError(f"a file of at most {_FILE_LIMIT_BYTES} bytes is needed after file:")
        return content.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise UnknownReferenceError("a file of UTF-8 text is needed after file:") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
        raise UnknownReferenceError(f"a readable file is needed after file: ({reason})") from None
