"""The relations that questions ask for: the owner of a property, the doer and the object of a deed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from smart_model_router_research.deep.claims import QuotedEvidence
from smart_model_router_research.deep.matching import WORD, placed_stems, stem_of, stems_of
from smart_model_router_research.deep.questions import GAP, SLIGHT, STOP
from smart_model_router_research.deep.statement_stems import is_akin, senses_of
from smart_model_router_research.deep.values import DATE


@dataclass(frozen=True, slots=True)
class AskedRelation:
    """A `property`, a noun, of a `holder`, "the deputy of Omar"; "" where the question names no holder.

    `is_of_value` is that of "Whose deputy is Omar?": there the holder is the property, and its owner is asked for.
    """

    property: str
    holder: str = ""
    is_of_value: bool = False


_OF = re.compile(
    r"^(?:who|what|which [\w-]+)(?:'s| is| are| was| were) (?:the |our |its |their )?(?:current |present )?"
    r"(?P<property>(?:[\w-]+ ){0,2}[a-z-]+) (?:of|for|at|in) (?:the |our |an? )?(?P<holder>[^?]+)$",
    re.IGNORECASE,
)
_GENITIVE = re.compile(
    r"^(?:who|what|which [\w-]+)(?:'s| is| are| was| were) (?:the |our )?(?P<holder>[^?]+?)['\u2019]s? "
    r"(?P<property>(?:[\w-]+ ){0,2}[\w-]+)(?: (?:to|at|in) .*)?$",
    re.IGNORECASE,
)
_WHOSE = re.compile(r"^whose (?P<property>[\w-]+) (?:is|was) (?:the )?(?P<holder>[^?]+)$", re.IGNORECASE)
_ALONE = re.compile(
    r"^who(?:'s| is| was) (?:the |our )(?:current |present )?(?P<property>(?:[a-z-]+ )?[a-z-]+)$", re.IGNORECASE
)
_NO_PROPERTY = frozenset(
    "default defaults meaning purpose name difference kind type use reason way effect result idea point example value "
    "one number maximum minimum size length limit time port".split()
)
"""Nouns of questions that statements say in many other ways, or that are judged by their numbers."""


@lru_cache(maxsize=1024)
def asked_relation(question: str) -> AskedRelation | None:
    """Return the relation that a question asks for; None where it asks for none, or for one said in many ways."""
    text = " ".join(question.split()).rstrip("?!. ")
    if (match := _WHOSE.match(text)) is not None:
        return AskedRelation(match["property"].lower(), match["holder"], is_of_value=True)
    match = _GENITIVE.match(text) or _OF.match(text) or _ALONE.match(text)
    if match is None:
        return None
    noun = match["property"].lower()
    words = [word for word in WORD.findall(noun) if word not in STOP]
    if not words or words[-1] in _NO_PROPERTY or words[-1] in SLIGHT:
        return None
    return AskedRelation(" ".join(words), match.groupdict().get("holder") or "")


_COPULA = r"(?:is|are|was|were|became|becomes|remains|:|=|named|called)"
_BEFORE = re.compile(
    rf"(?P<value>\S.*?),? (?:{_COPULA}|has been|as)(?: also| now| currently| by far| probably| perhaps)? "
    r"(?:(?:the|an?|our|its|their) (?:(?:\w+est|(?:most|least) [\w-]+) (?:[a-z-]+ ){0,2})?)?$"
)
_BESIDE = re.compile(rf",? ?(?:{_COPULA}|has been|,)(?: also| now| currently)? ?(?:the )?(?P<value>[^\s,].*)$")
_MADE = re.compile(r"(?:not|never|\w+ed|built|born|held|sent|sold|lost|put|set|made|taken|given|kept|found)\b")
_OWNED = re.compile(r"(?P<owner>[\w&.'\u2019 -]*[\w.&])(?:['\u2019]s?) (?:[a-z-]+ ){0,2}$")
_PRONOUN = re.compile(r"\b(?:his|her|its|their|our) (?:[a-z-]+ ){0,2}$", re.IGNORECASE)
_PHRASE = re.compile(
    rf" (?:of|for|at|in|to) (?P<owner>.+?)(?=,? {_COPULA}\b|,|;|\.(?:\s|$)|:|$"
    r"| (?:who|which|that|and|lives?|has|had|can|will|does|joined)\b)"
)


def is_held_by(relation: AskedRelation, text: str, before: str, above: frozenset[str], value: str) -> bool:
    """Return whether a text says a property of its holder, with the value beside it.

    `before` is the sentence that a pronoun points to, `above` are the stems of what the text stands under.
    """
    noun = WORD.findall(relation.property)[-1]
    senses = senses_of(stem_of(noun))
    for place in placed_stems(text):
        if place.stem not in senses and not is_akin(stem_of(noun), place.stem):
            continue
        left, right = text[: place.start], text[place.end :]
        owner, behind = _owner(left, right, before)
        is_verb = not owner and _is_verb(right, place.stem, noun, text[place.start : place.end])
        if is_verb:
            return True
        if relation.is_of_value:
            if owner and _same(value, owner):
                return True
            continue
        if owner is None:
            continue
        if relation.holder:
            if owner and not _same(relation.holder, owner):
                continue
            if not owner and not stems_of(relation.holder) <= above | stems_of(text):
                continue
        elif owner and re.search(r"[A-Z]", owner) and not stems_of(owner) <= above:
            continue
        if _value_beside(left, behind, value):
            return True
    return False


def _is_verb(right: str, stem: str, noun: str, written: str) -> bool:
    """Return whether a word of the same sense is a verb: "is owned by", "belongs to", "has led"."""
    return stem != stem_of(noun) or re.match(r" by\b| to\b", right) is not None or written.endswith("ed")


def _owner(left: str, right: str, before: str) -> tuple[str | None, str]:
    """Return the owner of a property that stands between two texts, and what is behind both; "" where none is named."""
    if (match := _PHRASE.match(right)) is not None:
        return match["owner"], right[match.end() :]
    if (match := _OWNED.search(left)) is not None:
        return match["owner"], right
    if _PRONOUN.search(left):
        return before or None, right
    return "", right


def _value_beside(left: str, behind: str, value: str) -> bool:
    """Return whether a value stands beside a property, joined to it by "is" or a comma."""
    told = value.casefold()
    match = _BESIDE.match(behind)
    if match is not None and not _MADE.match(match["value"]) and _meets(told, match["value"].casefold()):
        return True
    first = _BEFORE.search(left)
    return first is not None and _meets(told, first["value"].casefold())


def _meets(told: str, said: str) -> bool:
    """Return whether a value is in what is said, or is the whole sentence that says it."""
    return told in said or said.rstrip(" .") in told


def _same(one: str, other: str) -> bool:
    """Return whether a phrase names all that another does: "Omar" and "our manager Omar"."""
    return bool(names := stems_of(one)) and names <= stems_of(other)


@dataclass(frozen=True, slots=True)
class NestedQuestion:
    """A question about "the captain of X": the `inner` phrase, and the `outer` question with a gap for its answer."""

    inner: str
    outer: str


_NESTED = re.compile(
    r"^(?P<head>.+?) (?P<inner>the (?:[a-z-]+ ){0,2}?[a-z-]+ of (?:(?:the )?[A-Z][\w'-]*(?: [A-Z][\w'-]*)*|the [a-z-]+)"
    r"|the (?:largest|biggest|smallest|oldest|longest|highest|tallest|deepest) [a-z-]+(?: (?:of|in) [A-Z]\w*)?)"
    r"(?P<rest> .*)?$"
)
_NO_HEAD = re.compile(r"(?:what|who|which|where)(?:'s| is| are| was| were)?", re.IGNORECASE)


def _goes_on(rest: str) -> bool:
    """Return whether a question says more of what it names than where or for what that is: "the oldest tool for X"."""
    return bool(rest) and not re.match(r" (?:for|of|in|on|at|with|within|among|to|from|by)\b", rest)


def nested_question(question: str) -> NestedQuestion | None:
    """Return the two steps of "When was the captain of X born?"; None for a question of one step."""
    match = _NESTED.match(" ".join(question.split()).rstrip("?!. "))
    if match is None or (_NO_HEAD.fullmatch(match["head"]) and not _goes_on(match["rest"] or "")):
        return None
    return NestedQuestion(match["inner"], f"{match['head']} {GAP}{match['rest'] or ''}")


_RELEASED = re.compile(
    r"^(?:when|(?:on|in) (?:what|which) (?:date|day|month|year)) (?:was|did|is) (?:the |that )(?:[\w.+-]+ )?"
    r"(?:release|version)(?: (?:appear|published|released|issued|out|come out))? (?:that|which) (?P<clause>.+?)"
    r"(?: (?:appear|published|released|issued|come out))?$",
    re.IGNORECASE,
)


def release_asked_for(question: str) -> str:
    """Return what a release did whose date is asked for: "When was the version released that added X?"; else ""."""
    match = _RELEASED.match(" ".join(question.split()).rstrip("?!. "))
    return match["clause"] if match is not None else ""


def is_of_release(evidence: Sequence[QuotedEvidence], version: str) -> bool:
    """Return whether a quote says what a version did: it begins with that, or ends with "in" it; and it is no plan."""
    written = re.escape(version)
    name = r"(?:[A-Z][\w.-]* )?(?:(?:[Vv]ersion|[Rr]elease) |v)?"
    begins = rf"\W*(?:(?:In|With|Since) )?{name}{written}(?: \([^()]*\))?,? .*"
    ends = rf".* (?:in|with|by) {name}{written}(?: \([^()]*\))?[.]?"
    said = [" ".join(each.quote.split()) for each in evidence]
    return any(not _PLANNED.search(each) and re.fullmatch(f"{begins}|{ends}", each) for each in said)


_PLANNED = re.compile(r"\b(?:will|again|would|may|might|planned|not|never|beta|candidate|rc|alpha|withdrawn)\b")


def dates_release(evidence: Sequence[QuotedEvidence], version: str) -> bool:
    """Return whether a quote is a row of a table with a version in a cell, or says alone that it was released."""
    written = re.escape(version)
    row = rf"\|(?:.*\|)? *{written} *\|.*"
    said = (
        rf"\W*(?:The )?(?:[A-Z][\w.-]* )?(?:(?:[Vv]ersion|[Rr]elease) |v)?{written} (?:was|is) "
        rf"(?:first )?(?:released|published|issued) (?:on|in) {DATE}[.]?"
    )
    return any(re.fullmatch(f"{row}|{said}", " ".join(each.quote.split())) for each in evidence)


_MOST_NAME = 4


def is_name(value: str) -> bool:
    """Return whether a value names one thing: a few words, the first capitalised."""
    words = value.split()
    return 0 < len(words) <= _MOST_NAME and value[:1].isupper() and " and " not in value and "," not in value


@dataclass(frozen=True, slots=True)
class AskedDeed:
    """A deed by the stems of its verb, and of the doer or the object: "Does A serve B"."""

    verb: str
    doer: str = ""
    object: str = ""


_DOES = re.compile(
    r"\b(?:does|do|did|can|could|will|would|may|must|should) (?:the |an? |our |its |each |every )?(?P<rest>.+)$",
    re.IGNORECASE,
)
_WHO = re.compile(
    r"^(?:who|what|which (?:[a-z-]+ )?[a-z-]+) "
    r"(?P<verb>(?!is\b|are\b|was\b|were\b|does\b|do\b|did\b|can\b|has\b|have\b"
    r"|had\b|will\b|may\b|must\b|should\b|could\b|would\b)[a-z]+) "
    r"(?:the |an? |our )?(?P<object>[A-Z].*)$"
)


_PLURAL = re.compile(r"\w{3,}(?<![su])s")
"""No form of a verb behind "did": "Did Acme engineers start it?" asks of a start."""


@lru_cache(maxsize=1024)
def deed_of(question: str) -> AskedDeed | None:
    """Return the deed that a question asks about: None where it asks about none, or names neither side of it."""
    text = " ".join(question.split()).rstrip("?!. ")
    if (match := _WHO.match(text)) is not None:
        words = [word for word in WORD.findall(match["object"]) if word.lower() not in STOP]
        return AskedDeed(stem_of(match["verb"].lower()), object=stem_of(words[0].lower())) if words else None
    if (match := _DOES.search(text)) is not None:
        words = [word for word in WORD.findall(match["rest"]) if word.lower() not in STOP]
        if len(words) > 1 and words[0][:1].isupper():
            lower = next((word for word in words[1:] if word.islower() and not _PLURAL.fullmatch(word)), "")
            return AskedDeed(stem_of(lower), doer=stem_of(words[0].lower())) if lower else None
    return None


def is_reversed(deed: AskedDeed, text: str) -> bool:
    """Return whether a text says a deed the other way round: of B to A."""
    places = placed_stems(text)
    verbs = [place for place in places if place.stem in senses_of(deed.verb)]
    sides = [place for place in places if place.stem == (deed.doer or deed.object)]
    if not verbs or not sides:
        return False
    verb, side = verbs[0], sides[0]
    is_passive = re.match(r"(?: \w+ly)? by\b", text[verb.end :]) is not None or (
        re.search(r"\b(?:is|are|was|were|been|being|be)(?: \w+ly)? $", text[: verb.start]) is not None
    )
    if deed.doer:
        behind = re.match(r"(?: (?:\w{1,4}|the|into|onto|from))* ", text[verb.end :])
        is_right_behind = behind is not None and any(place.start == verb.end + behind.end() for place in sides)
        return is_right_behind and not any(place.start < verb.start for place in sides) and not is_passive
    is_behind = any(place.start > verb.start for place in sides)
    return side.start < verb.start and not is_behind and not is_passive


ASKS_HOLDER = re.compile(r"who (owns|leads|maintains|manages)\b", re.IGNORECASE)
HOLDERS = {"owns": "owner", "leads": "lead", "maintains": "maintainer", "manages": "manager"}
"""The nouns by which a label or the head of a column names the doer of such a deed."""

_WHEN = r"(?P<word>before|after|until|till|since|without|except|under|below|above|outside)"
_RESTRICTS = re.compile(rf"\b{_WHEN} (?:the |an? )?(?P<what>[A-Z][\w.-]*|\d[\w.,-]*)")
_NAMED_AFTER = re.compile(r"\b(?:nam|call|look|ask)(?:s|ed|e|es|ing)?\b", re.IGNORECASE)
"""Verbs with "after" that tell no time."""
_LIKE = {
    "before": "before|until|till",
    "until": "before|until|till",
    "till": "before|until|till",
    "since": "since|from",
}


@lru_cache(maxsize=1024)
def restrictions_of(question: str) -> tuple[re.Pattern[str], ...]:
    """Return what a statement has to match that says something of the time, or the limit, that a question names."""
    found = []
    for match in _RESTRICTS.finditer(question):
        if match["word"] == "after" and _NAMED_AFTER.search(question):
            continue
        words = _LIKE.get(match["word"].lower(), match["word"].lower())
        what = match["what"].rstrip("?.,")
        found.append(re.compile(rf"\b(?:{words})\b(?: [\w'-]+){{0,3}}? {re.escape(what)}(?!\w)", re.IGNORECASE))
    return tuple(found)
