"""Statements with their sources, as other tools write them down, and what of a source supports one best."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from heapq import nlargest
from typing import Any

from smart_model_router_research.deep.checking import Support, SupportStatus, check_claim, points_back
from smart_model_router_research.deep.folding import FoldedText, fold, without_markup
from smart_model_router_research.deep.repair import quotation
from smart_model_router_research.deep.sentences import ITEM_MARK, Sentence, sentences_at, split_sentences, without_marks
from smart_model_router_research.deep.words import LIGHT
from smart_model_router_scoring.options import Notes

MAX_CANDIDATES = 20
"""The sentences of a source that are judged, those that share most words with the statement."""
_SHAPES = (
    ("statement", "source"),
    ("response", "retrieved_contexts"),
    ("actual_output", "retrieval_context"),
    ("answer", "contexts"),
)
_WANTED = (
    'a JSON object a line is needed, with "statement" and "source", with "response" and "retrieved_contexts", with '
    '"actual_output" and "retrieval_context", or with "answer" and "contexts"'
)
_WORD = re.compile(r"\w+(?:[.,]\d+)*")
_RANK = (SupportStatus.SUPPORTED, SupportStatus.PARTIAL, SupportStatus.UNSUPPORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedStatement:
    """One statement and the texts that are said to support it; `quote` is a part of one of them, where it is given."""

    id: str
    statement: str
    sources: tuple[str, ...]
    quote: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementSupport:
    """The result of a check of a statement: the source (its number), and the quote in it that supports it best.

    `instead` is what the source says, where it does not say the statement; "" where it says nothing about it.
    """

    status: SupportStatus
    reasons: tuple[str, ...] = ()
    source: int | None = None
    quote: str = ""
    instead: str = ""


class SearchedText:
    """A text whose sentences are looked up by their words; it is read once."""

    def __init__(self, text: str, title: str = "") -> None:
        self.folded = FoldedText(text)
        self.title = title
        headings = self.folded.headings
        sentences = sentences_at(text, 0, len(text))
        self._sentences = _by_words(each for each in sentences if not headings.begin_at(each.start, each.end))

    def nearest(self, text: str) -> list[tuple[int, str]]:
        """Return the sentences that share most words with a text, the nearest first, each with their number."""
        wanted = _words_of(text)
        ranked = nlargest(MAX_CANDIDATES, self._sentences, key=lambda each: (len(wanted & each[1]), -len(each[1])))
        return [(len(wanted & words), sentence) for sentence, words in ranked if wanted & words]


def _by_words(sentences: Iterable[Sentence]) -> list[tuple[str, frozenset[str]]]:
    """Return sentences with the words that they are found by: those of their lead-ins, and of the header of a table."""
    found: list[tuple[str, frozenset[str]]] = []
    header = frozenset[str]()
    end = -1
    for sentence in sentences:
        if not sentence.is_row or sentence.start != end + 1:
            header = frozenset()
        end = sentence.end
        if sentence.is_row and not sentence.text.strip(" \t|:+-") and found:
            header = found.pop()[1]
            continue
        words = header | _words_of(" ".join([*sentence.lead_ins, sentence.text]))
        found.append((sentence.text.strip(), words))
    return found


def check_statement(statement: str, sources: Iterable[SearchedText], quote: str = "") -> StatementSupport:
    """Return the best support that any source gives a statement, by the quote or else by any of its sentences.

    A statement of several sentences is supported when each of them is, each by any source. Never raises.
    """
    sources = list(sources)
    parts = split_sentences(fold(statement)) or [statement]
    found = [_check_part(part, sources, quote) for part in parts]
    for number in range(1, len(parts)):
        if not quote and points_back(parts[number]) and not _follows(found[number - 1], found[number], sources):
            reason = f"K4: {parts[number].split()[0]!r} is about something else in the source"
            found[number] = replace(found[number], status=_worse(found[number].status), reasons=(reason,))
    worst = max(found, key=lambda each: _RANK.index(each.status))
    reasons = tuple(dict.fromkeys(reason for each in found for reason in each.reasons))
    return StatementSupport(
        status=worst.status, reasons=reasons, source=worst.source, quote=worst.quote, instead=worst.instead
    )


def _worse(status: SupportStatus) -> SupportStatus:
    return SupportStatus.PARTIAL if status is SupportStatus.SUPPORTED else status


def _follows(before: StatementSupport, after: StatementSupport, sources: list[SearchedText]) -> bool:
    """Return whether what supports one part stands right behind what supports the part before it."""
    if before.source is None or before.source != after.source or not before.quote or not after.quote:
        return False
    text = sources[before.source].folded.text
    end = text.find(before.quote) + len(before.quote)
    return text[end:].lstrip().startswith(after.quote)


def _check_part(statement: str, sources: list[SearchedText], quote: str) -> StatementSupport:
    best = StatementSupport(
        status=SupportStatus.UNSUPPORTED, reasons=("no source has a sentence that shares a word with it",)
    )
    candidates = [
        (common, number, candidate)
        for number, source in enumerate(sources)
        for common, candidate in ([(0, quote)] if quote else source.nearest(statement))
    ]
    for _, number, candidate in sorted(candidates, key=lambda each: -each[0]):
        found = check_claim(statement, candidate, sources[number].folded, sources[number].title)
        if _RANK.index(found.status) < _RANK.index(best.status) or best.source is None:
            best = _as_result(found, number, candidate)
        if best.status is SupportStatus.SUPPORTED:
            return best
    if best.status is SupportStatus.PARTIAL and best.source is not None:
        source = sources[best.source]
        instead = quotation(statement, best.quote, source.folded, source.title) or ""
        return replace(best, instead=instead)
    return best


def _as_result(found: Support, source: int, quote: str) -> StatementSupport:
    if found.status is SupportStatus.UNSUPPORTED:
        return StatementSupport(status=found.status, reasons=found.reasons, source=source)
    return StatementSupport(status=found.status, reasons=found.reasons, source=source, quote=quote)


def read_pairs(text: str, notes: Notes) -> Iterator[SourcedStatement]:
    """Yield the statements of JSON lines, or of one JSON list; a row that has none is noted and left out.

    A row is `{"statement", "source"}`, with `quote`, `title` and `id` as it likes; or what ragas (`response`,
    `retrieved_contexts`; before, `answer`, `contexts`) or deepeval (`actual_output`, `retrieval_context`) read: each
    sentence is a statement.
    """
    for place, number, read in _rows(text):
        try:
            yield from _statements_of(read(), number)
        except (ValueError, RecursionError) as problem:
            notes.add("statement", place, _WANTED if isinstance(problem, json.JSONDecodeError) else str(problem))


def _rows(text: str) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    if text.lstrip().startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list) and any(isinstance(row, dict) for row in listed):
            for number, row in enumerate(listed, 1):
                yield f"row {number}", str(number), partial(lambda row: row, row)
            return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"line {number}", str(number), partial(json.loads, line)


def _statements_of(row: Any, number: str) -> Iterator[SourcedStatement]:
    if not isinstance(row, Mapping):
        raise ValueError(_WANTED)  # noqa: TRY004 - a fault of the line, as others
    for statement_key, source_key in _SHAPES:
        if statement_key in row and source_key in row:
            break
    else:
        raise ValueError(_WANTED)
    said, given = row[statement_key], row[source_key]
    sources = [given] if isinstance(given, str) else given
    if not isinstance(said, str) or not said.strip():
        raise ValueError(f'"{statement_key}" has to be a text that says something')
    if not isinstance(sources, list) or not all(isinstance(each, str) for each in sources):
        raise ValueError(f'"{source_key}" has to be a text, or a list of texts')
    rest = {key: row.get(key, "") for key in ("quote", "title", "id")}
    if wrong := [key for key, value in rest.items() if not isinstance(value, str | int)]:
        raise ValueError(f'"{wrong[0]}" has to be a text')
    name = str(rest["id"]) or number
    parts = [said] if statement_key == "statement" else _parts_of(said)
    for n, part in enumerate(parts, 1):
        yield SourcedStatement(
            id=name if len(parts) == 1 else f"{name}.{n}",
            statement=part,
            sources=tuple(sources),
            quote=str(rest["quote"]),
            title=str(rest["title"]),
        )


def _parts_of(answer: str) -> list[str]:
    """Return the sentences and the items of lists of an answer."""
    lines = [without_marks(line) for line in answer.splitlines() if line.strip()]
    blocks: list[str] = []
    for line, written in zip(lines, (line for line in answer.splitlines() if line.strip()), strict=True):
        if blocks and ITEM_MARK.match(written) is None and not blocks[-1].rstrip().endswith((".", "!", "?", ":")):
            blocks[-1] += f" {line}"
        else:
            blocks.append(line)
    return [part for block in blocks for part in split_sentences(fold(block)) if _WORD.search(part)]


def _words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(without_markup(text)).casefold())) - LIGHT
