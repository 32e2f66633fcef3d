"""A topic as questions, the first the most important.

A topic of several sentences, or of questions joined by semicolons, is several questions.
"""

from __future__ import annotations

import re

from smart_model_router_research.deep.claims import SubQuestion
from smart_model_router_research.deep.matching import WORD
from smart_model_router_research.deep.questions import Wanted, read_question

MAX_QUESTIONS = 12
MAX_QUESTION = 500
MAX_TOPIC = 4_000
"""Characters of a topic that are read."""


def plan_questions(topic: str) -> list[SubQuestion]:
    """Return the questions of a topic: 1 to 12, the first the most important. Raises ValueError for a blank topic."""
    text = " ".join(topic[:MAX_TOPIC].split())
    if not WORD.search(text):
        raise ValueError("the topic is blank: it has to name what is to be found out")
    pieces = [piece.strip() for piece in re.split(r"(?<=[?!])\s+|(?<=[a-z0-9)])\.\s+(?=[A-Z])|;\s+|\n+", text)]
    pieces = [piece.rstrip(".")[:MAX_QUESTION] for piece in pieces if WORD.search(piece)]
    pieces = list(dict.fromkeys(_with_referents(_with_settings(pieces))))[:MAX_QUESTIONS]
    found = []
    for number, piece in enumerate(pieces, 1):
        pattern = read_question(piece)
        critical = pattern.wanted in (Wanted.NUMBER, Wanted.DATE, Wanted.VERSION)
        found.append(
            SubQuestion(
                id=f"q{number}", text=piece, kind=pattern.kind, priority=1 if number == 1 else 2, critical=critical
            )
        )
    return found


_SETTING = re.compile(r"(?:i|we|my|our|suppose|assume|say|given)\b(?!.*\?)", re.IGNORECASE)
"""A sentence that asks nothing: it says what the question behind it is about."""


def _with_settings(pieces: list[str]) -> list[str]:
    """Join each sentence that only says what the next question is about to that question."""
    joined: list[str] = []
    setting = ""
    for piece in pieces:
        if _SETTING.match(piece):
            setting += f"{piece}. "
        else:
            joined.append(f"{setting}{piece}"[:MAX_QUESTION])
            setting = ""
    return joined + ([setting.strip()] if setting else [])


_POINTS_BACK = re.compile(
    r"\b(?:is|are|was|were|does|do|did|has|have|had|can|could|will|would|should|may|must) (?:it|they)\b"
    r"|(?<=[a-z] )(?P<last>that|this|them|those|these)(?=\W*$)",
    re.IGNORECASE,
)


def _with_referents(pieces: list[str]) -> list[str]:
    """Put the one name of a question in place of a pronoun in the next one.

    "Whose is that?" is nothing by itself: without one name all that was said stands before it.
    """
    found: list[str] = []
    for piece in pieces:
        back = _POINTS_BACK.search(piece) if found else None
        if back is None:
            found.append(piece)
            continue
        entities = [name for name in read_question(found[-1]).entities if name not in piece]
        if len(entities) == 1 and (found[-1].endswith("?") or not back["last"]):
            referred = " ".join((*back[0].split()[:-1], entities[0]))
            found.append(f"{piece[: back.start()]}{referred}{piece[back.end() :]}")
        elif back["last"]:
            found[-1] = f"{found[-1]} {piece}"[:MAX_QUESTION]
        else:
            found.append(piece)
    return found
