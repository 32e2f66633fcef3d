"""Limits are used up and not run into: every header family, in virtual time, against limiters that really count."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.errors import AllTargetsFailed, SmartRouterError
from smart_model_router.testing import LoopClock
from smart_model_router_providers.fault import Fault, ScriptedProvider
from tests.world import now, virtual

BODY = {"model": "smart", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 50}
LIMIT = 300
SECONDS = 180.0


class Limited:
    """A router with one scripted provider of a kind, whose limiters refuse what is too much."""

    def __init__(self, kind: str, script: list[Fault], *, keys: int = 1, **options: Any) -> None:
        names = [f"k{number + 1}" for number in range(keys)]
        self.provider = ScriptedProvider(script, clock=LoopClock(), kind=kind, api_keys=names, keep_requests=100_000)
        tree = {
            "version": 1,
            "providers": {"p": {"kind": kind, "base_url": "http://p.invalid/v1", "api_key": names, "bulkhead": 100}},
            "routing": {"max_wait": "120s"},
            "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
            **options,
        }
        self.router = SmartModelRouter.from_config(tree, clock=LoopClock(), seed=1, providers={"p": self.provider})
        self.tokens: list[tuple[float, int]] = []
        self._ask = self.router.messages if kind == "anthropic" else self.router.chat

    async def ask(self) -> float | None:
        """Ask once; the seconds it waited, None when nobody answered."""
        try:
            report = (await self._ask(BODY)).report
        except SmartRouterError:
            return None
        self.tokens.append((now(), 0 if report.usage is None else report.usage.total_tokens))
        return report.waited_seconds

    async def work(self, workers: int, seconds: float) -> None:
        """So many workers, each asking one thing after another."""
        until = now() + seconds

        async def worker() -> None:
            while now() < until:
                if await self.ask() is None:
                    await asyncio.sleep(1.0)

        await asyncio.gather(*(worker() for _ in range(workers)))

    def granted(self, start: float, seconds: float) -> int:
        """Calls the provider took in the `seconds` from `start` on."""
        return sum(r.status == 200 and start <= r.at < start + seconds for r in self.provider.requests)

    def tokens_granted(self, start: float, seconds: float) -> int:
        """Tokens of the answers in the `seconds` from `start` on, as the provider counted them."""
        return sum(tokens for at, tokens in self.tokens if start <= at < start + seconds)

    def refusals(self) -> Counter[str]:
        """429s by key."""
        return Counter(r.key for r in self.provider.requests if r.status == 429)


FAMILIES = [
    ("openai", "openai", "continuous"),
    ("azure", "azure", "continuous"),
    ("anthropic", "anthropic", "continuous"),
    ("openai_compatible", "ietf", "continuous"),
    ("openai_compatible", "openai", "continuous"),
    ("openai", "openai", "window"),
    ("azure", "azure", "window"),
    ("github", "github", "window"),
    ("anthropic", "anthropic", "window"),
    ("mistral", "mistral", "window"),
    ("cerebras", "cerebras", "window"),
    ("openrouter", "openrouter", "window"),
    ("openai_compatible", "ietf", "window"),
    ("openai_compatible", "openai", "window"),
]


@pytest.mark.parametrize(("kind", "style", "refill"), FAMILIES)
@virtual
async def test_a_limit_is_used_up_and_not_run_into(kind: str, style: Any, refill: Any) -> None:
    """Three hundred a minute over three minutes: at least 98 % of them granted, at most one 429."""
    fleet = Limited(kind, [Fault.limit(rpm=LIMIT, kind=refill, headers=style), Fault.delay(first=0.05)])
    started = now()
    await fleet.work(8, SECONDS)
    assert fleet.granted(started, SECONDS) >= 0.98 * LIMIT * SECONDS / 60
    assert fleet.refusals()["k1"] <= 1


@pytest.mark.parametrize(("kind", "refill"), [("openai", "continuous"), ("anthropic", "window"), ("github", "window")])
@virtual
async def test_slow_answers_tell_old_news(kind: Any, refill: Any) -> None:
    """The figures in an answer are as old as its call: three seconds of them change nothing."""
    fleet = Limited(kind, [Fault.limit(rpm=LIMIT, kind=refill, headers=kind), Fault.delay(first=3.0)])
    started = now()
    await fleet.work(40, SECONDS)
    assert fleet.granted(started, SECONDS) >= 0.98 * LIMIT * SECONDS / 60
    assert fleet.refusals()["k1"] <= 1


@pytest.mark.parametrize(("kind", "style"), [("openai", "openai"), ("anthropic", "anthropic"), ("azure", "azure")])
@virtual
async def test_a_bucket_of_one_second_is_paced(kind: str, style: Any) -> None:
    """The limit is of the minute, but only a second's worth may come at once: paced, after the first eight calls.

    They go out together: what is above a second's worth of them is refused, and nothing after that.
    """
    burst = LIMIT // 60
    fleet = Limited(kind, [Fault.limit(rpm=LIMIT, headers=style, burst=burst), Fault.delay(first=0.05)])
    started = now()
    await fleet.work(8, SECONDS)
    assert fleet.granted(started, SECONDS) >= 0.98 * LIMIT * SECONDS / 60
    assert {r.at for r in fleet.provider.requests if r.status == 429} <= {started}
    assert fleet.refusals()["k1"] <= 8 - burst


@pytest.mark.parametrize(("kind", "style"), [("openai", "openai"), ("groq", "groq"), ("anthropic", "anthropic")])
@virtual
async def test_a_limit_of_tokens_is_used_up_too(kind: str, style: Any) -> None:
    """Tokens bind, requests do not: the estimate learns what a call costs, and debts are paid."""
    fleet = Limited(kind, [Fault.limit(tpm=2_000, headers=style), Fault.delay(first=0.5)])
    started = now()
    await fleet.work(8, SECONDS)
    assert fleet.tokens_granted(started, SECONDS) >= 0.98 * 2_000 * SECONDS / 60
    assert fleet.refusals()["k1"] <= 1


@pytest.mark.parametrize(("style", "owner"), [("openai", {}), ("anthropic", {}), ("plain", {"rpm": 30})])
@pytest.mark.parametrize("refill", ["continuous", "window"])
@virtual
async def test_two_keys_under_more_than_they_allow(style: Any, owner: dict[str, int], refill: Any) -> None:
    """Two keys of thirty a minute, four requests a second: nearly all answered, at most one 429 a key."""
    script = [Fault.limit(rpm=30, kind=refill, headers=style), Fault.delay(first=0.5)]
    fleet = Limited("openai_compatible", script, keys=2, routing={"max_wait": "60s"})
    if owner:
        fleet = Limited(
            "openai_compatible",
            script,
            keys=2,
            providers={
                "p": {
                    "kind": "openai_compatible",
                    "base_url": "http://p.invalid/v1",
                    "api_key": ["k1", "k2"],
                    **owner,
                }
            },
        )
    asks = []
    for _ in range(100):
        asks.append(asyncio.ensure_future(fleet.ask()))
        await asyncio.sleep(0.25)
    waited = await asyncio.gather(*asks)
    assert sum(seconds is not None for seconds in waited) >= 99
    assert max(fleet.refusals().values(), default=0) <= 1


@virtual
async def test_a_day_wall_sends_nothing() -> None:
    """The day's quota is gone for 17 minutes: no call reaches the provider before, one does after."""
    text = "Rate limit reached on tokens per day (TPD): Limit 200000. Please try again in 17m31s."
    wall = Fault.status(429, body={"error": {"message": text, "code": "rate_limit_exceeded"}}, times=1)
    fleet = Limited("groq", [wall])
    assert await fleet.ask() is None
    for _ in range(105):
        await asyncio.sleep(10.0)
        assert await fleet.ask() is None
    assert fleet.provider.calls() == 1
    (status,) = fleet.router.targets()
    assert (status.refusal, status.because) == ("wall", "RATE_LIMITED")
    await asyncio.sleep(2.0)
    assert await fleet.ask() is not None


