"""Translated answers, whole and streamed, are what the SDKs' own models of answers say, and no more.

`make compat` runs this with the older majors, `make agents` has Node's schemas read the same answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from smart_model_router.domain.request import Dialect
from tests.unit.wires.spoken_answers import Translated, translated

WHOLE: Mapping[Dialect, TypeAdapter[Any]] = {
    "chat": TypeAdapter(ChatCompletion),
    "messages": TypeAdapter(Message),
    "responses": TypeAdapter(Response),
}
EVENTS: Mapping[Dialect, TypeAdapter[Any]] = {
    "chat": TypeAdapter(ChatCompletionChunk),
    "messages": TypeAdapter(RawMessageStreamEvent),
    "responses": TypeAdapter(ResponseStreamEvent),
}
OURS = frozenset(
    "reasoning_content reasoning_details annotations frequency_penalty presence_penalty store name".split()
)
"""What OpenAI's newest SDK has no field for: reasoning in Chat as OpenRouter and DeepSeek write it; citations in Chat's
deltas, as OpenAI sends them; settings that the schema of Responses demands; the `name` of arguments that are complete,
which its major before demands."""
NULLABLE: Mapping[Dialect, frozenset[str]] = {
    "chat": frozenset("content refusal logprobs finish_reason bytes".split()),
    "messages": frozenset(
        "stop_reason stop_sequence stop_details container cache_creation inference_geo output_tokens_details "
        "server_tool_use service_tier page_age".split()
    ),
    "responses": frozenset(
        "completed_at error incomplete_details instructions max_output_tokens max_tool_calls previous_response_id "
        "prompt_cache_key effort summary safety_identifier usage description parameters strict".split()
    ),
}
"""Fields that a dialect's published schema demands, and that may be null in it. No other is ever null."""
NEWEST: Mapping[Dialect, bool] = {
    "chat": openai.__version__ >= "3.",
    "messages": anthropic.__version__ >= "2.",
    "responses": openai.__version__ >= "3.",
}
"""Whether the SDK of a dialect is of the major that we are written for: older ones do not know every field."""
CASES = [pytest.param(case, id=case.name) for case in translated()]


def nulls(value: Any, key: str = "") -> Iterator[str]:
    """The names of the fields that are null."""
    if value is None:
        yield key
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from nulls(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from nulls(inner, key)


def unknown(value: object) -> Iterator[str]:
    """The fields that a model was given and does not know."""
    if isinstance(value, BaseModel):
        yield from value.model_extra or {}
        for name in value.model_fields_set - set(value.model_extra or {}):
            yield from unknown(getattr(value, name))
    elif isinstance(value, list):
        for inner in value:
            yield from unknown(inner)


@pytest.mark.parametrize("case", CASES)
def test_a_translated_answer_is_what_the_sdk_expects(case: Translated) -> None:
    """Every type is right without a conversion, and every field is known."""
    read = [WHOLE[case.asked].validate_json(json.dumps(case.whole), strict=True)]
    for event in case.events:
        if '"type": "custom"' in json.dumps(event.get("choices")):
            continue  # OpenAI streams calls of custom tools in Chat so; its SDK, which reads any event, types none
        read.append(EVENTS[case.asked].validate_json(json.dumps(event), strict=True))
    assert not NEWEST[case.asked] or set(unknown(read)) - OURS == set()


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_null_that_need_not_be_there(case: Translated) -> None:
    """`"citations": null` broke every whole answer in @ai-sdk/anthropic 3."""
    assert set(nulls([case.whole, *case.events])) - NULLABLE[case.asked] == set()
