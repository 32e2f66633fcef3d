"""A claim is checked against its source by code: the quote has to be there, and the claim has to follow from it.

It follows by licensed edits only (`edits.py`), from a whole sentence that the quote touches: a quote that begins behind
"If the disk is full," vouches for nothing without it. Whatever is not supported says why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from smart_model_router_research.deep.edits import parts_of
from smart_model_router_research.deep.folding import FoldedText, fold, without_markup
from smart_model_router_research.deep.following import follows, unvouched
from smart_model_router_research.deep.readings import header_above, readings_of, row_readings
from smart_model_router_research.deep.sentence_parts import flat
from smart_model_router_research.deep.sentences import MAX_CHARACTERS, Sentence, sentences_at, split_sentences
from smart_model_router_research.deep.words import Item, read_items

MAX_CLAIM_CHARACTERS = 2_000
MAX_QUOTE_CHARACTERS = 4_000
MAX_OCCURRENCES = 20
"""A quote that stands in a document more often is looked at so many times."""
_ASIDE = re.compile(r",\s+(?:who|which|whose|whom|where)\b", re.IGNORECASE)
_QUOTES = re.compile(r'"[^"\s]+(?:\s+[^"\s]+){2,}')
"""Three words and more in quotation marks: the claim says that it quotes."""
_DENIED = re.compile(
    r"\s+(?:(?:but|however|yet|in fact|in reality|actually),? )?(?:this|that|these|it|they|which|both|such|"
    r"(?:the|this|that) (?:claim|statement|view|belief|idea|theory|rumou?r|story|report|assertion|figure|number|rule|"
    r"law|sentence|result))\b[^.!?\n]{0,80}\b(?:wrong|false|incorrect|untrue|not true|not so|not correct|myths?|"
    r"retracted|withdrawn|disproved|debunked|refuted|a lie|nonsense|outdated|no longer|rejected|denied|disputed|"
    r"repealed|revoked|overturned|corrected|superseded|reversed|mistaken|a mistake|an error|inaccurate|unfounded|"
    r"baseless|fake|a hoax|a joke|satire|fiction|not the case|never happened|was believed|was thought|used to be)\b|"
    r"\s+(?:but|though|however|yet),? (?:not|only)\b|\s+this (?:applies|holds|only|is only|has since)\b|"
    r"\s+so (?:the|it is|they)\b[^.!?\n]{0,40}\b(?:goes|said|says?|claim|believe)|\s+exceptions?:|"
    r"\s+(?:or so|not (?:true|so|really|any ?more|at all)\b)",
    re.IGNORECASE,
)
"""A sentence that denies the one before it."""
_POINTING = frozenset("it its this these those they them their he his him she her hers such there then".split())
"""A sentence with one of these may be about what the sentence before it is about."""


class SupportStatus(StrEnum):
    """The result of a check."""

    SUPPORTED = "supported"
    PARTIAL = "partial"
    """The quote is there, and does not say all that the claim says; counts for nothing."""
    UNSUPPORTED = "unsupported"
    """The quote is not there, or there is no claim."""


@dataclass(frozen=True, slots=True)
class Support:
    """The result of a check: why it is no better, and where the quote stands in the document, in characters."""

    status: SupportStatus
    reasons: tuple[str, ...] = ()
    span: tuple[int, int] | None = None


def check_claim(text: str, quote: str, document: str | FoldedText, context: str = "") -> Support:
    """Return whether a document supports a claim by a quote. Never raises.

    The claim is at most 2,000 characters, each of its sentences follows from one sentence of the document that the
    quote touches. `context` is the title of the document, with the headings above the part of it that is given,
    joined by " > "; those within it are read from it, above each place of the quote.
    """
    if len(text) > MAX_CLAIM_CHARACTERS or len(quote) > MAX_QUOTE_CHARACTERS:
        wanted = f"a claim is at most {MAX_CLAIM_CHARACTERS:,} characters, a quote {MAX_QUOTE_CHARACTERS:,}"
        return Support(SupportStatus.UNSUPPORTED, (f"{wanted}: these are {len(text):,} and {len(quote):,}",))
    claim = [
        (sentence, items)
        for sentence in split_sentences(fold(without_markup(text)))
        if (items := flat(parts_of(read_items(sentence), whole=True)))
    ]
    if not claim:
        return Support(SupportStatus.UNSUPPORTED, ("the claim says nothing",))
    if any(sentence.endswith("?") for sentence, _ in claim):
        return Support(SupportStatus.UNSUPPORTED, ("a question claims nothing",))
    source = document if isinstance(document, FoldedText) else FoldedText(document)
    best: Support | None = None
    for span in islice(source.spans(quote), MAX_OCCURRENCES):
        support = _check_at(span, claim, source, context)
        if support.status is SupportStatus.SUPPORTED:
            return support
        best = best or support
    return best or Support(SupportStatus.UNSUPPORTED, ("K2: the quote is not in the document",))


def _check_at(span: tuple[int, int], claim: list[tuple[str, list[Item]]], source: FoldedText, context: str) -> Support:
    document = source.text
    window = [
        each
        for each in sentences_at(document, *span)
        if not source.headings.begin_at(each.start, each.end) and not source.is_unsaid(each.start, each.end)
    ]
    if not window:
        return Support(SupportStatus.PARTIAL, ("K3: no sentence ends near the quote",), span)
    reasons: list[str] = []
    before: set[int] | None = None
    for sentence, items in claim:
        found = {
            number
            for number, said in enumerate(window)
            if _says(said, items, source, context)
            and _commas(sentence) <= _commas(said.text)
            and (_QUOTES.search(sentence) or not is_quoted(said, document))
        }
        if before is not None and found and points_back(sentence) and not {n + 1 for n in before} & found:
            reasons.append(f"K4: {items[0].written!r} is about something else in the source")
        elif not found:
            reasons.append(_why_not(sentence, items, window, document, source.path_at(span[0], context)))
        before = found
    return Support(SupportStatus.PARTIAL if reasons else SupportStatus.SUPPORTED, tuple(reasons), span)


def _says(said: Sentence, items: list[Item], source: FoldedText, context: str) -> bool:
    document = source.text
    if fold(said.text).rstrip("\"')").endswith("?") or _DENIED.match(document, said.end):
        return False
    header = header_above(document, said) if said.is_row else None
    before = document[source.headings.end_above(said.start) : said.start]
    readings = readings_of(said, header, source.path_at(said.start, context), before)
    return any(follows(items, parts) for parts in readings)


def points_back(sentence: str) -> bool:
    """Return whether a sentence speaks of what the one before it is about."""
    return any(word in _POINTING for word in re.findall(r"\w+", sentence.casefold()))


def _commas(sentence: str) -> int:
    """Return the number of relative clauses that a comma makes asides: then all are meant, and not those alone."""
    return len(_ASIDE.findall(sentence))


def is_quoted(sentence: Sentence, document: str) -> bool:
    """Return whether a sentence stands in quotation marks as a whole, in a longer quotation, or in a quoted block."""
    text = fold(sentence.text).strip()
    if text.startswith("> ") or (text.startswith('"') and text.count('"') % 2):
        return True
    if text.startswith('"') and text.rstrip(".!,").endswith('"') and text.count('"') == 2:
        return True
    start = max(document.rfind("\n\n", 0, sentence.start) + 1, sentence.start - MAX_CHARACTERS, 0)
    before = document[start : sentence.start]
    singles = before.count("\u2018") - len(re.findall(r"\u2019(?!\w)", before))
    return fold(before).count('"') % 2 == 1 or singles > 0


def _why_not(sentence: str, items: list[Item], window: list[Sentence], document: str, headings: tuple[str, ...]) -> str:
    rows = (text for w in window if w.is_row for text in row_readings(w, header_above(document, w)))
    texts = [*(text for w in window for text in (w.text, *w.lead_ins)), *rows, *headings]
    known = [item for text in texts for item in read_items(fold(text))]
    if not _QUOTES.search(sentence) and any(is_quoted(w, document) for w in window):
        return "K4: the source only quotes it"
    if missing := unvouched(items, known):
        kind = "K5" if all(item.kind in ("number", "date") for item in items if item.written in missing) else "K3"
        return f"{kind}: near the quote nothing says {', '.join(map(repr, missing[:8]))}"
    return f"K4: no sentence of the source says {sentence[:120]!r}: words are left out, or stand in another order"
