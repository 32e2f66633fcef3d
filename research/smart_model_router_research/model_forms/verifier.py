"""The model form of verification (CoVe, factored): which of several statements answers a question, drafts unseen.

A proposal is confirmed where the model names its statement twice, in two rows of others whose order their texts decide.
It counts where code finds the same, or the model is another provider's than the one that proposed it. A model only
takes proposals away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from smart_model_router_research.deep.claims import ResearchClaim
from smart_model_router_research.deep.fitting import telling_words
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.statements import Statement
from smart_model_router_research.model_forms.model_calls import FormFailed, ModelCaller, ModelForm
from smart_model_router_research.model_forms.passages import MOST_TITLE
from smart_model_router_research.model_forms.proposals import ProposedClaim, statements_with
from smart_model_router_research.model_forms.replies import VerifierReply

VERIFIER = ModelForm("verifier.v1", VerifierReply)
ROWS, OTHERS = 2, 8
"""Rows that a statement is chosen from, and the statements beside it in all of them."""
CODE = "code"
_MOST_CHARACTERS = 400


async def confirmed(
    caller: ModelCaller,
    proposals: Sequence[ProposedClaim],
    documents: Mapping[str, ReadDocument],
    made_by: Sequence[str],
) -> list[ResearchClaim]:
    """Return the claims that hold: confirmed by a model, or by code where no model could be asked.

    `made_by` are the targets that made the proposals: another provider checks them where there is one.
    """
    kept: list[ResearchClaim] = []
    providers = tuple(dict.fromkeys(map(_provider, made_by)))
    is_asked = True
    for each in proposals:
        agreed = [CODE] if each.is_said else []
        if is_asked:
            try:
                named_by = await _named_by(caller, each, proposals, documents, providers)
            except FormFailed as error:
                caller.degrade(error)
                is_asked = False
            else:
                if not named_by:
                    caller.refuse()
                    continue
                others = [target for target in named_by if _provider(target) not in providers]
                agreed += dict.fromkeys(others) if len(others) == len(named_by) else ()
        if agreed or (is_asked and not each.is_label):
            kept.append(replace(each.claim, chosen_by=", ".join(made_by) or "model", agreed_by=", ".join(agreed)))
        else:
            caller.refuse()
    return kept


def _provider(target: str) -> str:
    return target.partition("/")[0]


async def _named_by(
    caller: ModelCaller,
    proposal: ProposedClaim,
    proposals: Sequence[ProposedClaim],
    documents: Mapping[str, ReadDocument],
    avoid: Sequence[str],
) -> list[str]:
    """Return the targets that named the statement, one for each row; none where one of them did not."""
    named_by: list[str] = []
    evidence = proposal.claim.evidence[0]
    own = next(iter(statements_with(evidence.quote, documents[evidence.doc_id])), None)
    text = evidence.quote if own is None else own.text
    rivals = [_plain(each.claim.evidence[0].quote) for each in proposals if each.asked == proposal.asked]
    others = _others(proposal, [*rivals, _plain(text)], documents)
    for number in range(ROWS):
        rows = [(text, proposal.headings), *others[number::ROWS]]
        rows.sort(key=lambda row: _place(number, proposal.asked, row[0]))
        keys = {f"s{place}": row for place, row in enumerate(rows, 1)}
        shown = [
            {"id": key, "headings": row[1][:MOST_TITLE], "text": row[0][:_MOST_CHARACTERS]} for key, row in keys.items()
        ]
        reply = await caller.ask(VERIFIER, {"question": proposal.asked, "statements": shown}, avoid=avoid)
        chosen = keys.get(reply.answered_by.strip())
        if chosen is None or chosen[0] != text:
            return []
        named_by.append(caller.answered_by)
    return named_by


def _place(*parts: object) -> bytes:
    """Return the place of a statement in a row: its text decides, which may have halves of characters (surrogates)."""
    return hashlib.sha256("\n".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()


def _plain(text: str) -> str:
    return " ".join(text.split())


def _others(
    proposal: ProposedClaim, proposed: Sequence[str], documents: Mapping[str, ReadDocument]
) -> list[tuple[str, str]]:
    """Return the statements of these documents that share most words with a question, and are not proposed for it."""
    words = telling_words(proposal.asked)
    found: dict[str, tuple[int, int, Statement, ReadDocument]] = {}
    for document in documents.values():
        for statement in document.statements:
            said = _plain(statement.text)
            is_new = said not in found and not any(each in said or said in each for each in proposed)
            if is_new and len(said.split()) > 2:
                shared = sum(word in statement.own for word in words)
                found[said] = (-shared, len(found), statement, document)
    best = sorted(found.values(), key=lambda row: row[:2])[:OTHERS]
    return [
        (statement.text, " > ".join(dict.fromkeys((document.stored.title, *statement.scope))))
        for _, _, statement, document in best
    ]
