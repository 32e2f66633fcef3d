"""How a policy for cut streams is said: in the configuration and in headers, and what is told when it is misspelt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router import ConfigurationError, RouterConfig
from smart_model_router.http_api.api_request import read_ask
from smart_model_router_providers.catalog import KINDS

ASK = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


def config(*, target: dict[str, Any] | None = None, **model: Any) -> RouterConfig:
    """One model with these keys."""
    tree: dict[str, Any] = {
        "version": 1,
        "providers": {"a": {"kind": "vllm"}},
        "models": {"m": {"tiers": [{"targets": [{"target": "a/x", **(target or {})}]}], **model}},
    }
    return RouterConfig.from_mapping(tree)


@pytest.mark.parametrize("policy", ["none", "continue", "buffered", "hold_back(200)", "restart"])
def test_a_model_has_a_policy(policy: str) -> None:
    """Any of the five, as text."""
    assert config(recovery=policy).models["m"].recovery == policy


@pytest.mark.parametrize(
    ("recovery", "said"),
    [
        ("contiune", "did you mean 'continue'?"),
        ("hold_back", "hold_back needs how many characters, 1 to 100000"),
        ("buffered(3)", "takes no number"),
    ],
)
def test_a_misspelt_policy_is_told_where_it_stands(recovery: str, said: str) -> None:
    """Key, value, and what would be right."""
    with pytest.raises(ConfigurationError) as caught:
        config(recovery=recovery)
    assert caught.value.key == "models.m.recovery"
    assert said in str(caught.value)


def test_all_models_have_one_policy_by_default() -> None:
    """`continue`, or that under `routing`, which is checked like a model's."""
    assert config().routing.recovery == "continue"
    tree = {"version": 1, "providers": {"a": {"kind": "vllm"}}, "models": {"m": {"tiers": [{"targets": ["a/x"]}]}}}
    with pytest.raises(ConfigurationError, match="did you mean 'continue'") as caught:
        RouterConfig.from_mapping({**tree, "routing": {"recovery": "contiune"}})
    assert caught.value.key == "routing.recovery"


def test_a_target_says_how_it_goes_on() -> None:
    """One of the known ways; else they are listed."""
    assert config(target={"prefill": "prefix"}).models["m"].tiers[0].targets[0].prefill == "prefix"
    with pytest.raises(ConfigurationError, match="'plain' or 'prefix'"):
        config(target={"prefill": "yes"})


def test_the_catalog_knows_who_goes_on() -> None:
    """By their documentation; all others are asked in words."""
    assert {name: kind.prefill for name, kind in KINDS.items() if kind.prefill != "asked"} == {
        "anthropic": "plain",
        "groq": "plain",
        "llamacpp": "plain",
        "mistral": "prefix",
        "ollama": "plain",
        "openrouter": "plain",
        "scripted": "plain",
        "vllm": "continue_final_message",
    }


@pytest.mark.parametrize(
    ("headers", "options"),
    [
        ({}, {}),
        ({"x-router-recovery": "continue"}, {"recovery": "continue"}),
        ({"x-router-recovery": " Restart "}, {"recovery": " Restart ", "accept_restart": True}),
        ({"x-router-accept-restart": "true"}, {"accept_restart": True}),
        ({"x-router-accept-restart": ""}, {}),
        ({"x-router-accept-restart": "No"}, {}),
    ],
)
def test_headers_ask_for_a_policy(headers: dict[str, str], options: dict[str, Any]) -> None:
    """Who asks for `restart` accepts it; who says no to it does not."""
    assert read_ask("chat", headers, ASK).options == options
