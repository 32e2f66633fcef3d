"""The promises of RunSaver on any store of runs, as an importable suite: say how processes get at yours."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES

from smart_model_router_research.engine import (
    RunSaver,
)
from tests.conformance.run_saver_graphs import SaverGraphs
from tests.conformance.run_saver_histories import SaverHistories
from tests.conformance.run_saver_values import SaverValues


class RunSaverContract(SaverValues, SaverHistories, SaverGraphs):
    """The promises. A subclass named Test… makes pytest run them."""

    @pytest.mark.asyncio
    async def test_all_eight_capabilities_are_there_and_pass_langgraphs_own_suite(self) -> None:
        """Base and extended ones: `passed_all` alone would be true for a saver without any extended one."""
        stores: list[RunSaver] = []

        @checkpointer_test(name=type(self).__name__)
        async def make() -> Any:
            stores.append(RunSaver(self.fresh()))
            yield stores[-1]
            stores[-1].close()

        report = await validate(make)
        passed = {name for name, result in report.results.items() if result.detected and result.passed}
        assert [failure for result in report.results.values() for failure in result.failures] == []
        assert passed == {each.value for each in ALL_CAPABILITIES}
        assert len(stores) == len(passed) == 8
