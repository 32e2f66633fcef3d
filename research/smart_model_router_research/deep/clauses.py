"""The thing that one sentence says of another: "The capital of X is Y", "Y is the capital of X"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smart_model_router_research.deep.matching import any_in, placed_stems, stem_of, stems_of
from smart_model_router_research.deep.naming import bare, is_named_in
from smart_model_router_research.deep.questions import QuestionPattern, QuestionTerm, Wanted
from smart_model_router_research.deep.vouching import POINTS, Vouching

_COPULA = re.compile(
    r"\s(?:is|are|was|were|means|equals|=|stands for|refers to|consists of|includes?|comprises?)\s"
    r"(?:also |called |known as |named |either |usually |currently )?",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"[;:]\s|,\s(?:which|who|where|and (?:is|are|was|it|has|the)|but|while|although|so|because|with)\b|\.(?:\s|$)"
    r"|\s\u2014\s|\s--\s|\s\("
)
_BEFORE_SUBJECT = re.compile(r".*(?:,\s(?:and\s|so\s)?|;\s|\s(?:so|therefore|thus|because|that|where)\s)", re.DOTALL)
_DENIED = re.compile(r"(?:not|no|never|only)\b", re.IGNORECASE)
_PARTICIPLE = re.compile(
    r"(?:\w+ly )?(?:\w{2,}ed|used|set|made|taken|given|done|shown|written|known|built|sent)\b", re.IGNORECASE
)
_NO_SUBJECT = re.compile(
    r"(?:if|when|whether|unless|while|although|because|there|what|which|note|see)\b", re.IGNORECASE
)
_NUMERIC = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|unlimited|infinite|no limit|none)\b",
    re.IGNORECASE,
)
_ADVERBIAL = re.compile(r"(?:in|on|at|by|for|with|from|to|as|under|after|before|during|since|of)\b", re.IGNORECASE)
_MOST_WORDS = 25


_CLAUSE = re.compile(r"(?:where|when|why|how|because) ", re.IGNORECASE)
"""The beginning of what "this is where it comes in" says: it names nothing."""


def said_of(text: str, pattern: QuestionPattern, match: Vouching) -> str | None:
    """Return what a sentence says of the thing asked for; None where it says something else."""
    flat = " ".join(text.split())
    verb = pattern.verb
    if verb:
        return _object_of(flat, pattern, match, verb)
    wanted = [term for term in pattern.terms if term.weight >= 0.6]
    for cut in list(_COPULA.finditer(flat))[:4]:
        said = _at(flat, cut, wanted, pattern, match)
        if said and (not pattern.needs_number or _NUMERIC.search(said)):
            return said
    return None


def _at(
    flat: str, cut: re.Match[str], wanted: Sequence[QuestionTerm], pattern: QuestionPattern, match: Vouching
) -> str | None:
    """Return what one "is" says: what is behind it of what is before it, or the other way round."""
    before, right = flat[: cut.start()], flat[cut.end() :]
    left = _BEFORE_SUBJECT.sub("", before)
    if len(left.split()) > _MOST_WORDS or _DENIED.match(right) or _NO_SUBJECT.match(left):
        return None
    end = _CLAUSE_END.search(right)
    said = right[: end.start()] if end else right
    if _CLAUSE.match(said):
        return None
    first = _PARTICIPLE.match(said)
    if first is not None and stem_of(first[0].split()[-1].lower()) not in {
        s for term in pattern.terms for s in term.others
    }:
        return None
    if pattern.wanted is Wanted.DEFINITION and wanted:
        return None
    in_left = _told_by(wanted, stems_of(left))
    if in_left and _is_asked_by_verb(pattern):
        return None
    if in_left and len(_told_by(wanted, stems_of(before))) == len(wanted):
        is_on = all(is_named_in(entity, before) for entity in pattern.entities) or match.is_about
        return said.strip(' .,"`*') or None if is_on and not POINTS_ALONE.fullmatch(left) else None
    if not wanted:
        leads = any(_leads(entity, left) for entity in pattern.entities)
        return said.strip(" .,") or None if leads else None
    in_right = _told_by(wanted, stems_of(said))
    if len(in_right) < len(wanted) or in_left or len(left.split()) > 8 or POINTS.match(left):
        return None
    if _ADVERBIAL.match(left):
        return None
    is_on = all(is_named_in(entity, right) for entity in pattern.entities) or match.is_about
    return left.strip(' .,"`*') or None if is_on else None


POINTS_ALONE = re.compile(r"(?:it|this|that|these|those|they|he|she)", re.IGNORECASE)


def _is_asked_by_verb(pattern: QuestionPattern) -> bool:
    """Return whether the noun behind "which" does what is asked: "Which command removes a table?"."""
    noun = re.escape(pattern.asked_noun)
    is_said = rf"(?:\w+ )?(?:which|what) {noun} (?:is|are|was|were|does|do|did|has|have|can|should|must)\b"
    return bool(noun) and pattern.wanted is Wanted.FACT and re.match(is_said, pattern.text, re.IGNORECASE) is None


def _told_by(wanted: Sequence[QuestionTerm], stems: frozenset[str]) -> list[QuestionTerm]:
    return [term for term in wanted if any_in(term.others, stems)]


def _leads(entity: str, left: str) -> bool:
    """Return whether the subject of a sentence is the entity itself."""
    subject = re.sub(r"^(?:the|a|an) ", "", bare(left).casefold())
    return subject == entity.casefold() or subject.removesuffix("()") == entity.casefold()


def _object_of(flat: str, pattern: QuestionPattern, match: Vouching, verb: str) -> str | None:
    """Return what stands behind the verb of "What does X VERB?", where X stands before it, or is what all is about."""
    others = next((term.others for term in pattern.terms if term.stem == verb), frozenset([verb]))
    subject = [term for term in pattern.terms if term.weight >= 0.6 and term.stem != verb]
    for place in placed_stems(flat):
        if place.stem not in others:
            continue
        before, behind = flat[: place.start], flat[place.end :].strip()
        if not match.is_about:
            is_named = all(is_named_in(entity, before) for entity in pattern.entities)
            if not is_named or len(_told_by(subject, stems_of(before))) < len(subject):
                continue
        elif len(before.split()) > 3 and not any(is_named_in(entity, before) for entity in pattern.entities):
            continue
        end = re.search(r"\.(?:\s|$)|;\s", behind)
        said = behind[: end.start()] if end else behind
        if re.search(r"\b(?:not|never|n't|cannot)\s*$", before) or not said:
            return None
        return said.strip(" ,")
    return None


def is_by_whole_sentence(pattern: QuestionPattern, text: str) -> bool:
    """Return whether a sentence as a whole can answer: of a measure it has to say a number."""
    return not pattern.needs_number or pattern.wanted is Wanted.OPEN or _NUMERIC.search(text) is not None


def expansion_of(pattern: QuestionPattern, text: str) -> str:
    """Return the words that an abbreviation stands for, where the question asks for them; "" where a text has none."""
    if len(pattern.entities) != 1 or not re.search(r"\b(?:stand for|mean|abbreviat|short for)", pattern.text):
        return ""
    short = pattern.entities[0]
    if not short.isupper() or not 2 <= len(short) <= 8:
        return ""
    words = r"\W+(?:(?:of|the|and|for|in|to) )?".join(rf"{letter}[\w]*" for letter in short)
    inside = rf"(?P<a>{words})s?,? \(?(?:or )?[\"']?{short}\b|\b{short}\b[^\w.]{{1,4}}(?P<b>{words})"
    match = re.search(inside, text, re.IGNORECASE)
    if match is None:
        hump = "".join(rf"{letter}[a-z]*-?" for letter in short)
        match = re.search(rf"(?P<a>{words}|{hump})[^.]{{0,20}}\({short}|\({words}, {short}\)", text, re.IGNORECASE)
    return (match["a"] or (match["b"] if "b" in match.groupdict() else "") or "").strip() if match else ""
