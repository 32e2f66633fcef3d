"""Wildcards: a model name with a `*` stands for every name that fits, and its targets for the same text."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from smart_model_router import ConfigurationError, InvalidRequest, ModelNotFound, SmartModelRouter
from smart_model_router.config import RouterConfig
from smart_model_router.core.live_models import MOST
from smart_model_router.domain.events import RequestFinished, TargetsEvicted
from smart_model_router.testing import FakeProvider, LoopClock, RecordingSink
from tests.world import DOWN, virtual

HELLO = [{"role": "user", "content": "hello"}]


def tree(models: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """A configuration with the providers `one` and `two`."""
    kind = {"kind": "openai_compatible", "base_url": "http://fake.invalid/v1"}
    resolved = {name: model if isinstance(model, dict) else {"targets": model} for name, model in models.items()}
    for model in resolved.values():
        model.setdefault("last_resort", [])
    return {"version": 1, "providers": {"one": kind, "two": kind}, "models": resolved, **sections}


def router(models: dict[str, Any], *sinks: RecordingSink, **sections: Any) -> SmartModelRouter:
    """A router of such a configuration, with healthy fakes."""
    return made(tree(models, **sections), *sinks)


def made(config: dict[str, Any], *sinks: RecordingSink, **fakes: FakeProvider) -> SmartModelRouter:
    """A router of a configuration; providers are healthy fakes unless `fakes` has them."""
    given: dict[str, Any] = {
        name: fakes.get(name, FakeProvider()) for name in ("one", "two") if f"{name}/" in f"{config}"
    }
    return SmartModelRouter.from_config(config, clock=LoopClock(), seed=1, providers=given, sinks=list(sinks))


WILD = {"one/*": ["one/*", "two/spare"], "gpt-*": ["two/gpt-*"], "gpt-4*": ["one/four*"], "plain": ["one/plain"]}


@pytest.mark.parametrize(
    ("asked", "targets"),
    [
        ("one/gpt-x", ["one/gpt-x", "two/spare"]),
        ("one/meta/llama-3.3", ["one/meta/llama-3.3", "two/spare"]),
        ("gpt-5", ["two/gpt-5"]),
        ("gpt-4o", ["one/fouro"]),
        ("plain", ["one/plain"]),
        ("quick", ["two/gpt-5-mini"]),
        ("claude-x", ["one/plain"]),
    ],
)
def test_a_name_leads_to_the_targets_of_its_wildcard(asked: str, targets: list[str]) -> None:
    """An exact name goes before an alias, that before the longest pattern; an alias may lead to a wildcard."""
    aliases = {"quick": "gpt-5-mini", "claude-*": "plain"}
    found = RouterConfig.from_mapping(tree(WILD, aliases=aliases)).resolve(asked)
    assert [mention.target for tier in found.tiers for mention in tier.targets] == targets


def test_the_longer_pattern_wins_whether_alias_or_wildcard() -> None:
    """An alias pattern and a wildcard that both fit: the longer one is more deliberate."""
    config = RouterConfig.from_mapping(tree(WILD, aliases={"gpt-*-mini": "plain", "g*": "plain"}))
    assert config.resolve("gpt-5-mini").name == "plain"
    assert config.resolve("gpt-5").name == "gpt-5"
    assert config.resolve("gemma").name == "plain"


@pytest.mark.parametrize("asked", ["one/", "one/*", "one/a b", "one/x#2", "one/\u0000", "one/" + "x" * 300, "other"])
def test_a_text_that_is_no_models_name_is_not_found(asked: str) -> None:
    """Empty texts, patterns, spaces, numbers of credentials, control characters and endless names fit no wildcard."""
    with pytest.raises(ModelNotFound):
        RouterConfig.from_mapping(tree(WILD)).resolve(asked)


@pytest.mark.parametrize(
    ("models", "key"),
    [
        ({"a*b*": ["one/*"]}, r"models\['a\*b\*'\]"),
        ({"a/*": ["one/*-*"]}, r"targets\[0\]"),
        ({"a": ["one/*"]}, r"targets\[0\]"),
        ({"a/*": {"targets": ["one/*"], "last_resort": ["one/*"]}}, r"last_resort\[0\]"),
        ({"a/*": ["o*/x"]}, r"targets\[0\]"),
    ],
)
def test_a_star_in_the_wrong_place_is_refused(models: dict[str, Any], key: str) -> None:
    """One `*` in the name, at most one in a target and there in the model, none in a last resort."""
    with pytest.raises(ConfigurationError, match=key):
        RouterConfig.from_mapping(tree(models))


def test_a_wildcard_is_no_default_model() -> None:
    """The default model stands for names that fit nothing: there is no text for a `*`."""
    with pytest.raises(ConfigurationError, match=r"routing\.default_model"):
        RouterConfig.from_mapping(tree(WILD, routing={"default_model": "gpt-*"}))


@virtual
async def test_an_asked_name_is_the_targets() -> None:
    """The provider is asked for the text that the `*` stands for; events count the request under its wildcard."""
    sink = RecordingSink()
    asked = router({"one/*": ["one/*"]}, sink)
    reply = await asked.chat({"model": "one/gpt-x", "messages": HELLO})
    assert reply.report.target == "one/gpt-x"
    assert [event.configured_model for event in sink.of(RequestFinished)] == ["one/*"]
    assert asked.stats().targets["one/gpt-x"].successes == 1
    await asked.aclose()


@virtual
async def test_a_wildcard_falls_back_to_its_fixed_target() -> None:
    """A target without a `*` stands behind every name of the wildcard."""
    asked = made(tree({"one/*": ["one/*", "two/spare"]}), one=FakeProvider(DOWN))
    reply = await asked.chat({"model": "one/gpt-x", "messages": HELLO})
    assert reply.report.target == "two/spare"
    await asked.aclose()


@virtual
async def test_a_target_that_is_named_elsewhere_is_the_same_one() -> None:
    """A wildcard that leads to a configured target shares its gate and its facts."""
    asked = router({"a/*": ["one/*"], "known": {"targets": [{"target": "one/m", "context_tokens": 100}]}})
    await asked.chat({"model": "a/m", "messages": HELLO})
    assert [status.id for status in asked.targets()] == ["one/m"]
    model_route = asked._state.model_routes["a/m"]
    assert model_route.tiers[0].targets[0].context_tokens == 100
    await asked.aclose()


@virtual
async def test_at_most_a_thousand_names_are_kept() -> None:
    """The least recently used are forgotten with everything that is known of them; one in use is not."""
    sink = RecordingSink()
    asked = router({"one/*": ["one/*"]}, sink)
    for number in range(MOST + 50):
        asked._state.model_routes["one/first"]
        asked._state.model_routes[f"one/m{number}"]
    gc.collect()
    asked._state.model_routes["one/last"]
    names = {status.id for status in asked.targets()}
    assert len(names) <= MOST + 1
    assert {"one/first", "one/last", f"one/m{MOST + 49}"} <= names
    assert "one/m0" not in names
    assert "one/m0" in set().union(*(event.names for event in sink.of(TargetsEvicted)))
    assert "one/m0" not in asked.stats().targets
    assert not asked._state.fleet.providers["one"].gates.keys() - names
    await asked.aclose()


@virtual
async def test_who_may_not_use_a_wildcard_makes_no_model_of_it() -> None:
    """Found: asking for an answer of any target made its model, and a thousand of them made others forgotten."""
    asked = router({"one/*": ["one/*"], "plain": ["two/plain"]})
    for may_use in (lambda name: name == "plain", lambda _: True):
        with pytest.raises(InvalidRequest, match="keeps no answers"):
            await asked.kept_response("resp_x", "retrieve", {"target": "one/x"}, may_use)
        made_of = {status.id for status in asked.targets()} - {"two/plain"}
        assert made_of == ({"one/x"} if may_use("one/x") else set())
    await asked.aclose()


@virtual
async def test_a_name_in_use_is_not_forgotten_under_its_request() -> None:
    """A request that waits keeps its targets, however many other names are used meanwhile."""
    asked = router({"one/*": ["one/*"]})
    stream = asked.stream_chat({"model": "one/held", "messages": HELLO, "stream": True})
    for number in range(MOST + 50):
        asked._state.model_routes[f"one/m{number}"]
    assert "one/held" in {status.id for status in asked.targets()}
    async with stream:
        assert [chunk async for chunk in stream]
    await asked.aclose()


@virtual
async def test_an_isolated_target_is_not_forgotten() -> None:
    """The operator's word outlasts a thousand other names."""
    asked = router({"one/*": ["one/*"]})
    asked._state.model_routes["one/bad"]
    asked.isolate("one/bad")
    for number in range(MOST + 50):
        asked._state.model_routes[f"one/m{number}"]
    gc.collect()
    asked._state.model_routes["one/last"]
    assert {status.id: status.refusal for status in asked.targets()}["one/bad"] == "isolated"
    await asked.aclose()


