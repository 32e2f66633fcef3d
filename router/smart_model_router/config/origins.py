"""The configuration in force, value by value, each with its origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

from smart_model_router.config.conversion import references
from smart_model_router.config.hints import FROM_KEY, SWITCH
from smart_model_router.config.rules import FACTS, mentions_of
from smart_model_router.config.secret import MASK, Secret, masked_urls
from smart_model_router.config.tree import RouterConfig
from smart_model_router.domain.tree_path import Path
from smart_model_router.domain.yaml_document import Document

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Value:
    """One value in force: its path, the value (a secret is `***`) and its origin."""

    path: Path
    value: object
    origin: str


def plain(part: Any) -> Any:
    """A part of the tree as plain data that a file could hold: secrets are `***`, what is not set is left out."""
    if isinstance(part, Secret):
        return MASK
    if isinstance(part, str):
        return masked_urls(part)
    if is_dataclass(part):
        # None is "not set", but for a list: `last_resort: []` and none at all are two things.
        return {key: plain(value) for key, value in _members(part) if value is not None}
    if isinstance(part, Mapping):
        return {key: plain(value) for key, value in part.items()}
    return [plain(member) for member in part] if isinstance(part, tuple) else part


def values_in_force(config: RouterConfig, document: Document | None, name: str) -> list[Value]:
    """Every value of `config`, read from `document` (None: there was no file), whose file is called `name`."""
    given = Document(None, {}) if document is None else document
    facts: list[tuple[str, str, Path]] = [
        (mention.target, fact, (*path, fact)) for path, mention in mentions_of(config.models) for fact in FACTS
    ]
    # A fact that one mention of a target gives holds for every mention.
    said = {
        (target, fact): _origin(path, given, name) for target, fact, path in reversed(facts) if path in given.places
    }
    repeated = {path: said[target, fact] for target, fact, path in facts if (target, fact) in said}
    found = []
    for path, value in _leaves(config, ()):
        origin = _origin(path, given, name)
        found.append(Value(path, value, repeated.get(path, origin) if origin == DEFAULT else origin))
    return found


def _members(section: Any) -> Iterator[tuple[str, Any]]:
    return ((f.name, getattr(section, f.name)) for f in fields(section) if not f.metadata.get(FROM_KEY))


def _leaves(part: Any, path: Path) -> Iterator[tuple[Path, object]]:
    """Each value that holds no others; an empty list or mapping is one."""
    inner: Iterator[tuple[str | int, Any]] | None = None
    if is_dataclass(part):
        inner = iter(_members(part))
    elif isinstance(part, Mapping) and part:
        inner = iter(part.items())
    elif isinstance(part, tuple) and part:
        inner = iter(enumerate(part))
    if inner is None:
        yield path, plain(part)
        return
    for step, member in inner:
        yield from _leaves(member, (*path, step))


def _origin(path: Path, document: Document, name: str) -> str:
    raw = document.data
    for step in path:
        if isinstance(raw, str) and step in (0, "target", SWITCH):  # a list of one, a target, a section: short forms
            break
        inside = step in raw if isinstance(raw, dict) else isinstance(raw, list) and step in range(len(raw))
        if not inside:
            return DEFAULT
        raw = cast("Any", raw)[step]
    if raw is None:  # a key without a value
        return DEFAULT
    place = f"{name}:{document.place_of(path)[0]}"
    behind = ", ".join(references(raw)) if isinstance(raw, str) else ""
    return f"{behind} ({place})" if behind else place
