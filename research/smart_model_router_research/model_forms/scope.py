"""The model form of planning: the parts of open questions. They lead searches, and are counted in no metric."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router_research.deep.claims import SubQuestion
from smart_model_router_research.deep.matching import stems_of
from smart_model_router_research.model_forms.model_calls import FormFailed, ModelCaller, ModelForm
from smart_model_router_research.model_forms.questions_asked import is_broad
from smart_model_router_research.model_forms.replies import Aspect, ScopeReply

SCOPE = ModelForm("scope.v1", ScopeReply)


async def aspects_of(caller: ModelCaller, questions: Sequence[SubQuestion], goal: str) -> tuple[Aspect, ...]:
    """Return the parts of broad questions; none where there are no such questions, or the model form failed.

    A part that has no word of its question, or of the goal, is refused.
    """
    broad = {each.id: each for each in questions if is_broad(each)}
    if not broad:
        return ()
    given = {"goal": goal, "questions": [{"id": key, "text": each.text} for key, each in broad.items()]}
    try:
        reply = await caller.ask(SCOPE, given)
    except FormFailed as error:
        caller.degrade(error)
        return ()
    named = tuple(dict.fromkeys(each for each in reply.aspects if each.part_of in broad))
    kept = tuple(each for each in named if stems_of(each.text) & stems_of(f"{broad[each.part_of].text} {goal}"))
    caller.refuse(len(reply.aspects) - len(kept))
    return kept
