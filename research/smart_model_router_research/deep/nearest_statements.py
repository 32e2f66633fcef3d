"""The statement that answers a question in everyday words: the one with most of its words, and a value of its kind.

A question is not answered where a name of it, what it asks of, or all that it says of that stands nowhere near.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from smart_model_router_research.deep.asked_values import WHOLE, AskedKind, AskedValue, asked_value, values_of
from smart_model_router_research.deep.claims import ResearchClaim
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.matching import WORD, placed_stems, stem_of
from smart_model_router_research.deep.naming import bare, is_named_in
from smart_model_router_research.deep.questions import SLIGHT, STOP, QuestionPattern
from smart_model_router_research.deep.sentence_answers import ASKS_NOW, PAST
from smart_model_router_research.deep.statement_forms import label_of
from smart_model_router_research.deep.statement_stems import senses_of
from smart_model_router_research.deep.statements import Statement, StatementKind
from smart_model_router_research.deep.values import NUMBER_WORDS, FoundValue
from smart_model_router_research.deep.vouching import POINTS, is_subject

LEAST: Mapping[AskedKind, float] = {
    **dict.fromkeys(AskedKind, 0.6),
    **dict.fromkeys((AskedKind.NAME, AskedKind.PLACE), 0.7),
    **dict.fromkeys(WHOLE, 0.8),
}
"""The least share of a question's words, by weight, that stand near: the more, the less a value of the kind tells."""
LEAST_OWN = 0.3
"""The least share that the statement itself has."""
LEAST_SAID = 0.3
"""The least share of what the question says of the things it names."""
VOUCHED = 0.3
"""The worth from which a word counts as standing near."""
NAMED = 0.5
"""The worth from which a name counts as named: not elsewhere in the section alone."""
TELLING = 0.4
"""The weight from which a word of a question for a place has to stand near: no place of a thing is where it is told of."""
SPOKEN_OF = 0.62
"""The worth from which a name stands in the statement or above it, and not only in the statement before."""
WELL_KNOWN = 0.3
"""A word that is so common in the documents need not be near: they are about it."""
EVERYWHERE = 0.12
"""The same for what a question asks of, where that is written in lower case."""
OWN_BONUS, VALUE_BONUS, UNSURE_COST = 0.3, 0.1, 0.06
LENGTH_COST, FREE_LENGTH = 0.05, 8
SLIGHT_WEIGHT = 0.3
UNKNOWN = 0.7
"""The most that a word weighs that the documents have in no form: it may be the question's own way to say it."""
MOST_RANKED = 60
WHOLE_SHARE = 0.8
NOUN_SHARE = 0.7
BESIDE = 4
"""Characters between a value and the noun that is asked for, where they stand side by side."""
CLOSE = 40
"""Characters between a value and a word that is close to it."""
MAX_ANSWER = 400
"""Characters of a statement: in a longer one the words of a question stand too far apart to tell."""
MARGIN = 0.02
"""Statements whose scores are nearer than this are equally good: where their values differ, none answers."""
WHOLE_MARGIN = 0.05
"""The same for whole sentences, which nothing but the words tells apart."""
COMPARED = frozenset(
    [AskedKind.COUNT, AskedKind.NUMBER, AskedKind.DURATION, AskedKind.SIZE, AskedKind.MONEY, AskedKind.INSTANT]
)
"""Kinds whose values are compared: where two documents differ both answer, and are found to contradict each other."""
SURE_MARGIN, MOST_DIFFERING = 0.12, 3
SURE = 0.85
"""The share of a question's words that each of two differing answers has where both are given, to be compared."""
MOST_DESCRIBING, MOST_NAMES = 3, 6
"""The statements in which a thing is looked for that a clause describes, and the names in them."""
LISTED, MOST_LISTED = 0.85, 5
"""The share of the best score from which a statement of its section is a part of a list, and how many are."""
LEAST_OF_BEST = 0.8
"""The least share of the best score, of a statement that a name or a value keeps from being the answer."""
_EMPTY = frozenset(
    "tells happens happen happened wants wanted needing too just really actually ever more other others anything "
    "something one".split()
)
_LIMITS = re.compile(r"how (?:many|much|long|large|big|old|deep|wide|far)\b.*\b(?:can|could|may)\b", re.IGNORECASE)
"""Questions for a limit."""
_LIMIT = re.compile(
    r"\b(?:max\w*|limit\w*|at most|up to|no more than|largest|upper|exceed\w*|no longer than|within)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of a question: its stem, its weight, and whether it has to stand near.

    It has to where it names something, is what the question asks of, or the deed whose doer is asked for.
    """

    stem: str
    weight: float
    text: str = ""
    is_name: bool = False
    is_needed: bool = False


@dataclass(frozen=True, slots=True)
class RankedStatement:
    """A statement with the worth of each word of the question near it. Shares are by weight, 0 to 1."""

    document: ReadDocument
    at: int
    score: float
    near: float
    own: float
    worths: dict[str, float]
    values: tuple[str, ...] = ()

    @property
    def statement(self) -> Statement:
        """The statement."""
        return self.document.statements[self.at]


def nearest_answers(question: str, documents: Sequence[ReadDocument]) -> list[FoundAnswer]:
    """Return the answers that the statements of documents give, the best first; none where none is near enough."""
    asked = asked_value(question)
    words = words_of(question, documents)
    found = ranked(question, asked, words, documents)
    return [_found(one, words) for one in chosen(found, question, asked, words)]


def names_near(clause: str, documents: Sequence[ReadDocument]) -> list[FoundAnswer]:
    """Return the names in the statements that say all that a clause says, each once, those of the best first."""
    asked = AskedValue(AskedKind.NAME)
    words = words_of(clause, documents)
    found: dict[str, FoundAnswer] = {}
    for one in ranked(clause, asked, words, documents)[:MOST_DESCRIBING]:
        if one.own >= SURE:
            for name in one.values:
                answer = replace(_found(one, words), value=name, item=name, entity=name, attribute=clause)
                found.setdefault(name.casefold(), answer)
    return list(found.values())[:MOST_NAMES]


def words_of(question: str, documents: Sequence[ReadDocument]) -> list[AskedWord]:
    """Return the telling words of a question, each with how rare it is in the documents: about 0 to 1."""
    total = sum(len(document.statements) for document in documents) + 2
    plain = re.sub(r"(?<=\w)['\u2019]s\b", "", question)
    names = _named(plain)
    subject = _subject(plain)
    done = _DEED.match(plain)
    deed = done["deed"].lower() if done is not None else ""
    found: dict[str, AskedWord] = {}
    amount = re.search(r"\bhow (\w+)", plain.lower())
    for word in WORD.findall(plain):
        lower = word.lower()
        if (lower in STOP and lower != "not") or lower in _EMPTY or (amount is not None and lower == amount[1]):
            continue
        stem = stem_of(lower)
        often = sum(document.by_stem.frequency(stem) for document in documents)
        rarity = math.log(total / (often + 0.5)) / math.log(total)
        is_known = often or any(True for document in documents for _ in document.by_stem.forms_of(stem))
        weight = max(0.1, rarity if is_known else min(rarity, UNKNOWN)) * (SLIGHT_WEIGHT if lower in SLIGHT else 1.0)
        is_name = lower in names and rarity > WELL_KNOWN
        is_subject_needed = rarity > (EVERYWHERE if word.islower() else WELL_KNOWN)
        is_needed = is_name or lower == deed or (lower == subject and is_subject_needed)
        known = found.get(stem)
        if known is None or is_needed:
            found[stem] = AskedWord(stem, weight, word, is_name, is_needed)
    return list(found.values())


_NAME = re.compile(r"[A-Z][\w]*|\w*\d\w*")
_COMPOUND = re.compile(r"\w+(?:[-_./:]\w+)+")
_DEED = re.compile(r"(?:by )?(?:who|whom|which \w+) (?P<deed>\w{3,}(?:ed|t|e|d|n|s|w))\b", re.IGNORECASE)
"""The verb of a question for a person, which a statement has to have."""
_IS_NAME = re.compile(r"[_./:\d]|[A-Z]")
"""A compound that is a name, and not two words with a hyphen."""
_ASKS_OF = re.compile(
    r"\b(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would|should|may|must) "
    r"(?:(?:the|an?|one|its?|my|your|each|every|all|any) )*(?P<subject>[\w-]+)"
)


def _named(question: str) -> frozenset[str]:
    """Return the words of a question that name something: capitalised, not as the first of a sentence, or numbers."""
    found: set[str] = set()
    for match in _NAME.finditer(question):
        before = question[: match.start()].rstrip()
        if (before and before[-1] not in ".?!:") or match[0][1:] != match[0][1:].lower():
            found.update(word.lower() for word in WORD.findall(match[0]))
    for compound in _COMPOUND.findall(question):
        found.update(word.lower() for word in WORD.findall(compound))
    return frozenset(found - STOP)


def _subject(question: str) -> str:
    """Return the first word, in lower case, of what a question asks of; "" for a pronoun and for none."""
    match = _ASKS_OF.search(question.lower())
    words = WORD.findall(match["subject"]) if match is not None else []
    word = words[0] if words else ""
    return "" if word in STOP or word in SLIGHT or word in _EMPTY or word.endswith("ly") else word


def ranked(
    question: str, asked: AskedValue, words: Sequence[AskedWord], documents: Sequence[ReadDocument]
) -> list[RankedStatement]:
    """Return the statements that can answer, by the weight of the question's words near them, the best first."""
    total = sum(word.weight for word in words) or 1.0
    found = [one for document in documents for one in _near(document, words, total)]
    found.sort(key=lambda one: (-one.score, one.document.path, one.at))
    lower = question.lower()
    common = frozenset[str]().union(*(document.by_stem.lower for document in documents))
    compounds = [name for name in _COMPOUND.findall(question) if _IS_NAME.search(name)]
    limits = _LIMITS.search(question) is not None
    kept: list[RankedStatement] = []
    for one in found:
        if len(kept) >= MOST_RANKED:
            break
        if not all(_is_named(name, one) for name in compounds):
            continue
        if limits and not _LIMIT.search(" ".join((one.statement.text, *one.statement.scope, one.statement.lead_in))):
            continue
        values = [] if _is_repeated(one) else _values(one.statement, asked, lower, common)
        if values:
            close = 0.0 if asked.kind in WHOLE else _closeness(values, one.statement.text, words)
            close += NOUN_SHARE * _is_beside(asked.noun, values, one.statement.text)
            said = tuple(dict.fromkeys(value.text for value in values))
            score = one.score + VALUE_BONUS * close - UNSURE_COST * bool(_UNSURE.search(one.statement.text))
            kept.append(RankedStatement(one.document, one.at, score, one.near, one.own, one.worths, said))
    kept.sort(key=lambda one: -one.score)
    return kept


_UNSURE = re.compile(
    r"\b(?:planned|proposed|future|hypothetical|would|might|for example|for instance|e\.g\.|such as|suppose|assume)\b",
    re.IGNORECASE,
)
"""Statements of what may be, or of an example."""


def _is_beside(noun: str, values: Sequence[FoundValue], text: str) -> bool:
    """Return whether the noun that is asked for stands right beside a value: "the DELETE command"."""
    stem = stem_of(noun) if noun else ""
    places = [place for place in placed_stems(text) if place.stem == stem] if stem else []
    return any(
        0 <= place.start - value.end <= BESIDE or 0 <= value.start - place.end <= BESIDE
        for place in places
        for value in values
    )


def _is_repeated(one: RankedStatement) -> bool:
    """Return whether the sentences of a labelled statement follow, each by itself."""
    behind = one.document.statements[one.at + 1 : one.at + 2]
    return one.statement.kind is StatementKind.LABELLED and any(each.start == one.statement.start for each in behind)


def _is_named(name: str, one: RankedStatement) -> bool:
    """Return whether a statement, or what it stands under, has a compound name as a whole."""
    statement = one.statement
    above = (*statement.scope, statement.term, statement.lead_in, statement.before, *one.document.names)
    return is_named_in(name, statement.text) or any(is_named_in(name, each) for each in above if each)


def _closeness(values: Sequence[FoundValue], text: str, words: Sequence[AskedWord]) -> float:
    """Return the share of a question's words in a text that stand close to the value that has most of them close."""
    weights = {form: word.weight for word in words for form in senses_of(word.stem)}
    places = [place for place in placed_stems(text) if place.stem in weights]
    total = sum(weights[place.stem] for place in places)
    best = 0.0
    for value in values:
        near = [
            weights[place.stem]
            for place in places
            if max(place.start - value.end, value.start - place.end) <= CLOSE
            and not value.start <= place.start < value.end
        ]
        best = max(best, sum(near))
    return best / total if total else 0.0


def _near(document: ReadDocument, words: Sequence[AskedWord], total: float) -> Iterator[RankedStatement]:
    near: dict[int, dict[str, float]] = {}
    own: dict[int, set[str]] = {}
    names: dict[str, float] = {}
    for word in words:
        names[word.stem] = document.by_stem.names_worth(word.stem)
        places, within = document.by_stem.worths(word.stem)
        for at, worth in places.items():
            near.setdefault(at, {})[word.stem] = worth
        for at in within:
            own.setdefault(at, set()).add(word.stem)
    weights = {word.stem: word.weight for word in words}
    for at, found in near.items():
        statement = document.statements[at]
        worths = {stem: max(found.get(stem, 0.0), names[stem]) for stem in weights}
        share = sum(weights[stem] * worth for stem, worth in worths.items()) / total
        said = sum(weights[stem] for stem in own.get(at, ())) / total
        length = max(FREE_LENGTH, len(statement.text.split()))
        score = share + OWN_BONUS * said - LENGTH_COST * math.log(length / FREE_LENGTH)
        yield RankedStatement(document, at, score, share, said, worths)


def _values(statement: Statement, asked: AskedValue, question: str, common: frozenset[str]) -> list[FoundValue]:
    """Return the values of the kind asked for that are not the question's own."""
    text = statement.text
    if len(text) > MAX_ANSWER or text.rstrip().endswith("?" if asked.kind in _COUNTED else ("?", ":")):
        return []
    if len(text.split()) < 2 and statement.kind is not StatementKind.LABELLED:
        return []
    found = values_of(asked, text, common)
    return found if asked.kind in WHOLE else [value for value in found if not _is_asked(value.text, question)]


_COUNTED = frozenset([AskedKind.COUNT, AskedKind.NUMBER, AskedKind.DURATION, AskedKind.SIZE])


def _is_asked(value: str, question: str) -> bool:
    """Return whether a value is one that the question names itself, or is made of its words."""
    if value.lower() in question:
        return True
    words = [word.lower() for word in WORD.findall(value.replace("_", " "))]
    return len(words) > 1 and sum(word in question for word in words) >= len(words) * 0.6


def _is_spoken_of(word: AskedWord, one: RankedStatement) -> bool:
    """Return whether a name stands in or above a statement, or is what its pronoun points to."""
    if one.worths[word.stem] >= SPOKEN_OF or one.document.by_stem.names_worth(word.stem):
        return True
    statement, before = one.statement, one.document.statements[one.at - 1].text if one.at else ""
    return (
        one.worths[word.stem] >= VOUCHED and POINTS.match(statement.text) is not None and is_subject(word.text, before)
    )


def is_near(one: RankedStatement, question: str, asked: AskedValue, words: Sequence[AskedWord]) -> bool:
    """Return whether enough of a question stands near a statement to take it for the answer."""
    if one.near < LEAST[asked.kind] or one.own < LEAST_OWN:
        return False
    noun = stem_of(asked.noun) if asked.noun and asked.kind in (AskedKind.NUMBER, AskedKind.NAME) else ""
    if any(one.worths[word.stem] < NAMED for word in words if word.is_needed and not word.is_name):
        return False
    if not all(_is_spoken_of(word, one) for word in words if word.is_name):
        return False
    if noun and one.worths.get(noun, 1.0) < SPOKEN_OF:
        return False
    if asked.kind is AskedKind.PLACE and any(
        word.weight >= TELLING and one.worths[word.stem] < SPOKEN_OF for word in words
    ):
        return False
    if ASKS_NOW.match(question) and PAST.search(one.statement.text):
        return False
    said = [word for word in words if not word.is_needed]
    weight = sum(word.weight for word in said)
    return weight == 0 or sum(word.weight * one.worths[word.stem] for word in said) / weight >= LEAST_SAID


def chosen(
    statements: Sequence[RankedStatement], question: str, asked: AskedValue, words: Sequence[AskedWord]
) -> list[RankedStatement]:
    """Return the statement that answers, with those of other documents that are as good; none where several could."""
    fitting = [one for one in statements if is_near(one, question, asked, words)]
    if not fitting or fitting[0].score < LEAST_OF_BEST * statements[0].score:
        return []
    best = fitting[0]
    equal = [one for one in fitting[1:] if best.score - one.score < MARGIN]
    if asked.kind in WHOLE:
        if asked.noun.endswith("s"):
            listed = _listed(best, fitting)
            return listed if len(listed) > 1 or _ENUMERATES.search(best.statement.text) else []
        return [best] if all(best.score - one.score >= WHOLE_MARGIN for one in fitting[1:2]) else []
    if asked.kind in COMPARED and best.own >= SURE:
        rivals = [
            one
            for one in fitting[1:]
            if one.own >= SURE and best.score - one.score < SURE_MARGIN and one.document is not best.document
        ]
        differing = {one.values[0].casefold(): one for one in reversed(rivals) if not _shares(one, best)}
        if differing:
            return [best, *differing.values()][:MOST_DIFFERING]
    return [best] if all(_shares(one, best) for one in equal) else []


_ENUMERATES = re.compile(r"\w,? (?:and|or) \w|, |: |\bonly\b")
"""Statements that can name several things, or say that there is one alone."""


def _listed(best: RankedStatement, fitting: Sequence[RankedStatement]) -> list[RankedStatement]:
    """Return the statements of one section that are about as near: each may name a part of what is asked for."""
    scope = best.statement.scope
    found = [
        one
        for one in fitting
        if one.document is best.document and one.statement.scope == scope and one.score >= LISTED * best.score
    ]
    return sorted(found[:MOST_LISTED], key=lambda one: one.at)


def _shares(one: RankedStatement, other: RankedStatement) -> bool:
    """Return whether two statements have a value in common."""
    mine, its = ({re.sub(r"\s", "", value.casefold()) for value in each.values} for each in (one, other))
    return bool(mine & its)


def _found(one: RankedStatement, words: Sequence[AskedWord]) -> FoundAnswer:
    statement, value = one.statement, " ".join(one.values[0].split())
    return FoundAnswer(
        document=one.document,
        statement=statement,
        value=value,
        item=value,
        score=one.score,
        entity=" ".join(word.text for word in words if word.is_needed)
        or bare((*statement.scope[-1:], *one.document.names, "")[0]),
        attribute=" ".join(word.stem for word in words),
        names_term=True,
    )


def is_weak(claim: ResearchClaim, pattern: QuestionPattern) -> bool:
    """Return whether a claim that was read from prose says less than a question asks for.

    Its value is its whole sentence, or one thing for several, or none of the kind that is counted.
    """
    if not claim.evidence:
        return False
    quote = fold(claim.evidence[0].quote)
    if len(claim.value) >= WHOLE_SHARE * len(quote) or (len(claim.text) > len(quote) + 20 and label_of(quote) is None):
        return True
    asked = asked_value(pattern.text)
    if asked.kind is AskedKind.COUNT and not re.search(rf"\d|\b(?:{'|'.join(NUMBER_WORDS)})\b", claim.value.lower()):
        return True
    return asked.noun.endswith("s") and claim.value == claim.entity
