"""Questions which of two things it is: a sentence that compares both answers them, and no other does."""

from __future__ import annotations

import re
from functools import lru_cache

from smart_model_router_research.deep.matching import WORD, stem_of, stems_of
from smart_model_router_research.deep.questions import SLIGHT, STOP
from smart_model_router_research.deep.statement_stems import is_akin, senses_of

_OR = r"(?:or|vs\.?|versus)"
_ASKS = r"(?:which|what|who)"
_FORMS = (
    re.compile(rf"(?P<one>[^:,?]+?) {_OR} (?P<other>[^:,?]+)[:,] (?P<rest>.+)"),
    re.compile(rf"(?P<rest>{_ASKS} .+?)[:,] (?P<one>.+?) {_OR} (?P<other>.+)", re.IGNORECASE),
    re.compile(
        rf"(?:is|are|was|were|does|do|did) (?P<one>.+?) {_OR} (?P<other>(?:the |an? )?[\w'-]+)(?P<rest> .+)",
        re.IGNORECASE,
    ),
)
_COMPARES = re.compile(
    r"\b(?:than|compared (?:to|with)|while|whereas|unlike|in contrast to|differences? between)\b", re.IGNORECASE
)
_UNKNOWN = re.compile(r"\b(?:whether|unclear|unknown)\b", re.IGNORECASE)
_OPPOSITES = (
    "faster slower",
    "larger smaller bigger",
    "longer shorter",
    "higher lower",
    "older newer younger",
    "earlier later",
    "better worse",
    "cheaper dearer costlier",
    "more less fewer",
    "safer riskier",
    "easier harder",
    "lighter heavier",
)
_SAME_SCALE = {stem_of(word): stems_of(words) for words in _OPPOSITES for word in words.split()}
LEAST_TOLD = 0.5
"""The share of what a question says beside both things that a sentence about both has to say."""


@lru_cache(maxsize=1024)
def choice_of(question: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]] | None:
    """Return the stems of both things that a question lets choose from, and of what else it says; None without both."""
    text = " ".join(question.split()).rstrip("?!. ")
    match = next((found for form in _FORMS if (found := form.fullmatch(text)) is not None), None)
    if match is None:
        return None
    one, other, rest = (_telling(match[part]) for part in ("one", "other", "rest"))
    return (one - other, other - one, rest - one - other) if one - other and other - one else None


def is_choice(question: str) -> bool:
    """Return whether a question lets choose from two things: a sentence with one of them does not tell."""
    return _EITHER.match(question) is not None or choice_of(question) is not None


_EITHER = re.compile(r"(?:is|are|does|do|was|were) .+ or .+", re.IGNORECASE)


def _telling(text: str) -> frozenset[str]:
    return frozenset(stem_of(word.lower()) for word in WORD.findall(text) if word.lower() not in STOP | SLIGHT | _LIGHT)


_LIGHT = frozenset("two one both give gives gave given".split())
"""Words of "which of the two gave" that say nothing of either."""


_STATES = (
    "on off",
    "enabled disabled",
    "true false",
    "open closed",
    "required optional",
    "mandatory optional",
    "public private",
    "synchronous asynchronous",
    "stateless stateful",
    "mutable immutable",
    "ascending descending",
    "static dynamic",
    "allowed forbidden",
    "visible hidden",
)
_OF_STATES = re.compile(
    rf"(?:is|are|was|were) (?P<what>.+?) (?P<one>[a-z-]+) {_OR} (?P<other>[a-z-]+)(?: (?P<rest>.+))?", re.IGNORECASE
)


def settles(question: str, text: str) -> bool:
    """Return whether a question asks which of two opposite states a thing is in, and a sentence says that it is in one.

    "Is the log on or off by default?" is settled by "The log is turned off by default". The sentence says nothing else,
    and of the thing no other words than the question has, or one more beside three of them.
    """
    match = _OF_STATES.fullmatch(" ".join(question.split()).rstrip("?!. "))
    if match is None:
        return False
    pair = {match["one"].lower(), match["other"].lower()}
    said = _IN_STATE.fullmatch(re.sub(r" \([^()]*\)", "", " ".join(text.split())).strip("*_ "))
    if said is None or said["state"].lower() not in pair or not any(set(each.split()) == pair for each in _STATES):
        return False
    asks_default = "default" in (match["rest"] or "")
    if asks_default is not (said["before"] is not None or said["behind"] is not None):
        return False
    what, of = _telling(match["what"]), _telling(said["what"])
    rest = _telling(re.sub("(?:by|as the) default", "", match["rest"] or ""))
    return not rest and what <= of and len(of - what) <= len(what) // 3 and not _JOINS.search(said["what"])


_IN_STATE = re.compile(
    r"(?:But |However, )?(?P<before>By default,? |by default,? )?(?P<what>[^,.;:()]+?) (?:is|are)"
    r"(?: (?:always|turned|switched|set to))* (?P<state>[a-z-]+)(?P<behind> by default)?[.!]?",
    re.IGNORECASE,
)
_JOINS = re.compile(
    r"\b(?:and|or|but|that|whether|if|when|where|while|which|who|without|with|except|only|no|not|old|new|some|most)\b",
    re.IGNORECASE,
)


def compares(question: str, text: str) -> bool:
    """Return whether a text compares the two things that a question lets choose from, in what the question asks."""
    if settles(question, text):
        return True
    choice = choice_of(question)
    if choice is None or not _COMPARES.search(text):
        return False
    one, other, rest = choice
    said = stems_of(text)
    if not (_has_all(one, said) and _has_all(other, said)) or _UNKNOWN.search(text):
        return False
    behind = [stems_of(match[1]) for match in re.finditer(r"\bthan\b([^.,;:]*)", text)]
    if behind and not any(_has_all(thing, found) for found in behind for thing in (one, other)):
        return False
    told = sum(_is_told(stem, said) for stem in rest)
    return told >= LEAST_TOLD * len(rest)


def _has_all(stems: frozenset[str], said: frozenset[str]) -> bool:
    return all(stem in said or any(is_akin(stem, each, are_names=True) for each in said) for stem in stems)


def _is_told(stem: str, said: frozenset[str]) -> bool:
    known = senses_of(stem) | _SAME_SCALE.get(stem, frozenset())
    return not said.isdisjoint(known) or any(is_akin(stem, each) for each in said)
