"""The statement that answers a question in everyday words: the one with most of its words, and a value of its kind.

A question is not answered where a name of it, what it asks of, or all that it says of that stands nowhere near.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from smart_model_router_research.deep.asked_choices import compares
from smart_model_router_research.deep.asked_exactly import says_nothing_else
from smart_model_router_research.deep.asked_values import WHOLE, AskedKind, AskedValue, asked_value
from smart_model_router_research.deep.asked_words import BEGUN, POSSIBLE, AskedWord, are_many, words_of
from smart_model_router_research.deep.claims import ResearchClaim
from smart_model_router_research.deep.fitting import is_said, names_again, says
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.matching import stem_of, stems_of
from smart_model_router_research.deep.naming import bare
from smart_model_router_research.deep.nearest_statements import (
    LEAST_OF_BEST,
    MAX_ANSWER,
    RankedStatement,
    chosen_statement,
    ranked,
)
from smart_model_router_research.deep.questions import QuestionPattern, Wanted
from smart_model_router_research.deep.sentence_answers import is_over
from smart_model_router_research.deep.statement_forms import label_of
from smart_model_router_research.deep.values import NUMBER_WORDS
from smart_model_router_research.deep.vouching import is_subject, points_back

LEAST: Mapping[AskedKind, float] = {
    **dict.fromkeys(AskedKind, 0.6),
    AskedKind.COUNT: 0.5,
    **dict.fromkeys((AskedKind.NAME, AskedKind.PLACE), 0.7),
    **dict.fromkeys(WHOLE, 0.8),
}
"""The least share of a question's words, by weight, that stand near: the more, the less a value of the kind tells."""
LEAD, LEAST_ALONE = 0.2, 0.65
"""The distance to the next best statement from which a whole sentence stands alone, and the least share near it."""
LEAST_OWN = 0.3
"""The least share that the statement itself has."""
LEAST_OWN_OF_COUNTS = 0.15
"""The same of a count: its noun stands behind it."""
LEAST_SAID = 0.3
"""The least share of what the question says of the things it names."""
VOUCHED = 0.3
"""The worth from which a word counts as standing near."""
NAMED = 0.5
"""The worth from which a name counts as named: not elsewhere in the section alone."""
TELLING, MOST_UNSPOKEN = 0.4, 0.25
"""The weight from which a word of a question for a place has to stand near, and the share of all words that need not:
what is asked happens there."""
SPOKEN_OF = 0.62
"""The worth from which a name stands in the statement or above it, and not only in the statement before."""
WHOLE_SHARE = 0.8
CUT = 250
"""Characters of a quote from which it is the piece of a longer statement, if the claim goes beyond it."""
MARGIN = 0.02
"""Statements whose scores are nearer than this are equally good: where their values differ, none answers."""
WHOLE_MARGIN = 0.03
"""The same for whole sentences, which nothing but the words tells apart."""
COMPARED = frozenset(
    [AskedKind.COUNT, AskedKind.NUMBER, AskedKind.DURATION, AskedKind.SIZE, AskedKind.MONEY, AskedKind.INSTANT]
)
"""Kinds whose values are compared: where two documents differ both answer, and are found to contradict each other."""
_OF_NOUN = (AskedKind.NUMBER, AskedKind.NAME, AskedKind.RELEASE)
"""Kinds of which the noun that is asked for has to be spoken of."""
SURE_MARGIN, MOST_DIFFERING = 0.12, 3
SURE = 0.85
"""The share of a question's words that each of two differing answers has where both are given, to be compared."""
MOST_DESCRIBING, MOST_NAMES = 3, 6
"""The statements in which a thing is looked for that a clause describes, and the names in them."""
LISTED, MOST_LISTED = 0.85, 5
"""The share of the best score from which a statement of its section is a part of a list, and how many are."""


def nearest_answers(question: str, documents: Sequence[ReadDocument]) -> list[FoundAnswer]:
    """Return the answers that the statements of documents give, the best first; none where none is near enough."""
    asked = asked_value(question)
    words = words_of(question, documents)
    found = ranked(question, asked, words, documents)
    fitting = _fitting(found, question, asked, words, is_of_many=are_many(documents))
    return [_found(one, words) for one in chosen(fitting, found, question, asked)]


