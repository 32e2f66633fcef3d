"""Phrases of everyday questions in the words of documentation: "out of the box" asks for the default."""

from __future__ import annotations

import re

_SAY = r"(?:say|tell|set|ask|specify|configure|choose|decide|request)"
_PHRASES = (
    (
        re.compile(
            rf"\bout of the box\b|\bunless (?:i|you|we|one) {_SAY}s? (?:it )?otherwise\b"
            r"|\bunless (?:otherwise )?(?:told|set|specified|configured|stated)(?: otherwise)?\b"
            r"|\bif (?:i|you|we) (?:leave|keep) (?:all )?the defaults(?: alone| as they are)?\b"
            r"|\bif nothing (?:else )?is (?:set|specified|configured|said)\b"
            r"|\b(?:and|but) (?:i )?change nothing\b",
            re.IGNORECASE,
        ),
        "as the default",
    ),
    (re.compile(r"\bat the same time\b(?! as\b)", re.IGNORECASE), "simultaneously"),
)


def in_plain_words(question: str) -> str:
    """Return a question with such phrases replaced."""
    for phrase, words in _PHRASES:
        question = phrase.sub(words, question)
    return question
