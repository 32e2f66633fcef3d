"""Sets keys of a configuration file and leaves every other character as it is, comments included."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from smart_model_router.domain.errors import ConfigurationError

BACKUP = ".bak"
_WIDTH = 1_000_000
_STEP = "  "


def set_keys(file: Path, values: Mapping[str, Any]) -> Path:
    """Set `values`, by nested keys, in a YAML or JSON file; the path of the copy of what it was.

    The copy is `FILE.bak`, the second one `FILE.bak.2`. The file is replaced at once or not at all. Raises OSError,
    and ConfigurationError, with the file as it was, when it cannot be kept as it is (anchors, tags, flow style where a
    key is to be added).
    """
    target = file.resolve()
    text = target.read_bytes().decode("utf-8")
    changed = edited(text, values, str(file))
    numbers = (target.name + BACKUP + (f".{number}" if number > 1 else "") for number in count(1))
    backup = next(path for path in map(target.with_name, numbers) if not path.exists())
    shutil.copy2(target, backup)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(changed.encode("utf-8"))
            new.flush()
            os.fsync(new.fileno())
        shutil.copymode(target, name)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return backup


def edited(text: str, values: Mapping[str, Any], name: str) -> str:
    """The text with these values set and its line ends kept. `name` is that of the file. Raises ConfigurationError."""
    if text.count("\r\n") == text.count("\n") > 0:
        return edited(text.replace("\r\n", "\n"), values, name).replace("\n", "\r\n")
    wanted = "block style without anchors, tags and repeated keys is needed to keep what is there; write it by hand"
    try:
        before = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - plain text only
        changed = _json(text, values) if text.lstrip().startswith("{") else _set(text, (), values)
        after = yaml.load(changed, Loader=yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, ValueError, _CannotKeep):
        raise ConfigurationError(name, "the configuration", wanted) from None
    # The proof: what is read is what was there, with these values over it.
    if after != _over(before, yaml.load(yaml.safe_dump(dict(values)), Loader=yaml.BaseLoader)):  # noqa: S506
        raise ConfigurationError(name, "the configuration", wanted)
    return changed


class _CannotKeep(Exception):
    """The text has a form in which a key cannot be set without changing more."""


def section(values: Mapping[str, Any]) -> str:
    """The values as YAML."""
    return yaml.safe_dump(dict(values), sort_keys=False, width=_WIDTH, allow_unicode=True)


def _over(base: Any, values: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(values, dict):
        return values
    return base | {key: _over(base.get(key), value) for key, value in values.items()}


def _json(text: str, values: Mapping[str, Any]) -> str:
    lines = text.splitlines()
    indent = len(lines[1]) - len(lines[1].lstrip()) if len(lines) > 1 else None
    return json.dumps(_over(json.loads(text), dict(values)), indent=indent, ensure_ascii=False) + "\n"


def _set(text: str, path: tuple[str, ...], values: Mapping[str, Any]) -> str:
    """Set the values below a path, one by one: each moves what stands after it."""
    for key, value in values.items():
        inner = (*path, key)
        found = _at(text, inner)
        if isinstance(value, Mapping) and isinstance(found, yaml.MappingNode):
            text = _set(text, inner, value)
        elif found is None:
            text = _add(text, path, key, value)
        else:
            text = _replace(text, found, value, len(path))
    return text


def _at(text: str, path: tuple[str, ...]) -> yaml.Node | None:
    """The node of a path; None when there is none."""
    node = yaml.compose(text, Loader=yaml.BaseLoader)
    for key in path:
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((value for name, value in node.value if name.value == key), None)
    return node


def _add(text: str, path: tuple[str, ...], key: str, value: Any) -> str:
    """One key more: before the first one of its mapping, or at the end of the file."""
    node = _at(text, path)
    if not path:
        if node is not None and (not isinstance(node, yaml.MappingNode) or node.flow_style):
            raise _CannotKeep
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{section({key: value})}"
    if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
        raise _CannotKeep
    first = node.value[0][0].start_mark
    start = text.rfind("\n", 0, first.index) + 1
    indent = text[start : first.index]
    if indent.strip():
        raise _CannotKeep
    return text[:start] + _indented(section({key: value}), indent) + text[start:]


def _replace(text: str, node: yaml.Node, value: Any, depth: int) -> str:
    """Another value in the place of one that is there."""
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(value, Mapping):
        if not isinstance(node, yaml.ScalarNode) or node.value:
            raise _CannotKeep
        rest = text[end : text.find("\n", end) + 1 or len(text)]
        head = text[:end] + (rest if rest.endswith("\n") else f"{rest}\n")
        return head + _indented(section(value), _STEP * (depth + 1)) + text[end + len(rest) :]
    if not isinstance(node, yaml.ScalarNode) or node.start_mark.line != node.end_mark.line:
        raise _CannotKeep
    told = section({"v": value})[3:].strip()
    return f"{text[:start]}{told}{text[end:]}" if node.value or end > start else f"{text[:start]} {told}{text[end:]}"


def _indented(lines: str, indent: str) -> str:
    return "".join(f"{indent}{line}\n" for line in lines.splitlines())
