"""Prices by configuration, and budgets in USD: spent where the price is known, refused by name where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router import ConfigurationError, InvalidRequest, RequestRejected, RouterConfig
from smart_model_router.domain.outcome import Usage
from smart_model_router.domain.request import peek
from smart_model_router.testing import FakeProvider, FakeReply
from tests.unit.gateway.test_endpoint import KEYED, asked, gateway_over
from tests.world import BODY, EMBED, World, virtual, world

USED = Usage(1_000_000, 100_000, 400_000)


def priced(*targets: Any, kind: str = "openai_compatible", **config: Any) -> World:
    """Make a router of one tier; a million tokens of prompt, 400,000 of them cached, and 100,000 of answer are used."""
    names = [target if isinstance(target, str) else target["target"] for target in targets]
    models = {"smart": {"tiers": [{"targets": list(targets)}], "last_resort": []}}
    replies = {name.partition("/")[0]: FakeProvider(FakeReply(usage=USED)) for name in names}
    return world(
        names, replies=replies, config={"models": models, **config}, kinds={name: {"kind": kind} for name in replies}
    )


@pytest.mark.parametrize(
    ("price", "usd"),
    [
        ({"input": 2, "output": 10}, 3.0),
        ({"input": 2, "cached": 0.5, "output": 10}, 2.4),
        ({"input": 0, "output": 0}, 0.0),
    ],
)
@virtual
async def test_a_configured_price_is_what_a_call_costs(price: dict[str, float], usd: float) -> None:
    """USD per million tokens; what is cached costs as any prompt where nothing else is said; 0 is 0."""
    reply = await priced({"target": "a/mine", "price": price}).router.chat(BODY)
    assert reply.report.cost_usd == pytest.approx(usd)


@virtual
async def test_a_configured_price_takes_the_place_of_the_lists() -> None:
    """Who has a contract pays by it, wherever the target is named."""
    listed = (await priced("a/gpt-4o", kind="openai").router.chat(BODY)).report.cost_usd
    assert listed is not None
    own = {"target": "a/gpt-4o", "price": {"input": 1, "output": 1}}
    reply = await priced(own, kind="openai").router.chat(BODY)
    assert reply.report.cost_usd == pytest.approx(1.1)
    assert reply.report.cost_usd != listed


@virtual
async def test_the_cheapest_is_the_cheapest_by_configuration() -> None:
    """The strategy goes by the same prices."""
    dear, cheap = ({"target": t, "price": {"input": usd, "output": usd}} for t, usd in (("a/dear", 5), ("b/cheap", 1)))
    w = priced(dear, cheap, routing={"strategy": "cheapest"})
    assert (await w.router.chat(BODY)).report.target == "b/cheap"


@pytest.mark.parametrize("options", [{"max_cost": 1.0}, {"priced": True}], ids=["max_cost", "budget"])
@virtual
async def test_a_budget_is_refused_where_the_price_is_unknown(options: Any) -> None:
    """By the target's name, with what helps; a target of known price serves; and allowed is allowed."""
    w = priced("a/mine")
    with pytest.raises(RequestRejected, match=r"a/mine has no price, .*`price`.*`routing.unpriced: allow`"):
        await w.router.chat(BODY, **options)
    assert w.calls("a") == 0
    assert (await w.router.chat(BODY)).report.target == "a/mine"
    both = priced("a/mine", {"target": "b/known", "price": {"input": 0.1, "output": 0.1}})
    assert (await both.router.chat(BODY, **options)).report.target == "b/known"
    allowed = priced("a/mine", routing={"unpriced": "allow"})
    assert (await allowed.router.chat(BODY, **options)).report.target == "a/mine"


@virtual
async def test_a_price_above_the_budget_is_too_dear_also_where_unknown_ones_are_allowed() -> None:
    """What is known is not unknown."""
    w = priced({"target": "a/mine", "price": {"input": 1e6, "output": 1e6}}, routing={"unpriced": "allow"})
    with pytest.raises(RequestRejected, match="a/mine costs more than the request may"):
        await w.router.chat(BODY, max_cost=0.01)


@virtual
async def test_a_vector_has_a_price_without_an_answer() -> None:
    """The list has no price for what an embedding never writes."""
    w = priced("a/text-embedding-3-small", kind="openai")
    assert (await w.router.embeddings(EMBED, max_cost=1.0)).report.target == "a/text-embedding-3-small"


@virtual
async def test_a_key_with_a_budget_does_not_spend_it_unseen() -> None:
    """The gateway tells its client which target and what helps; once the price is said the key is charged."""
    gateway: dict[str, Any] = {"keys": {"team": {"key": "team-key", "usd_per_day": 1}}}
    refused = await asked(gateway_over(priced("a/mine", gateway=gateway)), headers=KEYED)
    assert refused.status == 400
    assert b"a/mine has no price, and the request a budget" in refused.body
    assert b"routing.unpriced: allow" in refused.body
    served = gateway_over(priced({"target": "a/mine", "price": {"input": 2, "output": 10}}, gateway=gateway))
    assert (await asked(served, headers=KEYED)).status == 200
    assert (await asked(served, headers=KEYED)).status == 429


