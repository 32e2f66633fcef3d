"""The report of an import: an entry for every value of the source, and values written as ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from smart_model_router.config import conversion
from smart_model_router.config.hints import Hint
from smart_model_router.core.checked_options import within
from smart_model_router.domain.tree_path import Path, spelled
from smart_model_router.domain.yaml_document import Document

Verdict = Literal["mapped", "changed", "left out"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of the source. `to` is the key it became; `note` is the difference, or the reason and a replacement."""

    path: Path
    line: int
    verdict: Verdict
    to: str
    note: str

    @property
    def key(self) -> str:
        """The place in the source, as people write it."""
        return spelled(self.path)


def leaves(data: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every value that holds no others; an empty list or mapping is one."""
    members: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    if not data or not isinstance(data, (dict, list)):
        yield path
        return
    for step, member in members:
        yield from leaves(member, (*path, step))


class ImportReport:
    """The result for each value of a document. The first entry for a value stands."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._open = dict.fromkeys(leaves(document.data) if document.data is not None else ())
        self._entries: dict[Path, Entry] = {}

    def mapped(self, path: Path, to: str, changed: str = "") -> None:
        """All values at and below `path` became `to`; `changed` is what is not quite as it was."""
        self._enter(path, "changed" if changed else "mapped", to, changed)

    def left_out(self, path: Path, why: str, instead: str) -> None:
        """None of the values at and below `path` that nothing was said of yet became anything."""
        self._enter(path, "left out", "", f"{why}; {instead}")

    def open_below(self, path: Path) -> list[Path]:
        """The values at and below `path` that nothing was said of yet."""
        return [leaf for leaf in self._open if leaf[: len(path)] == path]

    def entries(self) -> list[Entry]:
        """All entries, in the order of the source. What nothing was said of is left out, and says so."""
        for leaf in list(self._open):
            self.left_out(leaf, "this importer does not know it", "docs/configuration.md lists what there is")
        return sorted(self._entries.values(), key=lambda entry: entry.line)

    def _enter(self, path: Path, verdict: Verdict, to: str, note: str) -> None:
        for leaf in self.open_below(path):
            del self._open[leaf]
            self._entries[leaf] = Entry(leaf, self._line(leaf), verdict, to, note)

    def _line(self, path: Path) -> int:
        return self._document.place_of(path)[0]


_ENVIRON = "os.environ/"


def text(raw: str) -> str:
    """Text with its reference as we write it: `os.environ/X` is `${X}`, and what looks like one of ours is none."""
    if raw.startswith(_ENVIRON):
        return f"${{{raw.removeprefix(_ENVIRON)}}}"
    return raw.replace("${", "$${")


def switch(raw: object) -> bool:
    """True when a switch is on."""
    return isinstance(raw, str) and conversion.switch(raw) is True


def figure(raw: object) -> int | float | None:
    """A plain number; None for anything else."""
    return conversion.number(raw, "seconds") if isinstance(raw, str) else None


def fitting(raw: object, hint: Hint) -> Any:
    """The value for a key that takes `hint`; None when it takes no such value."""
    if not isinstance(raw, str):
        return None
    if raw.startswith(_ENVIRON):
        return text(raw)
    if hint.base is bool:
        return conversion.switch(raw)
    if hint.base in (int, float):
        found = conversion.number(raw, hint.unit)
        whole = hint.base is not int or isinstance(found, int)
        return found if found is not None and whole and hint.interval and within(found, hint.interval) else None
    return text(raw)
