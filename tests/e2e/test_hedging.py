"""A hedge over real sockets: the late provider's connection is closed, the other one's answer is whole."""

from __future__ import annotations

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.outcome import FailureClass
from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.eventually import becomes
from tests.e2e.gateways import ECHO, MESSAGES

BODY = {"model": "smart", "messages": MESSAGES}


@pytest.mark.asyncio
async def test_a_late_provider_is_left_for_a_hedge() -> None:
    """After twenty quick streams one does not begin: another provider answers, and the first call is cancelled."""
    with FaultServer() as late, FaultServer() as other:
        config = {
            "version": 1,
            "providers": {
                name: {"kind": "openai_compatible", "base_url": server.base_url, "api_key": "k"}
                for name, server in (("late", late), ("other", other))
            },
            "models": {
                "smart": {
                    "tiers": [{"targets": ["late/big", "other/big"]}],
                    "strategy": "ordered",
                    "last_resort": [],
                }
            },
            "resilience": {"hedging": {"enabled": True}},
        }
        async with SmartModelRouter.from_config(config) as router:
            for _ in range(20):
                async with router.stream_chat(BODY) as quick:
                    async for _ in quick:
                        pass
            late.set([Fault.hang()])
            stream = router.stream_chat(BODY)
            async for _ in stream:
                pass
            assert (stream.text, stream.report.target, stream.report.complete) == (ECHO, "other/big", True)
            assert [(a.target, a.hedge, a.failure_class) for a in stream.report.attempts] == [
                ("late/big", False, FailureClass.CANCELLED),
                ("other/big", True, None),
            ]
            assert await becomes(lambda: late.in_flight == 0)
