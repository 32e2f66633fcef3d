"""Reasoning carried opaquely: whoever signed it gets it back as it was, and nobody else gets it at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router.domain.request import Dialect
from smart_model_router.wires.outgoing import SEALED, SEALING_DIALECTS, holds_seals, without_seals
from smart_model_router.wires.translate import Terms, Translation, translate
from tests.unit.wires.translating import (
    TERMS,
    answered,
    chat_answer,
    chunk,
    messages_answer,
    messages_stream,
    sent,
    streamed,
)

SIGNED = {"type": "thinking", "thinking": "hm", "signature": "sig=="}
HIDDEN = {"type": "redacted_thinking", "data": "blob"}
TEXT = {"type": "text", "text": "Hi"}
USER = {"role": "user", "content": "hi"}
LOST = "reasoning: dropped, it is signed or encrypted for another provider"


def turns(content: Any) -> list[dict[str, Any]]:
    """A conversation in Messages, with this answer in it."""
    return [USER, {"role": "assistant", "content": content}, USER]


def test_signed_thoughts_survive_a_chat_client() -> None:
    """A Chat client that sends the message back as it got it gives Messages its own blocks, in order."""
    made, _ = answered("chat", "messages", messages_answer(SIGNED, HIDDEN, TEXT))
    message = made["choices"][0]["message"]
    assert message["reasoning_content"] == "hm"
    again = sent("chat", "messages", messages=[USER, message, USER])
    assert again.body["messages"][1]["content"] == [SIGNED, HIDDEN, TEXT]
    assert again.losses == ()


def test_signed_thoughts_survive_a_chat_stream() -> None:
    """The deltas put together are the same message as the whole answer."""
    thinking = [{"type": "thinking_delta", "thinking": p} for p in "hm"] + [
        {"type": "signature_delta", "signature": "sig=="}
    ]
    stream = messages_stream(({"type": "thinking", "thinking": "", "signature": ""}, thinking), (HIDDEN, []))
    made = streamed("chat", "messages", stream)
    details = [d for c in made if c["choices"] for d in c["choices"][0]["delta"].get("reasoning_details", ())]
    message = {"role": "assistant", "content": "Hi", "reasoning_details": details}
    assert sent("chat", "messages", messages=[USER, message]).body["messages"][1]["content"] == [SIGNED, HIDDEN, TEXT]


def test_signed_thoughts_survive_a_responses_client() -> None:
    """They are sealed into the item's encrypted content, and unsealed for the provider they came from."""
    made, _ = answered("responses", "messages", messages_answer(SIGNED, HIDDEN, TEXT))
    assert made["output"][0]["summary"] == [{"type": "summary_text", "text": "hm"}]
    again = sent("responses", "messages", input=[USER, *made["output"]])
    assert again.body["messages"][1]["content"] == [SIGNED, HIDDEN, TEXT]
    assert again.losses == ()


