"""Secrets in URLs: whatever a parameter is called, its value is not shown."""

from __future__ import annotations

import pytest

from smart_model_router.config import RouterConfig
from smart_model_router.config.origins import plain
from smart_model_router.domain.redaction import masked_urls, redacted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://h/v1?sig=s3cret&api-version=2024-06-01", "https://h/v1?sig=***&api-version=2024-06-01"),
        ("http://user:s3cret@h:1/x?code=s3cret#top", "http://***@h:1/x?code=***#top"),
        ("cannot reach https://h/a?s3cret (refused)", "cannot reach https://h/a?*** (refused)"),
        ("https://h/v1?x=", "https://h/v1?x="),
        ("https://h/v1 and a?b=c", "https://h/v1 and a?b=c"),
    ],
)
def test_users_and_parameters_of_urls_are_masked(text: str, shown: str) -> None:
    """In a configuration that is shown, and in every message that is logged or told."""
    assert masked_urls(text) == shown
    assert "s3cret" not in redacted(text)


def test_a_configuration_is_shown_without_them() -> None:
    """`config show` prints a URL whose query has a token; the token it does not print."""
    config = RouterConfig.from_mapping(
        {
            "version": 1,
            "providers": {"p": {"kind": "openai_compatible", "base_url": "https://h/v1?subscription=s3cret"}},
            "models": {"smart": {"tiers": [{"targets": ["p/m"]}]}},
        }
    )
    assert "s3cret" not in repr(plain(config))
    assert plain(config)["providers"]["p"]["base_url"] == "https://h/v1?subscription=***"
