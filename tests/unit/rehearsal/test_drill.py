"""What of a configuration is put to the test, how it is shortened, and how findings add up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from smart_model_router import RouterConfig
from smart_model_router.config import ResilienceConfig
from smart_model_router.rehearsal.chaos.fault_fleet import SHORTEST, drill, shortened
from smart_model_router.rehearsal.chaos.scenario_context import (
    Ending,
    Finding,
    ScenarioContext,
    Verdict,
    ask,
    body_of,
    worst,
)
from smart_model_router.router import SmartModelRouter

CONFIG = {
    "version": 1,
    "providers": {
        "azure": {
            "kind": "azure",
            "base_url": "https://x.openai.azure.com",
            "api_key": ["sk-real-1", "sk-real-2"],
            "headers": {"x-team": "real"},
            "rpm": 60,
        },
        "other": {"kind": "openai", "api_key": "sk-real-3"},
    },
    "models": {
        "smart": {"tiers": [{"targets": [{"target": "azure/big", "timeout": 40, "weight": 3}]}], "last_resort": []},
        "else": {"tiers": [{"targets": ["other/big"]}], "last_resort": []},
    },
    "aliases": {"gpt-*": "smart"},
    "store": {"path": "stats.db"},
    "search": {"model": "else"},
    "gateway": {"keys": {"me": {"key": "sk-real-4"}}},
    "telemetry": {"log": {"to": "router.log"}},
}


def test_a_drill_holds_nothing_secret_and_tells_nobody() -> None:
    """Keys and headers are dummies of the same number; no file, listener or log of the configuration is touched."""
    tested = drill(RouterConfig.from_mapping(CONFIG, environ={}), "gpt-5", 10.0)
    (provider,) = tested.providers.values()
    assert [key.reveal() for key in provider.api_key] == ["chaos-1", "chaos-2"]
    assert {name: value.reveal() for name, value in provider.headers.items()} == {"x-team": "chaos"}
    assert (tested.store.path, tested.telemetry.log.to, dict(tested.gateway.keys)) == (None, None, {})


def test_a_drill_keeps_targets_limits_and_weights_and_shortens_time() -> None:
    """The model asked for, with its providers' facts; durations and nothing else are divided."""
    tested = drill(RouterConfig.from_mapping(CONFIG, environ={}), "gpt-5", 10.0)
    (target,) = tested.models["smart"].tiers[0].targets
    assert (target.target, target.weight, target.timeout) == ("azure/big", 3, 4.0)
    assert tested.providers["azure"].rpm == 60
    assert (tested.routing.last_resort_after, tested.routing.max_wait, tested.routing.attempts) == (2.0, None, 6)


def test_every_duration_is_shortened_but_not_below_what_a_machine_can_tell() -> None:
    """Thirty seconds become three; a quarter of a second stays; shares and counts are no durations."""
    rules = shortened(ResilienceConfig(), 10.0)
    assert (rules.breaker.open, rules.cooldown.failure, rules.timeouts.attempt) == (3.0, 1.0, 18.0)
    assert rules.timeouts.connect == 0.5
    assert rules.backoff.base == SHORTEST == ResilienceConfig().backoff.base
    assert (rules.breaker.failing_share, rules.breaker.odds) == (0.99, 1000)
    assert rules.cooldown.success_count_to_clear == 3
    assert shortened(ResilienceConfig(), 1.0) == ResilienceConfig()


@pytest.mark.parametrize(
    ("missed", "verdict"),
    [
        ([], Verdict.PASS),
        ([Verdict.PARTIAL], Verdict.PARTIAL),
        ([Verdict.SAFE, Verdict.PARTIAL], Verdict.SAFE),
        ([Verdict.PARTIAL, Verdict.FAIL, Verdict.SAFE], Verdict.FAIL),
    ],
)
def test_the_worst_finding_is_the_verdict(missed: list[Verdict], verdict: Verdict) -> None:
    """A promise that was kept costs nothing, whatever it would have cost."""
    kept = Finding("kept", True, "", Verdict.FAIL)
    assert worst([kept, *(Finding("missed", False, "", otherwise) for otherwise in missed)]) is verdict


def test_a_router_that_never_comes_back_hangs() -> None:
    """The drill's own clock ends the wait, not the router's."""

    class Silent:
        async def chat(self, body: object, **options: object) -> None:
            await asyncio.get_running_loop().create_future()

    router = cast("SmartModelRouter", Silent())
    asked = asyncio.run(ask(router, body_of(1, "smart"), stream=False, timeout=0.01, grace=0.01))
    assert asked.ending is Ending.HUNG


@pytest.mark.parametrize(
    ("refusals", "rounds"),
    [
        ([[None, None], [None, "open"]], 2),  # the second target is the only one that is used
        ([["open", "cooldown"], ["open", "open"]], 2),
        ([["open", "open"]], 1),
        ([[None, None]] * 4, 4),
    ],
)
def test_it_is_out_when_something_is_and_nothing_else_refuses(refusals: list[list[str | None]], rounds: int) -> None:
    """Nobody is out while nobody refuses; four rounds are enough to find out."""

    class WorkloadRequest:
        """An arena whose targets stand so after each round."""

        count = 0
        router = SimpleNamespace(targets=lambda: ())

        async def at_once(self, _: int) -> None:
            self.count += 1

        @property
        def targets(self) -> list[SimpleNamespace]:
            return [SimpleNamespace(refusal=refusal) for refusal in refusals[self.count - 1]]

    arena = WorkloadRequest()
    asyncio.run(ScenarioContext.until_out(cast("ScenarioContext", arena)))
    assert arena.count == rounds
