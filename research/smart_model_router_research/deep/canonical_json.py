"""Canonical JSON: one text for one value, and reading that takes nothing that a second reader might take otherwise.

The rules are those of docs/design/artefacts.md section 1.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from typing import Any, NoReturn

from smart_model_router.domain.errors import SmartRouterError

_SHOWN = 80
_TOO_DEEP = "it is nested too deeply"


class ArtefactError(SmartRouterError):
    """An artefact that cannot be read or written: `place` is where (a file and a path in it), `problem` what."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


def canonical(value: object) -> bytes:
    """Return the one text of a JSON value, with a line feed at its end. Raises ValueError for what is none."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii") + b"\n"


def canonical_lines(rows: Iterable[object]) -> bytes:
    """Return JSON Lines: the canonical text of each row."""
    return b"".join(canonical(row) for row in rows)


def read_canonical(content: bytes, place: str) -> Any:
    """Return the value of canonical JSON. Raises ArtefactError for any other bytes, other spaces included."""
    value = read_json(content, place)
    try:
        again = canonical(value)
    except RecursionError:
        raise ArtefactError(place, _TOO_DEEP) from None
    if again != content:
        at = next((at for at, (one, other) in enumerate(zip(again, content, strict=False)) if one != other), len(again))
        raise ArtefactError(place, f"it is no canonical JSON: byte {at} is none that we write")
    return value


def read_lines(content: bytes, place: str) -> list[Any]:
    """Return the rows of canonical JSON Lines. Raises ArtefactError, which names the line."""
    lines = content.splitlines(keepends=True)
    return [read_canonical(line, f"{place}:{number}") for number, line in enumerate(lines, start=1)]


def read_json(content: bytes, place: str) -> Any:
    """Return a JSON value. Raises ArtefactError for double keys, numbers that are not finite, and other broken JSON."""
    try:
        return json.loads(
            content.decode("utf-8"), object_pairs_hook=_object, parse_float=_finite, parse_constant=_refused
        )
    except RecursionError:
        raise ArtefactError(place, _TOO_DEEP) from None
    except UnicodeDecodeError as error:
        raise ArtefactError(place, f"it is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise ArtefactError(place, f"it is no JSON: {error.msg}, at line {error.lineno} column {error.colno}") from None
    except ValueError as error:
        raise ArtefactError(place, str(error)) from None


def sha256_bytes(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def shown(value: object) -> str:
    """Return a value for an error, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"it has the key {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:_SHOWN]} is no finite number")
    return number


def _refused(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
