"""Embeddings, read: what each answer means."""

from __future__ import annotations

import pytest

from smart_model_router.domain.outcome import Usage
from smart_model_router.wires import ANSWER_READERS


@pytest.mark.parametrize("vector", [[0.1, 0.2], "AAAA"])
def test_vectors_and_base64_are_answers(vector: object) -> None:
    """Floats and base64 strings are both embeddings; usage has no completion tokens."""
    read = ANSWER_READERS["embeddings"]({"data": [{"embedding": vector}], "usage": {"prompt_tokens": 3}})
    assert (read.empty, read.malformed, read.usage) == (False, "", Usage(3, 0))


def test_no_vectors_is_empty() -> None:
    """An empty list is an empty answer."""
    assert ANSWER_READERS["embeddings"]({"data": []}).empty


@pytest.mark.parametrize("body", [{}, {"data": {}}, {"data": [1]}, {"data": [{"embedding": []}]}])
def test_what_is_not_an_answer_is_malformed(body: dict[str, object]) -> None:
    """A body of another shape is malformed."""
    assert ANSWER_READERS["embeddings"](body).malformed


def test_a_200_may_hold_an_error() -> None:
    """An error in the body of a 200 is found."""
    assert ANSWER_READERS["embeddings"]({"error": {"code": 500}}).error == {"code": 500}
