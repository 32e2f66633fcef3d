"""The account of a request on the command line."""

from __future__ import annotations

import pytest

from smart_model_router.cli.ask import told
from smart_model_router.domain.outcome import Usage
from smart_model_router.domain.report import RouteReport


@pytest.mark.parametrize(("cached", "line"), [(0, "10 in, 5 out"), (8, "10 in (8 of them cached), 5 out")])
def test_cached_tokens_are_told(cached: int, line: str) -> None:
    """A provider's cache is seen in the account, and left out where it did nothing."""
    report = RouteReport("id", "smart", "frontier", usage=Usage(10, 5, cached))
    assert f"  tokens {line}; cost unknown" in [*told(report)]
