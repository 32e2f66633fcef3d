"""The model form of analysts: the sentences of passages that answer a question, each checked by code at once."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router_research.deep.analysts import ClaimDrafter
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.model_forms.model_calls import FormFailed, ModelCaller, ModelForm
from smart_model_router_research.model_forms.passages import all_shown, by_key, passages_for
from smart_model_router_research.model_forms.proposals import ProposedClaim, proposed
from smart_model_router_research.model_forms.questions_asked import AskedQuestion
from smart_model_router_research.model_forms.replies import AnalystReply

ANALYST = ModelForm("analyst.v2", AnalystReply)


async def proposals_for(
    caller: ModelCaller, asked: Sequence[AskedQuestion], documents: Sequence[ReadDocument], drafter: ClaimDrafter
) -> list[ProposedClaim]:
    """Return the claims that a model proposes for questions; those before the model form failed, where it does.

    A claim of a passage that was not shown, with a quote that is not in it, or that does not follow, is refused.
    """
    found: list[ProposedClaim] = []
    try:
        for each in asked:
            passages = by_key(passages_for(each.texts, documents))
            if not passages:
                return found
            shown = {"question": each.question.text, "parts": list(each.aspects), "passages": all_shown(passages)}
            reply = await caller.ask(ANALYST, shown)
            made = [proposed(one, passages.get(one.source), each, drafter, documents) for one in reply.claims]
            caller.refuse(made.count(None))
            found += {(one.claim.text.casefold(), one.claim.evidence[0].doc_id): one for one in made if one}.values()
    except FormFailed as error:
        caller.degrade(error)
    return found
