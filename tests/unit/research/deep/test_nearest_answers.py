"""Claims read by rule stand, or are looked for again by nearness where they say less than a question asks for."""

from __future__ import annotations

import pytest

from smart_model_router_research.deep.asked_values import AskedKind, AskedValue, values_of
from smart_model_router_research.deep.claims import QuotedEvidence, ResearchClaim
from smart_model_router_research.deep.fitting import is_of_longer_name
from smart_model_router_research.deep.nearest_answers import is_weak
from smart_model_router_research.deep.offline import OfflineSession
from smart_model_router_research.deep.questions import QuestionPattern, read_question


def claim(text: str, quote: str, value: str, entity: str = "") -> ResearchClaim:
    """Return a claim by one quote."""
    evidence = QuotedEvidence(doc_id="d", quote=quote, span=(0, len(quote)))
    return ResearchClaim(id="c1", text=text, entity=entity, value=value, evidence=(evidence,))


@pytest.mark.parametrize(
    ("question", "text", "quote", "value"),
    [
        ("In which version was copy added?", "shutil > copy: New in version 3.2.", "New in version 3.2.", "3.2"),
        (
            "How long is a session kept?",
            "Sessions > Kept: It is kept for 14 days.",
            "It is kept for 14 days.",
            "14 days",
        ),
    ],
)
def test_headings_before_a_sentence_do_not_make_it_weak(question: str, text: str, quote: str, value: str) -> None:
    """A claim that is longer than its quote by its headings alone says all that its quote says."""
    assert not is_weak(claim(text, quote, value), read_question(question))


@pytest.mark.parametrize(
    ("question", "quote", "value", "entity"),
    [
        ("How many parts are there?", "It has several parts, see Section A.", "several parts", ""),
        ("What does the server do?", "The server forwards requests.", "The server forwards requests.", ""),
        ("Which options are required?", "This sets the name.", "name", "name"),
        ("Which port is used by default?", "It may have a port (default: 8000).", "8000)", ""),
    ],
)
def test_a_claim_without_a_value_of_its_own_is_weak(question: str, quote: str, value: str, entity: str) -> None:
    """No number for a count, the whole sentence, one thing for several, or a piece that is cut within parentheses."""
    assert is_weak(claim(quote, quote, value, entity), read_question(question))


@pytest.mark.parametrize(
    ("question", "text", "is_longer"),
    [
        ("How many inhabitants does Elton have?", "Elton Near has 5,706 inhabitants.", True),
        ("How many inhabitants does Elton have?", "Elton has 5,706 inhabitants.", False),
        ("How many inhabitants does Elton have?", "Elton Near is larger than Elton, which has 40.", False),
        ("How many inhabitants does Elton Near have?", "Elton Near has 5,706 inhabitants.", False),
        ("How many inhabitants does Elton have?", "It has 40 inhabitants.", False),
        ("how many people live in elton", "Elton Near has 40.", False),
        ("Which base is used on Mac OS X?", "Base 36 is used on Mac OS X.", False),
    ],
)
def test_a_longer_name_is_another_thing(question: str, text: str, is_longer: bool) -> None:
    """A statement about Elton Near is neither an answer about Elton nor a rival of one."""
    assert is_of_longer_name(question, text) is is_longer


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "is_answer"),
    [
        ("FTPd developer Jo Marsh did a patch that stops people typing an account into anonymous FTP.", True),
        ("FTPd developer Jo Marsh did a patch.", False),
    ],
)
async def test_of_two_steps_one_sentence_has_to_say_both(
    text: str, is_answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest one is the answer by itself, or it is left out as if it had never been read."""
    session = OfflineSession([])
    near = claim(text, text, text)

    async def nearest(_pattern: QuestionPattern) -> list[ResearchClaim]:
        session.claims.append(near)
        return [near]

    monkeypatch.setattr(session, "_nearest", nearest)
    question = "Which FTPd developer did the patch that stops people typing their account into anonymous FTP"
    assert await session.answer(read_question(question)) == session.claims == ([near] if is_answer else [])


def test_a_suffix_names_a_file() -> None:
    """Behind a space, and not within a name."""
    text = "The .xz file of a.tar is smaller."
    assert [each.text for each in values_of(AskedValue(AskedKind.NAME, "file"), text)][:1] == [".xz"]
