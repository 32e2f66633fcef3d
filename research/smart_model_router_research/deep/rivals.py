"""The statements that say something else than an answer about what a question asks: both are shown, neither alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from smart_model_router_research.deep.analysts import answers_of
from smart_model_router_research.deep.asked_relations import ASKS_HOLDER, HOLDERS, deed_of
from smart_model_router_research.deep.asked_values import AskedKind, asked_value
from smart_model_router_research.deep.asked_words import words_of
from smart_model_router_research.deep.claims import ClaimKind, ResearchClaim
from smart_model_router_research.deep.comparing import differs, is_polar, matter_of
from smart_model_router_research.deep.fitting import said_above, says, telling_words
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.labels import SYMMETRIC
from smart_model_router_research.deep.matching import stems_of
from smart_model_router_research.deep.nearest_answers import COMPARED, fitting_answers
from smart_model_router_research.deep.questions import QuestionPattern, Wanted, read_question
from smart_model_router_research.deep.statement_forms import label_of
from smart_model_router_research.deep.statements import StatementKind

MOST_RIVALS = 3
"""Rivals of one answer that are shown."""
_COMPARED = (Wanted.FACT, Wanted.NUMBER, Wanted.DATE, Wanted.PERSON, Wanted.PLACE, Wanted.YES_NO)
_KINDS = COMPARED | {AskedKind.BEING, AskedKind.NAME, AskedKind.YES_NO, AskedKind.PLACE}
_AUXILIARY = "(?:does|do|did|can|may|is|are|was|were|has|have)"
_MOVED = (
    r"(?:has |have |was |is |will be |will )?(?:moved?|moves|passed|passes|goes|went|transferred|handed over)"
    r" (?:from [^.;]+? )?to (?:the |our )?(?P<value>[^.,;()]+?)"
    r"(?=\W*$|[.,;()]| (?:in|on|as|since|at|with|when|by|and)\b)"
)
_DENIES = re.compile(r"\b(?:not|never|no longer)\b|n't\b", re.IGNORECASE)
_OVER = re.compile(r"\b(?:was|were|had|until|till|formerly|previously|former|used to)\b", re.IGNORECASE)


def can_be_disputed(pattern: QuestionPattern, claims: Sequence[ResearchClaim]) -> bool:
    """Return whether another value would dispute claims: not where several things are asked for, or of a pair."""
    is_several = pattern.wanted is Wanted.FACT and pattern.asked_noun.endswith("s")
    return (
        pattern.wanted in _COMPARED
        and not is_several
        and not any(claim.other or claim.attribute.casefold() in SYMMETRIC for claim in claims)
        and not any(claim.kind is ClaimKind.INFERENCE for claim in claims)
    )


def rivals_of(
    pattern: QuestionPattern, claims: Sequence[ResearchClaim], documents: Sequence[ReadDocument]
) -> list[FoundAnswer]:
    """Return the answers that say all that a question says, and another value than each of these claims."""
    question = pattern.text
    kind = asked_value(question).kind
    direct = [each for document in documents for each in answers_of(document, pattern) if not each.is_entity]
    if (noun := property_of(pattern)) is not None:
        direct += [each for document in documents for each in answers_of(document, noun) if is_read_by_head(each)]
    near = fitting_answers(question, documents) if kind in _KINDS else []
    moved = [each for document in documents for each in _moved(pattern, document)]
    known = [(each.evidence[0].doc_id, fold(each.evidence[0].quote)) for each in claims if each.evidence]
    is_past = any(_OVER.search(claim.text) for claim in claims)
    has_value = not any(is_polar(claim) for claim in claims)
    found: list[FoundAnswer] = []
    for one in (*direct, *near, *moved):
        statement = one.statement
        if any(one.document.stored.id == doc and fold(statement.text) == quote for doc, quote in known):
            continue
        if kind is not AskedKind.INSTANT and is_past is not bool(_OVER.search(statement.text)):
            continue
        is_whole = fold(one.value).rstrip(".") == fold(statement.text).rstrip(".")
        if is_whole and has_value and not _DENIES.search(statement.text):
            continue  # a sentence without a value of its own has the words by chance
        if (one in moved or _says_asked(question, one)) and all(_is_other(one, claim) for claim in claims):
            found += [one] * all(_differ(one, each) for each in found)
    return found[:MOST_RIVALS]


def property_of(pattern: QuestionPattern) -> QuestionPattern | None:
    """Return "Which port does X listen on?" as the question for the property that a label or column has: port of X.

    A question for what owns X is that for the owner of X.
    """
    if len(pattern.entities) != 1 or pattern.numbers or pattern.superlative is not None:
        return None
    if (does := ASKS_HOLDER.match(pattern.text)) is not None:
        return read_question(f"What is the {HOLDERS[does[1].lower()]} of {pattern.entities[0]}")
    if not pattern.asked_noun or not re.search(rf"\b{re.escape(pattern.asked_noun)} {_AUXILIARY}\b", pattern.text):
        return None
    if pattern.wanted is Wanted.NUMBER:
        return read_question(f"How many {pattern.asked_noun} has {pattern.entities[0]}")
    return read_question(f"What is the {pattern.asked_noun} of {pattern.entities[0]}")


def _moved(pattern: QuestionPattern, document: ReadDocument) -> Iterator[FoundAnswer]:
    """Yield what the ownership of X moved to, where a question asks for its owner: such a sentence names no owner."""
    does = ASKS_HOLDER.match(pattern.text)
    if does is None or does[1].lower() != "owns" or len(pattern.entities) != 1:
        return
    entity = pattern.entities[0]
    moved = re.compile(rf"\bownership of (?:the |our )?{re.escape(entity)} {_MOVED}", re.IGNORECASE)
    for statement in document.statements:
        if (match := moved.search(statement.text)) is not None:
            value = match["value"].strip()
            yield FoundAnswer(document=document, statement=statement, value=value, score=1.0, entity=entity)


def is_read_by_head(one: FoundAnswer) -> bool:
    """Return whether an answer was read by a label or by the head of a column."""
    heads = [head for head, _ in one.statement.cells]
    return not one.is_entity and one.attribute in (one.statement.label, *heads) and bool(one.attribute)


def _says_asked(question: str, one: FoundAnswer) -> bool:
    """Return whether a statement says all telling words; a row or a label need not say the verb of the question."""
    statement = one.statement
    said = statement.own | said_above(statement, one.document)
    unsaid = [word for word in telling_words(question) if not says(word, said)]
    deed = deed_of(question)
    written = label_of(statement.text)
    is_labelled = statement.kind in (StatementKind.ROW, StatementKind.LABELLED) or written is not None
    label = statement.label or (written[0] if written is not None else one.attribute)
    if is_labelled and not all(says(stem, telling_words(question)) for stem in stems_of(label)):
        return False
    return not unsaid or (is_labelled and deed is not None and unsaid == [deed.verb])


def _is_other(one: FoundAnswer, claim: ResearchClaim) -> bool:
    if is_polar(claim) and fold(one.value) == fold(one.statement.text):
        return differs(claim.text, one.statement.text, is_whole=True)
    mine = f"{claim.value} {claim.unit}" if claim.unit and claim.unit not in claim.value else claim.value
    return differs(mine, _value(one)) and fold(claim.value).casefold() not in fold(one.statement.text).casefold()


def _differ(one: FoundAnswer, other: FoundAnswer) -> bool:
    return differs(_value(one), _value(other))


def _value(one: FoundAnswer) -> str:
    return f"{one.value} {one.unit}" if one.unit and one.unit not in one.value else one.value


def as_one_matter(
    question: str, claims: Sequence[ResearchClaim], texts: Sequence[frozenset[str]]
) -> list[ResearchClaim]:
    """Return claims that answer one question as claims about one matter, so that their values are compared.

    `texts` are the stems of what each claim says and stands under. What all of them say of the question's words is the
    matter.
    """
    if len({matter_of(claim) for claim in claims}) == 1:
        return list(claims)
    words = [word for word in words_of(question, []) if word.stem in telling_words(question)]
    shared = [word for word in words if all(says(word.stem, text) for text in texts)]
    if not shared:
        return list(claims)
    names = [word for word in shared if word.is_name] or shared[:1]
    rest = [word.text for word in shared if word not in names] or [names[0].text]
    entity = " ".join(word.text for word in names)
    return [replace(claim, entity=entity, attribute=" ".join(rest), other="") for claim in claims]
