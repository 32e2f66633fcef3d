"""What the tests about the repository itself read: its documents, the tests they name, its source files."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = tuple(ROOT / root for root in ("router", "providers", "stats", "scoring", "research"))
NODE_ID = re.compile(r"tests/[\w/]+\.py::\w+(?:::\w+)?")


def documents() -> list[Path]:
    """Return the documents we publish: those at the root, and docs/."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def relative(path: Path) -> str:
    """Return `path` as people write it: from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def node_ids(text: str) -> list[str]:
    """Return the tests that `text` names, in order (`tests/unit/core/test_x.py::test_y`)."""
    return NODE_ID.findall(text)


@cache
def _tests_in(path: Path) -> frozenset[str]:
    """Return the tests of a file as `function` and `Class::function`, without importing it."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef))
            found.update(f"{node.name}::{method.name}" for method in methods)
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


def names_a_test(node_id: str) -> bool:
    """Return whether the repository has this test."""
    file, _, name = node_id.partition("::")
    return (ROOT / file).is_file() and name in _tests_in(ROOT / file)


def table_rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of each body row of the Markdown tables in `text`."""
    in_body = False
    for line in text.splitlines():
        if not line.startswith("|"):
            in_body = False
        elif re.fullmatch(r"\|[\s:|-]+\|", line.strip()):
            in_body = True
        elif in_body:
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def modules() -> Iterator[tuple[str, Path]]:
    """Yield every module of ours as (dotted name, file); a package goes by the name of its folder."""
    for root in SOURCE_ROOTS:
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__"), path
