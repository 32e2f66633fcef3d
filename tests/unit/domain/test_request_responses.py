"""A Responses request as routing sees it: what is refused by name, which facts are read."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.request import RouteRequest, peek, state_made


def asked(**body: Any) -> RouteRequest:
    """A Responses request, `input` and all else as given."""
    return peek("responses", {"model": "smart", **body})


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "input: a non-empty list is needed, not None"),
        ({"input": ""}, "input: a non-empty list is needed, not ''"),
        ({"input": {"role": "user"}}, "input: text or a list is needed, not {'role': 'user'}"),
        ({"input": ["hi"]}, "input[0]: an object is needed, not 'hi'"),
    ],
)
def test_a_prompt_is_needed(body: dict[str, Any], told: str) -> None:
    """Text or a list of objects; what it is instead is named."""
    with pytest.raises(InvalidRequest) as caught:
        asked(**body)
    assert str(caught.value) == told


@pytest.mark.parametrize("key", ["previous_response_id", "conversation", "prompt"])
def test_what_is_kept_at_the_provider_may_be_the_prompt(key: str) -> None:
    """A request may go on from what its provider has, without an input of its own."""
    assert asked(**{key: "x"}).model == "smart"


def test_what_a_target_must_be_able_to_do() -> None:
    """Tools, images and schemas are found where this dialect has them."""
    image = {"role": "user", "content": [{"type": "input_image", "image_url": "https://host.invalid/a.png"}]}
    form = {"format": {"type": "json_schema", "name": "x", "schema": {}}}
    assert asked(input="hi", tools=[]).needs == frozenset()
    assert asked(input=[image], tools=[{"type": "function"}], text=form).needs == {"tools", "images", "schema"}
    assert asked(input="hi", max_output_tokens=7).max_tokens == 7


@pytest.mark.parametrize(
    ("output", "needs"),
    [
        ([{"type": "input_text", "text": "done"}, {"type": "input_image", "file_id": "file_1"}], {"images"}),
        ({"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="}, {"images"}),
        ([{"type": "input_text", "text": "done"}], set()),
        ("done", set()),
    ],
)
def test_a_tool_s_screenshot_is_an_image(output: object, needs: set[str]) -> None:
    """What a function or a computer gave back goes to targets that can see it."""
    assert asked(input=[{"type": "function_call_output", "call_id": "c1", "output": output}]).needs == needs


def test_state_at_a_provider_is_found() -> None:
    """Earlier responses, conversations and uploaded files tie a request to who has them."""
    file = {"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}
    found = asked(input=[file], previous_response_id="resp_1", conversation={"id": "conv_1"}).state_ids
    assert found == {"file_1", "resp_1", "conv_1"}


def test_an_answer_that_is_kept_can_be_referred_to() -> None:
    """Its id, and its conversation's, are known from the answer or from any event with it; not when it is not kept."""
    response = {"object": "response", "id": "resp_1", "conversation": {"id": "conv_1"}}
    assert list(state_made(response)) == ["resp_1", "conv_1"]
    assert list(state_made({"type": "response.created", "response": response})) == ["resp_1", "conv_1"]
    assert list(state_made({**response, "store": False})) == []
