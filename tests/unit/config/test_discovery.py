"""A configuration without a file: keys in the environment, else the embedded model, else the ways out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import create_server
from typing import Any

import pytest

from smart_model_router.config import RouterConfig
from smart_model_router.config.discovery import (
    DEFAULT_MODELS,
    MODEL,
    default_config,
    found_on_loopback,
    with_last_resort,
)
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.pricing import price_of
from smart_model_router_providers.catalog import KINDS
from smart_model_router_providers.testing import FaultServerFactory


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def targets(config: RouterConfig) -> dict[str, list[str]]:
    """The targets of the discovered model by tier."""
    return {tier.name: [t.target for t in tier.targets] for tier in config.models[MODEL].tiers}


def test_keys_become_providers_in_the_order_of_the_catalog() -> None:
    """Every key that is set makes its provider available, in each tier in the catalog's order."""
    config = default_config({"GROQ_API_KEY": "g", "OPENAI_API_KEY": " o "}, embedded=False)
    assert list(config.providers) == ["openai", "groq"]
    assert [key.reveal() for key in config.providers["openai"].api_key] == ["o"]
    assert [target.partition("/")[0] for target in targets(config)["frontier"]] == ["openai", "groq"]
    assert list(targets(config)) == ["frontier", "standard", "economy"]


def test_a_target_stands_in_its_highest_tier_only() -> None:
    """A provider with fewer than three models does not repeat one."""
    config = default_config({"CEREBRAS_API_KEY": "c"}, embedded=False)
    assert targets(config) == {"frontier": ["cerebras/gpt-oss-120b"]}


def test_a_discovered_model_answers_for_every_name() -> None:
    """Without a file there is one model, whatever the caller calls it."""
    config = default_config({"OPENAI_API_KEY": "o"}, embedded=False)
    assert config.resolve("gpt-anything").name == MODEL


def test_without_keys_the_embedded_model_serves() -> None:
    """With the embedded model installed and no key, it is the one target, and no last resort of itself."""
    config = default_config({}, embedded=True)
    assert targets(config) == {"local": ["local/smollm2"]}
    assert config.models[MODEL].last_resort == ()


def test_with_nothing_at_all_the_error_names_the_ways_out() -> None:
    """No file, no key, no model: each way out is in the error."""
    with pytest.raises(ConfigurationError) as caught:
        default_config({}, embedded=False)
    for way in ("smart-router.yaml", "SMART_ROUTER_CONFIG", "OPENAI_API_KEY", "smr local install"):
        assert way in caught.value.expected


def test_a_file_goes_before_keys() -> None:
    """A file in the default place is used, and keys in the environment change nothing."""
    text = "version: 1\nproviders: {s: {kind: scripted}}\nmodels: {mine: {tiers: [{targets: [s/x]}]}}\n"
    Path("smart-router.yaml").write_text(text, encoding="utf-8")
    assert list(default_config({"OPENAI_API_KEY": "o"}, embedded=False).models) == ["mine"]


def configured(providers: dict[str, object], **model: object) -> RouterConfig:
    """A configuration with one scripted target."""
    given = {"tiers": [{"targets": ["s/x"]}], **model}
    providers = {"s": {"kind": "scripted"}, **providers}
    return RouterConfig.from_mapping({"version": 1, "providers": providers, "models": {"m": given}})


@pytest.mark.parametrize(
    ("providers", "resort"),
    [
        ({}, "local/smollm2"),
        ({"mine": {"kind": "local"}}, "mine/smollm2"),
        ({"local": {"kind": "scripted"}}, "embedded/smollm2"),
    ],
)
def test_the_embedded_model_is_the_last_resort_of_models_that_name_none(
    providers: dict[str, object], resort: str
) -> None:
    """It joins through a provider of kind local: the owner's when there is one."""
    completed = with_last_resort(configured(providers), embedded=True)
    assert completed.models["m"].last_resort is not None
    [target] = completed.models["m"].last_resort
    assert target.target == resort
    assert completed.providers[target.provider].kind == "local"


def test_the_owners_word_about_the_last_resort_stands() -> None:
    """A model that names a last resort, or none on purpose, keeps it; so does one without an embedded model."""
    none, own, undecided = configured({}, last_resort=[]), configured({}, last_resort=["s/y"]), configured({})
    assert with_last_resort(none, embedded=True) == none
    assert with_last_resort(own, embedded=True) == own
    assert with_last_resort(undecided, embedded=False) == undecided


