"""Sentences about two names that say the same from either end: "Chad borders Mali"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from smart_model_router_research.deep.labels import WORDS
from smart_model_router_research.deep.words import Item, read_items

_NAME = (
    rf"(?:(?:[Tt]he (?:[a-z]+ )?)?{WORDS}|[A-Z][a-z]+ [a-z]+|[Tt]he (?:[a-z-]+ )?[a-z-]+(?: of [A-Z][\w'-]*)?|"
    r"(?:[Ll]ine|[Pp]oint|[Pp]lane|[Nn]ode|[Aa]ngle|[Ss]ide|[Rr]oad|[Rr]oute) [A-Za-z\d]{1,3})"
)
_MUTUAL = re.compile(
    rf"({_NAME}) (borders|adjoins|shares a (?:border|boundary) with|(?:correlates|interacts) with|intersects|"
    r"(?:is|was) (?:twinned with|married to|adjacent to|next to|"
    r"parallel to|perpendicular to|equal to|equivalent to|connected (?:to|with)|joined to|linked (?:to|with)|"
    r"[\d.,]+ (?:km|m|miles?|kilomet(?:er|re)s?|met(?:er|re)s?|feet) from|"
    r"(?:closely |distantly )?related to|an? (?:cousin|sibling|contemporary|colleague|neighbou?r|"
    rf"namesake|synonym|twin town) of)) ({_NAME})"
    r"((?: along [^,;:]*|(?<=[\w.]) (?:at|from) [^,;:]*)?[.]?)"
)
"""Sentences about two names that say the same from either end."""


def from_either_end(text: str) -> Iterator[str]:
    """Yield a sentence about two names from its other end."""
    text = _ALSO.sub(" ", text)
    if (match := _MUTUAL.fullmatch(text)) is not None and not any(map(_bounds_a_name, read_items(text))):
        is_bound = match[4].startswith(" ") and not match[4].startswith(" along")
        if not is_bound or match[2] in _WITH_ANYTHING:
            yield f"{match[3]} {match[2]} {match[1]}{match[4]}"


_ALSO = re.compile(
    r"(?<=\w) also (?=borders |adjoins |shares |intersects |adjacent |parallel |twinned |linked |joined )"
)
_ALONE = frozenset("alone itself together twice".split())
_WITH_ANYTHING = frozenset(
    f"{be} {what}" for be in ("is", "was") for what in ("connected to", "joined to", "linked to", "married to")
) | {"intersects"}
"""Ties that two things have in common, also somewhere and from a time on."""


def _bounds_a_name(item: Item) -> bool:
    """Return whether a word turns a sentence about two names: "Little Hadding was" has none that does."""
    if item.written.lower() in _ALONE or (item.written.islower() and item.written.endswith("ly")):
        return True
    return (
        item.turns and item.key not in ("was", "were") and item.written not in ("Little", "Greater", "Lower", "Upper")
    )
