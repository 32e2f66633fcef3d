"""Every page of the documentation is reached from the site's navigation, and no link in a document is dead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

import smart_model_router
from tests.meta.repository import ROOT, documents, relative
from tools.docs_site import BESIDE, anchors, dead_links, page_text, public_modules, repository_link, root_text

DOCS = ROOT / "docs"
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
# The one tag of MkDocs, a Python object, is none of these tests.
SITE = yaml.safe_load(re.sub(r"!!python\S+", "", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))


def named(nav: Any) -> Iterator[str]:
    """Yield the pages of a navigation, whatever their depth."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for part in nav.values():
            yield from named(part)
    else:
        for part in nav:
            yield from named(part)


def links(path: Path) -> Iterator[tuple[str, str]]:
    """Yield file and anchor of each relative link of a document, either of which may be empty."""
    for target in _LINK.findall(_CODE.sub("", path.read_text(encoding="utf-8"))):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            yield file, anchor


def test_every_page_is_in_the_navigation() -> None:
    """The navigation has each page of docs/ once, but for records, which have an index, and no other page."""
    left_out = SITE["not_in_nav"].split()
    pages = [*named(SITE["nav"])]
    made = [page for page in pages if page.startswith("reference/") or page in BESIDE.values()]
    written = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    listed = [page for page in written if not any(fnmatch(f"/{page}", pattern) for pattern in left_out)]
    assert sorted(set(pages) - set(made)) == sorted(listed)
    assert len(pages) == len(set(pages))


def test_every_page_is_linked_from_an_index() -> None:
    """A reader of the repository, which has no navigation, gets from docs/README.md to each page."""
    reached, waiting = set[Path](), [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.is_file():
            reached.add(page)
            waiting += [(page.parent / file).resolve() for file, _ in links(page) if file]
    assert [relative(path) for path in documents() if path.is_relative_to(DOCS) and path not in reached] == []


@pytest.mark.parametrize("path", documents(), ids=relative)
def test_no_link_is_dead(path: Path) -> None:
    """Each relative link leads to a file of the repository and, with an anchor, to a heading of it."""
    dead = []
    for file, anchor in links(path):
        target = (path.parent / file).resolve() if file else path
        known = anchors(target.read_text(encoding="utf-8")) if target.suffix == ".md" and target.is_file() else set()
        if not target.exists() or (anchor and anchor not in known):
            dead.append(f"{file}#{anchor}" if anchor else file)
    assert dead == []


def test_the_reference_has_every_public_module() -> None:
    """Each module that docs/api.md names has a page, and the navigation lists all of them."""
    modules = public_modules((DOCS / "api.md").read_text(encoding="utf-8"))
    assert modules[0] == smart_model_router.__name__
    assert {"smart_model_router.domain.ports", "smart_model_router.testing", "smart_model_router_scoring.fusion"} <= {
        *modules
    }
    listed = [page for page in named(SITE["nav"]) if page.startswith("reference/")]
    assert listed == [f"reference/{module}.md" for module in modules]


def test_headings_have_the_anchors_that_the_repository_gives_them() -> None:
    """Lower case, without punctuation, spaces as hyphens; a repeated heading is numbered; code is no heading."""
    text = "# A `b.c` & D\n\n## 3. Licensed edits\n\n## 3. Licensed edits\n\n```sh\n# no heading\n```\n"
    assert anchors(text) == {"a-bc--d", "3-licensed-edits", "3-licensed-edits-1"}


@pytest.mark.parametrize(
    ("page", "target", "expected"),
    [
        ("how-to/a.md", "../api.md#x", "../api.md#x"),
        ("how-to/a.md", "../../examples/b.py", "BASE/examples/b.py"),
        ("api.md", "../CHANGELOG.md", "changelog.md"),
        ("how-to/a.md", "../../CONTRIBUTING.md#lanes", "../contributing.md#lanes"),
        ("README.md", "https://example.com/x", "https://example.com/x"),
        ("README.md", "#here", "#here"),
    ],
)
def test_a_link_out_of_the_docs_leads_to_the_repository(page: str, target: str, expected: str) -> None:
    """Links within docs/ stay; the two documents beside it have pages of the site."""
    assert repository_link(target, page, "BASE") == expected


def test_a_document_of_the_root_leads_to_pages_of_the_site() -> None:
    """Pages below docs/, the other documents of the root, and for the rest the repository."""
    text = "[a](docs/a.md#x) ![b](docs/b.png) [c](CONTRIBUTING.md) [d](examples/d.py) [e](https://f/) [g](#h) `[i](j)`"
    shown = "[a](a.md#x) ![b](b.png) [c](contributing.md) [d](BASE/examples/d.py) [e](https://f/) [g](#h) `[i](j)`"
    assert root_text(text, "BASE") == shown


def test_a_page_is_shown_without_the_marks_of_its_tests() -> None:
    """The reason for not running a block is for the tests: the renderer would take it for no code block at all."""
    text = "```python no-run: it has no end\nx\n```\n[a](../examples/a.py) `[b](../c.py)`\n"
    assert page_text(text, "page.md", "BASE") == "```python\nx\n```\n[a](BASE/examples/a.py) `[b](../c.py)`\n"


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ('<a href="b.html#there">', None),
        ('<a href="/b.html">', None),
        ('<a href="https://example.com/">', None),
        ('<a href="c.html">', "index.html: c.html leads nowhere"),
        ('<a href="b.html#gone">', "index.html: b.html#gone leads nowhere"),
        ('<a href="#gone">', "index.html: #gone leads nowhere"),
        ('<script src="https://example.com/x.js">', "index.html: https://example.com/x.js is loaded from elsewhere"),
    ],
)
def test_the_check_of_the_built_site_finds_dead_links(tmp_path: Path, body: str, finding: str | None) -> None:
    """A missing file, a missing anchor and a script of another host are found; a link that leads somewhere is not."""
    (tmp_path / "index.html").write_text(f'<a href="b.html"></a>{body}', encoding="utf-8")
    (tmp_path / "b.html").write_text('<p id="there">', encoding="utf-8")
    assert [*dead_links(tmp_path)] == ([] if finding is None else [finding])


def test_the_check_of_the_built_site_finds_pages_without_links_to_them(tmp_path: Path) -> None:
    """A page that only its address leads to counts as lost."""
    for name in ("index.html", "b.html"):
        (tmp_path / name).write_text('<a href="index.html">', encoding="utf-8")
    assert [*dead_links(tmp_path)] == ["b.html: no page leads here"]