def fitting_answers(question: str, documents: Sequence[ReadDocument]) -> list[FoundAnswer]:
    """Return the answers of all statements that say what a question asks, the best first; they may differ."""
    asked = asked_value(question)
    words = words_of(question, documents)
    found = ranked(question, asked, words, documents)
    fitting = _fitting(found, question, asked, words, is_of_many=are_many(documents))
    return [_found(one, words) for one in fitting]


def chosen_answer(
    question: str, document: ReadDocument, at: int, documents: Sequence[ReadDocument], said: str = ""
) -> FoundAnswer | None:
    """Return the answer of one statement, which a reader chose; None where it can have no value of the kind asked for.

    `said` is what the reader makes of it: a value in that comes first. The value, and what it is of, are found by code;
    of the question's words that is what the statement has, or stands under.
    """
    one = chosen_statement(question, asked_value(question), document, at)
    if one is None:
        return None
    values = sorted(one.values, key=lambda value: value.casefold() not in said.casefold())
    stems = one.statement.own | one.statement.around | document.stems
    words = [word for word in words_of(question, documents) if says(word.stem, stems)]
    return _found(replace(one, values=tuple(values)), words)


def _fitting(
    statements: Sequence[RankedStatement],
    question: str,
    asked: AskedValue,
    words: Sequence[AskedWord],
    *,
    is_of_many: bool,
) -> list[RankedStatement]:
    return [
        one
        for at, one in enumerate(statements)
        if is_near(one, question, asked, words, is_alone=is_of_many and at == 0 and _is_alone(statements))
        and is_said(question, _found(one, words), words, is_of_many=is_of_many)
        and _is_exact(one, question, asked)
    ]


def _is_exact(one: RankedStatement, question: str, asked: AskedValue) -> bool:
    """Return whether a statement says a default where one is asked for, and of support for a deed nothing else."""
    above = " ".join((one.statement.text, one.statement.label, one.statement.lead_in, *one.statement.scope[-1:]))
    if _ASKS_DEFAULT.search(question) and not _TELLS_DEFAULT.search(above):
        return False
    possible = POSSIBLE.search(question) if asked.kind is AskedKind.RELEASE else None
    if possible is None or says(stem_of(possible["verb"].lower()), one.statement.own):
        return True
    begun = _BEGUN if possible["verb"].lower() in _GENERAL else frozenset[str]()
    return says_nothing_else(one.statement.text, question, one.document, begun)


_BEGUN = frozenset(BEGUN) | stems_of("was were has have been")
_GENERAL = frozenset("use declare create define have get specify set enable employ call make write".split())
"""Deeds that are possible where there is support for what they are done with."""
_ASKS_DEFAULT = re.compile(r"\bas the default\b", re.IGNORECASE)
_TELLS_DEFAULT = re.compile(
    r"default|\b(?:unless|initial(?:ly)?|normally|usually|typically|standard|automatically|out of the box)\b",
    re.IGNORECASE,
)


def _is_alone(statements: Sequence[RankedStatement]) -> bool:
    """Return whether no other text comes close to the best of statements."""
    best = statements[0]
    return all(best.score - one.score >= LEAD for one in statements[1:] if one.statement.text != best.statement.text)


def defined_near(name: str, documents: Sequence[ReadDocument]) -> list[FoundAnswer]:
    """Return the statement that says first in its document what a name is: "Exim is a mail transfer agent"."""
    told = re.compile(
        rf"(?:the |an? )?{re.escape(name)}(?: \([^()]*\))?,? (?:is|are) (?:an?|the|one) |"
        rf"(?:the |an? )?{re.escape(name)}(?: \([^()]*\))? (?:stands for|means|refers to) ",
        re.IGNORECASE,
    )
    found = [
        (at, document)
        for document in documents
        for at, statement in enumerate(document.statements)
        if len(statement.text) <= MAX_ANSWER and told.match(statement.text)
    ]
    if not found:
        return []
    at, document = min(found, key=lambda each: each[0])
    statement = document.statements[at]
    said = " ".join(statement.text.split())
    return [
        FoundAnswer(document=document, statement=statement, value=said, score=1.0, entity=name, attribute="meaning")
    ]


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


