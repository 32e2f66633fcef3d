"""Waiting for the shadow of a run: its differences are told, and an interruption ends the waiting alone."""

from __future__ import annotations

import asyncio

import pytest

from smart_model_router.cli.workflow_runs import _tell_differences
from smart_model_router.testing import run_virtual
from smart_model_router_research.engine import KahnEngine, RunState, ShadowEngine
from tests.conformance.engine_harness import Trace, passing
from tests.conformance.test_two_engines import Endless, Forgetful, memory, surroundings, three


def test_differences_are_told_in_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside the result, on stderr."""

    async def main() -> None:
        store = memory()
        engine = ShadowEngine(KahnEngine(store), Forgetful, store)
        await engine.execute(three(Trace()), surroundings())
        await _tell_differences(engine)

    run_virtual(main())
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "shadow: step b: its outputs differ\nshadow: the outputs of the run differ\n")


def test_ctrl_c_ends_the_waiting_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """The command goes on with the result that it has, as if nothing had been cancelled."""

    async def main() -> None:
        store = memory()
        engine = ShadowEngine(KahnEngine(store), Endless, store)
        result = await engine.execute(three(Trace()), surroundings())

        async def command() -> RunState:
            await _tell_differences(engine)
            await passing(0)
            return result.status

        task = asyncio.create_task(command())
        await passing(1)
        task.cancel()
        assert await task is RunState.FAILED
        assert task.cancelling() == 0

    run_virtual(main())
    assert capsys.readouterr().err == "shadow: not waited for\n"
