"""When an answer is finished: by the rules of its dialect, whatever comes around it."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.domain.request import Dialect
from smart_model_router.wires.dialects import FINISH_CHECKS, FinishCheck
from tests.unit.wires.translating import event


def chunk(index: int = 0, text: str = "", finish: str | None = None) -> dict[str, Any]:
    """A chunk of Chat."""
    return {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}]}


def taken(dialect: Dialect, *events: dict[str, Any], choices: int = 1) -> tuple[FinishCheck, list[bool]]:
    """What became of these events."""
    found = FINISH_CHECKS[dialect](choices)
    return found, [found.take(event(dialect, data)) for data in events]


def test_a_choice_is_finished_by_its_reason() -> None:
    """With its text or after it; a reason twice changes nothing."""
    for events in ([chunk(text="a", finish="stop")], [chunk(text="a"), chunk(finish="stop"), chunk(finish="stop")]):
        found, took = taken("chat", *events)
        assert (found.finished, found.missing(), all(took)) == (True, "", True)


def test_every_choice_that_was_asked_for_has_to_finish() -> None:
    """One that has not begun, too; but where the terminator came, those that the provider has begun are enough."""
    found, _ = taken("chat", chunk(text="a"), chunk(finish="stop"), choices=2)
    assert (found.finished, found.missing()) == (False, "")
    found, _ = taken("chat", chunk(text="a"), chunk(1, "b"), chunk(finish="stop"), choices=2)
    assert (found.finished, found.missing()) == (False, "a finish reason")
    found, took = taken("chat", chunk(finish="stop"), chunk(1, "b"), chunk(1, finish="length"), choices=2)
    assert (found.finished, took) == (True, [True, True, True])


@pytest.mark.parametrize("later", [chunk(text="b"), chunk(1, "b")])
def test_content_after_the_finish_does_not_belong_there(later: dict[str, Any]) -> None:
    """Of the same choice or of one that nobody asked for; a role or a usage chunk is no content."""
    assert taken("chat", chunk(finish="stop"), later)[1] == [True, False]
    usage = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    assert taken("chat", chunk(finish="stop"), chunk(), usage)[1] == [True, True, True]


def test_content_of_a_choice_that_is_finished_does_not_belong_there() -> None:
    """Although another one goes on."""
    assert taken("chat", chunk(finish="stop"), chunk(1, "b"), chunk(text="a"), choices=2)[1] == [True, True, False]


def test_any_number_of_choices_may_be_asked_for() -> None:
    """Found: one request with `n` of a thousand million took all memory and held up the loop."""
    found, took = taken("chat", chunk(text="a"), chunk(finish="stop"), choices=10**30)
    assert (found.finished, found.missing(), took) == (False, "", [True, True])


START = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
TEXT = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
STOP = {"type": "content_block_stop", "index": 0}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}


def test_a_message_is_finished_by_its_reason_when_no_block_is_open() -> None:
    """In either order."""
    assert taken("messages", START, TEXT, STOP)[0].missing() == "a stop reason"
    found, _ = taken("messages", START, TEXT, END)
    assert (found.finished, found.missing()) == (False, "the end of block 0")
    for events in ((START, TEXT, STOP, END), (START, TEXT, END, TEXT, STOP)):
        found, took = taken("messages", *events)
        assert (found.finished, found.missing(), all(took)) == (True, "", True)


@pytest.mark.parametrize("later", [START, TEXT])
def test_nothing_is_added_to_a_message_that_is_finished(later: dict[str, Any]) -> None:
    """Neither a block nor text."""
    assert taken("messages", START, STOP, END, later)[1][-1] is False


def test_a_response_is_finished_by_its_last_event() -> None:
    """It holds the reason."""
    delta = {"type": "response.output_text.delta", "delta": "a"}
    found, _ = taken("responses", delta)
    assert (found.finished, found.missing()) == (False, "a status")
    found, _ = taken("responses", delta, {"type": "response.completed", "response": {"status": "completed"}})
    assert (found.finished, found.missing()) == (True, "")


def test_arguments_belong_to_a_call_that_is_open() -> None:
    """A client has nowhere to put them, and a call without them would be another one."""
    call = {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "f"}}
    piece = {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}}
    empty = {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}}
    assert taken("messages", call, piece, {**STOP, "index": 1}, empty)[1] == [True, True, True, True]
    assert taken("messages", call, {**STOP, "index": 1}, piece)[1] == [True, True, False]
    assert taken("messages", START, piece)[1] == [True, False]
