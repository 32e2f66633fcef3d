"""Parameters that a target adds to requests."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.domain.request import Dialect
from smart_model_router.wires.outgoing import with_defaults

THINKING = {"type": "enabled", "budget_tokens": 1024}
DEFAULTS = {"temperature": 0.2, "max_tokens": 100, "thinking": THINKING}


@pytest.mark.parametrize(
    ("dialect", "newest", "added"),
    [
        ("chat", False, {"temperature": 0.2, "max_tokens": 100, "thinking": THINKING}),
        ("chat", True, {"temperature": 0.2, "max_completion_tokens": 100, "thinking": THINKING}),
        ("messages", False, {"temperature": 0.2, "max_tokens": 100, "thinking": THINKING}),
        ("responses", False, {"temperature": 0.2, "max_output_tokens": 100}),
        ("embeddings", False, {}),
    ],
)
def test_defaults_are_added_in_the_words_of_the_dialect(dialect: Dialect, newest: bool, added: dict[str, Any]) -> None:
    """Each dialect has its own name for the cap on an answer; embeddings take nothing."""
    body = {"model": "m"}
    assert with_defaults(dialect, body, DEFAULTS, newest_chat=newest) == {"model": "m", **added}
    assert body == {"model": "m"}


def test_what_the_caller_says_stays() -> None:
    """Also a 0, and a cap under another name; null says nothing."""
    said = {"temperature": 0, "max_completion_tokens": 5, "thinking": None}
    found = with_defaults("chat", said, DEFAULTS, newest_chat=False)
    assert found == {"temperature": 0, "max_completion_tokens": 5, "thinking": THINKING}
    whole = {"temperature": 1, "max_tokens": 5, "thinking": {"type": "disabled"}}
    assert with_defaults("messages", whole, DEFAULTS, newest_chat=False) is whole
