"""YAML text to plain data, with the place of each value; bounded, and every fault at once.

Every scalar stays text, so that the reader and not YAML decides what `no`, `1:30` or `010` is; or scalars have the
types of YAML 1.2, in which only `true`, `false`, `null` and decimal numbers are no texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.redaction import masked
from smart_model_router.domain.tree_path import Path, spelled

_BARE_REFERENCE = re.compile(r"""[{,:\[]\s*\$\{""")
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map"))


_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]{1,400}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,9})?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLimits:
    """The most that a document may have. An alias repeats nodes: `repeated` counts those, `nodes` all."""

    size: int = 262_144
    nodes: int = 20_000
    repeated: int = 20_000
    depth: int = 32


CONFIGURATION = DocumentLimits()


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data of mappings, lists and scalars, and where each path stands: line and column, from 1."""

    data: object
    places: Mapping[Path, tuple[int, int]]

    def line_of(self, key: str) -> int | None:
        """The line of the key that an error names, or of the nearest one above it; None when there is none."""
        found = self.place_of_key(key)
        return found[0] if found else None

    def place_of_key(self, key: str) -> tuple[int, int] | None:
        """The line and the column of the key that an error names, as `line_of`."""
        best: tuple[int, tuple[int, int]] | None = None
        for path, place in self.places.items():
            name = spelled(path)
            if key == name or (key.startswith(name) and key[len(name)] in ".["):
                best = max(best or (0, (0, 0)), (len(name), place))
        return best[1] if best else None

    def place_of(self, path: Path) -> tuple[int, int]:
        """The line and the column of a path, or of the nearest one above it."""
        while path and path not in self.places:  # what `<<` merged in, or what is missing
            path = path[:-1]
        return self.places.get(path, (1, 1))


def _way_out(error: yaml.MarkedYAMLError, content: bytes) -> str:
    """A hint for the two faults that are made most; "" for any other."""
    mark = error.problem_mark
    if "'\\t'" in (error.problem or ""):
        return ": indent with spaces, it takes no tabs"
    lines = content.decode("utf-8-sig").splitlines()
    if mark is not None and mark.line < len(lines) and _BARE_REFERENCE.search(lines[mark.line]):
        return ': put "${...}" in quotes'
    return ""


def parse(content: bytes, name: str, limits: DocumentLimits = CONFIGURATION, *, typed: bool = False) -> Document:
    """Read one YAML document; `typed`: scalars have types. `name` is the file's, for errors.

    Raises ConfigurationError with file, line and, from a fault of YAML on, column; the others beside the first.
    """
    if len(content) > limits.size:
        raise ConfigurationError(name, f"{len(content)} bytes", f"a file of at most {limits.size} bytes is needed")
    try:
        # The loader in Python: the one in C overflows its stack on deep nesting. It resolves no types and no tags.
        node = yaml.compose(content.decode("utf-8-sig"), Loader=yaml.BaseLoader)
    except UnicodeDecodeError as error:
        raise ConfigurationError(name, f"byte {error.start}", "text in UTF-8 is needed") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        wanted = f"YAML is needed{_way_out(error, content)}"
        raise ConfigurationError(place, masked(error.problem or "not YAML"), wanted) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        # Control characters, escapes beyond Unicode, numbers beyond int, excessive nesting.
        raise ConfigurationError(name, "not YAML", "YAML is needed: text without control characters") from None
    if node is None:
        return Document(None, {})
    builder = _Builder(name, limits, typed)
    data = builder.build(node, ())
    if builder.faults:
        raise builder.faults[0].with_others(builder.faults[1:])
    return Document(data, builder.places)


@dataclass(slots=True)
class _Builder:
    """Composed nodes to plain data. Bounded: an alias may repeat a node, and even hold itself."""

    name: str
    limits: DocumentLimits
    typed: bool
    places: dict[Path, tuple[int, int]] = field(default_factory=dict)
    faults: list[ConfigurationError] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    nodes: int = 0
    repeated: int = 0
    depth: int = 0

    def build(self, node: Any, path: Path) -> object:
        """The data of a node."""
        self.nodes += 1
        self.depth += 1
        self.repeated += id(node) in self.seen
        self.seen.add(id(node))
        self.places.setdefault(path, _place(node))
        most = self.limits
        if self.nodes > most.nodes or self.repeated > most.repeated or self.depth > most.depth:
            self._fault(node, "too many values", "a document that is not nested or repeated endlessly is needed")
            raise self.faults[0].with_others(self.faults[1:])
        built: object = node.value
        if node.tag not in _TAGS:
            self._fault(node, masked(node.tag[:60]), "a value without a YAML tag is needed")
        elif isinstance(node, yaml.SequenceNode):
            built = [self.build(member, (*path, index)) for index, member in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            built = self._mapping(node, path)
        elif node.style is None:
            built = self._scalar(node.value)
        self.depth -= 1
        return built

    def _scalar(self, text: str) -> object:
        """The value of a scalar without quotes."""
        if text in _NOTHING:
            return None
        if not self.typed:
            return text
        if _INTEGER.fullmatch(text):
            return int(text)
        return (
            float(text.replace(".inf", "inf").replace(".nan", "nan"))
            if _FLOAT.fullmatch(text)
            else _TRUTHS.get(text, text)
        )

    def _mapping(self, node: Any, path: Path) -> dict[str, object]:
        built: dict[str, object] = {}
        merged: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._fault(key, "a list or mapping", "a key that is text is needed")
                continue
            if key.value == "<<" and key.style is None:
                for source in self._sources(value, path):
                    merged = {**source, **merged}
                continue
            if key.value in built:
                self._fault(key, masked(key.value[:100]), "the key stands here twice; each key once is needed")
                continue
            here = (*path, key.value)
            self.places[here] = _place(key)
            built[key.value] = self.build(value, here)
        return {**merged, **built}

    def _sources(self, value: Any, path: Path) -> Iterator[dict[str, object]]:
        """The mappings that `<<` merges in, the strongest first."""
        for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            data = self.build(source, path)
            if isinstance(data, dict):
                yield data
            else:
                self._fault(source, "no mapping", "a mapping, or a list of them, is needed to merge")

    def _fault(self, node: Any, value: str, expected: str) -> None:
        line, column = _place(node)
        place = f"{self.name}:{line}:{column}" if self.typed else f"{self.name}:{line}"
        self.faults.append(ConfigurationError(place, value, expected))


def _place(node: Any) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
