"""Statements that say nothing beside what a question asks: what more they say may bound it, or be of another thing."""

from __future__ import annotations

import re

from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.matching import WORD, stem_of, stems_of
from smart_model_router_research.deep.values import NUMBER_WORDS

_LIGHT = stems_of(
    "the a an of for in at on to by with from and or its their this these that are is be there here it they which as "
    "following below different several various possible available present version versions release kinds kind types "
    "type sorts forms also however but so then support supports supported offer offers offered provide provides "
    "provided have has include includes included exist exists come comes list lists listed named called known "
    "namely can since starting beginning one ones"
)
_ASIDE = re.compile(r"\([^()]*\)|(?:[A-Z][\w.-]* )?(?:version|release) \d[\w.,-]*|\d[\w.,-]*")
"""Parentheses, numbers, and versions with the name of what they are of."""
_OVER = re.compile(r"\bused to\b", re.IGNORECASE)
_COUNTS = frozenset(NUMBER_WORDS) | frozenset("both".split())


def says_nothing_else(text: str, question: str, document: ReadDocument, beside: frozenset[str] = frozenset()) -> bool:
    """Return whether all words of a text are the question's, light ones, numbers, or names of the document.

    `beside` are stems that may stand there, too.
    """
    if _OVER.search(text):
        return False
    known = stems_of(question) | document.stems | _LIGHT | beside
    plain = _ASIDE.sub(" ", text)
    words = (word.lower() for word in WORD.findall(plain))
    return all(word in _COUNTS or stem_of(word) in known for word in words)
