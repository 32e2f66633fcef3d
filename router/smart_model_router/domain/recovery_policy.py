"""Policies for a stream that is cut after its caller has content, and how a configuration spells them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from smart_model_router.domain.suggest import did_you_mean

RecoveryMode = Literal["none", "continue", "buffered", "hold_back", "restart"]
MOST_HELD_BACK = 100_000
"""Characters; for more, `buffered` is the right policy."""

_WRITTEN = re.compile(r"([a-z_]+)(?:\(\s*([0-9]{1,9})\s*\))?")
_FORMS = tuple(f"{mode}(200)" if mode == "hold_back" else mode for mode in get_args(RecoveryMode))


@dataclass(frozen=True, slots=True)
class Recovery:
    """A policy (routing.md section 8, "Streams"). `characters` is how much text `hold_back` keeps, else 0.

    none: the caller gets an error. continue: another target continues the text where the first one stopped; tool calls
    and answers by a schema are delivered whole. buffered: nothing is delivered before the answer is complete.
    hold_back: as continue, but the newest characters are delivered late, so that the caller does not see a cut within
    them and another target makes them anew. restart: the caller is told to discard the text, and gets another answer.
    """

    mode: RecoveryMode = "none"
    characters: int = 0

    def __str__(self) -> str:
        return f"{self.mode}({self.characters})" if self.mode == "hold_back" else self.mode


CONTINUING: frozenset[RecoveryMode] = frozenset({"continue", "hold_back"})
"""The policies under which another target goes on with an answer that has begun."""
NO_RECOVERY = Recovery()


def parse_recovery(text: str) -> Recovery:
    """Read `none`, `continue`, `buffered`, `hold_back(200)` or `restart`. Raises ValueError that says what is wrong."""
    found = _WRITTEN.fullmatch(text.strip().lower().replace("-", "_"))
    word, figure = (found[1], found[2]) if found else (text.partition("(")[0], None)
    mode = next((known for known in get_args(RecoveryMode) if known == word), None)
    if mode is None:
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise ValueError(f"{shown!r} is no policy for cut streams; {did_you_mean(word, _FORMS)}")
    if mode != "hold_back":
        if figure is not None:
            raise ValueError(f"{mode} takes no number; only hold_back(200) does")
        return Recovery(mode)
    if figure is None or not 1 <= int(figure) <= MOST_HELD_BACK:
        raise ValueError(f"hold_back needs how many characters, 1 to {MOST_HELD_BACK}, as in hold_back(200)")
    return Recovery(mode, int(figure))