def _is_spoken_of(word: AskedWord, one: RankedStatement) -> bool:
    """Return whether a name stands in or above a statement, or is what its pronoun points to."""
    if one.worths[word.stem] >= SPOKEN_OF or one.document.by_stem.names_worth(word.stem, is_name=word.is_name):
        return True
    statement, before = one.statement, one.document.statements[one.at - 1].text if one.at else ""
    return one.worths[word.stem] >= VOUCHED and points_back(statement.text) and is_subject(word.text, before)


def _is_called(names: Sequence[AskedWord], one: RankedStatement) -> bool:
    """Return whether a name of several words is spoken of by a part of it, with the others near."""
    return (
        len(names) > 1
        and all(word.text.isalpha() and one.worths[word.stem] >= NAMED for word in names)
        and any(_is_spoken_of(word, one) for word in names)
    )


def _names_again(one: RankedStatement) -> bool:
    before = one.document.statements[one.at - 1].text
    return names_again(one.statement.text, before, one.document.stored.text)


_MAKES = stems_of(
    "make made write wrote written design designed create created develop developed build built invent author"
)


def _is_made_by(word: AskedWord, question: str, one: RankedStatement, asked: AskedValue) -> bool:
    """Return whether a statement names the maker of a thing of the question behind it: "a patch by Jo Marsh"."""
    if asked.kind is not AskedKind.BEING or word.stem not in _MAKES:
        return False
    made = (re.search(rf"(\w+) by {re.escape(each)}", one.statement.text) for each in one.values)
    return any(match is not None and stem_of(match[1].lower()) in stems_of(question) for match in made)


def is_near(
    one: RankedStatement, question: str, asked: AskedValue, words: Sequence[AskedWord], *, is_alone: bool = False
) -> bool:
    """Return whether enough of a question stands near a statement to take it for the answer.

    Of a whole sentence less is enough where no other one comes close, `is_alone`, and it speaks of what is asked for.
    """
    if compares(question, one.statement.text):
        return True
    least = LEAST[AskedKind.NUMBER if one.is_beside_noun else asked.kind]
    if is_alone and asked.kind in WHOLE and (not asked.noun or one.worths.get(stem_of(asked.noun), 0.0) >= SPOKEN_OF):
        least = LEAST_ALONE
    if one.near < least or one.own < (LEAST_OWN_OF_COUNTS if asked.kind is AskedKind.COUNT else LEAST_OWN):
        return False
    noun = stem_of(asked.noun) if asked.noun and asked.kind in _OF_NOUN else ""
    needed = [word for word in words if word.is_needed and not word.is_name and one.worths[word.stem] < NAMED]
    if not all(_is_made_by(word, question, one, asked) for word in needed):
        return False
    names = [word for word in words if word.is_name]
    is_called = _is_called(names, one)
    if not is_called and not all(_is_spoken_of(word, one) for word in names):
        return False
    if noun and one.worths.get(noun, 1.0) < SPOKEN_OF:
        return False
    if asked.kind is AskedKind.PLACE:
        is_again = is_called and one.at > 0 and _names_again(one)
        asked_of = [word for word in words if word.weight >= TELLING and not (is_again and word.is_name)]
        unspoken = sum(word.weight for word in asked_of if one.worths[word.stem] < SPOKEN_OF)
        if unspoken > MOST_UNSPOKEN * sum(word.weight for word in words):
            return False
    if is_over(question, one.statement.text):
        return False
    said = [word for word in words if not word.is_needed]
    weight = sum(word.weight for word in said)
    return weight == 0 or sum(word.weight * one.worths[word.stem] for word in said) / weight >= LEAST_SAID


def chosen(
    fitting: Sequence[RankedStatement], statements: Sequence[RankedStatement], question: str, asked: AskedValue
) -> list[RankedStatement]:
    """Return the fitting statement that answers, with those of other documents that are as good; none of several."""
    if not fitting or fitting[0].score < LEAST_OF_BEST * statements[0].score:
        return []
    best = fitting[0]
    equal = [one for one in fitting[1:] if best.score - one.score < MARGIN]
    if asked.kind in WHOLE:
        if asked.noun.endswith("s"):
            listed = _listed(best, fitting)
            return listed if len(listed) > 1 or enumerates(best.statement.text, question) else []
        other = next((one for one in fitting[1:] if not _has_other(one, best) and not _has_other(best, one)), None)
        return [best] if other is None or best.score - other.score >= WHOLE_MARGIN else []
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


