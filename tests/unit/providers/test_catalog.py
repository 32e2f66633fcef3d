"""The catalog: every row is whole, and what it names exists."""

from __future__ import annotations

import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.catalog import KINDS, failure_domain, found_in, kind_of, resolve
from smart_model_router_providers.signals import FAMILIES


@pytest.mark.parametrize("name", KINDS)
def test_every_rows_class_exists(name: str) -> None:
    """The class a row names can be imported and has a provider's methods."""
    found = resolve(name)
    assert all(callable(getattr(found, method)) for method in ("call", "open_stream", "aclose"))


@pytest.mark.parametrize("name", KINDS)
def test_every_rows_header_family_exists(name: str) -> None:
    """No row names a family that nobody reads."""
    assert KINDS[name].header_family in FAMILIES


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.base_url])
def test_only_this_machine_is_spoken_to_in_the_clear(name: str) -> None:
    """Remote base URLs are https, local ones are loopback."""
    kind = KINDS[name]
    assert (kind.base_url or "").startswith("https://" if kind.remote else "http://127.0.0.1")


@pytest.mark.parametrize(
    ("name", "slots"),
    [("openai", 50), ("anthropic", 50), ("gemini", 50), ("azure", 50), ("github", 30), ("ollama", 10), ("local", 1)],
)
def test_bulkheads_of_the_specification(name: str, slots: int) -> None:
    """The figures of routing.md section 6."""
    assert KINDS[name].bulkhead == slots


def test_everyone_else_has_twenty_slots() -> None:
    """The default bulkhead is 20."""
    named = {"openai", "anthropic", "gemini", "azure", "github", "ollama", "local"}
    assert {kind.bulkhead for name, kind in KINDS.items() if name not in named} == {20}


def test_azure_and_github_fail_together() -> None:
    """GitHub Models runs on Azure; everyone else is a domain of their own."""
    assert failure_domain("azure") == failure_domain("github") == "azure"
    assert failure_domain("openai") == "openai"


def test_an_unknown_kind_names_the_known_ones() -> None:
    """The error lists what would be right."""
    with pytest.raises(ConfigurationError, match="anthropic"):
        kind_of("anthropc")


def test_keys_in_the_environment_make_providers_in_a_fixed_order() -> None:
    """The order is the catalog's, not the environment's; blank keys and Azure's bare key do not count."""
    environment = {
        "GROQ_API_KEY": "g",
        "OPENAI_API_KEY": "o",
        "GOOGLE_API_KEY": "x",
        "MISTRAL_API_KEY": " ",
        "AZURE_OPENAI_API_KEY": "a",
    }
    assert found_in(environment) == [
        ("openai", "OPENAI_API_KEY"),
        ("gemini", "GOOGLE_API_KEY"),
        ("groq", "GROQ_API_KEY"),
    ]
