"""A claim compared with a sentence: its items in order, but for what counts for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router_research.deep.clause_forms import DETERMINERS, MOVABLE, PREPOSITIONS, is_participle
from smart_model_router_research.deep.edits import kept_of
from smart_model_router_research.deep.idle_words import (
    NO_NOUNS,
    SAYING,
    idle_in_source,
    is_idle_article,
    is_idle_that,
)
from smart_model_router_research.deep.sentence_parts import ANY_MARK, Part, flat
from smart_model_router_research.deep.words import ABOUT, Item, is_english


def follows(claim: Sequence[Item], parts: Sequence[Part]) -> bool:
    """Return whether the items of a claim are those of the parts in order, with what may go left out or not.

    The claim is as `flat` gives it. See `_is_reading` for what else may differ.
    """
    return any(_is_reading(claim, flat(kept)) for kept in kept_of(parts))


def _is_reading(claim: Sequence[Item], source: Sequence[Item]) -> bool:
    """Return whether a claim has the items of a source; but for these, everything counts.

    In English "also" may go where nothing before it turns the sentence, "that" behind a verb of saying, "then" behind a
    condition, and the noun before a name in code; "about" may be put before a number, and a comma before the "and" of a
    list; "which" may stand for "that" behind a noun, and a compound without its hyphen.
    """
    english = is_english(list(source))
    if english:
        source = _opened(source, claim)
    ours = theirs = 0
    while ours < len(claim) or theirs < len(source):
        wanted = claim[ours] if ours < len(claim) else None
        said = source[theirs] if theirs < len(source) else None
        if wanted is not None and said is not None and _says_the_same(claim, ours, source, theirs, english=english):
            ours, theirs = ours + 1, theirs + 1
        elif said is not None and (width := idle_in_source(source, theirs, english=english)):
            theirs += width
        elif wanted is not None and said is not None and said.key == ANY_MARK:
            ours, theirs = ours + (wanted.kind == "mark" and wanted.key in (",", ":", "-")), theirs + 1
        elif wanted is not None and _may_be_put_in(claim, ours, source, theirs, english=english):
            ours += 1
        else:
            return False
    return True


def _says_the_same(claim: Sequence[Item], ours: int, source: Sequence[Item], theirs: int, *, english: bool) -> bool:
    wanted, said = claim[ours], source[theirs]
    about = ours > 0 and claim[ours - 1].key == ABOUT
    if wanted.kind == "number" == said.kind and not about and any(item.key in _COMPARING for item in source):
        return wanted.is_exactly(said)
    return wanted.same(said, about=about) or (english and _is_other_form(wanted, source, theirs))


def _may_be_put_in(claim: Sequence[Item], ours: int, source: Sequence[Item], theirs: int, *, english: bool) -> bool:
    """Return whether a claim may have a word that the source has not: "about" before a number that is there, "that"."""
    item, after = claim[ours], claim[ours + 1] if ours + 1 < len(claim) else None
    if item.key == ABOUT:
        is_number = after is not None and after.kind == "number"
        return is_number and theirs < len(source) and source[theirs].kind == "number"
    if not english:
        return False
    is_of_season = is_idle_article(claim, ours) and claim[ours - 1].key in ("in", "during")
    return is_of_season or is_idle_that(claim, ours) or _is_serial_comma(item, source, theirs)


def _opened(source: Sequence[Item], claim: Sequence[Item]) -> Sequence[Item]:
    """Return items with compounds such as "water-resistant" as two words, but for those that the claim has."""
    if not any(item.kind == "word" and "-" in item.written for item in source):
        return source
    same = {item.key for item in claim}
    return [part for item in source for part in (item.key not in same and _words_of(item)) or (item,)]


def _words_of(item: Item) -> list[Item]:
    """Return the words of a compound that says the same without its hyphen; none of any other.

    A participle behind it ("man-eating", "man-made"), a prefix ("re-sign") and a word that turns say another thing.
    """
    first, hyphen, second = str(item.key).partition("-")
    if item.kind != "word" or not hyphen or item.turns or not (first.isalpha() and second.isalpha()):
        return []
    is_compound = min(len(first), len(second)) > 2 and first not in _PREFIXES
    return (
        []
        if not is_compound or (is_participle(second) and first != "well")
        else [Item("word", each, each) for each in (first, second)]
    )


_PREFIXES = frozenset(
    "non pre post sub mid pro anti semi self ultra super inter intra multi extra counter cross quasi pseudo mis dis "
    "over under off out vice half neo bio micro macro mini mega meta para poly tri uni".split()
)


def _is_other_form(wanted: Item, source: Sequence[Item], at: int) -> bool:
    """Return whether a word says what one of a source does: "which" for "that" behind a noun, 1 for "one"."""
    said, before = source[at], source[at - 1] if at else None
    after = source[at + 1] if at + 1 < len(source) else None
    if after is not None and said.key == "one" and wanted.kind == "number" and wanted.written == "1":
        return after.kind == "word" and after.written.islower() and after.key not in PREPOSITIONS | {"of"}
    if before is None or after is None or {wanted.key, said.key} != {"that", "which"}:
        return False
    return before.kind == "word" and before.written.lower() not in SAYING | DETERMINERS | MOVABLE | NO_NOUNS


def _is_serial_comma(wanted: Item, source: Sequence[Item], at: int) -> bool:
    """Return whether a comma of a claim stands before the "and" of a list of words, the last of its clause."""
    if wanted.key != "," or at < 2 or at + 2 > len(source):
        return False
    mark = at - 2 if source[at - 2].key == "," else at - 3
    listed = [*source[mark + 1 : at], *source[at + 1 : at + 2]]
    is_list = mark > 0 and source[mark].key == "," and source[at].key in ("and", "or")
    ends = at + 2 == len(source) or source[at + 2].kind == "mark" or source[at + 2].key in PREPOSITIONS
    words = (source[mark - 1], *listed)
    are_words = all(item.kind == "word" and item.written.islower() and not item.turns for item in words)
    is_one = not source[mark - 1].written.endswith("s") and not any(item.key in DETERMINERS for item in listed)
    return is_list and ends and are_words and is_one


_COMPARING = frozenset(
    "than at_least at_most up over under maximum minimum exactly exact exceed exceeds exceeded surpass surpasses "
    "surpassed limit not until less more fewer greater least most below above from within threshold "
    "record score < > <= >= =".split()
)
"""Words of bounds: rounded, a number is another bound."""


def unvouched(claim: Sequence[Item], source: Sequence[Item]) -> list[str]:
    """Return the words of a claim that stand nowhere in the source."""
    return [
        item.written
        for item in claim
        if not item.is_light and item.kind != "mark" and not any(item.same(other, about=True) for other in source)
    ]