def test_two_prices_of_one_target_are_an_error() -> None:
    """Of the two places, both are named."""
    tiers = [{"targets": [{"target": "a/m", "price": {"input": usd, "output": 1}}]} for usd in (1, 2)]
    models = {name: {"tiers": [tier]} for name, tier in zip("xy", tiers, strict=True)}
    with pytest.raises(
        Exception, match=r"models.y.tiers\[0\].targets\[0\].price.*models.x.tiers\[0\].targets\[0\].price"
    ):
        RouterConfig.from_mapping(
            {
                "version": 1,
                "providers": {"a": {"kind": "openai_compatible", "base_url": "http://x/v1"}},
                "models": models,
            }
        )


@pytest.mark.parametrize(
    ("said", "key", "expected"),
    [
        ({"price": 3}, "price", "a mapping is needed"),
        ({"vision": True}, "vision", "no such key; did you mean 'images'?"),
        ({"price": {"input": 1}}, "price.output", "a number at least 0, at most 1e+06 is needed"),
        ({"price": {"input": -1, "output": 1}}, "price.input", "a number at least 0, at most 1e+06 is needed"),
        ({"price": {"input": "nan", "output": 1}}, "price.input", "a number at least 0, at most 1e+06 is needed"),
        ({"price": {"input": 1, "output": 2e6}}, "price.output", "a number at least 0, at most 1e+06 is needed"),
        ({"price": {"input": 1, "output": 1, "cashed": 1}}, "price.cashed", "no such key; did you mean 'cached'?"),
        ({"pdf": "maybe"}, "pdf", "true or false is needed"),
        ({"audio": 3}, "audio", "true or false is needed"),
        ({"images": []}, "images", "true or false is needed"),
        ({"context_tokens": 0}, "context_tokens", "a whole number at least 1, at most 1e+09 (such as"),
        ({"context_tokens": "lots"}, "context_tokens", "a whole number at least 1, at most 1e+09 (such as"),
        ({"only": ["video"]}, "only[0]", "'tools' or 'images' or 'schema' or 'pdf' or 'audio' is needed"),
    ],
)
def test_a_bad_price_or_ability_is_named_by_its_key(said: dict[str, Any], key: str, expected: str) -> None:
    """With the place, and what would be right."""
    models = {"m": {"tiers": [{"targets": [{"target": "a/b", **said}]}]}}
    provider = {"kind": "openai_compatible", "base_url": "http://x/v1"}
    with pytest.raises(ConfigurationError) as wrong:
        RouterConfig.from_mapping({"version": 1, "providers": {"a": provider}, "models": models})
    assert wrong.value.key == f"models.m.tiers[0].targets[0].{key}"
    assert wrong.value.expected.startswith(expected)


@pytest.mark.parametrize(
    ("key", "written", "shown"),
    [
        ("price", "3", "'3'"),
        ("price", 3, "3"),
        ("price", ["3"], "'a list'"),
        ("price", "sk-0123456789abcdef", "'***'"),
        ("only", 3, "3"),
    ],
)
def test_a_value_in_the_place_of_a_mapping_or_list_is_shown(key: str, written: object, shown: str) -> None:
    """As it was written, keys of providers left out; a file's numbers are read as text first."""
    models = {"m": {"tiers": [{"targets": [{"target": "a/b", key: written}]}]}}
    provider = {"kind": "openai_compatible", "base_url": "http://x/v1"}
    with pytest.raises(ConfigurationError) as wrong:
        RouterConfig.from_mapping({"version": 1, "providers": {"a": provider}, "models": models})
    assert str(wrong.value).startswith(f"models.m.tiers[0].targets[0].{key}: {shown} - a ")


@pytest.mark.parametrize("providers", ["hunter2", {"a": "hunter2"}, {"a": {"kind": "openai", "headers": "hunter2"}}])
def test_a_value_that_may_be_a_secret_is_not_shown(providers: object) -> None:
    """Where keys and headers belong, only the kind of the value is told."""
    with pytest.raises(ConfigurationError) as wrong:
        RouterConfig.from_mapping({"version": 1, "providers": providers, "models": {}})
    assert wrong.value.key.startswith("providers")
    assert wrong.value.value == "text"
    assert "hunter2" not in str([wrong.value, *wrong.value.others])


@pytest.mark.parametrize(
    ("section", "key", "expected"),
    [
        ({"routing": {"unpriced": "maybe"}}, "routing.unpriced", "'refuse' or 'allow' is needed"),
        (
            {"gateway": {"keys": {"k": {"key": "x", "usd_per_day": "much"}}}},
            "gateway.keys.k.usd_per_day",
            "a number above 0, at most 1e+06 is needed",
        ),
    ],
)
def test_a_bad_budget_is_named_by_its_key(section: dict[str, Any], key: str, expected: str) -> None:
    """As everything else."""
    base = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": "http://x/v1"}},
        "models": {"m": {"tiers": [{"targets": ["a/b"]}]}},
    }
    with pytest.raises(ConfigurationError) as wrong:
        RouterConfig.from_mapping({**base, **section})
    assert (wrong.value.key, wrong.value.expected) == (key, expected)


@pytest.mark.parametrize("usd", [0, -1, "free", float("nan")])
@virtual
async def test_a_bad_max_cost_is_named(usd: Any) -> None:
    """It is no budget at all."""
    with pytest.raises(InvalidRequest, match="max_cost: a number above 0"):
        await priced("a/mine").router.chat(BODY, max_cost=usd)


@pytest.mark.parametrize("value", [None, "yes", 1])
def test_priced_is_a_switch(value: Any) -> None:
    """Anything else is told so."""
    with pytest.raises(InvalidRequest, match="priced: true or false is needed"):
        peek("chat", BODY, priced=value)
