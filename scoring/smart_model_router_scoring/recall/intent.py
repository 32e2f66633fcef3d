"""Does a question ask for the present state of things? Phrases that say so, less those that speak of the past."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_YEAR = "(?P<year>(?:19|20)[0-9]{2})"


@dataclass(frozen=True, slots=True)
class TemporalLexicon:
    """One language's way of asking for the present, as regular expressions over lower-case words.

    What a `homonym` matches is taken out first (an electric current is not a current one). A `past` phrase then makes
    a question one about the past; where it names a `year`, only a year gone by does.
    """

    present: tuple[str, ...]
    past: tuple[str, ...]
    homonyms: tuple[str, ...] = ()

    def asks_for_the_present(self, question: str, year: int | None = None) -> bool:
        """True when it does. `year` is the present one; without it every year that is named is past."""
        text = unicodedata.normalize("NFKC", question).casefold()
        text = _phrases(self.homonyms).sub("|", text)  # a mark, so that what was apart does not become a phrase
        if not _phrases(self.present).search(text):
            return False
        return not any(
            year is None or match.groupdict().get("year") is None or int(match["year"]) < year
            for pattern in self.past
            for match in _phrases((pattern,)).finditer(text)
        )


def _phrases(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Any of them between word boundaries, whatever the white space; nothing at all when there are none."""
    either = "|".join(patterns).replace(" ", r"\s+")
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)" if patterns else r"(?!)")


ENGLISH = TemporalLexicon(
    present=(
        "latest",
        "most recent",
        "current(?:ly)?",
        "now",
        "nowadays",
        "today",
        "changed",
        "updated",
        "last time",
        "newest",
        "these days",
        "anymore",
        "recent(?:ly)?",
        "as of",
        "at the moment",
        "still",
    ),
    past=(
        f"(?:in|during|as of|until|till|before|by) (?:[a-z]+ )?{_YEAR}",
        "used to",
        "back then",
        r"before (?:it|that|this|they|he|she|we|i|you|the \w+) (?:was |were |got |had )?(?:changed|updated)",
    ),
    homonyms=(
        "(?:electric|electrical|alternating|direct|eddy|ocean|air) currents?",
        "current account",
        "still life",
    ),
)

LANGUAGES: Mapping[str, TemporalLexicon] = MappingProxyType({"en": ENGLISH})
"""A language more is a lexicon more: pass it to `recall` as `lexicon`."""
