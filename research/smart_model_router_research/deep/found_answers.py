"""The documents that answers are looked for in, and the answers that are found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from smart_model_router_research.deep.matching import stems_of
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_research.deep.statement_stems import StatementStems
from smart_model_router_research.deep.statements import Statement, statements_of


@dataclass(frozen=True)
class ReadDocument:
    """A stored document with what is read from it once."""

    stored: StoredDocument
    path: str = ""
    longer_than: tuple[str, ...] = ()
    """Names of other documents with which its own name begins: what it says of those, it says with the name."""

    @cached_property
    def statements(self) -> list[Statement]:
        """The statements of the document."""
        return statements_of(self.stored.text)

    def place_of(self, statement: Statement) -> int:
        """Return the number of one of its statements; -1 for one of another document."""
        return self._places.get(id(statement), -1)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(statement): at for at, statement in enumerate(self.statements)}

    @cached_property
    def by_stem(self) -> StatementStems:
        """The statements by their stems."""
        return StatementStems(self.statements, self.stems)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The ways in which the whole document is named: its title, and its file without suffixes."""
        stem = self.path.rpartition("/")[2].split(".")[0]
        return tuple(dict.fromkeys(name for name in (self.stored.title, stem) if name))

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its names, and of the folders it is in."""
        return stems_of(" ".join((*self.names, self.path.replace("/", " "))))


@dataclass(frozen=True, kw_only=True)
class FoundAnswer:
    """A value that a statement gives for what a question asks. `item` is the part of the statement that says it."""

    document: ReadDocument = field(repr=False)
    statement: Statement
    value: str
    score: float
    entity: str = ""
    attribute: str = ""
    other: str = ""
    """The second entity, which the item names."""
    unit: str = ""
    item: str = ""
    names_term: bool = False
    """The claim says what the statement describes: a term, or what a pronoun at its beginning points to."""
    is_entity: bool = False
    """The value is the thing that the statement is about, and not what it says of it."""


def exactly_named(
    names: Iterable[str], documents: Sequence[ReadDocument], known: Iterable[ReadDocument]
) -> list[ReadDocument]:
    """Return documents, those on a longer name marked where a known one has the name itself.

    What the page of Elton Near says of "the town" is not said of Elton, which has a page as well.
    """
    titles = {title.casefold() for one in known for title in one.names}
    own = [name for name in names if name.casefold() in titles]
    return [
        replace(one, longer_than=longer)
        if (longer := tuple(name for name in own if any(is_longer(name, each) for each in one.names)))
        else one
        for one in documents
    ]


def is_longer(name: str, text: str) -> bool:
    """Return whether a name stands in a text, and only as a part of longer ones."""
    behind = [match[1] for match in re.finditer(rf"\b{re.escape(name)}\b( (?:(?:on|upon|under|am|sur) )?[A-Z])?", text)]
    return bool(behind) and all(behind)
