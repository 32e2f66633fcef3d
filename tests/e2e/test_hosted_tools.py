"""Tools that run at a provider, through `smr serve`: translated, dropped or refused, and announced at the start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from smart_model_router.config import RouterConfig
from smart_model_router.config.lint import findings_of
from smart_model_router_providers.fault import FaultServer
from tests.e2e.gateways import Served, served

SEARCH = {"type": "web_search", "external_web_access": False}
FUNCTION = {"type": "function", "name": "shell", "parameters": {"type": "object"}, "strict": False}


def config(server: FaultServer) -> dict[str, Any]:
    """A model for each: a Chat server that refuses, one that drops, and one that speaks Messages."""
    chat = {"kind": "groq", "base_url": server.base_url, "api_key": "k"}
    providers: dict[str, Any] = {
        "plain": chat,
        "loose": {**chat, "hosted_tools": "drop"},
        "claude": {"kind": "anthropic", "base_url": server.base_url, "api_key": "k"},
    }
    models = {name: {"tiers": [{"targets": [f"{name}/big"]}], "last_resort": []} for name in providers}
    models["mixed"] = {"tiers": [{"targets": ["plain/big", "claude/big"]}], "last_resort": []}
    return {"version": 1, "providers": providers, "models": models}


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """A provider that is well."""
    with FaultServer() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway before it."""
    with served(config(upstream), tmp_path_factory.mktemp("gateway")) as running:
        yield running


def ask(gateway: Served, model: str) -> httpx2.Response:
    """A request as Codex sends it."""
    body = {"model": model, "input": "hello", "tools": [FUNCTION, SEARCH], "tool_choice": "auto"}
    return httpx2.post(f"{gateway.base_url}/v1/responses", json=body)


def test_a_search_is_asked_of_a_target_that_has_one(gateway: Served, upstream: FaultServer) -> None:
    """Messages is asked for its own search, also where a Chat target stands before it."""
    for model in ("claude", "mixed"):
        answer = ask(gateway, model)
        assert (answer.status_code, answer.headers["x-router-provider"]) == (200, "claude")
        assert [tool["name"] for tool in upstream.requests[-1].body["tools"]] == ["shell", "web_search"]


def test_chat_refuses_and_says_what_would_help(gateway: Served, upstream: FaultServer) -> None:
    """A 400 that names the key, and nothing is sent."""
    before = upstream.calls()
    answer = ask(gateway, "plain")
    assert answer.status_code == 400
    assert "hosted_tools: drop" in answer.json()["error"]["message"]
    assert upstream.calls() == before


def test_chat_may_be_asked_without_it(gateway: Served, upstream: FaultServer) -> None:
    """`hosted_tools: drop`: the client's own tools go on, and the loss is named."""
    answer = ask(gateway, "loose")
    assert answer.status_code == 200
    assert "a tool of type 'web_search' is dropped" in answer.headers["x-router-lossy"]
    assert [tool["function"]["name"] for tool in upstream.requests[-1].body["tools"]] == ["shell"]


def test_the_start_says_which_clients_need_it(gateway: Served) -> None:
    """Once, on stderr: the models, the clients, and the key."""
    told = gateway.file.with_name("gateway.log").read_text(encoding="utf-8")
    assert told.count("are refused: no target has them, for plain; Codex CLI sends a web search by default") == 1
    assert "providers.plain.hosted_tools: drop" in told
    assert "have no fallback: claude alone has them, for mixed;" in told


def test_nothing_is_said_where_every_model_can_search(tmp_path: Path) -> None:
    """Every provider of a model has a search, or the word that it may be left out."""
    with FaultServer() as server:
        tree = config(server)
    del tree["models"]["plain"], tree["models"]["mixed"]
    said = [finding.text for finding in findings_of(RouterConfig.from_mapping(tree)) if finding.key == "models"]
    assert said == []
