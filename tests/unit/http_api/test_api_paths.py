"""Paths as clients spell them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.http_api.api_request import canonical, hint


@pytest.mark.parametrize(
    ("spelled", "path", "model"),
    [
        ("/v1/chat/completions", "/v1/chat/completions", ""),
        ("/v1/chat/completions/", "/v1/chat/completions", ""),
        ("/chat/completions", "/v1/chat/completions", ""),
        ("/messages/count_tokens", "/v1/messages/count_tokens", ""),
        ("/responses/resp_1", "/v1/responses/resp_1", ""),
        ("/models/meta/llama", "/v1/models/meta/llama", ""),
        ("/openai/v1/responses", "/v1/responses", ""),
        ("/openai/models", "/v1/models", ""),
        ("/openai/deployments/smart/chat/completions", "/v1/chat/completions", "smart"),
        ("/openai/deployments/a/b/embeddings", "/v1/embeddings", "a/b"),
        ("/openai/deployments/completions/completions", "/v1/completions", "completions"),
        ("/openai/deployments/smart/audio/speech", "/v1/audio/speech", "smart"),
        ("/openai/deployments/../chat/completions", "/v1/chat/completions", ".."),
        ("/openai/deployments//chat/completions", "/openai/deployments//chat/completions", ""),
        ("/openai/deployments/smart/unknown", "/openai/deployments/smart/unknown", ""),
        ("/v1/v1/messages", "/v1/v1/messages", ""),
        ("/health", "/health", ""),
        ("/", "/", ""),
        ("/modelsx", "/modelsx", ""),
    ],
)
def test_every_spelling_is_one_path(spelled: str, path: str, model: str) -> None:
    """Without /v1, as Azure's client asks, and with a slash at the end; anything else stays as it is."""
    assert canonical(spelled) == (path, model)


@given(st.text(alphabet="/.va1%2 chatompleinsd", max_size=60))
def test_a_canonical_path_is_its_own(text: str) -> None:
    """Whatever a client sends: spelled once more, nothing changes, and nothing is raised."""
    once = canonical(f"/{text}")
    assert canonical(once.path).path == once.path


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/chat/completion", "did you mean '/v1/chat/completions'?"),
        ("/v1/v1/messages", "did you mean '/v1/messages'?"),
        ("/v1/files/file-1", "ask it"),
        ("/v1beta/models/gemini:generateContent", "/v1/chat/completions"),
    ],
)
def test_a_404_says_what_would_be_right(path: str, said: str) -> None:
    """The nearest path, or where the thing is to be had."""
    assert said in hint(path, ("/v1/chat/completions", "/v1/messages", "/v1/models"))
