"""The last judge of an answer from prose: the statement has to say of the asked thing what the question asks.

All that a question says has to be said: its words, the owner of a property, the doer of a deed, the time and the limit.
A statement that misses one of these is no answer, however near it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from smart_model_router_research.deep.asked_choices import compares, is_choice
from smart_model_router_research.deep.asked_relations import (
    AskedRelation,
    asked_relation,
    deed_of,
    is_held_by,
    is_reversed,
    nested_question,
    restrictions_of,
)
from smart_model_router_research.deep.asked_words import AskedWord
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument, is_longer
from smart_model_router_research.deep.matching import WORD, stem_of, stems_of
from smart_model_router_research.deep.questions import SLIGHT, STOP
from smart_model_router_research.deep.statement_forms import label_of
from smart_model_router_research.deep.statement_stems import is_akin, senses_of
from smart_model_router_research.deep.statements import Statement, StatementKind
from smart_model_router_research.deep.values import NUMBER_WORDS
from smart_model_router_research.deep.vouching import points_back

MOST_UNSAID, MOST_UNSAID_OF_NEAREST, MOST_UNSAID_IN_MANY = 0.2, 0.3, 0.4
"""The share of a question's telling words that a statement need not say: one of five; three of ten by weight where it
is the nearest of few, four of ten where it is the nearest of hundreds."""
LIGHT = frozenset(
    "after before since until during above below most least first last out live lives "
    "go goes went back bring brings brought say says said tell tells year years date day days month time number set "
    "today now moment long much many far often old any ever still already just too also really actually exactly "
    "happen happens other another anything something anyone someone default not more less called call roughly "
    "approximately single".split()
)
"""Words of questions that say nothing by themselves, or are judged by rules of their own."""
_MEASURES: Mapping[str, str] = {
    "long": "long length last lasts lasted take takes took duration time timeout interval period delay age characters "
    "letters digits",
    "deep": "deep depth",
    "high": "high height tall elevation altitude rises",
    "tall": "high height tall",
    "wide": "wide width broad",
    "heavy": "heavy weigh weighs weight mass",
    "old": "old age aged years",
    "fast": "fast speed rate quickly per",
    "large": "large size area covers measures big extent",
    "big": "large size area covers measures big extent",
    "far": "far distance away from",
}
"""The words by one of which a statement says the property that "how deep" and the like ask for."""
_AMOUNT = re.compile(
    r"\bhow (\w+) (?:is|are|was|were|will|(?:does|do|did) .* take|(?:must|may|can|should|shall) .* be)\b"
    r"(?!.*\b(?:\w+ed|kept|held|valid|open)$)",
    re.IGNORECASE,
)
_SUPERLATIVE = re.compile(
    r"\b(?!(?:latest|request|guest|interest|forest|nearest)\b)\w{3,}est\b"
    r"|(?<!\bat )\b(?:most|least) (?!of\b|all\b|recent\b|common\b|like\b|one\b|two\b|three\b|\d)[a-z]+(?= )"
)
_SAME_EXTREME = (
    frozenset(("largest", "biggest", "greatest")),
    frozenset(("highest", "tallest")),
    frozenset(("safest", "most secure")),
    frozenset(("oldest", "earliest", "first")),
    frozenset(("newest", "latest", "last")),
    frozenset(("smallest", "least", "minimum", "minimal")),
)
_UNREAL = re.compile(
    r"\bwould(?:n't| not)? have\b|\bhad (?:\w+ ){1,6}been\b.*\bwould\b|\b(?:was|were|is|are|had been) (?:once )?"
    r"(?:planned|proposed|supposed|rumou?red|hoped|intended)\b|^if (?:\w+ ){1,8}had\b|\b(?:might|could) have been\b",
    re.IGNORECASE,
)
"""Statements of what is not so, or not yet."""
_REPORTED = re.compile(
    r"[\"\u201d]\s?,?\s?(?:claim|write|say|said|wrote|report|joke|boast|think|believe)(?:s|ed)?\b|"
    r"\b(?:claim|boast|rumour|rumor)s? that\b",
    re.IGNORECASE,
)
_FUTURE = re.compile(r"\bwill\b.*\b(?:in (?:19|20)\d\d|next (?:year|month|week)|soon)\b", re.IGNORECASE)
_ASKS_UNREAL = re.compile(
    r"\b(?:will|would|going to|plan|planned|plans|future|next|if|had|propose[ds]?|supposed|claims?|say|says)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|no|never|neither|nor|without|except|only|cannot|un\w+|but)\b|n't\b", re.IGNORECASE)
_ASKS_PURPOSE = re.compile(
    r"^what (?:is|are|was|were) (?:the )?(?:purpose|aim|goal|point|role|function|use)s? of\b|"
    r"^what (?:is|are|was|were) .+ (?:used |good |there )?for\W*$",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    r"\b(?:purpose|aim|goal|task|role|function|used (?:for|to|by|as|in|when)|(?:serve|define|describe|specif(?:y|ie)|"
    r"control|provide|allow|let|contain|list|record|help|tell|say|set)s?|intended|designed|meant|in order to|"
    r"(?:is|are) (?:an?|the|for))\b",
    re.IGNORECASE,
)
_PURPOSES = stems_of("purpose purposes aim goal point role function use uses used good")
_BEGINNING = 30
"""Characters of a sentence in which its subject begins."""
_ASKS_NAME = re.compile(r"^what (?:is|was) the (?:[a-z]+ )?names? of\b", re.IGNORECASE)
_NAMING = re.compile(r"\b(?:names?|named|called|known|titled|dubbed|renamed|formerly)\b", re.IGNORECASE)
_NEEDED = (
    (re.compile(r"\bnot\b|n't\b"), _DENIAL),
    (_ASKS_NAME, _NAMING),
    (re.compile(r"\bthis \w", re.IGNORECASE), re.compile(r"\bthis\b", re.IGNORECASE)),
    (re.compile(r"\bis this\W*$", re.IGNORECASE), re.compile(r"^\W*this is\b", re.IGNORECASE)),
)
"""Questions, and the words of which a statement has to have one to answer them."""


_UNSET = re.compile(r"\b(?:if|when) (?:i|you|we) (?:(?:do|did) not|don't|didn't) [^,]+", re.IGNORECASE)
"""Words that ask for a default: nothing is denied by "which port is used if I don't set one"."""
_BY_DEFAULT = re.compile(r"\bas the default\b", re.IGNORECASE)
_SET = re.compile(
    r"\bnever\b|\b(?:if|when) (?:i|you|we|one) (?!do(?:es)? not\b|did not\b|don't|didn't|doesn't)", re.IGNORECASE
)
"""Statements of what is not so, or only where something is set: they give no default."""


def _tells_purpose(question: str, text: str) -> bool:
    """Return whether a sentence begins with the thing, or points back to it, and says something of its purpose."""
    words = [stem for stem in telling_words(question) if stem not in _PURPOSES]
    begins = points_back(text) or any(says(stem, stems_of(text[:_BEGINNING])) for stem in words)
    return begins and _PURPOSE.search(text) is not None


def _has_needed(question: str, text: str) -> bool:
    """Return whether a text has what a kind of question needs: a denial, a name, a purpose, and no condition."""
    asks_default = _UNSET.search(question) is not None or _BY_DEFAULT.search(question) is not None
    if asks_default and _SET.search(text):
        return False
    plain = _UNSET.sub("", question) if asks_default else question
    if any(asks.search(plain) and not tells.search(text) for asks, tells in _NEEDED):
        return False
    return not _ASKS_PURPOSE.match(question) or _tells_purpose(question, text)


def is_said(question: str, found: FoundAnswer, words: Sequence[AskedWord] = (), *, is_of_many: bool = False) -> bool:
    """Return whether a statement of prose says what a question asks; labels and rows are judged where they are read.

    `words` are the words of the question with their weights in the documents that were read, where it is the nearest of
    their statements; `is_of_many` that these are hundreds.
    """
    said = found.statement.text
    if any(name not in said or is_longer(name, said) for name in found.document.longer_than):
        return False
    return _is_said(question, found, words, MOST_UNSAID_IN_MANY if is_of_many else MOST_UNSAID_OF_NEAREST)


def _is_said(question: str, found: FoundAnswer, words: Sequence[AskedWord], most_unsaid: float) -> bool:
    statement, document = found.statement, found.document
    if statement.kind is StatementKind.VERSION or found.attribute == "meaning":
        return True
    if statement.kind is StatementKind.ROW:
        return _is_read_row(question, found)
    written = label_of(statement.text)
    label = statement.label or (written[0] if written is not None else "")
    if label and label.casefold() not in _NOTES and not _is_property(question, label):
        return False
    if statement.kind is StatementKind.LABELLED and found.attribute == statement.label:
        return True
    text = " ".join(statement.text.split())
    is_compared = compares(question, text)
    if (
        (is_choice(question) and not is_compared)
        or is_of_longer_name(question, text)
        or _adds_nothing(question, found)
        or _is_unreal(text, question)
        or not _has_extreme(text, question)
    ):
        return False
    if not _has_needed(question, text):
        return False
    if not all(pattern.search(text) for pattern in restrictions_of(question)):
        return False
    nested = nested_question(question)
    if nested is not None and not all(says(word, statement.own) for word in telling_words(nested.inner)[:1]):
        return False  # a page of mayors does not make everyone on it the mayor
    above = said_above(statement, document)
    said = statement.own | above
    if not (is_compared or _says_words(question, said, words, most_unsaid)) or not _says_measure(question, said):
        return False
    relation = asked_relation(question)
    is_extreme = _SUPERLATIVE.search(question.lower()) is not None
    if relation is not None and not is_extreme and not _says_relation(relation, text, found, above):
        return False
    deed = deed_of(question)
    return deed is None or not is_reversed(deed, text)


def _adds_nothing(question: str, found: FoundAnswer) -> bool:
    """Return whether a value says no more than its question, or is one person by a word of the question."""
    asked = stems_of(question)
    told = stems_of(found.value) - _EMPTY
    if re.match(r"(?:by |to |from )?whom?\b", question, re.IGNORECASE):
        return 2 * len(told & asked) >= len(told)
    is_asked_for = re.match(r"(?:what|which)\b", question, re.IGNORECASE) is not None
    return is_asked_for and found.value.rstrip(".") == found.statement.text.rstrip(".") and told <= asked


_EMPTY = stems_of(" ".join(STOP))


def said_above(statement: Statement, document: ReadDocument) -> frozenset[str]:
    """Return the stems of what a statement stands under, and of the sentences that a pronoun at its beginning is of."""
    found = statement.around | document.stems | stems_of(f"{statement.term} {statement.label}")
    return found | stems_of(" ".join(antecedents(statement, document)))


_NAMES = re.compile(r"(?<=\w )[A-Z]\w+(?: [A-Z]\w*)*")


def is_of_longer_name(question: str, text: str) -> bool:
    """Return whether a name of the question stands in a text only in a longer one: Aldmouth in "Aldmouth North"."""
    return any(is_longer(name, text) for name in _NAMES.findall(question))


_POINTS_INSIDE = re.compile(r"\w+ing (?:it|one|them|this|these) ", re.IGNORECASE)
"""The beginning of "Restoring one takes an hour"."""


_FIRST_NAME = re.compile(r"\W*(?P<name>[A-Z][\w'-]+) (?=(?:is|was|has|had|lives?|lived|died|\w+ed) )")
_WHOLE_NAME = re.compile(
    r"\W*(?P<name>(?:[A-Z][\w'-]*[.]? ){1,2}[A-Z][\w'-]+)(?![\w'-]| (?:and|or|[A-Z])|,? (?:Jr|Sr|I+V?)\b)"
)


def names_again(text: str, before: str, whole: str) -> bool:
    """Return whether a sentence begins with the last name of the one before: "Ada Lovelace", "Lovelace".

    No other person in the `whole` text may have that name.
    """
    part, full = _FIRST_NAME.match(text), _WHOLE_NAME.match(before)
    if part is None or full is None:
        return False
    *first, last = full["name"].split()
    given = next((name for name in first if not name.endswith(".")), "")
    if part["name"] not in (given, last):
        return False
    named = re.findall(rf"([A-Z][\w'-]*[.]?) {re.escape(last)}\b", whole)
    return set(named) <= {*first, "The", "In"} and len(re.findall(rf"\b{re.escape(part['name'])}\b", before)) == 1


def antecedents(statement: Statement, document: ReadDocument) -> list[str]:
    """Return the sentences before one that begins with "it", back to the first that names its subject itself."""
    found: list[str] = []
    text, before = statement.text, statement.before
    at = document.place_of(statement)
    while (
        before
        and (points_back(text) or _POINTS_INSIDE.match(text) or names_again(text, before, document.stored.text))
        and at > 0
    ):
        at -= 1
        one = document.statements[at]
        if one.scope != statement.scope:
            break
        text, before = one.text, one.before
        found.append(text)
    return found


@lru_cache(maxsize=1024)
def telling_words(question: str) -> tuple[str, ...]:
    """Return the stems of the words that an answer has to say, each once."""
    plain = re.sub(r"(?<=\w)['\u2019]s\b", "", question)
    words = [word for word in WORD.findall(plain) if word.lower() not in STOP | SLIGHT | LIGHT]
    words = [word for word in words if not _SUPERLATIVE.fullmatch(word.lower())]
    return tuple(dict.fromkeys(stem_of(word.lower()) for word in words))


def says(stem: str, said: Iterable[str], *, is_name: bool = False) -> bool:
    """Return whether a word, one of its sense or one of its root is among stems."""
    said = frozenset(said)
    return not said.isdisjoint(senses_of(stem)) or any(is_akin(stem, each, are_names=is_name) for each in said)


def _says_words(
    question: str, said: frozenset[str], words: Sequence[AskedWord] = (), most_unsaid: float = MOST_UNSAID
) -> bool:
    telling = telling_words(question)
    if not words:
        return sum(not says(word, said) for word in telling) <= MOST_UNSAID * len(telling)
    weighed = [word for word in words if word.stem in telling]
    unsaid = [
        word for word in weighed if not says(word.stem, said, is_name=word.is_name) and said.isdisjoint(word.joined)
    ]
    return sum(word.weight for word in unsaid) <= most_unsaid * sum(word.weight for word in weighed)


def _says_measure(question: str, said: frozenset[str]) -> bool:
    asked = _AMOUNT.search(question.rstrip("?!. "))
    words = _MEASURES.get(asked[1].lower(), "") if asked is not None else ""
    return not words or not said.isdisjoint(stems_of(words)) or any(word in said for word in words.split())


def _says_most(asked: str, text: str) -> bool:
    """Return whether a text has "most complex" where a question has "most complicated"."""
    degree, _, word = asked.partition(" ")
    return any(word and says(stem_of(word), {stem_of(said)}) for said in re.findall(rf"\b{degree} ([a-z]+)", text))


def _has_extreme(text: str, question: str) -> bool:
    """Return whether a statement has each superlative of a question, or one of the same sense."""
    lower = text.lower()
    for match in _SUPERLATIVE.finditer(question.lower()):
        same = next((words for words in _SAME_EXTREME if match[0] in words), frozenset([match[0]]))
        if not any(re.search(rf"\b{word}\b", lower) for word in same) and not _says_most(match[0], lower):
            return False
    return True


def _is_unreal(text: str, question: str) -> bool:
    if _ASKS_UNREAL.search(question):
        return False
    return any(pattern.search(text) for pattern in (_UNREAL, _REPORTED, _FUTURE))


_NOTES = frozenset("note tip hint info important warning example q a".split())
"""Labels that name no property."""


def _is_read_row(question: str, found: FoundAnswer) -> bool:
    """Return whether a row was read by its header, or says all that is asked; of a whole one only a pair is a value."""
    statement = found.statement
    if found.is_entity or found.attribute in [head for head, _ in statement.cells]:
        return True
    is_whole = fold(found.value) == fold(statement.text)
    says_it = _says_words(question, statement.own | statement.around | found.document.stems)
    return says_it and (len(statement.cells) == 2 or not is_whole)


_NUMBERED = frozenset(
    "population inhabitants weight price cost fee length height depth width area age temperature speed budget rent "
    "salary distance capacity size duration timeout limit".split()
)
"""Properties that are numbers."""


def _is_property(question: str, label: str) -> bool:
    """Return whether a label has the property that a question asks for: not only that of which it is the property."""
    relation = asked_relation(question)
    return relation is None or says(stem_of(WORD.findall(relation.property)[-1]), stems_of(label))


_NUMBER = re.compile(rf"\d|\b(?:{'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)


def _says_relation(relation: AskedRelation, text: str, found: FoundAnswer, above: frozenset[str]) -> bool:
    if WORD.findall(relation.property)[-1] in _NUMBERED and not _NUMBER.search(found.value):
        return False
    before = antecedents(found.statement, found.document)
    return is_held_by(relation, text, before[-1] if before else "", above, found.value)
