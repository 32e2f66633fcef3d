"""Each example of a framework says what it needs, and users find it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.meta.repository import ROOT, relative
from tools.examples import FOLDER, examples, packages

PAGE = (ROOT / "docs" / "how-to" / "drop-in.md").read_text(encoding="utf-8")
FRAMEWORKS = {
    "anthropic", "fastapi", "langchain-openai", "langgraph", "llama-index-llms-openai-like", "nbclient", "openai",
    "openai-agents", "pydantic-ai-slim",
}  # fmt: skip


def test_there_is_an_example_for_each_framework() -> None:
    """The SDKs, the frameworks of agents, a web application and a notebook."""
    wanted = {line for path in examples() for line in packages(path)}
    assert {
        name for name in FRAMEWORKS if any(line.startswith((f"{name}>", f"{name}[")) for line in wanted)
    } == FRAMEWORKS


@pytest.mark.parametrize("path", examples(), ids=relative)
def test_an_example_is_listed_where_users_look(path: Path) -> None:
    """The page about frameworks links it."""
    assert f"(../../{relative(path)})" in PAGE


@pytest.mark.parametrize("path", examples(), ids=relative)
def test_an_example_bounds_what_it_needs(path: Path) -> None:
    """A new major version of a framework does not break it: each requirement has a lower bound."""
    assert all(">=" in line for line in packages(path))


def test_a_notebook_is_kept_without_outputs() -> None:
    """Nothing of the machine it ran on is in it."""
    for path in FOLDER.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


@pytest.mark.parametrize(
    "text", ["print()\n", '# /// script\n# dependencies = ["openai"]\n# ///\n'], ids=["no block", "no router"]
)
def test_an_example_without_its_packages_is_an_error(tmp_path: Path, text: str) -> None:
    """The lane does not guess."""
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.py: .*smart-model-router is needed"):
        packages(tmp_path / "a.py")
