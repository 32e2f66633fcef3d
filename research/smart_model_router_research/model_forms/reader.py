"""The model form of retrieval: thought, action, observation (ReAct), over documents that code searches and knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.model_forms.model_calls import FormFailed, ModelCaller, ModelForm
from smart_model_router_research.model_forms.passages import MOST_TITLE, passages_for
from smart_model_router_research.model_forms.questions_asked import AskedQuestion
from smart_model_router_research.model_forms.replies import Act, ReaderReply
from smart_model_router_research.model_forms.tree import MOST_QUERY

READER = ModelForm("reader.v1", ReaderReply, "economy")
MOST_TURNS = 8
MOST_ALIKE = 3
"""The times that the same action is answered; the next is refused."""
MOST_THOUGHTS = 3
"""Thoughts without an action between them that end the search."""
READ_CHARACTERS, HIT_CHARACTERS, RECALLED = 6_000, 400, 3
"""Characters of a document that is read, and of one that is found; the latest observations that are shown whole."""
Search = Callable[[str], Awaitable[list[ReadDocument] | None]]


@dataclass
class _Reading:
    """The documents under the ids that the model knows them by, and all that was done."""

    asked: Sequence[AskedQuestion]
    search: Search
    keys: dict[str, str] = field(default_factory=dict)
    documents: dict[str, ReadDocument] = field(default_factory=dict)
    done: list[dict[str, Any]] = field(default_factory=list)
    times: Counter[tuple[str, str]] = field(default_factory=Counter)
    seen: dict[tuple[str, str], Any] = field(default_factory=dict)

    def key_of(self, document: ReadDocument) -> str:
        """Return the id of a document, a new one for a new document."""
        key = self.keys.setdefault(document.stored.id, f"d{len(self.keys) + 1}")
        self.documents[key] = document
        return key

    def listed(self) -> list[dict[str, str]]:
        """Return the documents as the model sees them."""
        return [
            {"id": key, "title": (each.stored.title or each.path)[:MOST_TITLE]} for key, each in self.documents.items()
        ]

    def recalled(self) -> list[Mapping[str, Any]]:
        """Return all that was done; of earlier turns without what was observed."""
        cut = len(self.done) - RECALLED
        return [
            each if at >= cut else {name: value for name, value in each.items() if name != "observation"}
            for at, each in enumerate(self.done)
        ]

    async def observed(self, reply: ReaderReply) -> tuple[Any, bool]:
        """Return what came of an action, and whether it was refused."""
        key = (reply.action.value, reply.argument.casefold().strip())
        self.times[key] += 1
        if self.times[key] > MOST_ALIKE:
            return f"refused: the same was asked {MOST_ALIKE} times", True
        if key not in self.seen:
            found, is_refused = await (self._read(reply) if reply.action is Act.READ else self._searched(reply))
            if is_refused:
                return found, True
            self.seen[key] = found
        return self.seen[key], False

    async def _read(self, reply: ReaderReply) -> tuple[Any, bool]:
        document = self.documents.get(reply.argument.strip())
        if document is None:
            return "refused: no document has this id", True
        return self._pieces(document, READ_CHARACTERS), False

    async def _searched(self, reply: ReaderReply) -> tuple[Any, bool]:
        text = " ".join(reply.argument.split())
        if not any(character.isalnum() for character in text) or len(text) > MOST_QUERY:
            return f"refused: a search is a text with words, at most {MOST_QUERY} characters", True
        found = await self.search(text)
        if found is None:
            return "refused: no further search may be made; read what was found, or finish", True
        return [
            {
                "id": self.key_of(each),
                "title": each.stored.title[:MOST_TITLE],
                "text": self._pieces(each, HIT_CHARACTERS),
            }
            for each in found
        ], False

    def _pieces(self, document: ReadDocument, most: int) -> str:
        texts = [text for each in self.asked for text in each.texts]
        return "\n\n".join(each.text for each in passages_for(texts, [document], most))[:most]


async def look_further(
    caller: ModelCaller, asked: Sequence[AskedQuestion], documents: Iterable[ReadDocument], search: Search
) -> None:
    """Let a model search for what is open, and note where it ended before it said that it had finished.

    `search` gives documents, and keeps them for the run; None where no further search may be made. The model names
    documents by id and writes no address; an unknown id is refused.
    """
    if not asked:
        return
    reading = _Reading(asked, search)
    for each in documents:
        reading.key_of(each)
    questions = [{"id": each.question.id, "text": each.question.text, "parts": list(each.aspects)} for each in asked]
    thoughts = 0
    try:
        for _ in range(MOST_TURNS):
            shown = {"questions": questions, "documents": reading.listed(), "done": reading.recalled()}
            reply = await caller.ask(READER, shown)
            if reply.action is Act.FINISH:
                return
            thoughts = thoughts + 1 if reply.action is Act.THINK else 0
            if thoughts == MOST_THOUGHTS:
                caller.remark(f"{MOST_THOUGHTS} thoughts came without an action, which ended the search")
                return
            done = {
                "thought": reply.thought[:300],
                "action": reply.action.value,
                "argument": reply.argument[:MOST_QUERY],
            }
            if reply.action is not Act.THINK:
                done["observation"], is_refused = await reading.observed(reply)
                caller.refuse(is_refused)
            reading.done.append(done)
    except FormFailed as error:
        caller.degrade(error)
    else:
        caller.remark(f"its {MOST_TURNS} turns were used up")