def test_signed_thoughts_survive_a_responses_stream() -> None:
    """The last event has the same items as the whole answer."""
    thinking = [{"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "sig=="}]
    stream = messages_stream(
        ({"type": "thinking", "thinking": "", "signature": ""}, thinking),
        (HIDDEN, []),
        ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Hi"}]),
    )
    output = streamed("responses", "messages", stream)[-1]["response"]["output"]
    again = sent("responses", "messages", input=[USER, *output])
    assert again.body["messages"][1]["content"] == [SIGNED, HIDDEN, TEXT]


@pytest.mark.parametrize("whole", [True, False])
def test_a_chat_providers_thoughts_come_back_to_it(whole: bool) -> None:
    """A Messages client holds them under our seal; the same provider gets its own fields back."""
    details = [{"type": "reasoning.text", "text": "hm", "index": 0, "format": "x"}]
    thought = {"reasoning_content": "hm", "reasoning_details": details}
    if whole:
        blocks = answered("messages", "chat", chat_answer({"content": "Hi", **thought}))[0]["content"]
    else:
        events = streamed("messages", "chat", [chunk(thought), chunk({"content": "Hi"}), chunk({}, "stop")])
        signature = next(e["delta"]["signature"] for e in events if e.get("delta", {}).get("type") == "signature_delta")
        blocks = [{"type": "thinking", "thinking": "hm", "signature": signature}, TEXT]
    again = sent("messages", "chat", messages=turns(blocks))
    assert again.body["messages"][1] == {"role": "assistant", "content": "Hi", **thought}
    assert again.losses == ()


def test_openais_encrypted_reasoning_comes_back_to_it() -> None:
    """A Chat client of a Responses provider carries the item's own encrypted content."""
    item = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "enc"}
    made, _ = answered("chat", "responses", {"id": "r", "status": "completed", "output": [item]})
    again = sent("chat", "responses", messages=[USER, made["choices"][0]["message"]])
    assert again.body["input"][1] == item
    assert again.body["include"] == ["reasoning.encrypted_content"]


def test_pieces_of_one_detail_are_joined() -> None:
    """OpenRouter streams a thought's text and its signature in pieces of one index: they are one thinking block."""
    pieces = [{"text": "h"}, {"text": "m"}, {"signature": "sig=="}]
    known = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    chunks = [chunk({"reasoning_details": [{**known, **piece}]}) for piece in pieces]
    events = streamed("messages", "chat", [*chunks, chunk({"content": "Hi"}), chunk({}, "stop")])
    added = [e["delta"] for e in events if e["type"] == "content_block_delta"]
    assert added[:3] == [
        {"type": "thinking_delta", "thinking": "h"},
        {"type": "thinking_delta", "thinking": "m"},
        {"type": "signature_delta", "signature": "sig=="},
    ]


FOREIGN: list[tuple[Dialect, Dialect, dict[str, Any]]] = [
    ("messages", "chat", {"messages": turns([SIGNED, TEXT])}),
    ("messages", "responses", {"messages": turns([HIDDEN, TEXT])}),
    ("chat", "messages", {"messages": [USER, {"role": "assistant", "content": "Hi", "reasoning_content": "hm"}, USER]}),
    ("chat", "responses", {"messages": [USER, {"role": "assistant", "content": "Hi", "reasoning": "hm"}, USER]}),
    (
        "responses",
        "chat",
        {
            "input": [
                USER,
                {"type": "reasoning", "summary": [], "encrypted_content": "x"},
                {"role": "assistant", "content": "Hi"},
            ]
        },
    ),
]


@pytest.mark.parametrize(("asked", "goal", "more"), FOREIGN)
def test_reasoning_of_another_provider_is_dropped_and_told(asked: Dialect, goal: Dialect, more: dict[str, Any]) -> None:
    """Nobody gets a signature that it would reject."""
    made = sent(asked, goal, **more)
    assert LOST in made.losses
    assert not {"hm", "sig==", "blob", "enc"} & set(json.dumps(made.body).split('"'))


def test_a_seal_is_opened_for_its_family_alone() -> None:
    """Another provider of the same dialect never sees what the first one thought."""
    blocks = answered("messages", "chat", chat_answer({"content": "Hi", "reasoning_content": "hm"}))[0]["content"]
    body = {"messages": turns(blocks), "max_tokens": 5}
    made = translate("messages", "chat", body, Terms(family="another", reasoning=True))
    assert isinstance(made, Translation)
    assert made.body["messages"][1] == {"role": "assistant", "content": "Hi"}
    assert made.losses == (LOST,) == (SEALED,)


@pytest.mark.parametrize("asked", ["messages", "responses"])
def test_our_seals_never_reach_a_provider(asked: Dialect) -> None:
    """Where the body goes out as it came, reasoning that we sealed is taken out of it and nothing else."""
    body, _ = answered(asked, "chat", chat_answer({"content": "Hi", "reasoning_content": "hm"}))
    bodies: dict[str, dict[str, Any]] = {
        "messages": {"messages": turns(body.get("content"))},
        "responses": {"input": body.get("output")},
    }
    sealed = bodies[asked]
    assert holds_seals(json.dumps(sealed, separators=(",", ":")).encode())
    cleaned = without_seals(asked, sealed)
    assert not holds_seals(json.dumps(cleaned, separators=(",", ":")).encode())
    kept = {
        "messages": {"messages": turns((body.get("content") or [])[1:])},
        "responses": {"input": (body.get("output") or [])[1:]},
    }
    assert cleaned == kept[asked]
    assert "Hi" in json.dumps(cleaned)


def test_a_message_that_was_only_a_seal_is_left_out() -> None:
    """Messages rejects one without content."""
    made, _ = answered("messages", "chat", chat_answer({"content": None, "reasoning_content": "hm"}))
    assert without_seals("messages", {"messages": turns(made["content"])}) == {"messages": [USER, USER]}


def test_other_bodies_are_not_searched_for_seals() -> None:
    """Chat has no opaque string, and Anthropic's own signatures are left alone."""
    assert "chat" not in SEALING_DIALECTS
    assert not holds_seals(json.dumps({"messages": turns([SIGNED])}, separators=(",", ":")).encode())
    assert TERMS.family == "p"
