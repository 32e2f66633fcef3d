"""Names that lead to models: exact names first, then aliases, then the longest pattern that fits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

LONGEST_NAME = 200
"""Characters of a name that a wildcard takes."""
_TEXT = re.compile(r"[^\s*]+(?<!#\d)(?<!#\d\d)(?<!#\d\d\d)")
"""A name without spaces. `#2` at its end would be the number of a credential."""


def resolve(name: str, models: Mapping[str, object], aliases: Mapping[str, str]) -> str | None:
    """The model that `name` leads to, a wildcard perhaps, through any number of aliases; None when it leads nowhere."""
    return lookup(name, models, aliases)[0]


def lookup(name: str, models: Mapping[str, object], aliases: Mapping[str, str]) -> tuple[str | None, str]:
    """The model that `name` leads to, and the last name on the way there: the one a wildcard takes its text from."""
    passed = chain(name, models, aliases)
    last = passed[-1]
    if last in passed[:-1]:
        return None, last
    if last in models and "*" not in last:
        return last, last
    return _longest(models, last), last


def chain(name: str, models: Mapping[str, object], aliases: Mapping[str, str]) -> list[str]:
    """The names passed from `name` on; the last one is a model, fits a wildcard, leads nowhere, or was seen before."""
    passed = [name]
    while (current := passed[-1]) not in models or "*" in current:
        following = _next(current, models, aliases)
        if following is None:
            break
        seen = following in passed
        passed.append(following)
        if seen:
            break
    return passed


def text_of(pattern: str, name: str) -> str | None:
    """The text that the one `*` of `pattern` stands for in `name`; None when `name` does not fit."""
    head, _, tail = pattern.partition("*")
    if len(name) <= len(head) + len(tail) or not name.startswith(head) or not name.endswith(tail):
        return None
    return name[len(head) : len(name) - len(tail)]


def _next(name: str, models: Mapping[str, object], aliases: Mapping[str, str]) -> str | None:
    """The goal of the alias for `name`: an exact one, or a pattern at least as long as every wildcard that fits."""
    if name in aliases:
        return aliases[name]
    fitting = [pattern for pattern in aliases if "*" in pattern and _fits(pattern, name)]
    if not fitting:
        return None
    best = max(fitting, key=len)
    return None if len(_longest(models, name) or "") > len(best) else aliases[best]


def _longest(models: Iterable[str], name: str) -> str | None:
    """The longest wildcard that `name` fits. A text that cannot be a model's name fits none."""
    if len(name) > LONGEST_NAME or not _TEXT.fullmatch(name) or not name.isprintable():
        return None
    fitting = [pattern for pattern in models if "*" in pattern and text_of(pattern, name) is not None]
    return max(fitting, key=len, default=None)


def _fits(pattern: str, name: str) -> bool:
    """True when `name` is `pattern` with any text for each `*`. Linear time: names come from callers."""
    head, *middle, tail = pattern.split("*")
    if len(name) < len(head) + len(tail) or not name.startswith(head) or not name.endswith(tail):
        return False
    at, end = len(head), len(name) - len(tail)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
