"""A request whose answer has begun, as each way of continuing wants it."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.core.overlap import TAIL_BYTES, Overlap
from smart_model_router.wires.outgoing import ASKED_BYTES, asked_before, begun, is_asked, marked

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "go"}]}
TEXT = "The first sentence is delivered. The second one is cut off in the middle of a w"


def asked(text: str) -> str:
    """The last message of a target that is asked in words."""
    *before, last = marked(begun(BODY, text), "asked")["messages"]
    assert before == [*BODY["messages"], {"role": "assistant", "content": text}]
    assert last["role"] == "user"
    return str(last["content"])


def test_a_target_is_asked_to_repeat_the_last_words() -> None:
    """From the beginning of a word on, at least so much as proves the continuation."""
    assert "\ndelivered. The second one is cut off in the middle of a w\n" in asked(TEXT)
    assert ASKED_BYTES >= TAIL_BYTES
    assert "\nshort\n" in asked("short")
    assert "\n" + "字" * 16 + "\n" in asked("前" * 9 + "字" * 16)


@pytest.mark.parametrize(("budget", "cap"), [(31_999, 32_000), (2_000, 28_000)])
def test_the_cap_stays_above_the_budget_for_thoughts(budget: int, cap: int) -> None:
    """Anthropic refuses anything else with a 400: Claude Code's requests could not be gone on with."""
    body = {**BODY, "max_tokens": 32_000, "thinking": {"type": "enabled", "budget_tokens": budget}}
    assert begun(body, "x" * (16_000 + ASKED_BYTES))["max_tokens"] == cap


def test_the_quoted_words_prove_a_continuation() -> None:
    """What the target is asked to repeat is enough for the one who judges it."""
    overlap = Overlap(TEXT, TEXT, trusted=False)
    assert overlap.feed("delivered. The second one is cut off in the middle of a word.") == "ord."
    assert not overlap.begun_anew


def test_a_scripted_server_knows_that_it_is_asked_to_continue() -> None:
    """It answers what was asked before; other conversations are left alone."""
    assert asked_before(marked(begun(BODY, TEXT), "asked")["messages"]) == BODY["messages"]
    other = [*BODY["messages"], {"role": "assistant", "content": TEXT}, {"role": "user", "content": "And then?"}]
    assert asked_before(other) == other
    assert asked_before(BODY["messages"]) == BODY["messages"]


def test_a_beginning_in_parts_is_quoted_whole() -> None:
    """A caller's own beginning may be a list of parts."""
    body = {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "So: "}]}]}
    assert "\nSo: it\n" in str(marked(begun(body, "it"), "asked")["messages"][-1]["content"])


@pytest.mark.parametrize(
    ("how", "thinking", "expected"),
    [
        ("asked", None, True),
        ("plain", None, False),
        ("plain", {"type": "disabled"}, False),
        ("plain", {"type": "enabled", "budget_tokens": 1024}, True),
        ("plain", {"type": "adaptive"}, True),
        ("prefix", {"type": "enabled"}, False),
    ],
)
def test_a_target_that_thinks_is_asked(how: Any, thinking: object, expected: bool) -> None:
    """Anthropic refuses a prefill with extended thinking."""
    body = {**BODY, **({} if thinking is None else {"thinking": thinking})}
    assert is_asked(body, how) is expected
    last = marked(begun(body, "It is"), how)["messages"][-1]
    assert last["role"] == ("user" if expected else "assistant")
