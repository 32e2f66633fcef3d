"""Questions that a document asks itself and answers: the answer to the same question, in whatever it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.matching import WORD, stem_of
from smart_model_router_research.deep.statement_forms import label_of
from smart_model_router_research.deep.statements import Statement, StatementKind

_LIGHT = frozenset("a an the please q question".split())
_MARKS = re.compile(r"^(?:[*_`#>\s]|\d+[.)]\s|Q(?:uestion)?\s?\d*\s?[:.]\s)+|[*_`\s]+$", re.IGNORECASE)
_ANSWER = frozenset(("a", "answer"))


def answer_of_same_question(question: str, documents: Sequence[ReadDocument]) -> list[FoundAnswer]:
    """Return the statement behind the same question, in the documents that ask it; none where it stands nowhere."""
    asked = _words(question)
    found: list[FoundAnswer] = []
    for document in documents:
        for at, statement in enumerate(document.statements):
            heading = statement.scope[-1] if statement.scope and not statement.nth else ""
            if _is_question(heading) and _words(heading) == asked:
                found.append(_answer(document, statement))
            elif _is_question(statement.text) and _words(_MARKS.sub("", statement.text)) == asked:
                behind = document.statements[at + 1 : at + 2]
                found += [_answer(document, each) for each in behind if not _is_question(each.text)]
    return found


def _is_question(text: str) -> bool:
    return text.rstrip("*_` ").endswith("?")


def _words(text: str) -> tuple[str, ...]:
    return tuple(stem_of(word) for word in WORD.findall(text.lower()) if word not in _LIGHT)


def _answer(document: ReadDocument, statement: Statement) -> FoundAnswer:
    label = label_of(statement.text)
    if label is not None and label[0].casefold() in _ANSWER:
        at = statement.text.index(label[1])
        statement = replace(
            statement, kind=StatementKind.SENTENCE, text=label[1], start=statement.start + at, label="", value=""
        )
    elif statement.kind is StatementKind.LABELLED:
        statement = replace(statement, kind=StatementKind.SENTENCE, label="", value="")
    return FoundAnswer(document=document, statement=statement, value=" ".join(statement.text.split()), score=3.0)
