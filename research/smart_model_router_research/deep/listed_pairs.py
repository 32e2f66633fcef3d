"""Lists of what things have in common, item by item: each is a pair with the thing that the list is of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from smart_model_router_research.deep.asked_extremes import name_and_number
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.values import items_of, without_name

MAX_MEMBERS = 60
"""Things that are compared."""


def best_of_each(found: Sequence[FoundAnswer]) -> list[FoundAnswer]:
    """Return the best answer of each document that is about as good as the best of all."""
    best = max((answer.score for answer in found), default=0.0)
    kept: dict[str, FoundAnswer] = {}
    for answer in sorted(found, key=lambda answer: -answer.score):
        if best - answer.score < 0.3:
            kept.setdefault(answer.document.stored.id, answer)
    return list(kept.values())


def pairs_in(found: FoundAnswer) -> Iterator[FoundAnswer]:
    """Yield each item of a list as a pair with the thing that the list is of."""
    for item in items_of(found.statement.value)[:MAX_MEMBERS]:
        name, number = name_and_number(item)
        if name and number:
            value = without_name(item, name)
            yield replace(found, value=value, item=item, entity=found.document.names[0], other=name, unit="")


def mirrored(pair: FoundAnswer, document: ReadDocument) -> FoundAnswer | None:
    """Return what the page of the second thing of a pair says of the pair."""
    if not any(_is_name(name, pair.other) for name in document.names):
        return None
    for statement in document.statements:
        if statement.label == pair.statement.label:
            page = replace(pair, document=document, statement=statement)
            for one in pairs_in(page):
                if _is_name(one.other, pair.entity):
                    return one
    return None


def _is_name(one: str, other: str) -> bool:
    return fold(one).casefold() == fold(other).casefold()
