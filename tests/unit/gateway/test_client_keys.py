"""Virtual keys: what a guest may ask for, how much, and what an answer is charged with."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from smart_model_router.config import GatewayKeyConfig, RouterConfig, Secret
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router.domain.report import Attempt, RouteReport
from smart_model_router.domain.request import Criticality
from smart_model_router.gateway.client_keys import ApiClient, KeyRing, is_loopback
from smart_model_router.http_api import ApiRequest, ProblemError, read_ask
from tests.world import now, virtual


def ask(**headers: str) -> ApiRequest:
    """A small question."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return read_ask("chat", named, b'{"model": "smart", "messages": [{}]}')


def api_client(**limits: Any) -> ApiClient:
    """The holder of a key with these limits."""
    return ApiClient("team", GatewayKeyConfig(key=Secret("k"), **limits))


def bill(tokens: int, usd: float | None = None) -> list[RouteReport]:
    """The reports of an answer that used so much."""
    return [report(Attempt("a/big", 1.0, usage=Usage(tokens, 0), cost_usd=usd))]


def report(*attempts: Attempt) -> RouteReport:
    """The report of a request that made these."""
    return RouteReport("req-1", "smart", "frontier", attempts=list(attempts))


async def used(someone: ApiClient, reports: list[RouteReport], tokens: int = 0, usd: float = 0.0) -> None:
    """Let a question of the guest in, and charge it with its answer."""
    (await someone.admit(tokens, usd)).settle(reports, now())


async def wait_of(someone: ApiClient, tokens: int = 0, usd: float = 0.0) -> float:
    """How long the guest is told to wait."""
    with pytest.raises(ProblemError) as refused:
        await someone.admit(tokens, usd)
    assert refused.value.problem.kind.status == 429
    assert refused.value.problem.retry_after is not None
    return refused.value.problem.retry_after


@virtual
async def test_requests_come_back_at_their_rate() -> None:
    """Two a minute: the third waits half a minute, exactly."""
    someone = api_client(rpm=2)
    for _ in range(2):
        await someone.admit(0, 0.0)
    assert await wait_of(someone) == pytest.approx(30.0)
    await asyncio.sleep(30.0)
    await someone.admit(0, 0.0)


@virtual
async def test_an_answer_is_charged_with_what_it_used() -> None:
    """An estimate is corrected up and down; nothing is charged when nobody answered."""
    someone = api_client(tpm=600)
    await used(someone, bill(100), tokens=500)
    await used(someone, bill(1_100), tokens=500)
    assert await wait_of(someone, 100) == pytest.approx(70.0)
    other = api_client(tpm=600)
    await used(other, [], tokens=600)
    await other.admit(600, 0.0)


@virtual
async def test_a_prompt_larger_than_a_minutes_tokens_is_admitted_by_a_full_bucket() -> None:
    """It waits for a full minute's worth, and not for ever."""
    await api_client(tpm=10).admit(10_000, 0.0)


def test_only_a_key_with_a_budget_asks_for_known_prices() -> None:
    """The router is told so with the question."""
    for limits, priced in (({"usd_per_day": 1.0}, True), ({"rpm": 5}, None)):
        question = ask()
        api_client(**limits).check(question)
        assert question.options.get("priced") is priced


@virtual
async def test_a_days_money_is_of_24_hours_from_its_first_use() -> None:
    """The next question waits until the period is over, then all of it is there again."""
    someone = api_client(usd_per_day=1.0)
    await used(someone, bill(1, usd=0.75))
    await asyncio.sleep(3_600.0)
    await used(someone, bill(1, usd=0.75))
    assert await wait_of(someone) == pytest.approx(82_800.0)
    await asyncio.sleep(82_800.0)
    await used(someone, bill(1, usd=0.75))
    await used(someone, bill(1, usd=0.2))


@virtual
async def test_what_a_question_may_cost_is_reserved_until_it_is_answered() -> None:
    """While anything is left a question is let in, by one answer beyond the budget at most."""
    someone = api_client(usd_per_day=1.0)
    first = await someone.admit(0, 0.6)
    await someone.admit(0, 0.6)
    await wait_of(someone, usd=0.01)
    first.settle(bill(1, usd=0.1), now())
    await someone.admit(0, 0.3)
    await wait_of(someone, usd=0.01)


@virtual
async def test_what_broke_off_is_charged_too() -> None:
    """A stream that its client left, one that broke off under another name: the provider charges for them all."""
    cut = Attempt("a/big", 1.0, FailureClass.TRUNCATED, usage=Usage(100, 100), cost_usd=0.25, estimated=True)
    left = Attempt("b/big", 1.0, FailureClass.CANCELLED, usage=Usage(300, 200), cost_usd=1.25, estimated=True)
    silent = Attempt("b/big", 1.0, FailureClass.SERVER_ERROR)
    reports = [report(silent, cut), report(left)]
    someone = api_client(tpm=600)
    await used(someone, reports)
    assert await wait_of(someone, 600) == pytest.approx(70.0)
    other = api_client(usd_per_day=1.0)
    await used(other, reports)
    assert await wait_of(other) == pytest.approx(86_400.0)


