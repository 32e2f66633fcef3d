"""Other names for models: exact before patterns, and of the patterns that fit the longest."""

from __future__ import annotations

from collections.abc import Container, Mapping


def resolve(name: str, models: Container[str], aliases: Mapping[str, str]) -> str | None:
    """The model that `name` leads to, through any number of aliases; None when it leads nowhere."""
    for step in chain(name, models, aliases):
        if step in models:
            return step
    return None


def chain(name: str, models: Container[str], aliases: Mapping[str, str]) -> list[str]:
    """The names passed from `name` on, the last one a model, a dead end, or one seen before (a cycle)."""
    passed = [name]
    while (current := passed[-1]) not in models:
        following = _next(current, aliases)
        if following is None:
            break
        seen = following in passed
        passed.append(following)
        if seen:
            break
    return passed


def _next(name: str, aliases: Mapping[str, str]) -> str | None:
    if name in aliases:
        return aliases[name]
    fitting = [pattern for pattern in aliases if "*" in pattern and _fits(pattern, name)]
    return aliases[max(fitting, key=len)] if fitting else None


def _fits(pattern: str, name: str) -> bool:
    """Whether `name` is `pattern` with any text for each `*`. Linear: names come from callers, patterns from owners."""
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
