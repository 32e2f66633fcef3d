"""The shipped table of words that may stand for each other (`synonyms.txt`)."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

_ISE = re.compile(r"is(e|es|ed|ing|er|ers|ation|ations)$")
"""British endings of "organise" and "organiser"; no two longer words differ in this alone."""


@lru_cache(maxsize=8192)
def canonical(word: str) -> str:
    """Return the word that stands for this one and its synonyms, in this form: a plural is another word."""
    spelled = _ISE.sub(r"iz\1", word) if len(word) > 6 else word
    return _synonyms().get(spelled.replace("-", "_"), spelled)


@lru_cache(maxsize=1)
def _synonyms() -> dict[str, str]:
    """Return for each word of the shipped table the first of its row."""
    found: dict[str, str] = {}
    for row in synonym_rows():
        if row[0] in ("phrase", "passive"):
            continue
        for form in zip(*(_forms(word, row[0]) for word in row[1:]), strict=False):
            known = [found[word] for word in form if word in found]
            first: str = known[0] if known else form[0]
            for word in form:
                found.setdefault(word, first)
    return found


@lru_cache(maxsize=1)
def phrases() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """Return for each first word the phrases that begin so, the longest first, and the word that each stands for."""
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    phrases = [(phrase, row[1]) for row in synonym_rows() if row[0] == "phrase" for phrase in row[2:]]
    for phrase, instead in [*phrases, *_synonyms().items()]:
        if len(words := tuple(phrase.split("_"))) > 1:
            found.setdefault(words[0], []).append((words, instead))
    return {first: sorted(rows, key=lambda row: -len(row[0])) for first, rows in found.items()}


def synonym_rows() -> list[list[str]]:
    """Return the shipped table: a row is its part of speech, and then words of one meaning."""
    table = files("smart_model_router_research.deep").joinpath("synonyms.txt").read_text(encoding="utf-8")
    return [line.split() for line in table.splitlines() if line and not line.startswith("#")]


def _forms(entry: str, kind: str) -> list[str]:
    """Return the forms of a word of a row: five of a verb (irregular ones are given with slashes), two of a noun.

    The participle of the past is its past where it is not given. Others have one form.
    """
    given = entry.split("/")
    if len(given) > 1:
        return [*given, given[2]] if len(given) == 4 else given
    if kind not in ("verb", "noun"):
        return given
    verb = given[0]
    third = f"{verb[:-1]}ies" if _ends_in_consonant_y(verb) else verb + ("es" if verb.endswith(_SIBILANT) else "s")
    if kind == "noun":
        return [verb, f"{verb}s" if verb.endswith("o") else third]
    if verb.endswith("e"):
        return [verb, third, f"{verb}d", f"{verb[:-1]}ing", f"{verb}d"]
    past = f"{verb[:-1]}ied" if _ends_in_consonant_y(verb) else f"{verb}ed"
    return [verb, third, past, f"{verb}ing", past]


_SIBILANT = ("s", "x", "z", "ch", "sh", "o")


def _ends_in_consonant_y(verb: str) -> bool:
    return verb.endswith("y") and verb[-2] not in "aeiou"


@lru_cache(maxsize=1)
def passives() -> dict[str, str]:
    """Return for each participle of the table the one that it stands for behind a form of "be"."""
    return {word: f"be {row[1]}" for row in synonym_rows() if row[0] == "passive" for word in row[1:]}
