"""Labels with their values, read as values of the page or of the thing that a heading names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from smart_model_router_research.deep.words import read_items

SYMMETRIC = ("border countries", "borders", "bordering countries", "land boundaries", "neighbours", "neighbors")
"""Labels of what two entities have in common: either can be read from the other's page."""

_SUPERLATIVE = re.compile(r"\b(?:\w{3,}est|most|least|first|last|only|best|worst|main|chief)\b", re.IGNORECASE)
WORDS = r"[A-Z][\w'-]*\.?(?: (?:[A-Z][\w'-]*|\d+))*(?: of [A-Z][\w'-]*)?"
_SECTIONS = frozenset(
    "overview|summary|introduction|general|details|data|facts|key facts|specifications|technical data|"
    "technical details|features|properties|about|geography|people and society|environment|government|economy|energy|"
    "prices|contact|communications|transportation|military and security|transnational issues|description|information|"
    "definitions|fees|key figures|figures|dates|dimensions|opening hours|particulars|at a glance|profile|statistics|"
    "facts and figures|care|route card|ingredients|nutrition|measurements|vital statistics|"
    "physical properties|chemical properties|physical and chemical properties|patient leaflet|technical specifications|"
    "basic data|product information|product data|fact sheet|data sheet".split("|")
)
"""Headings that say what a section is about, and not which of several things."""
_OF_PLACES = frozenset("geography|profile|facts|overview|key facts|at a glance".split("|"))
"""Headings below which "Borders" are those of a country."""
LIST_LABEL = re.compile(r"[A-Z][a-z]+(?: [a-z]+){0,3}:")
"""A line of a few words that leads to a list: "Ingredients:"."""


def label_readings(text: str, context: tuple[str, ...]) -> Iterator[str]:
    """Yield the readings of "LABEL: VALUE": of the page, or of the heading that names one of several things on it."""
    label, colon, value = text.partition(": ")
    if not colon or not context or not value.strip() or len(label) > 80:
        return
    things = [heading for heading in context[1:] if not is_section(heading) and not _is_of_label(heading, label)]
    subject = [context[0], *things][-1]
    for item in _items_of(value.strip(), label):
        for of in (subject, f"the {subject}"):
            yield f"{label} of {of}: {item}"
            yield f"The {label} of {of}: {item}"
            yield f"The {label} of {of} is {item}"
        if subject != context[0]:
            yield f"{subject}, {label} of {context[0]}: {item}"
            yield f"The {subject}, {label} of {context[0]} is {item}"
        if label.lower() in SYMMETRIC:
            is_place = label.lower() not in ("neighbours", "neighbors") and all(
                heading.casefold() in _OF_PLACES for heading in context[1:]
            )
            yield from _symmetric(label, subject, item, is_place=is_place)


def _is_of_label(heading: str, label: str) -> bool:
    """Return whether a heading is a label, its last words, or one of several: "Side effects", "Tickets and luggage"."""
    heading, label = heading.casefold(), label.casefold()
    return label.endswith(heading) or label.rstrip("s") in [part.rstrip("s") for part in heading.split(" and ")]


def is_section(heading: str) -> bool:
    """Return whether a heading says what a section is about: "Overview", "Definitions and fees"."""
    lower = heading.casefold()
    return lower in _SECTIONS or all(part in _SECTIONS for part in lower.split(" and "))


_OF_ONE = frozenset("headquarters hours status diagnosis parents address performances titles series".split())
"""Labels in the form of a plural whose values are one, or bounded by what follows them."""


def _items_of(value: str, label: str) -> list[str]:
    """Return the value as a whole, and the items of a list in it where nothing bounds them."""
    items = read_items(value)
    if any(item.turns and item.key != "other" for item in items):
        return [value]
    if _SUPERLATIVE.search(label) or not label.endswith("s") or label.lower().split()[-1] in _OF_ONE:
        return [value]
    parts = [part.strip() for part in re.split(r"[;,] (?![^(]*\))", value)]
    return [value, *parts] if len(parts) > 1 else [value]


def _symmetric(label: str, title: str, item: str, *, is_place: bool) -> Iterator[str]:
    match = re.fullmatch(r"(.*?\D) (\d.*)", item)
    if match is not None:
        yield f"{label} of {match[1]}: {title} {match[2]}"
    name = match[1] if match is not None else item
    if is_place and re.fullmatch(WORDS, name):
        yield f"{name} borders {title}"
        yield f"{title} borders {name}"
