"""The documentation as a site: `make docs` builds it in an environment of its own and checks every link of it.

This file is also the hook that MkDocs loads (mkdocs.yml). The pages stay as they read well in the repository; the
build adds the reference, which comes from docstrings, and leads links out of docs/ to the repository.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"
PACKAGES = ("mkdocs-material==9.*", "mkdocstrings[python]==1.*", "ruff")  # ruff breaks the lines of long signatures
BESIDE = {"README.md": "start.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Documents at the root of the repository that are pages of the site."""
FRONT_MODULE, FRONT_CLASS = "smart_model_router", "SmartModelRouter"
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()([^()\s]+)(?=\))")
_MARK = re.compile(r"^(```python) no-run:.*$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings as the repository's host makes them."""
    found: set[str] = set()
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#{1,6} (.+?) *#*$", prose, re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = name = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        number = 0
        while name in found:
            number += 1
            name = f"{slug}-{number}"
        found.add(name)
    return found


def repository_link(target: str, page: str, base: str) -> str:
    """Return a link of `page` (a path below docs/) for the site: what is not there is at `base`, the repository."""
    if re.match(r"[a-z]+:|#", target):
        return target
    file, mark, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), file))
    if path in BESIDE:
        return posixpath.relpath(BESIDE[path], posixpath.dirname(page) or ".") + mark + anchor
    return target if path.startswith("docs/") else f"{base}/{path}{mark}{anchor}"


def root_text(text: str, base: str) -> str:
    """Return a document of the root of the repository as a page of the site: its links lead there, or to `base`."""

    def link(found: re.Match[str]) -> str:
        file, mark, anchor = found[1].partition("#")
        if re.match(r"[a-z]+:|$", file):
            return found[1]
        inside = BESIDE.get(file, file.removeprefix("docs/") if file.startswith("docs/") else f"{base}/{file}")
        return inside + mark + anchor

    return _outside_code(text, lambda prose: _LINK.sub(link, prose))


def page_text(text: str, page: str, base: str) -> str:
    """Return the Markdown of a page for the site: without marks for tests, its links as `repository_link` has them."""
    shown = _MARK.sub(r"\1", text)
    return _outside_code(shown, lambda prose: _LINK.sub(lambda found: repository_link(found[1], page, base), prose))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return the Markdown with `change` made to all of it but its code."""
    parts = _CODE.split(text)
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


def public_modules(page: str) -> list[str]:
    """Return the modules that docs/api.md names, in its order; `package.*` stands for each public package in it."""
    found = ["smart_model_router"]
    for cell in re.findall(
        r"^\| (`smart_model_router[\w.]+[^|]*?) \|", page.split("## Other modules")[1], re.MULTILINE
    ):
        names = re.findall(r"`([^`]+)`", cell)
        parent = names[0].rpartition(".")[0]
        for name in (parent + name if name.startswith(".") else name for name in names):
            found += _packages_in(name[:-2]) if name.endswith(".*") else [name]
    return found


def _packages_in(package: str) -> list[str]:
    [root] = ROOT.glob(f"*/{package}")
    public = (path for path in root.iterdir() if not path.name.startswith("_"))
    files = (path if path.suffix == ".py" else path / "__init__.py" for path in public)
    named = (path for path in files if path.is_file() and "__all__" in path.read_text(encoding="utf-8"))
    return sorted(f"{package}.{path.parent.name if path.stem == '__init__' else path.stem}" for path in named)


# The hooks of MkDocs -------------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each public module, and those beside docs/."""
    from mkdocs.structure.files import File  # type: ignore[import-not-found] # in the lane's environment only

    for module in public_modules((ROOT / "docs" / "api.md").read_text(encoding="utf-8")):
        front = f"Begin with [`{FRONT_CLASS}`](#{module}.{FRONT_CLASS}).\n\n" if module == FRONT_MODULE else ""
        content = f"# {module}\n\n{front}::: {module}\n"
        files.append(File.generated(config, f"reference/{module}.md", content=content))
    for name, page in BESIDE.items():
        text = root_text((ROOT / name).read_text(encoding="utf-8"), _base(config))
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Adapt the text of a page."""
    return page_text(markdown, page.file.src_uri, _base(config))


def _base(config: Any) -> str:
    return f"{config['extra']['repository']}/blob/main"


# The check of the built site -----------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """The links and the anchors of a built page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what the tag refers to, and by which name it is referred to."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
                if tag in ("script", "img", "iframe") and urlsplit(value).netloc:
                    self.loaded.append(value)
            elif value and name in ("id", "name"):
                self.anchors.add(value)


def dead_links(site: Path) -> Iterator[str]:
    """Yield each link of the built site that leads nowhere in it, and each page that no other one leads to.

    Links to other hosts are not followed, but scripts and pictures that come from there are findings.
    """
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    reached = {site / "index.html", site / "404.html"}
    for path, page in pages.items():
        yield from (f"{path.relative_to(site)}: {address} is loaded from elsewhere" for address in page.loaded)
        for link in page.links:
            address, anchor = urldefrag(link)
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            place = site if address.startswith("/") else path.parent
            target = (place / unquote(urlsplit(address).path).lstrip("/")).resolve() if address else path
            target = target / "index.html" if target.is_dir() else target
            if target != path:
                reached.add(target)
            known = pages[target].anchors if target in pages else set[str]()
            if not target.exists() or (anchor and target in pages and unquote(anchor) not in known):
                yield f"{path.relative_to(site)}: {link} leads nowhere"
    for path in sorted(set(pages) - reached):
        yield f"{path.relative_to(site)}: no page leads here"


def main() -> int:
    """Build the site into build/site; return 1, with the reasons, if MkDocs warns or a link is dead."""
    from tools.lanes import environment

    python = environment("docs", *PACKAGES)
    command = [str(python), "-m", "mkdocs", "build", "--strict", "--clean", "--site-dir", str(SITE)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # an advertisement for the successor of the theme
    if subprocess.run(command, cwd=ROOT, env=quiet, check=False).returncode:
        return 1
    found = list(dead_links(SITE))
    print("\n".join(found) or f"{len(list(SITE.rglob('*.html')))} pages in build/site, every link leads somewhere")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
