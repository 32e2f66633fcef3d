"""The model form of hypotheses: a tree of thoughts of three branches and depth 2, of which two are followed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smart_model_router_research.deep.records import encode
from smart_model_router_research.model_forms.model_calls import FormFailed, ModelCaller, ModelForm
from smart_model_router_research.model_forms.questions_asked import AskedQuestion
from smart_model_router_research.model_forms.replies import Branch, BranchQuery, TreeReply

TREE = ModelForm("tree.v1", TreeReply)
KEPT, DEPTH = 2, 2
MOST_FURTHER = 12
"""Searches of all branches together, beside those that are made anyway."""
MOST_QUERY = 400
"""Characters of a text to search for."""


async def searches_of(
    caller: ModelCaller, asked: Sequence[AskedQuestion], planned: Sequence[str], claims: Sequence[str]
) -> list[BranchQuery]:
    """Return further searches for questions, the best branches first; those found before the model form failed.

    `planned` are the texts that are searched for anyway, `claims` those that are known. A search for a question that is
    not asked is refused.
    """
    known = {each.question.id for each in asked}
    if not known:
        return []
    given: dict[str, Any] = {
        "questions": [_shown(each) for each in asked],
        "known": list(claims),
        "searches_made_anyway": list(planned),
    }
    branches: list[Branch] = []
    try:
        for _ in range(DEPTH):
            reply = await caller.ask(TREE, {**given, "branches": encode(tuple(branches))})
            branches = sorted(reply.branches, key=lambda each: -each.worth)[:KEPT] or branches
    except FormFailed as error:
        caller.degrade(error)
    found = {(each.question, each.text.casefold()): each for branch in branches for each in branch.queries}
    before = {text.casefold() for text in planned}
    kept = [
        each
        for (question, text), each in found.items()
        if question in known and text not in before and len(each.text) <= MOST_QUERY
    ]
    caller.refuse(sum(question not in known for question, _ in found))
    return kept[:MOST_FURTHER]


def _shown(asked: AskedQuestion) -> Mapping[str, Any]:
    question = asked.question
    return {"id": question.id, "text": question.text, "critical": question.critical, "parts": list(asked.aspects)}