_SEVERAL = re.compile(r": |\bonly\b|\b(?-i:[A-Z0-9]\w*) family of\b|\S+, \S+(?: \S+)?,? (?:and|or) \S", re.IGNORECASE)
_TWO = re.compile(r"(\w+)[`\"*]*,? (?:and|or) [`\"*]*(\w+)")


def enumerates(text: str, question: str) -> bool:
    """Return whether a statement can name several things that a question does not, or says that there is one alone."""
    asked = stems_of(question)
    pairs = [stems_of(f"{match[1]} {match[2]}") for match in _TWO.finditer(text)]
    return _SEVERAL.search(text) is not None or any(len(pair) == 2 and not pair & asked for pair in pairs)


def _listed(best: RankedStatement, fitting: Sequence[RankedStatement]) -> list[RankedStatement]:
    """Return the statements of one section that are about as near: each may name a part of what is asked for."""
    scope = best.statement.scope
    found = [
        one
        for one in fitting
        if one.document is best.document and one.statement.scope == scope and one.score >= LISTED * best.score
    ]
    return sorted(found[:MOST_LISTED], key=lambda one: one.at)


def _has_other(one: RankedStatement, other: RankedStatement) -> bool:
    """Return whether the text of one statement has that of the other."""
    return other.statement.text in one.statement.text


def _shares(one: RankedStatement, other: RankedStatement) -> bool:
    """Return whether two statements have a value in common."""
    mine, its = ({re.sub(r"\s", "", value.casefold()) for value in each.values} for each in (one, other))
    return bool(mine & its)


def _of_column(one: RankedStatement, words: Sequence[AskedWord]) -> FoundAnswer | None:
    """The cell of a row below the one head that a question's words name, where it has a value of the asked kind."""
    named = [
        (head, cell)
        for head, cell in one.statement.cells[1:]
        if any(says(word.stem, stems_of(head)) for word in words) and any(value in cell for value in one.values)
    ]
    if len(named) != 1:
        return None
    [(head, cell)] = named
    name = bare(one.statement.cells[0][1])
    return FoundAnswer(
        document=one.document,
        statement=one.statement,
        value=cell,
        item=cell,
        score=one.score,
        entity=name,
        attribute=head,
        names_term=True,
    )


def _found(one: RankedStatement, words: Sequence[AskedWord]) -> FoundAnswer:
    statement, value = one.statement, " ".join(one.values[0].split())
    if (of_column := _of_column(one, words)) is not None:
        return of_column
    measured = stems_of(value)  # "how many days" asks for the unit of the value
    entity = " ".join(word.text for word in words if word.is_needed)
    return FoundAnswer(
        document=one.document,
        statement=statement,
        value=value,
        item=value,
        score=one.score,
        entity=entity or bare((*statement.scope[-1:], *one.document.names, "")[0]),
        attribute=" ".join(word.text for word in words if word.stem not in measured | stems_of(entity)),
        names_term=True,
    )


def is_weak(claim: ResearchClaim, pattern: QuestionPattern) -> bool:
    """Return whether a claim that was read from prose says less than a question asks for.

    Its value is its whole sentence, or one thing for several, or none of the kind that is counted.
    """
    if not claim.evidence or pattern.wanted in (Wanted.VERSION, Wanted.YES_NO):
        return False
    quote = fold(claim.evidence[0].quote)
    if claim.value.count("(") != claim.value.count(")"):
        return True
    is_cut = len(quote) > CUT and len(claim.text) > len(quote) and label_of(quote) is None and not quote.startswith("|")
    if len(claim.value) >= WHOLE_SHARE * len(quote) or is_cut:
        return True
    asked = asked_value(pattern.text)
    if asked.kind is AskedKind.COUNT and not re.search(rf"\d|\b(?:{'|'.join(NUMBER_WORDS)})\b", claim.value.lower()):
        return True
    is_several = asked.noun.endswith("s") and label_of(quote) is None and not quote.startswith("|")
    return is_several and (claim.value == claim.entity or not enumerates(quote, pattern.text))
