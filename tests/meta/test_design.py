"""The rules that the code cites are in docs/design: each cited section, and each promise that the simulation checks."""

from __future__ import annotations

import re

import pytest

from tests.meta.repository import ROOT, SOURCE_ROOTS, relative

PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "design").glob("*.md")}
DOCUMENTS = {path.name.lower() for folder in ("docs/**/*.md", "*.md") for path in ROOT.glob(folder)}
CITATION = re.compile(r"\b([\w-]+\.md),? sections? (\d+\w?)(?: and (\d+\w?))?")
LABELS = re.compile(r"\bsection 0a?((?:,| and) [DI]\d+\w?\b)+|\"([DI]\d+[a-z]?)\"")
FILES = sorted(path for root in SOURCE_ROOTS for path in root.rglob("*.py"))
TEXTS = {relative(path): re.sub(r"\s*\n\s*(?:# )?", " ", path.read_text(encoding="utf-8")) for path in FILES}


def cited() -> list[tuple[str, str, str]]:
    """Return file, page and section of every citation; a sentence may begin with the page."""
    found_in = {
        (file, found[1].lower(), section)
        for file, text in TEXTS.items()
        for found in CITATION.finditer(text)
        for section in found.groups()[1:]
        if section
    }
    return sorted(found_in)


def headings(page: str) -> set[str]:
    """Return the numbers of the sections of a page."""
    return set(re.findall(r"^## (\w+)\. ", PAGES.get(page, ""), re.MULTILINE))


def test_there_are_citations() -> None:
    """The pattern above finds them."""
    assert len(cited()) > 30


@pytest.mark.parametrize(("file", "page", "section"), cited())
def test_a_cited_section_exists(file: str, page: str, section: str) -> None:
    """The page is in docs/design, and has a section of that number."""
    assert section in headings(page), f"{file} cites {page} section {section}"


def test_a_cited_document_is_in_the_repository() -> None:
    """No citation leads to a document that a reader of the repository does not have."""
    cited = {(file, name) for file, text in TEXTS.items() for name in re.findall(r"[\w-]+\.md\b", text)}
    assert sorted((file, name) for file, name in cited if name.lower() not in DOCUMENTS) == []


def test_the_promises_of_the_simulation_are_in_the_page() -> None:
    """Each label such as I4 or D5a that is cited, or that a checker reports, has its line in routing.md."""
    lines = set(re.findall(r"^- ([DI]\d+[a-z]?)\b", PAGES["routing.md"], re.MULTILINE))
    found = {
        label
        for text in TEXTS.values()
        for match in LABELS.finditer(text)
        for label in re.findall(r"\b[DI]\d+[a-z]?\b", match[0])
    }
    assert len(found) > 10
    assert found <= lines
