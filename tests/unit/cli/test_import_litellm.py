"""Five LiteLLM configurations as its documentation writes them: what becomes of every value in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from smart_model_router.cli.commands import ImportLitellm
from smart_model_router.cli.importing import Entry, Imported, convert, run
from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.yaml_document import parse

FOLDER = Path(__file__).parents[2] / "fixtures" / "litellm"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


class AnyVariable(dict[str, str]):
    """An environment with every variable."""

    def get(self, key: str, default: object = None) -> str:
        """The same for all."""
        return "k"


def imported(name: str) -> Imported:
    """One of the five."""
    return convert(parse((FOLDER / f"{name}.yaml").read_bytes(), name))


def entries(name: str) -> dict[str, Entry]:
    """What became of each value, by its key."""
    return {entry.key: entry for entry in imported(name).entries}


def leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in plain data, found without the importer."""
    if isinstance(data, dict) and data:
        return [leaf for key, member in data.items() for leaf in leaves(member, (*path, str(key)))]
    if isinstance(data, list) and data:
        return [leaf for number, member in enumerate(data) for leaf in leaves(member, (*path, number))]
    return [path]


def test_there_are_five() -> None:
    """Simple, load balancing, fallbacks, budgets and keys, wildcards and tags."""
    assert len(NAMES) == 5


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_dropped_in_silence(name: str) -> None:
    """Every value of the file is either mapped to a key or left out with a reason and what to do instead."""
    written = leaves(yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8")))
    told = imported(name).entries
    assert sorted(map(str, written)) == sorted(str(entry.path) for entry in told)
    assert [entry.key for entry in told if entry.verdict == "left out" and "; " not in entry.note] == []
    assert [entry.key for entry in told if entry.verdict != "left out" and not entry.to] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_mapped_is_there(name: str) -> None:
    """A value that is said to have become a section's key stands in that section."""
    config = imported(name).config
    sections = {entry.to.split(".")[0] for entry in imported(name).entries if entry.to[:1].isalpha()} - {"the target"}
    assert {section for section in sections if " " not in section} <= set(config)


@pytest.mark.parametrize("name", NAMES)
def test_the_result_is_a_configuration(name: str) -> None:
    """It is read without a fault."""
    assert RouterConfig.from_mapping(imported(name).config, environ=AnyVariable()).models


def test_deployments_of_one_name_are_targets_of_one_model() -> None:
    """Prefix, address, key, version, region, limits, weight and order arrive; an order is a tier."""
    config = imported("azure_load_balancing").config
    first, second = config["models"]["gpt-4o"]["tiers"]
    eu, ca = first["targets"]
    assert eu == {"target": "azure/gpt-4o-eu", "rpm": 900, "tpm": 20000, "timeout": 30, "weight": 3}
    assert ca["target"] == "azure-2/gpt-4o-ca"
    assert config["providers"]["azure"] == {
        "kind": "azure",
        "base_url": "http://127.0.0.1:9001",
        "api_key": "${AZURE_API_KEY_EU}",
        "api_version": "2024-06-01",
        "region": "eu",
    }
    assert config["providers"]["azure-2"]["bulkhead"] == 10
    assert [target["target"] for target in second["targets"]] == ["openai/gpt-4o"]
    assert second["targets"][0]["rpm"] == 300
    assert config["aliases"] == {"gpt-4": "gpt-4o", "internal": "gpt-4o"}


def test_settings_become_ours() -> None:
    """Strategy, retries, timeouts, allowed fails and cooldown."""
    config = imported("azure_load_balancing").config
    assert config["routing"] == {"attempts_per_tier": 3, "strategy": "weighted"}
    assert config["resilience"] == {
        "timeouts": {"attempt": 30, "first_content": 10},
        "breaker": {"open": 45, "consecutive_failures": 4},
    }


def test_fallbacks_become_tiers() -> None:
    """A model's own, those for long prompts and filters, then the default ones; nobody twice."""
    config = imported("fallbacks").config
    tiers = {name: [tier["name"] for tier in model["tiers"]] for name, model in config["models"].items()}
    assert tiers == {
        "zephyr-beta": ["zephyr-beta", "gpt-3.5-turbo", "gpt-3.5-turbo-16k", "claude-opus"],
        "gpt-3.5-turbo": ["gpt-3.5-turbo", "gpt-3.5-turbo-16k", "claude-opus"],
        "gpt-3.5-turbo-16k": ["gpt-3.5-turbo-16k", "claude-opus"],
        "claude-opus": ["claude-opus"],
    }
    assert config["routing"]["content_filter_fallback"] is True
    assert entries("fallbacks")["litellm_settings.fallbacks[1]['gpt-3.5-turbo'][0]"].verdict == "left out"


def test_two_deployments_of_one_model_stay_two() -> None:
    """The same model with other limits is a target of its own."""
    [tier, *_] = imported("fallbacks").config["models"]["zephyr-beta"]["tiers"]
    assert [target["rpm"] for target in tier["targets"]] == [60, 600]
    assert len({target["target"] for target in tier["targets"]}) == 2


def test_the_master_key_becomes_an_admin_s() -> None:
    """With it the gateway asks for a key."""
    config = imported("budgets_and_keys").config
    assert config["gateway"] == {
        "body_bytes": 16 * 1024 * 1024,
        "keys": {"master": {"key": "${LITELLM_MASTER_KEY}", "admin": True}},
    }
    assert config["telemetry"] == {"metrics": True, "traces": {"enabled": True}}


def test_tags_become_names() -> None:
    """Where tags decide, `name` serves requests without tags, and `name:tag` those with."""
    config = imported("wildcards_and_tags").config
    targets = {
        name: model["tiers"][0]["targets"][0]["target"].partition("/")[2] for name, model in config["models"].items()
    }
    assert targets == {
        "anthropic/*": "*",
        "*": "*",
        "gpt-4": "fake-default",
        "gpt-4:free": "fake-free",
        "gpt-4:paid": "fake-paid",
        "gpt-4:teamB": "fake-paid",
        "llama": "llama3.1",
    }


def test_what_is_left_out_is_never_shown() -> None:
    """Passwords and keys among the values that are left out stay out of the account."""
    told = repr(imported("budgets_and_keys").entries)
    assert "postgresql" not in told
    assert "LANGFUSE_PUBLIC " not in told


@pytest.mark.parametrize("text", ["", "model_list: []", "- a", "model_list: [{model_name: a}]", "model_list: {a: b}"])
def test_a_file_without_a_deployment_is_refused(text: str) -> None:
    """Nothing to convert is a ConfigurationError."""
    with pytest.raises(ConfigurationError):
        convert(parse(text.encode(), "x"))


@pytest.mark.parametrize("section", ["litellm_params", "model_info"])
def test_prices_are_for_a_million_tokens(section: str) -> None:
    """Both parts are needed: of half a price, or of one that cannot be, the account says what to do."""
    costs = {
        "input_cost_per_token": "2.5e-06",
        "output_cost_per_token": 0.00001,
        "cache_read_input_token_cost": 1.25e-6,
    }

    def made(costs: dict[str, Any]) -> Imported:
        entry: dict[str, Any] = {"model_name": "m", "litellm_params": {"model": "openai/gpt-4o", "api_key": "k"}}
        entry[section] = {**entry.get(section, {}), **costs}
        return convert(parse(yaml.safe_dump({"model_list": [entry]}).encode(), "x"))

    def target(found: Imported) -> Any:
        [listed] = found.config["models"]["m"]["tiers"][0]["targets"]
        return listed

    found = made(costs)
    assert target(found)["price"] == {"input": 2.5, "cached": 1.25, "output": 10.0}
    assert {e.verdict for e in found.entries if "cost" in e.key} == {"changed"}
    for wrong in (
        {"input_cost_per_token": 1e-6},
        {**costs, "input_cost_per_token": -1},
        {**costs, "output_cost_per_token": 9},
    ):
        found = made(wrong)
        assert "price" not in str(target(found))
        assert {e.verdict for e in found.entries if "cost" in e.key} == {"left out"}


def taken(text: str) -> Imported:
    """What becomes of a configuration written here."""
    return convert(parse(text.encode(), "config.yaml"))


def test_a_wildcard_stays_one() -> None:
    """The text of the `*` in `model_name` is that of the model's; an alias may lead to a name that it takes."""
    config = taken(
        """
        model_list:
          - {model_name: "openai/*", litellm_params: {model: "openai/*"}}
          - {model_name: "*", litellm_params: {model: "openrouter/*"}}
        router_settings: {model_group_alias: {fast: openai/gpt-4o-mini}}
        """
    ).config
    read = RouterConfig.from_mapping(config, environ=AnyVariable())
    asked = ("openai/gpt-4o", "meta/llama", "fast")
    found = [read.resolve(name).tiers[0].targets[0].target for name in asked]
    assert found == ["openai/gpt-4o", "openrouter/meta/llama", "openai/gpt-4o-mini"]


@pytest.mark.parametrize(("name", "model"), [("x", "openai/*"), ("*/*", "openai/*"), ("*", "*"), ("a/*", "*/b")])
def test_a_wildcard_without_a_counterpart_is_left_out_with_the_reason(name: str, model: str) -> None:
    """A `*` in the place of the provider, or one that stands for nothing in the name."""
    told = taken(
        f"""
        model_list:
          - {{model_name: plain, litellm_params: {{model: openai/gpt-4o}}}}
          - {{model_name: "{name}", litellm_params: {{model: "{model}"}}}}
        """
    )
    assert list(told.config["models"]) == ["plain"]
    assert {entry.verdict for entry in told.entries if entry.path[:2] == ("model_list", 1)} == {"left out"}


def test_a_model_that_no_dialect_asks_leads_to_passthrough() -> None:
    """The reason says what would be right; so does that for a name whose provider is not known."""
    told = taken(
        """
        model_list:
          - {model_name: w, litellm_params: {model: openai/whisper-1}, model_info: {mode: audio_transcription}}
          - {model_name: chat, litellm_params: {model: openai/gpt-4o}, model_info: {mode: chat}}
          - {model_name: dall-e-3, litellm_params: {model: dall-e-3}}
        """
    )
    notes = {entry.key: entry.note for entry in told.entries}
    assert "gateway.passthrough.routes" in notes["model_list[0].model_info.mode"]
    assert "nothing to do" in notes["model_list[1].model_info.mode"]
    assert "provider of this model is not known" in notes["model_list[2].litellm_params.model"]


def test_a_credential_is_the_providers() -> None:
    """What a deployment says itself goes first; a credential that nobody names is left out."""
    told = taken(
        """
        model_list:
          - model_name: smart
            litellm_params: {model: azure/gpt-4o, litellm_credential_name: eu, api_version: "2025-01-01"}
        credential_list:
          - credential_name: eu
            credential_values: {api_key: os.environ/EU, api_base: "http://eu.invalid", api_version: "2024-06-01"}
            credential_info: {description: Europe}
          - {credential_name: unused, credential_values: {api_key: os.environ/NO}}
        """
    )
    provider = told.config["providers"]["azure"]
    assert (provider["api_key"], provider["base_url"]) == ("${EU}", "http://eu.invalid")
    assert provider["api_version"] == "2025-01-01"
    left = [entry.key for entry in told.entries if entry.verdict == "left out"]
    assert left == [
        "credential_list[0].credential_values.api_version",
        "credential_list[0].credential_info.description",
        "credential_list[1].credential_name",
        "credential_list[1].credential_values.api_key",
    ]


def test_default_parameters_are_the_targets() -> None:
    """`temperature`, `max_tokens` and `thinking`; others are left out."""
    told = taken(
        """
        model_list:
          - model_name: smart
            litellm_params:
              {model: anthropic/claude-x, temperature: 0.2, max_tokens: 500, seed: 7,
               thinking: {type: enabled, budget_tokens: 1024}}
        """
    )
    assert told.config["models"]["smart"]["tiers"][0]["targets"][0]["defaults"] == {
        "temperature": 0.2,
        "max_tokens": 500,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    assert [entry.key for entry in told.entries if entry.verdict == "left out"] == ["model_list[0].litellm_params.seed"]


@pytest.mark.parametrize("written", ["[{a: [{model: b, temperature: 1}]}]", "{a: [b]}"])
def test_fallbacks_may_be_mappings(written: str) -> None:
    """One mapping in place of a list of them, and a fallback with parameters, of which only the name is taken."""
    told = taken(
        f"""
        model_list:
          - {{model_name: a, litellm_params: {{model: openai/a}}}}
          - {{model_name: b, litellm_params: {{model: openai/b}}}}
        litellm_settings: {{fallbacks: {written}}}
        """
    )
    assert [tier["name"] for tier in told.config["models"]["a"]["tiers"]] == ["a", "b"]
    assert ("temperature" in written) == any(entry.verdict == "left out" for entry in told.entries)


DEPLOYMENT = "model_list: [{model_name: m, litellm_params: {model: openai/m}}]\n"


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ("{redis_url: os.environ/REDIS_URL, redis_port: 1}", "${REDIS_URL}"),
        ("{redis_url: 'rediss://u:p@h:6380/1'}", "rediss://u:p@h:6380/1"),
        ("{redis_host: h}", "redis://h:6379/0"),
        ("{redis_host: os.environ/H, redis_port: os.environ/P, redis_db: 2}", "redis://${H}:${P}/2"),
        ("{redis_host: h, redis_password: os.environ/S}", "redis://:${S}@h:6379/0"),
        ("{redis_host: h, redis_password: 'a/b@c'}", "redis://:a%2Fb%40c@h:6379/0"),
        ("{redis_port: 1992}", None),
    ],
)
def test_redis_becomes_the_server_of_a_fleet(settings: str, url: str | None, tmp_path: Path) -> None:
    """A URL, or the parts of one; a port alone is left out."""
    made = taken(f"{DEPLOYMENT}router_settings: {settings}\n")
    file = tmp_path / "config.yaml"
    file.write_text(f"{DEPLOYMENT}router_settings: {settings}\n", "utf-8")
    assert run(ImportLitellm(source=file, output=tmp_path / "ours.yaml")) == 0  # whatever the variables are
    assert made.config.get("store", {}).get("shared_url") == url


def test_a_database_becomes_that_of_statistics() -> None:
    """What differs is said: keys are elsewhere."""
    made = taken(f"{DEPLOYMENT}general_settings: {{database_url: os.environ/DB}}\n")
    assert made.config["store"] == {"stats_url": "${DB}"}
    (entry,) = [entry for entry in made.entries if entry.to == "store.stats_url"]
    assert "statistics alone" in entry.note
