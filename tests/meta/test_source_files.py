"""Every source file introduces itself, is typed, and has its place in the layers."""

from __future__ import annotations

import ast
import importlib
import re
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import smart_model_router
from tests.meta.repository import ROOT, SOURCE_ROOTS, modules, project, relative

FILES = sorted(
    path
    for folder in ("router", "providers", "stats", "scoring", "research", "tests", "examples", "benchmarks", "tools")
    for path in (ROOT / folder).rglob("*.py")
)
MODULES = dict(modules())


def layers() -> set[str]:
    """Return the modules that the layers contract in pyproject.toml names."""
    contracts = project()["tool"]["importlinter"]["contracts"]
    written = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    return {module for layer in written for module in re.split(r"\s*[|:]\s*", layer)}


def test_a_source_file_says_what_it_is() -> None:
    """The first line of a file is a docstring of one sentence."""
    texts = {relative(path): path.read_text(encoding="utf-8") for path in FILES}
    described = [
        name
        for name, text in texts.items()
        if text.startswith(('"""', 'r"""', "#!")) and ast.get_docstring(ast.parse(text))
    ]
    assert sorted(set(texts) - set(described)) == []


def test_a_module_has_its_layer() -> None:
    """The import contract covers every module: what it does not name could import anything."""
    modules = {name for name in MODULES if name != "smart_model_router"}
    assert (
        sorted(modules - {name for name in modules for layer in layers() if f"{name}.".startswith(f"{layer}.")}) == []
    )


def test_no_module_imports_itself_through_others() -> None:
    """The imports of the product have an order, also those inside functions. Imports for types alone do not count."""
    packages = [next(root.glob("smart_model_router*")).name for root in SOURCE_ROOTS]
    graph = grimp.build_graph(*packages, exclude_type_checking_imports=True, cache_dir=None)
    order = TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    order.prepare()  # raises CycleError with the modules of a circle


@pytest.mark.parametrize("root", SOURCE_ROOTS, ids=lambda root: root.name)
def test_a_source_root_holds_one_typed_package(root: Path) -> None:
    """A source root holds exactly one package, named for us, and the package says that it is typed."""
    packages = [path for path in root.iterdir() if path.name != "__pycache__"]
    assert len(packages) == 1
    assert packages[0].name.startswith("smart_model_router")
    assert (packages[0] / "py.typed").is_file()


def test_the_public_names_are_sorted_and_importable() -> None:
    """`__all__` of the front door is sorted, without repetition, and each name is there."""
    names = smart_model_router.__all__
    assert list(names) == sorted(set(names))
    assert all(hasattr(importlib.import_module("smart_model_router"), name) for name in names)
    assert {"RouterConfig", "SmartModelRouter"} <= set(names)
