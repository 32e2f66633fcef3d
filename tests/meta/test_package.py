"""The package page works without the repository beside it, and the version is written in one place."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import version
from typing import Any

import pytest

from tests.meta.repository import ROOT, modules, project
from tools.release import change_notes, newest_release

REPOSITORY = "https://github.com/smart-model-router/smart-model-router"
FILES = "https://raw.githubusercontent.com/smart-model-router/smart-model-router"
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")


@cache
def metadata() -> dict[str, Any]:
    """Return the metadata that the build backend would publish."""
    command = [sys.executable, "-m", "hatchling", "metadata"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_link_of_the_package_page_is_absolute() -> None:
    """A picture is the file itself, a link to the repository a page of it, and both are files that exist."""
    links = LINK.findall(metadata()["readme"]["text"])
    assert [target for _, target in links if not target.startswith(("https://", "#"))] == []
    ours = [(mark, target) for mark, target in links if target.startswith((REPOSITORY, FILES))]
    assert len(ours) > 5
    for mark, target in ours:
        start = f"{FILES}/main/" if mark else f"{REPOSITORY}/blob/main/"
        assert target.startswith(start)
        assert (ROOT / target.removeprefix(start).partition("#")[0]).exists(), target


def test_the_package_page_is_the_readme() -> None:
    """Apart from the targets of links nothing differs from README.md."""
    without = [LINK.sub("[]", text) for text in (metadata()["readme"]["text"], (ROOT / "README.md").read_text("utf-8"))]
    assert without[0].strip() == without[1].strip()


def test_the_page_says_where_to_find_the_project() -> None:
    """Source, changes, documentation and issues are linked, all in one repository."""
    urls = metadata()["urls"]
    assert set(urls) >= {"Changelog", "Documentation", "Issues", "Source"}
    assert all(url.startswith(REPOSITORY) for url in urls.values())


def test_tools_of_developers_are_not_offered_to_users() -> None:
    """No extra brings pytest or ruff: they are a dependency group, which is not published."""
    assert "dev" not in project()["project"]["optional-dependencies"]
    assert {"pytest", "ruff"} <= {re.split(r"[^\w-]", line)[0] for line in project()["dependency-groups"]["dev"]}


def test_the_installed_package_has_the_version_of_pyproject_toml() -> None:
    """`make setup` was run after the version changed."""
    assert version("smart-model-router") == project()["project"]["version"]


def test_no_module_has_a_version_of_its_own() -> None:
    """The version is written in pyproject.toml and asked from the installed package."""
    written = re.compile(rf"__version__\s*=|VERSION\s*=\s*[\"']{re.escape(project()['project']['version'])}")
    assert [name for name, path in modules() if written.search(path.read_text(encoding="utf-8"))] == []


def test_the_changelog_has_nothing_newer_than_the_version() -> None:
    """The newest numbered section is that of this version or, while it is being made, of the one before."""
    numbers = re.compile(r"\d+")
    newest = newest_release((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    current = project()["project"]["version"]
    assert newest is None or [*map(int, numbers.findall(newest))] <= [*map(int, numbers.findall(current))]


CHANGES = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.1.0] - 2026-01-02\n\n- old\n"


@pytest.mark.parametrize(("release", "expected"), [("0.1.0", "- old"), ("0.2.0", "- new")])
def test_the_notes_are_the_section_of_the_release(release: str, expected: str) -> None:
    """A release without a section of its own yet has what is unreleased."""
    assert change_notes(CHANGES, release) == expected


def test_a_changelog_without_any_section_is_an_error() -> None:
    """The error says which headings were looked for."""
    with pytest.raises(ValueError, match=r"neither \[0\.2\.0\] nor \[Unreleased\]"):
        change_notes("# Changelog\n", "0.2.0")


def test_the_sdist_has_everything_that_the_repository_has() -> None:
    """A packager gets what a clone has: every folder and file of the root that git does not ignore, or reads alone."""
    named = {path.strip("/") for path in project()["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()]
    present = {path.name for path in ROOT.iterdir() if not any(fnmatch(path.name, pattern) for pattern in ignored)}
    by_default = {"LICENSE", "pyproject.toml", ".gitignore"}
    assert present - named - by_default <= {".git", ".git-blame-ignore-revs"}
    assert {name for name in named if not (ROOT / name).exists()} == set()