@virtual
async def test_a_reload_keeps_what_is_known_of_a_wildcards_targets() -> None:
    """Statistics and the operator's word go over to the router that takes the place."""
    before = router({"one/*": ["one/*"], "two/*": ["two/*"]})
    await before.chat({"model": "one/x", "messages": HELLO})
    await before.chat({"model": "two/y", "messages": HELLO})
    before.isolate("one/x")
    after = router({"one/*": ["one/*"]})
    after.continue_from(before)
    assert after.stats().targets["one/x"].successes == 1
    assert {status.id: status.refusal for status in after.targets()} == {"one/x": "isolated"}
    await before.aclose()
    await after.aclose()


@virtual
async def test_an_unknown_name_is_not_found_with_the_nearest_one() -> None:
    """The error is ModelNotFound, which is an InvalidRequest, and names what was probably meant."""
    asked = router(WILD)
    with pytest.raises(ModelNotFound, match="did you mean 'plain'"):
        await asked.chat({"model": "plane", "messages": HELLO})
    await asked.aclose()


def test_a_restart_knows_a_wildcards_targets_again(tmp_path: Path) -> None:
    """With a store, calls and the operator's word of before are known when the next process begins."""
    config = tree({"one/*": ["one/*"]}, store={"path": str(tmp_path / "stats.db")})

    async def first() -> None:
        async with SmartModelRouter.from_config(config, providers={"one": FakeProvider()}) as asked:
            await asked.chat({"model": "one/x", "messages": HELLO})
            asked.isolate("one/x", by="me", why="bad answers")
            await asked.publish_word()

    async def second() -> None:
        async with SmartModelRouter.from_config(config, providers={"one": FakeProvider()}) as asked:
            assert {status.id: status.refusal for status in asked.targets()} == {"one/x": "isolated"}
            assert asked._state.book.snapshot("one/x", asked._state.clock.now()).outcomes == 1

    asyncio.run(first())
    asyncio.run(second())
