"""Providers of one's own, by import path and by entry point."""

from __future__ import annotations

from pathlib import Path

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.testing import run_virtual
from tests.own_modules import install

MODULE = """
import json

from smart_model_router.domain.outcome import Success
from smart_model_router_providers.http import HttpProvider


class Echo:
    dialects = frozenset({"messages"})

    def __init__(self, base_url, api_keys):
        self.seen = f"{base_url} {api_keys[0]}"

    async def call(self, call):
        body = {
            "id": "1", "type": "message", "role": "assistant", "model": call.model, "stop_reason": "end_turn",
            "content": [{"type": "text", "text": self.seen}], "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return Success(body, json.dumps(body).encode())

    async def open_stream(self, call):
        raise NotImplementedError

    async def aclose(self):
        pass


class Plain(Echo):
    dialects = property(lambda self: frozenset())

    def __init__(self, **settings):
        self.seen = ", ".join(settings)


class Needy(Echo):
    def __init__(self, something_else):
        pass


class Refusing(Echo):
    def __init__(self, base_url):
        raise ValueError("no such region")


class Half:
    async def call(self, call):
        pass


class Reached(HttpProvider):
    pass


NUMBER = 1
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules to import, and a distribution with an entry point."""
    entries = {"echo": "own_providers:Echo", "gone": "nowhere:Gone"}
    install(
        tmp_path, monkeypatch, name="providers", source=MODULE, group="smart_model_router.providers", entries=entries
    )


def config(kind: str) -> dict[str, object]:
    """One target of a provider of this kind."""
    provider = {"kind": kind, "base_url": "http://here", "api_key": "k1"}
    model = {"tiers": [{"targets": ["p/m"]}], "last_resort": []}
    return {"version": 1, "providers": {"p": provider}, "models": {"smart": model}}


async def _answer(kind: str) -> str:
    question = {"model": "smart", "max_tokens": 5, "messages": [{"role": "user", "content": "Hello!"}]}
    async with SmartModelRouter.from_config(config(kind), seed=1) as router:
        reply = await router.messages(question)
    return str(reply.body["content"][0]["text"])


@pytest.mark.parametrize("kind", ["own_providers:Echo", "echo"])
def test_a_provider_of_ones_own_answers(kind: str) -> None:
    """A class, an entry point: it is made of the settings that its constructor names, and speaks its own dialects."""
    assert run_virtual(_answer(kind)) == "http://here k1"


def test_a_constructor_that_takes_anything_gets_all_settings() -> None:
    """Those that a provider over HTTP is made of; without dialects of its own it is taken to speak Chat."""
    with SmartModelRouterOf("own_providers:Plain") as router:
        made = router._state.providers["p"]
        assert vars(made)["seen"] == "kind, base_url, api_keys, api_version, headers, drop_params"
        facts = router._state.model_routes["smart"].tiers[0].targets[0]
        assert facts.dialects == {"chat", "embeddings"}


def test_a_class_may_derive_from_the_provider_over_http() -> None:
    """It knows the kind that it was made for."""
    with SmartModelRouterOf("own_providers:Reached") as router:
        assert vars(router._state.providers["p"])["kind"] == "own_providers:Reached"


class SmartModelRouterOf:
    """A router with one provider of a kind, closed at the end."""

    def __init__(self, kind: str) -> None:
        self._router = SmartModelRouter.from_config(config(kind), seed=1)

    def __enter__(self) -> SmartModelRouter:
        return self._router

    def __exit__(self, *_: object) -> None:
        run_virtual(self._router.aclose())


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("opnai", "did you mean 'openai'?"),
        ("nowhere:Provider", "ModuleNotFoundError: No module named 'nowhere'"),
        ("gone", "ModuleNotFoundError: No module named 'nowhere'"),
        ("own_providers:Nothing", "AttributeError"),
        ("own_providers:", "AttributeError"),
        (":Echo", "ValueError"),
        ("broken_providers:Any", "RuntimeError: no licence"),
        ("own_providers:Half", "the methods call, open_stream and aclose"),
        ("own_providers:NUMBER", "the methods call, open_stream and aclose"),
        ("own_providers:Needy", "TypeError"),
        ("own_providers:Refusing", "ValueError: no such region"),
    ],
)
def test_a_kind_that_leads_to_no_provider_is_a_configuration_error(kind: str, reason: str) -> None:
    """With the key, the kind and the reason, also where the module or the class raises."""
    with pytest.raises(ConfigurationError) as caught:
        SmartModelRouter.from_config(config(kind))
    assert (caught.value.key, caught.value.value) == ("providers.p.kind", kind)
    assert reason in caught.value.expected
