"""The components of a recall score, each 0 to 1: keyword, tag and recency."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from smart_model_router_scoring.options import is_number
from smart_model_router_scoring.recall.settings import RecallSettings
from smart_model_router_scoring.times import age_days

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from smart_model_router_scoring.notes import Notes
    from smart_model_router_scoring.recall.memory import Timestamp

_WORD = re.compile(r"\w+")
_FOR_KEYWORD = 3
"""A keyword in the content gives 2 points and one in a tag 1; so does the whole phrase."""

DEFAULT = RecallSettings()


def words(text: str) -> frozenset[str]:
    """The distinct words of a text, without differences of case or of Unicode form."""
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def keyword_score(points: float, keywords: int, *, phrase: bool = True) -> float:
    """Points of a keyword search as a share of the most its query could reach, 0 to 1; 0 for what is no number.

    That is 3 for each of its `keywords`, and 3 more when it also looked for the whole phrase.
    """
    most = _FOR_KEYWORD * max(keywords, 0) + _FOR_KEYWORD * phrase
    if not is_number(points) or not most:
        return 0.0
    return min(max(points / most, 0.0), 1.0)


def tag_score(query: str, tags: Iterable[str], settings: RecallSettings = DEFAULT) -> float:
    """The share of the query's words that are words of a tag, 0 to 1; of at most `tag_score_token_cap`, if set."""
    asked = words(query)
    if not asked:
        return 0.0
    tagged: frozenset[str] = frozenset().union(*map(words, tags))
    most = min(len(asked), settings.tag_score_token_cap or len(asked))
    return min(len(asked & tagged) / most, 1.0)


def recency_score(time: Timestamp, now: datetime, notes: Notes, settings: RecallSettings = DEFAULT) -> float:
    """1 for what is new, falling with age along the curve of the settings; 0, with a note, for what is no time."""
    age = age_days(time, now)
    if age is None:
        notes.add("bad_time", detail=time)
        return 0.0
    windows = age / settings.recency_window_days
    return float(0.5**windows) if settings.recency_curve == "exp" else max(1.0 - windows, 0.0)
