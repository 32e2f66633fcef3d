"""YAML text to plain data: every scalar stays text, so the tree and not YAML decides what `no`, `1:30` or `010` is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from smart_model_router.config.secret import masked
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.tree_path import Path, spelled

LIMIT_BYTES = 262_144
_LIMIT_NODES = 20_000
_LIMIT_DEPTH = 32
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map"))


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data of mappings, lists, text and None, and the line on which each path stands, from 1."""

    data: object
    lines: Mapping[Path, int]

    def line_of(self, key: str) -> int | None:
        """The line of the key that an error names, or of the nearest one above it; None when there is none."""
        best: tuple[int, int] | None = None
        for path, line in self.lines.items():
            name = spelled(path)
            if key == name or (key.startswith(name) and key[len(name)] in ".["):
                best = max(best or (0, 0), (len(name), line))
        return best[1] if best else None


def parse(content: bytes, name: str) -> Document:
    """Read one YAML document. `name` is the file's, for errors. Raises ConfigurationError with file and line."""
    if len(content) > LIMIT_BYTES:
        raise ConfigurationError(name, f"{len(content)} bytes", f"a file of at most {LIMIT_BYTES} bytes is needed")
    try:
        # The loader in Python: the one in C overflows its stack on deep nesting. It resolves no types and no tags.
        node = yaml.compose(content.decode("utf-8-sig"), Loader=yaml.BaseLoader)
    except UnicodeDecodeError as error:
        raise ConfigurationError(name, f"byte {error.start}", "text in UTF-8 is needed") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise ConfigurationError(place, masked(error.problem or "not YAML"), "YAML is needed") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        # Control characters, escapes beyond Unicode, numbers beyond int, excessive nesting.
        raise ConfigurationError(name, "not YAML", "YAML is needed: text without control characters") from None
    builder = _Builder(name)
    return Document(builder.build(node, ()), builder.lines) if node is not None else Document(None, {})


@dataclass(slots=True)
class _Builder:
    """Composed nodes to plain data. Bounded: an alias may repeat a node, and even hold itself."""

    name: str
    lines: dict[Path, int] = field(default_factory=dict)
    nodes: int = 0
    depth: int = 0

    def build(self, node: Any, path: Path) -> object:
        """The data of a node."""
        self.nodes += 1
        self.depth += 1
        self.lines.setdefault(path, node.start_mark.line + 1)
        if self.nodes > _LIMIT_NODES or self.depth > _LIMIT_DEPTH:
            raise self._error(node, "too many values", "a document that is not nested or repeated endlessly is needed")
        if node.tag not in _TAGS:
            raise self._error(node, masked(node.tag[:60]), "a value without a YAML tag is needed")
        built: object = (
            None if isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _NOTHING else node.value
        )
        if isinstance(node, yaml.SequenceNode):
            built = [self.build(member, (*path, index)) for index, member in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            built = self._mapping(node, path)
        self.depth -= 1
        return built

    def _mapping(self, node: Any, path: Path) -> dict[str, object]:
        built: dict[str, object] = {}
        merged: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a list or mapping", "a key that is text is needed")
            if key.value == "<<" and key.style is None:
                for source in self._sources(value, path):
                    merged = {**source, **merged}
                continue
            if key.value in built:
                raise self._error(key, masked(key.value[:100]), "the key stands here twice; each key once is needed")
            here = (*path, key.value)
            self.lines[here] = key.start_mark.line + 1
            built[key.value] = self.build(value, here)
        return {**merged, **built}

    def _sources(self, value: Any, path: Path) -> Iterator[dict[str, object]]:
        """The mappings that `<<` merges in, the strongest first."""
        for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            data = self.build(source, path)
            if not isinstance(data, dict):
                raise self._error(source, "no mapping", "a mapping, or a list of them, is needed to merge")
            yield data

    def _error(self, node: Any, value: str, expected: str) -> ConfigurationError:
        return ConfigurationError(f"{self.name}:{node.start_mark.line + 1}", value, expected)
