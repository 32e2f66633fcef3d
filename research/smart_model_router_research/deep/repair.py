"""Repair by quotation: a claim that goes beyond its source is replaced by the source's own sentence."""

from __future__ import annotations

import re
from itertools import islice

from smart_model_router_research.deep.checking import MAX_OCCURRENCES, SupportStatus, check_claim, is_quoted
from smart_model_router_research.deep.folding import FoldedText, fold, without_markup
from smart_model_router_research.deep.readings import (
    header_above,
    is_turned_by,
    is_turning,
    row_readings,
)
from smart_model_router_research.deep.sentences import Sentence, sentences_at, without_marks
from smart_model_router_research.deep.words import Item, read_items

_POINTING = frozenset(
    "it its this that these those they them their he she his her him there here such one both another the_same "
    "so then also however therefore otherwise instead".split()
)
"""A sentence that begins with one of these speaks of something said before."""
_NO_SUBJECT = re.compile(
    r"(?:new|added|changed|deprecated|removed|renamed|fixed)\b.*?\b(?:in|since|version)\b|"
    r"(?:(?:in|of|for|on|by|with|but|and|so|as) )?(?:it|its|this|that|these|those|them)\b|the (?:latter|former)\b|"
    r"(?:added|removed|renamed|returns?|raises?|sets?|gets?|specif(?:y|ies)|controls?|enables?|disables?|"
    r"defaults? to|default:|the default(?: value)? (?:is|of|for|was)\b|use[ds]? (?:to|for|when|by)|see|note)\b",
    re.IGNORECASE,
)
"""The beginnings of sentences that say something of what stands above them: notes on versions, and verbs alone."""


def quotation(text: str, quote: str, document: FoldedText, context: str = "") -> str | None:
    """Return the sentence of the source that a claim comes closest to where its quote stands.

    The headings stand before it where it begins with a pronoun or has no subject. None where the quote is not in the
    document, where nothing that the claim says stands there, or where the sentence cannot be a claim.
    """
    wanted = _telling(read_items(fold(text)))
    for span in islice(document.spans(quote), MAX_OCCURRENCES):
        start, said = max(
            _said_at(span, document.text), key=lambda pair: len(wanted & _telling(read_items(pair[1]))), default=(0, "")
        )
        if not wanted & _telling(read_items(said)):
            continue
        path = document.path_at(start, context)
        if path and (not stands_alone(said) or any(map(is_turning, path))):
            said = f"{' > '.join(path)}: {said}"
        if check_claim(said, quote, document, context).status is SupportStatus.SUPPORTED:
            return said
    return None


def stands_alone(sentence: str) -> bool:
    """Return whether a reader understands a sentence without what stands before it, as far as its beginning tells."""
    first = re.match(r"[\W_]*(\w+)", sentence)
    return first is not None and first[1].casefold() not in _POINTING and _NO_SUBJECT.match(sentence) is None


def _said_at(span: tuple[int, int], document: str) -> list[tuple[int, str]]:
    return [(each.start, said) for each in sentences_at(document, *span) for said in _said(each, document)]


def _said(sentence: Sentence, document: str) -> list[str]:
    if sentence.is_row:
        as_written, *by_header = row_readings(sentence, header_above(document, sentence))
        led = "".join(f"{fold(without_markup(lead_in))} " for lead_in in sentence.lead_ins if is_turned_by(lead_in))
        return [led + row for row in by_header or [as_written]]
    text = fold(without_markup(without_marks(sentence.text)))
    if '"' not in text and is_quoted(sentence, document):
        text = f'"{text}"'
    return [" ".join([*(fold(without_markup(without_marks(lead_in))) for lead_in in sentence.lead_ins), text])]


def _telling(items: list[Item]) -> set[object]:
    return {item.key if isinstance(item.key, str) else item.written for item in items if not _is_empty(item)}


def _is_empty(item: Item) -> bool:
    return item.kind == "mark" or item.is_light or item.key in ("is", "are", "and", "to", "in", "for", "on", "with")