@virtual
async def test_a_concurrency_cap_is_learned() -> None:
    """Five at once and not one more: after a few refusals at the start hardly any."""
    fleet = Limited("openai_compatible", [Fault.concurrency(5), Fault.delay(first=1.0)])
    await fleet.work(12, 60.0)
    early, late = (
        sum(r.status == 429 and low <= r.at - 1000.0 < high for r in fleet.provider.requests)
        for low, high in ((0.0, 10.0), (10.0, 60.0))
    )
    assert 1 <= early <= 12
    assert late <= 8  # it tries one more every ten seconds
    assert fleet.granted(1010.0, 50.0) >= 0.9 * 5 * 50


@pytest.mark.parametrize(
    ("status", "body", "because", "seconds"),
    [
        (401, None, "AUTH", 900.0),
        (403, None, "AUTH", 900.0),
        (429, {"error": {"code": "insufficient_quota", "message": "no credit"}}, "QUOTA", 3600.0),
    ],
)
@virtual
async def test_a_disabled_credential_is_seen_and_re_enabled(
    status: int, body: Any, because: str, seconds: float
) -> None:
    """It is shown with what disabled it and until when; the operator's word brings it back at once."""
    fleet = Limited("openai_compatible", [Fault.status(status, body=body, times=1)])
    assert await fleet.ask() is None
    (seen,) = fleet.router.targets()
    assert seen.because == because
    assert seen.retry_after == pytest.approx(seconds, abs=1.0)
    fleet.router.close("p/m")
    assert await fleet.ask() is not None
    (again,) = fleet.router.targets()
    assert (again.because, again.refusal) == (None, None)


