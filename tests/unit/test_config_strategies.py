"""Strategies of one's own, by import path and by entry point."""

from __future__ import annotations

from pathlib import Path

import pytest

from smart_model_router import RouterConfig, SmartModelRouter
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.testing import FakeProvider, run_virtual
from tests.own_modules import install

MODULE = """
class Backwards:
    redistributes = False

    def order(self, candidates, view, now, roll):
        return sorted(candidates, key=lambda one: -one.position)


class Namespace:
    inner = Backwards()


class Needy(Backwards):
    def __init__(self, argument):
        pass


class Half:
    def order(self, candidates, view, now, roll):
        return candidates


NUMBER = 1
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules to import, and a distribution with an entry point."""
    entries = {"backwards": "own_strategies:Backwards", "gone": "nowhere:Gone"}
    install(
        tmp_path, monkeypatch, name="strategies", source=MODULE, group="smart_model_router.strategies", entries=entries
    )


def config(strategy: str) -> dict[str, object]:
    """Two targets of one tier."""
    model = {"strategy": strategy, "tiers": [{"targets": ["a/one", "b/two"]}], "last_resort": []}
    return {"version": 1, "providers": {name: {"kind": "groq"} for name in "ab"}, "models": {"smart": model}}


@pytest.mark.parametrize("name", ["own_strategies:Backwards", "own_strategies:Namespace.inner", "backwards"])
def test_a_strategy_of_ones_own_orders_the_targets(name: str) -> None:
    """A class, an object inside another one, an entry point: `explain` names it, and its first choice answers."""
    question = {"model": "smart", "messages": [{"role": "user", "content": "Hello!"}]}

    async def scenario() -> tuple[str, str | None]:
        fakes = {name: FakeProvider() for name in "ab"}
        async with SmartModelRouter.from_config(config(name), providers=fakes, seed=1) as router:
            reply = await router.chat(question)
            return router.explain(question).strategy, reply.report.target

    assert run_virtual(scenario()) == (name, "b/two")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("helth", "a strategy is needed; did you mean 'health'?"),
        ("nowhere:Strategy", "ModuleNotFoundError: No module named 'nowhere'"),
        ("gone", "ModuleNotFoundError: No module named 'nowhere'"),
        ("own_strategies:Forwards", "AttributeError"),
        ("own_strategies:", "AttributeError"),
        (":Backwards", "ValueError"),
        ("broken_strategies:Any", "RuntimeError: no licence"),
        ("own_strategies:Needy", "TypeError"),
        ("own_strategies:Half", "an object with `order` and `redistributes`"),
        ("own_strategies:NUMBER", "an object with `order` and `redistributes`"),
    ],
)
def test_a_name_that_leads_to_no_strategy_is_a_configuration_error(name: str, reason: str) -> None:
    """With the key, the name and the reason, also where the module raises when it is imported."""
    with pytest.raises(ConfigurationError) as caught:
        RouterConfig.from_mapping(config(name))
    assert (caught.value.key, caught.value.value) == ("models.smart.strategy", name)
    assert reason in caught.value.expected
