"""Lists of models, as providers spell them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router.domain.outcome import Failure
from smart_model_router.domain.ports import ListedModel
from smart_model_router_providers.http import read_list


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ({"id": "gpt-x", "object": "model"}, None),
        ({"id": "llama", "context_window": 131072}, 131072),
        ({"id": "meta/llama", "context_length": 8192}, 8192),
        ({"id": "mistral", "max_context_length": 32768}, 32768),
        ({"id": "claude", "max_input_tokens": 200000}, 200000),
        ({"id": "own", "max_model_len": 4096}, 4096),
        ({"id": "liar", "context_window": "huge", "max_model_len": True}, None),
        ({"id": "nothing", "context_window": 0}, None),
    ],
)
def test_a_model_is_read_with_its_window(model: dict[str, Any], window: int | None) -> None:
    """Every spelling of a context window that is known; anything else is no window."""
    assert read_list(json.dumps({"data": [model]}).encode()) == (ListedModel(model["id"], window),)


def test_other_forms_of_a_list_are_read() -> None:
    """A bare array; Gemini's `models/` before a name; entries that are no models are left out."""
    assert read_list(b'[{"id": "a"}, 7, {"id": 3}, {}]') == (ListedModel("a"),)
    assert read_list(b'{"data": [{"id": "models/gemini-x"}]}') == (ListedModel("gemini-x"),)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"data": {}}', b"7"])
def test_what_is_no_list_is_a_failure(body: bytes) -> None:
    """Nothing is raised for an answer that makes no sense."""
    assert isinstance(read_list(body), Failure)
