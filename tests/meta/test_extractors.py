"""Libraries that can download are given markup, in one module, and never an address."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.meta.repository import ROOT

RESEARCH = ROOT / "research" / "smart_model_router_research"
EXTRACTORS = {"trafilatura", "htmldate", "courlan", "justext", "lxml"}
ALLOWED = {("web_text.py", "trafilatura", "extract"), ("web_text.py", "htmldate", "find_date")}


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each import of a module as package and name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], "*") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (((node.module or "").partition(".")[0], alias.name) for alias in node.names)


def calls_of(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of the functions of extractors."""
    names = {name for _, _, name in ALLOWED}
    yield from (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    )


def test_extractors_are_imported_in_one_module() -> None:
    """Research imports two functions of these packages, and none of those that fetch."""
    found = {
        (path.name, package, name)
        for path in RESEARCH.rglob("*.py")
        for package, name in imported(ast.parse(path.read_text(encoding="utf-8")))
        if package in EXTRACTORS
    }

    assert found == ALLOWED


def test_nothing_of_the_extra_is_imported_before_it_is_needed() -> None:
    """No module of research imports a package of the extra when it is imported itself."""
    found = [
        (path.name, package)
        for path in RESEARCH.rglob("*.py")
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for package, _ in imported(statement)
        if package in EXTRACTORS | {"publicsuffixlist", "pypdfium2"}
    ]

    assert found == []


def test_extractors_are_given_a_document_and_no_address() -> None:
    """Each call is handed what `_document` made, which begins with a tag, and no `url`."""
    calls = list(calls_of(ast.parse((RESEARCH / "deep" / "web_text.py").read_text(encoding="utf-8"))))

    assert len(calls) == len(ALLOWED)
    for call in calls:
        [given] = call.args
        assert isinstance(given, ast.Call)
        assert isinstance(given.func, ast.Name)
        assert given.func.id == "_document"
        assert "url" not in {keyword.arg for keyword in call.keywords}
