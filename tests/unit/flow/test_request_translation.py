"""What a target is sent: the body as it came, or its translation, made once; refused when there is none."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.core.selection import Candidate
from smart_model_router.core.tiers import TargetFacts
from smart_model_router.domain.request import Dialect, Target, peek
from smart_model_router.flow.request_translation import RequestTranslations


def facts(*native: Dialect, provider: str = "p") -> TargetFacts:
    """A target whose provider speaks these."""
    target = Target(f"{provider}/m", provider, "m")
    return TargetFacts(target, Candidate(target.id, provider, 0), frozenset(native))


def translations(**more: Any) -> RequestTranslations:
    """Those of a small Chat request with more in it; the wall clock stands at 7.9."""
    body = {"model": "smart", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, **more}
    return RequestTranslations(peek("chat", body, stream=True), lambda: 7.9)


def test_a_native_target_is_sent_the_request_itself() -> None:
    """Nothing is rebuilt where nothing is translated."""
    made = translations()
    sent = made.sent(facts("chat"))
    assert made.refusal(facts("chat")) is None
    assert (sent.translation, sent.losses) == (None, ())
    assert sent is made.sent(facts("chat", provider="another"))


def test_a_translation_is_made_once_for_a_provider() -> None:
    """A retry, and another target of the provider, are sent the same; the stamp is of whole seconds."""
    made = translations()
    sent = made.sent(facts("messages"))
    assert sent is made.sent(facts("messages"))
    assert sent is not made.sent(facts("messages", provider="another"))
    assert sent.request.payload("m") == (
        b'{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":5,"stream":true}'
    )
    assert sent.translation is not None
    assert sent.translation.terms.created == 7


@pytest.mark.parametrize(
    ("native", "more", "told"),
    [
        ("messages", {"n": 2}, "n: Messages has no such thing"),
        ("embeddings", {}, "body: chat has no translation that p/m speaks"),
    ],
)
def test_a_target_that_would_be_asked_something_else_is_refused(
    native: Dialect, more: dict[str, Any], told: str
) -> None:
    """The reason says what would have been lost; sending it all the same is a mistake of ours."""
    made = translations(**more)
    assert str(made.refusal(facts(native))) == told
    with pytest.raises(TypeError, match="cannot be asked"):
        made.sent(facts(native))