def test_without_the_embedded_model_a_server_on_this_machine_is_the_last_resort(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ollama found on loopback answers in the last resort, under a provider of its own kind."""
    found = ("ollama", "llama3:8b", "http://127.0.0.1:11434/v1")
    monkeypatch.setattr("smart_model_router.config.discovery.found_on_loopback", lambda servers: found)
    completed = with_last_resort(configured({}), embedded=False)
    resort = completed.models["m"].last_resort
    assert resort is not None
    assert [target.target for target in resort] == ["ollama/llama3:8b"]
    assert completed.providers["ollama"].kind == "ollama"


def test_a_model_server_is_found_by_asking_it(fault_server: FaultServerFactory) -> None:
    """The first one that lists a model is taken; a dead port is passed over."""
    alive = fault_server()
    dead = "http://127.0.0.1:9/v1"
    kind, model, url = found_on_loopback({"dead": dead, "alive": alive.base_url}) or ("", "", "")
    assert (kind, url) == ("alive", alive.base_url)
    assert model
    assert found_on_loopback({"dead": dead}) is None


@contextmanager
def port_that_sends(*pieces: bytes, between: Callable[[], None] | None = None) -> Generator[str]:
    """A program on loopback that answers one request with these pieces; what it does between them. Its URL."""
    with create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with suppress(OSError), listener.accept()[0] as client:  # the client may leave at any time
                client.recv(65536)
                client.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
                for number, piece in enumerate(pieces):
                    if between is not None and number:
                        between()
                    client.sendall(piece)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            thread.join()


LISTED = b'{"data": [{"id": null}, {"id": "nomic-embed-text:latest"}, {"id": "odd\\nname#2"}, {"id": "llama3.2:3b"}]}'


@pytest.mark.loopback
def test_only_a_model_that_writes_text_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of vectors, and names that no target can have, are passed over."""
    monkeypatch.setattr("smart_model_router.config.discovery._LOOPBACK_SECONDS", 60)  # however busy the machine is
    with port_that_sends(LISTED) as url:
        assert found_on_loopback({"ollama": url}) == ("ollama", "llama3.2:3b", url)
    with port_that_sends(b'{"data": [{"id": "nomic-embed-text"}]}') as url:
        assert found_on_loopback({"ollama": url}) is None


@pytest.mark.loopback
@pytest.mark.parametrize("piece", [b"<html></html>", b"[1, 2]"], ids=["a page", "a list"])
def test_a_foreign_program_at_the_port_is_no_server(piece: bytes) -> None:
    """Whatever it sends."""
    with port_that_sends(piece) as url:
        assert found_on_loopback({"ollama": url}) is None


@pytest.mark.loopback
def test_a_program_that_sends_without_an_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is cut when the time of the question is over; what comes later is not read."""
    ends: list[Callable[[], None]] = []

    def over() -> None:
        ends[0]()

    class ByHand:
        """A timer whose time is over when the test says so."""

        def __init__(self, seconds: float, function: Callable[..., None], args: list[Any]) -> None:
            ends.append(lambda: function(*args))

        def start(self) -> None:
            """Nothing runs by itself."""

        cancel = start

    monkeypatch.setattr("smart_model_router.config.discovery._LOOPBACK_SECONDS", 60)
    monkeypatch.setattr("smart_model_router.config.discovery.Timer", ByHand)
    with port_that_sends(b" ", LISTED, between=over) as url:
        assert found_on_loopback({"ollama": url}) is None


def test_every_kind_that_a_key_can_bring_has_its_models() -> None:
    """The catalog and the default models know the same kinds."""
    assert set(DEFAULT_MODELS) == {name for name, kind in KINDS.items() if kind.key_variables and kind.base_url}


@pytest.mark.parametrize("kind", [kind for kind in DEFAULT_MODELS if kind != "github"])
def test_the_default_models_exist(kind: str) -> None:
    """The price list knows each default model (it has no list of GitHub's), the economy one is the cheapest."""
    prices = [price_of(kind, model) for model in DEFAULT_MODELS[kind]]
    outputs = [price.output for price in prices if price is not None and price.output is not None]
    assert len(outputs) == 3
    assert outputs[-1] == min(outputs)
