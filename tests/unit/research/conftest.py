"""Each test reads its expressions anew, so that one that breaks reading is noticed (tools/mutants.py forks)."""

from __future__ import annotations

import pytest

from smart_model_router_research.workflow.expressions import parse_expression, parse_template


@pytest.fixture(autouse=True)
def _nothing_read_before() -> None:
    """Forget what other tests read."""
    parse_expression.cache_clear()
    parse_template.cache_clear()