@pytest.mark.parametrize("changed", ["rpm", "tpm", "usd_per_day"])
@virtual
async def test_a_reload_gives_nobody_a_new_minute(changed: str) -> None:
    """What a key has used it has used, by the value of the key; a limit that is another one begins anew."""
    limits: dict[str, Any] = {"rpm": 1, "tpm": 60, "usd_per_day": 1.0}

    def ring(secret: str, **others: Any) -> tuple[KeyRing, ApiClient]:
        keys = KeyRing({"renamed": GatewayKeyConfig(key=Secret(secret), **(limits | others))})
        return keys, keys.api_client({"authorization": f"Bearer {secret}"})

    before, someone = ring("k")
    await used(someone, bill(60, usd=1.5), tokens=60)
    names = {"requests": "rpm", "tokens": "tpm", "usd": "usd_per_day"}
    cases: list[tuple[str, dict[str, Any], set[str]]] = [
        ("k", {}, {*limits}),
        ("k", {"models": ["smart"]}, {*limits}),
        ("k", {changed: 100}, {*limits} - {changed}),
        ("other", {}, set()),
    ]
    for secret, others, used_up in cases:
        after, guest_now = ring(secret, **others)
        after.continue_from(before)
        refusing = {names[what] for what, limit in guest_now._limits.items() if limit.alone_at(1, now()) > now()}
        assert refusing == used_up


@virtual
async def test_a_refused_question_takes_nothing() -> None:
    """Who waits for tokens keeps its request."""
    someone = api_client(rpm=2, tpm=10)
    await someone.admit(10, 0.0)
    await wait_of(someone, 10)
    await asyncio.sleep(60.0)
    await someone.admit(10, 0.0)


@pytest.mark.parametrize(
    ("most", "asked", "has"),
    [
        ("critical", None, "critical"),
        ("critical", "critical_plus", "critical"),
        ("critical", "sheddable", "sheddable"),
        ("critical_plus", None, "critical"),
        ("critical_plus", "critical_plus", "critical_plus"),
        ("sheddable_plus", None, "sheddable_plus"),
    ],
)
def test_a_key_bounds_what_is_critical(most: Criticality, asked: Criticality | None, has: Criticality) -> None:
    """Nobody is more critical than its key; who does not ask is critical at most."""
    question = ask() if asked is None else ask(x_router_criticality=asked)
    api_client(criticality=most).check(question)
    assert question.options.get("criticality") == has


@virtual
async def test_without_keys_everyone_here_is_welcome() -> None:
    """The open ring asks for nothing and bounds nothing."""
    ring = KeyRing({})
    question = ask(x_router_criticality="critical_plus")
    ring.api_client({}).check(question)
    await ring.api_client({}).admit(10**9, 10.0**9)
    assert question.options.get("criticality") == "critical_plus"


@pytest.mark.parametrize("host", [None, "localhost:8000", "127.0.0.1:8000", "[::1]", "10.1.2.3:8080", "[fe80::1]:80"])
def test_without_keys_this_machine_answers_to_its_addresses(host: str | None) -> None:
    """A probe, a scrape, a container: what names an address, or nothing, is no page whose name was redirected here."""
    headers = {} if host is None else {"host": host}
    assert KeyRing({}).api_client(headers).admin


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "localhost.evil.example", "x", "", "[", "::1"])
def test_without_keys_no_other_name_is_answered_to(host: str) -> None:
    """A page from elsewhere whose name was made to mean this machine may ask nothing, in no way."""
    with pytest.raises(ProblemError) as refused:
        KeyRing({}).api_client({"host": host})
    assert refused.value.problem.kind.status == 403


def test_who_has_a_key_may_call_the_gateway_what_it_likes() -> None:
    """The key is what a page from elsewhere has not."""
    ring = KeyRing({"team": GatewayKeyConfig(key=Secret("k"))})
    assert ring.api_client({"host": "router.example", "authorization": "Bearer k"}).name == "team"


@pytest.mark.parametrize(
    ("host", "here"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "localhost.evil.example", "")),
    ],
)
def test_this_machine_is_known_by_its_address(host: str, *, here: bool) -> None:
    """Only loopback addresses are of this machine alone."""
    assert is_loopback(host) is here


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ({}, "gateway.keys.team: '***' - either `key` or `sha256` is needed"),
        ({"key": "k", "sha256": "0" * 64}, "either `key` or `sha256`"),
        ({"sha256": "abc"}, "64 hexadecimal digits"),
        ({"key": "k", "usd_per_day": 0}, "usd_per_day"),
        ({"key": "k", "criticality": "vital"}, "criticality"),
    ],
)
def test_a_key_that_cannot_be_is_refused(key: Mapping[str, Any], told: str) -> None:
    """At construction, by name, without showing the key."""
    config = {
        "version": 1,
        "providers": {"s": {"kind": "scripted"}},
        "models": {"smart": {"tiers": [{"targets": ["s/m"]}]}},
        "gateway": {"keys": {"team": key}},
    }
    with pytest.raises(ConfigurationError) as refused:
        RouterConfig.from_mapping(config)
    assert told in refused.value.message
