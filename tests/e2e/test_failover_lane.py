"""`make failoverbench` over sockets: two quick rows against `smr serve` and the loop."""

from __future__ import annotations

import pytest

from smart_model_router.rehearsal.chaos.scenario_context import Verdict
from tests.failover.bench import play
from tests.failover.report import missing, table
from tests.failover.rows import ROWS


@pytest.mark.asyncio
async def test_rows_are_played_on_the_gateway_and_on_the_loop() -> None:
    """A 400 reaches the gateway's client and not the loop's; a cut answer is the loop's answer, and whole from us."""
    rows = [row for row in ROWS if row.name in {"S08", "S13"}]
    gateway, loop = await play(rows)
    assert [result.judgement.verdict for result in gateway] == [Verdict.PASS, Verdict.PASS]
    assert [result.judgement.verdict for result in loop] == [Verdict.FAIL, Verdict.PARTIAL]
    assert [(len(result.played.primary), len(result.played.fallback)) for result in loop] == [(1, 0), (1, 1)]
    assert missing(rows, gateway) == []
    assert missing(rows, loop) == ["S08", "S13"]
    assert "| S13 | 400 content_policy_violation | pass | 1/0 |" in table(rows, gateway, loop)