@virtual
async def test_a_bad_key_disables_every_target_of_the_credential() -> None:
    """A 401 concerns the key: the other model of the same key is not asked either; the other key is."""
    models = {"smart": {"tiers": [{"targets": ["p/m", "p/n"]}], "last_resort": []}}
    fleet = Limited("openai_compatible", [], keys=2, models=models)
    fleet.provider.set({"k1": [Fault.status(401)], "*": []})
    for _ in range(10):
        assert await fleet.ask() is not None
    assert fleet.provider.calls("k1") == 1
    off = {status.id: status.refusal for status in fleet.router.targets()}
    assert off == {"p/m": "off", "p/n": "off", "p/m#2": None, "p/n#2": None}


@virtual
async def test_models_counted_together_share_their_limit() -> None:
    """Two Sonnets of one pool, one Haiku of another: what one Sonnet used the other has no more."""
    names = ["claude-sonnet-4-5", "claude-sonnet-4-6", "claude-haiku-4-5"]
    models = {"smart": {"tiers": [{"targets": [f"p/{name}" for name in names]}], "last_resort": []}}
    fleet = Limited("anthropic", [Fault.limit(rpm=60, headers="anthropic")], models=models)
    limits = [fleet.router._state.fleet.gates[f"p/{name}"].limits for name in names]
    assert limits[0] is limits[1]
    assert limits[0] is not limits[2]


@virtual
async def test_nonsense_in_headers_is_counted() -> None:
    """One answer with two bad fields: two, under its provider's name, and the request is served."""
    fleet = Limited("openai", [Fault.status(200, headers={"x-ratelimit-limit-requests": "many"})])
    await fleet.ask()
    assert fleet.router._state.rejected_fields["p"] >= 1


@virtual
async def test_who_does_not_want_to_wait_is_told_when() -> None:
    """All used up for nearly a minute: a request that may wait ten seconds hears how long it would be."""
    fleet = Limited("openai", [Fault.limit(rpm=1, headers="openai")], routing={"max_wait": "10s"})
    assert await fleet.ask() == 0.0
    with pytest.raises(AllTargetsFailed) as caught:
        await fleet.router.chat(BODY)
    assert caught.value.retry_after == pytest.approx(60.0, abs=0.1)
    assert fleet.provider.calls() == 1
