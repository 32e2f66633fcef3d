"""The questions that models work on, and the facts about them that code decides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from smart_model_router_research.deep.claims import SubQuestion
from smart_model_router_research.deep.questions import Wanted, read_question
from smart_model_router_research.model_forms.replies import Aspect


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question of the topic, and its parts where a model named any."""

    question: SubQuestion
    aspects: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that a statement may answer: its own, and those of its parts."""
        return (self.question.text, *self.aspects)


_ASKS = re.compile(
    r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|may|must|has|have|will)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(r"\b(?:know|known|tell|learn|say|said) (?:me |us )?about\b|\boverview\b", re.IGNORECASE)


def is_broad(question: SubQuestion) -> bool:
    """Return whether several sentences may answer together: a subject, or a question for a list, a reason or a way."""
    text = question.text.strip()
    if read_question(text).wanted in (Wanted.LIST, Wanted.OPEN) or _OPEN.search(text):
        return True
    return not text.endswith("?") and not _ASKS.match(text)


def asked_with(questions: Sequence[SubQuestion], aspects: Sequence[Aspect]) -> list[AskedQuestion]:
    """Return questions, each with its parts."""
    return [
        AskedQuestion(question=each, aspects=tuple(one.text for one in aspects if one.part_of == each.id))
        for each in questions
    ]
