"""The pinned requirements install the same bytes everywhere, and say nothing about where from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.meta.repository import ROOT, project, relative, table_rows

FILES = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?==([^\s;\\]+)", re.MULTILINE)


def entries(path: Path) -> list[str]:
    """Return the requirements of a file, each with its continuation lines, comments left out."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    return [entry for entry in re.split(r"(?<!\\)\n", "\n".join(lines)) if entry.strip()]


def pins(path: Path) -> dict[str, str]:
    """Return package -> pinned version."""
    return {canonicalize_name(name): version for name, version in PIN.findall(path.read_text("utf-8"))}


def declared() -> dict[str, Requirement]:
    """Return every dependency that pyproject.toml declares, by its canonical name; not our own extras."""
    whole = project()
    table = whole["project"]
    lines = [
        *table["dependencies"],
        *(line for extra in table["optional-dependencies"].values() for line in extra),
        *(line for group in whole["dependency-groups"].values() for line in group),
    ]
    named = {canonicalize_name(Requirement(line).name): Requirement(line) for line in lines}
    return {name: requirement for name, requirement in named.items() if name != table["name"]}


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_every_requirement_is_pinned_and_hashed(path: Path) -> None:
    """Each entry names one version and at least one SHA-256; no line is an option (index, links)."""
    assert entries(path)
    assert [entry for entry in entries(path) if not PIN.match(entry) or "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_the_files_agree(path: Path) -> None:
    """dev.txt is the one resolution; the other files are parts of it."""
    assert pins(path).items() <= pins(ROOT / "requirements" / "dev.txt").items()


def test_the_extra_research_is_enough_for_research() -> None:
    """Documents are read with the packages of `scoring`, which it brings."""
    assert "smart-model-router[scoring]" in project()["project"]["optional-dependencies"]["research"]


@pytest.mark.parametrize("name", sorted(declared()))
def test_a_declared_dependency_is_pinned_within_its_range(name: str) -> None:
    """What pyproject.toml asks for is what requirements/dev.txt installs: run `make lock` after a change."""
    assert declared()[name].specifier.contains(pins(ROOT / "requirements" / "dev.txt")[name])


def test_each_dependency_has_its_line() -> None:
    """docs/dependencies.md has exactly one line, with a reason, for each declared dependency."""
    rows = list(table_rows((ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")))
    named = [canonicalize_name(row[0].strip("`").partition("[")[0]) for row in rows]
    assert sorted(named) == sorted(declared())
    assert all(row[2] for row in rows)
