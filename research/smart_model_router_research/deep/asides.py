"""Parts of a sentence that may be left out: those of a shape that only says more, and never bounds or denies."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router_research.deep.clause_forms import PREPOSITIONS
from smart_model_router_research.deep.parentheses import only_says_more
from smart_model_router_research.deep.second_statements import is_second_statement
from smart_model_router_research.deep.sentence_parts import Part
from smart_model_router_research.deep.which_clauses import only_adds


def may_go(parts: Sequence[Part], number: int) -> bool:
    """Return whether a part is of a shape that only says more: its sentence is whole, and as true, without it."""
    part = parts[number]
    if number == 0:
        return False
    if part.in_parentheses:
        return only_says_more(part, parts[number - 1], parts[2:] if number == 1 else ())
    if part.mark != ",":
        return False
    if part.first == "which":
        return (number + 1 == len(parts) or parts[number + 1].mark == ",") and only_adds(part.items)
    first = [each for each in parts[:number] if not each.in_parentheses]
    if len(first) == 2 and first[0].first in PREPOSITIONS and first[1].mark == ",":
        first = first[1:]
    is_last = len(parts) == number + 1 and len(first) == 1
    return part.first == "and" and is_last and is_second_statement(first[0], part)
