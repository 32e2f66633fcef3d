"""The first configuration: whatever was found, the file loads, and nothing in it is pointed out as wrong."""

from __future__ import annotations

from itertools import combinations

import pytest
import yaml

from smart_model_router.assembly import assemble
from smart_model_router.config import RouterConfig
from smart_model_router.config.discovery import DEFAULT_MODELS, default_ladder
from smart_model_router.config.lint import findings_of
from smart_model_router.config.starter import SERVERS, FoundServer, KnownServer, servers_that_answer, starter_text
from smart_model_router_providers.catalog import KINDS
from smart_model_router_providers.fault import FaultServer

KEYS = [(kind, KINDS[kind].key_variables[0]) for kind in DEFAULT_MODELS]
FOUND = [FoundServer(server, f"server{number}", f"llama3:{number}b") for number, server in enumerate(SERVERS)]
ENVIRON = {variable: "sk-test" for _, variable in KEYS}

PAIRS = list(combinations([None, *KEYS[:3]], 2))
KEY_SETS: dict[str, list[tuple[str, str]]] = {
    "no key": [],
    "openai": KEYS[:1],
    "anthropic": KEYS[1:2],
    "two keys": KEYS[:2],
    "all keys": KEYS,
}
SERVER_SETS: dict[str, list[FoundServer]] = {"no server": [], "one server": FOUND[:1], "all servers": FOUND}


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize("keys", KEY_SETS.values(), ids=KEY_SETS.keys())
@pytest.mark.parametrize("servers", SERVER_SETS.values(), ids=SERVER_SETS.keys())
def test_the_file_loads_and_has_no_warning(
    keys: list[tuple[str, str]], servers: list[FoundServer], embedded: bool
) -> None:
    """For no key, one, two, all; for no server, one, all; each provider that was found has a target."""
    text = starter_text(keys, servers, embedded=embedded or not (keys or servers))
    config = RouterConfig.from_mapping(yaml.safe_load(text), environ=ENVIRON)
    assemble(config)
    assert [finding for finding in findings_of(config) if finding.level == "warning"] == []
    ladder = default_ladder([kind for kind, _ in keys])
    names = [tier.name for tier in config.models["smart"].tiers]
    assert names[: len(ladder)] == list(ladder)
    used = {mention.provider for tier in config.models["smart"].tiers for mention in tier.targets}
    assert used == set(config.providers)
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_each_comment_that_is_taken_away_is_right(pair: tuple[tuple[str, str] | None, tuple[str, str]]) -> None:
    """A line of a provider whose key comes later is valid as it stands in the comment."""
    keys = [key for key in pair if key is not None]
    text = starter_text(keys, FOUND[:1], embedded=True)
    whole = text.replace("\n  # ", "\n  ").replace("\n      # - ", "\n      - ")
    assert whole != text
    config = RouterConfig.from_mapping(yaml.safe_load(whole), environ=ENVIRON)
    assert {"openai", "anthropic", "gemini"} <= set(config.providers)


def test_no_key_stands_in_the_file() -> None:
    """Its variable does."""
    text = starter_text(KEYS[:2], [], embedded=False)
    assert '"${OPENAI_API_KEY}"' in text
    assert "sk-" not in text


@pytest.mark.loopback
def test_a_server_is_found_by_its_answer_and_told_from_others_at_its_port() -> None:
    """By the owner of its models where the port has other uses; a dead port is passed over."""
    with FaultServer() as alive:
        known = KnownServer("vLLM", "vllm", alive.base_url, "vllm")
        anything = KnownServer("Ollama", "ollama", alive.base_url)
        dead = KnownServer("LM Studio", "openai_compatible", "http://127.0.0.1:9/v1")
        found = servers_that_answer([known, anything, dead])
    assert [(one.server.label, one.name, bool(one.model)) for one in found] == [("Ollama", "ollama", True)]
