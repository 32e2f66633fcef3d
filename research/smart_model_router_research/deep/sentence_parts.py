"""A sentence cut into parts at its marks: clauses, and what stands in parentheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smart_model_router_research.deep.words import Item

_OPENERS = frozenset(["(", "[", "{"])
_CLOSERS = frozenset([")", "]", "}"])
_CUTS = frozenset([",", ";", ":", "-"])
ANY_MARK = "~"
"""Stands between two parts where a writer may set a mark or not."""


@dataclass(frozen=True, slots=True)
class Part:
    """A clause, or what stands in parentheses, with the mark before it. `may_go` says that it can be left out."""

    items: tuple[Item, ...]
    in_parentheses: bool = False
    may_go: bool = False
    mark: str = ""

    @property
    def first(self) -> object:
        """The key of its first item."""
        return self.items[0].key


def cut_at_marks(items: Sequence[Item]) -> list[Part]:
    """Return the parts of a sentence, cut at commas, semicolons, colons, dashes and parentheses, each with its mark."""
    raw: list[Part] = []
    current: list[Item] = []
    depth = 0
    mark = ""

    def end_part(*, in_parentheses: bool = False) -> None:
        nonlocal mark
        if current:
            raw.append(Part(tuple(current), in_parentheses, mark=mark))
            current.clear()
            mark = ""

    for item in items:
        if item.kind != "mark":
            current.append(item)
        elif item.key in _OPENERS:
            if depth == 0:
                end_part()
            else:
                current.append(item)
            depth += 1
        elif item.key in _CLOSERS and depth:
            depth -= 1
            if depth == 0:
                end_part(in_parentheses=True)
            else:
                current.append(item)
        elif depth == 0 and item.key in _CUTS:
            end_part()
            mark = str(item.key)
        elif depth:
            current.append(item)
    end_part(in_parentheses=depth > 0)
    return raw


def flat(parts: Sequence[Part]) -> list[Item]:
    """Return the items of a sentence with the marks between its parts."""
    found: list[Item] = []
    for number, part in enumerate(parts):
        if number and part.mark:
            found.append(_mark(part.mark))
        found += [_mark("("), *part.items, _mark(")")] if part.in_parentheses else part.items
    return found


def _mark(mark: str) -> Item:
    return Item("mark", mark, mark)
