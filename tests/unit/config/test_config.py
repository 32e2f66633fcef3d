"""Reading a configuration from plain data: what is taken, and how each mistake is named."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.config import ModelConfig, ProviderConfig, RouterConfig, TargetConfig, TierConfig
from smart_model_router.core.flow_config import GateConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.request import Target


def short(value: object) -> str:
    """The name of a case: text and number of the same look are two cases."""
    return repr(value)[:20]


def mapping(**changes: Any) -> dict[str, Any]:
    """The configuration of the public contract, with sections replaced."""
    return {
        "version": 1,
        "providers": {
            "a": {"kind": "openai_compatible", "base_url": "http://127.0.0.1:9001/v1", "api_key": "k"},
            "b": {"kind": "openai_compatible", "base_url": "http://127.0.0.1:9002/v1"},
            "l": {"kind": "local"},
            "s": {"kind": "scripted"},
        },
        "models": {
            "smart": {
                "tiers": [
                    {"name": "frontier", "targets": ["a/big", "b/big"]},
                    {"name": "standard", "targets": ["a/small"]},
                ],
                "last_resort": ["l/smollm2"],
            }
        },
        **changes,
    }


def read(environ: dict[str, str] | None = None, **changes: Any) -> RouterConfig:
    """Read the mapping of the contract with changes."""
    return RouterConfig.from_mapping(mapping(**changes), environ=environ or {})


def fault(environ: dict[str, str] | None = None, **changes: Any) -> ConfigurationError:
    """Return what reading raises."""
    with pytest.raises(ConfigurationError) as caught:
        read(environ, **changes)
    return caught.value


def tiers(*tiers: dict[str, Any], **model: Any) -> dict[str, Any]:
    """The models section with these tiers."""
    return {"smart": {"tiers": list(tiers), **model}}


def test_the_public_contract_is_read() -> None:
    """The example of the public contract gives its tiers in the written order, with its last resort."""
    model = read().models["smart"]
    assert [tier.name for tier in model.tiers] == ["frontier", "standard"]
    assert [target.target for target in model.tiers[0].targets] == ["a/big", "b/big"]
    assert model.last_resort == (TargetConfig(target="l/smollm2"),)
    assert model.name == "smart"


def test_everything_has_its_default() -> None:
    """Sections that are left out, empty, or written as nothing are the same."""
    assert read() == read(resilience={}, routing=None, local={}, aliases=None)
    assert read().resilience.gate == GateConfig()


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("250ms", 0.25),
        ("15s", 15.0),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("1m30s", 90.0),
        ("1d", 86_400.0),
        (" 15 s ", 15.0),
        ("15", 15.0),
        (16, 16.0),
        (0.5, 0.5),
        ("5e-1", 0.5),
    ],
)
def test_durations_are_read_with_and_without_unit(written: object, seconds: float) -> None:
    """A duration may be written in the units of the field, alone or together, or as plain seconds."""
    assert read(resilience={"breaker": {"open": written}}).resilience.breaker.open == seconds


@pytest.mark.parametrize(
    ("written", "count"), [("400k", 400_000), ("2M", 2_000_000), ("1.5k", 1500), ("1_000", 1000), (60, 60), ("61", 61)]
)
def test_counts_are_read_with_and_without_unit(written: object, count: int) -> None:
    """A count may be written in thousands and millions."""
    providers = {**mapping()["providers"], "a": {"kind": "openai", "tpm": written}}
    assert read(providers=providers).providers["a"].tpm == count


@pytest.mark.parametrize(("written", "ratio"), [("50%", 0.5), ("12.5%", 0.125), ("0.5", 0.5), (0.25, 0.25), (1, 1.0)])
def test_ratios_are_read_as_share_and_as_percent(written: object, ratio: float) -> None:
    """A ratio may be written in percent."""
    assert read(resilience={"breaker": {"failing_share": written}}).resilience.breaker.failing_share == ratio


@pytest.mark.parametrize(
    ("written", "value"), [("on", True), ("Yes", True), ("true", True), ("off", False), ("no", False), (False, False)]
)
def test_switches_are_read_as_people_write_them(written: object, value: bool) -> None:
    """A switch may be written as on or off, yes or no, true or false."""
    assert read(routing={"allow_escalation": written}).routing.allow_escalation is value


WRONG_DURATIONS: list[object] = [
    "50%",
    "15 parsecs",
    "400k",
    "",
    "-1s",
    "1e400",
    "nan",
    "inf",
    "soon",
    "\u0661s",
    "1.5.5s",
]
WRONG_NUMBERS: list[object] = [True, None, [], {}, float("nan"), float("inf"), -1, 0, 86_401, 10**400, "1" * 5000]


@pytest.mark.parametrize("written", WRONG_DURATIONS + WRONG_NUMBERS, ids=short)
def test_a_wrong_duration_is_named_with_what_would_be_right(written: object) -> None:
    """Wrong unit, sign, type or size: the error has the key and says what a duration is and its range."""
    error = fault(resilience={"breaker": {"open": written}})
    assert error.key == "resilience.breaker.open"
    assert "a duration in seconds above 0, at most 86400 (such as 250ms, 15s, 2m or 1h) is needed" in str(error)


def test_a_number_beyond_writing_is_named_without_being_written() -> None:
    """A number of thousands of digits is refused; the error does not try to show it."""
    error = fault(routing={"max_waiting": 10**5000})
    assert (error.key, error.value) == ("routing.max_waiting", "a number of 16610 bits")


@pytest.mark.parametrize("written", ["15s", "50%", "1.5", 1.5, 1.0, True, 0, "0", "1e-3", "2B"], ids=short)
def test_a_wrong_count_is_named_with_what_would_be_right(written: object) -> None:
    """A count is whole and in its range, in no other unit."""
    error = fault(resilience={"breaker": {"odds": written}})
    assert error.key == "resilience.breaker.odds"
    assert "a whole number at least 1" in error.expected


@pytest.mark.parametrize("written", ["30s", "150%", 1.5, 0, True, "half"], ids=short)
def test_a_wrong_ratio_is_named_with_what_would_be_right(written: object) -> None:
    """A ratio is above 0 and at most 1, in no other unit."""
    error = fault(resilience={"hedging": {"ratio": written}})
    assert error.expected == "a ratio above 0, at most 1 (such as 0.5 or 50%) is needed"


@pytest.mark.parametrize("written", ["maybe", 1, 0, None, [], "2"], ids=short)
def test_a_wrong_switch_is_named(written: object) -> None:
    """A switch is true or false; numbers are not."""
    error = fault(routing={"allow_escalation": written})
    assert (error.key, error.expected) == ("routing.allow_escalation", "true or false is needed")


@pytest.mark.parametrize(
    ("changes", "key", "hint"),
    [
        ({"providres": {}}, "providres", "did you mean 'providers'?"),
        ({"resilience": {"braker": {}}}, "resilience.braker", "did you mean 'breaker'?"),
        ({"resilience": {"breaker": {"opne": 1}}}, "resilience.breaker.opne", "did you mean 'open'?"),
        ({"routing": {"zzz": 1}}, "routing.zzz", "known: affinity_wait, allow_escalation"),
        ({"providers": {"a": {"kind": "x", "apikey": "v"}}}, "providers.a.apikey", "did you mean 'api_key'?"),
        ({"local": {"__pydantic_config__": 1}}, "local.__pydantic_config__", "no such key"),
        ({"__pydantic_config__": {}}, "__pydantic_config__", "no such key"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(changes: dict[str, Any], key: str, hint: str) -> None:
    """A key that nobody knows is an error wherever it stands, with the key that was probably meant."""
    error = fault(**changes)
    assert error.key == key
    assert hint in error.expected


def test_an_unknown_key_is_told_before_what_it_left_missing() -> None:
    """A misspelt required key is reported as misspelt, not as missing."""
    wrong = mapping()
    wrong["verison"] = wrong.pop("version")
    with pytest.raises(ConfigurationError, match="did you mean 'version'"):
        RouterConfig.from_mapping(wrong)


@pytest.mark.parametrize("version", [2, 0, "1.0.1", True, None, "one"], ids=short)
def test_another_version_is_refused(version: object) -> None:
    """There is one version; anything else is not read."""
    error = fault(version=version)
    assert (error.key, error.expected) == ("version", "1 is needed")


@pytest.mark.parametrize("missing", ["version", "providers", "models"])
def test_a_missing_key_is_named(missing: str) -> None:
    """A file without version, providers or models says which is missing."""
    without = mapping()
    del without[missing]
    with pytest.raises(ConfigurationError, match=f"^{missing}: missing - ") as caught:
        RouterConfig.from_mapping(without)
    assert caught.value.key == missing


@pytest.mark.parametrize(
    ("changes", "key", "expected"),
    [
        ({"models": {}}, "models", "at least one model"),
        ({"models": tiers()}, "models.smart.tiers", "at least one tier"),
        ({"models": tiers({"targets": []})}, "models.smart.tiers[0].targets", "at least one target"),
        ({"models": tiers({"targets": None})}, "models.smart.tiers[0].targets", "at least one target"),
        ({"models": tiers({"name": "x"})}, "models.smart.tiers[0].targets", "a list"),
        ({"models": tiers({"targets": ["a"]})}, "models.smart.tiers[0].targets[0]", "provider/model"),
        ({"models": tiers({"targets": ["/m"]})}, "models.smart.tiers[0].targets[0]", "provider/model"),
        ({"models": tiers({"targets": ["a/m#2"]})}, "models.smart.tiers[0].targets[0]", "numbered by the router"),
        ({"models": tiers({"targets": "a/m"})}, "models.smart.tiers[0].targets", "a list"),
        ({"models": tiers({"targets": [7]})}, "models.smart.tiers[0].targets[0]", "a mapping"),
        ({"models": {"a*b*": {"tiers": []}}}, "models['a*b*']", "at most one '*'"),
        ({"gateway": {"cors": ["*"]}}, "gateway.cors[0]", "without `gateway.keys`"),
        ({"gateway": {"cors": ["https://*.example.com"]}}, "gateway.cors[0]", "no pattern"),
        ({"gateway": {"cors": ["https://a.example.com/"]}}, "gateway.cors[0]", "no path"),
        ({"gateway": {"cors": ["app.example.com"]}}, "gateway.cors[0]", "an origin"),
        ({"gateway": {"cors": ["null"]}}, "gateway.cors[0]", "without `gateway.keys`"),
        ({"gateway": {"cors": ["https://App.example.com"]}}, "gateway.cors[0]", "small letters"),
        ({"gateway": {"cors": ["https://a.example.com:443"]}}, "gateway.cors[0]", "no port"),
        ({"models": {"": {"tiers": []}}}, "models['']", "a name"),
        ({"models": {"smart": {"name": "x", "tiers": []}}}, "models.smart.name", "no such key"),
        ({"models": {7: {"tiers": []}}}, "models", "keys that are text"),
        ({"models": "smart"}, "models", "a mapping"),
        ({"providers": {"a/b": {"kind": "openai"}}}, "providers['a/b']", "a name of letters"),
        ({"providers": {"a": "openai"}}, "providers.a", "a mapping"),
        ({"providers": {"a": {"kind": "x", "base_url": "ftp://h"}}}, "providers.a.base_url", "an http:// or https://"),
        ({"providers": {"a": {"kind": "x", "base_url": 7}}}, "providers.a.base_url", "text"),
        ({"providers": {"a": {"kind": "x", "base_url": "\ud800"}}}, "providers.a.base_url", "surrogates"),
        ({"providers": {"a": {"kind": None}}}, "providers.a.kind", "text"),
        ({"routing": {"default_model": "smrt"}}, "routing.default_model", "did you mean 'smart'?"),
        ({"routing": {"strategy": "helth"}}, "routing.strategy", "did you mean 'health'?"),
        ({"local": {"prompt_cap_tokens": 4096}}, "local.prompt_cap_tokens", "at most 4095"),
        ({"local": {"default_max_tokens": 2000}}, "local.default_max_tokens", "at most 1024"),
        (
            {"local": {"context_tokens": 512, "max_tokens": 513, "prompt_cap_tokens": 9}},
            "local.max_tokens",
            "at most 512",
        ),
    ],
)
def test_what_cannot_be_is_named(changes: dict[str, Any], key: str, expected: str) -> None:
    """Empty tiers, bad names, wrong shapes, contradictions: key and what would be right."""
    error = fault(**changes)
    assert error.key == key
    assert expected in error.expected


@pytest.mark.parametrize(
    ("routes", "key", "expected"),
    [
        ({"/v1/moderation": "a"}, "['/v1/moderation']", "did you mean '/v1/moderations'?"),
        ({"/v1/audio/../chat": "a"}, "['/v1/audio/../chat']", "may pass through"),
        ({"/v1/*": "a"}, "['/v1/*']", "may pass through"),
        ({"/v1/rerank": []}, "['/v1/rerank']", "at least one provider"),
        ({"/v1/rerank": "nobody"}, "['/v1/rerank'][0]", "a provider of `providers`"),
        ({"/v1/rerank": "a/"}, "['/v1/rerank'][0]", "a model is needed after the slash"),
        ({"/v1/rerank": "a/*"}, "['/v1/rerank'][0]", "no '*'"),
        ({"/v1/rerank": "a/x#2"}, "['/v1/rerank'][0]", "no number of a credential"),
        ({"/v1/rerank": ["a", "a"]}, "['/v1/rerank'][1]", "not yet in this route"),
    ],
)
def test_a_route_that_cannot_be_is_named(routes: dict[str, Any], key: str, expected: str) -> None:
    """What passes through, `gateway.passthrough.routes`: the path, and who serves it."""
    error = fault(gateway={"passthrough": {"routes": routes}})
    assert error.key == f"gateway.passthrough.routes{key}"
    assert expected in error.expected


def test_a_path_of_a_provider_is_no_name_of_a_target() -> None:
    """A model of the same name would have the same statistics."""
    gateway = {"passthrough": {"routes": {"/v1/rerank": "a"}}}
    error = fault(models=tiers({"targets": ["a/v1/rerank"]}), gateway=gateway)
    assert "is a target of a model" in error.expected


def test_a_target_of_an_unknown_provider_is_named() -> None:
    """A provider that is not configured is an error at the target, with the provider that was probably meant."""
    providers = {"openai": {"kind": "openai"}}
    error = fault(providers=providers, models=tiers({"targets": ["openai/x"]}, {"targets": ["opneai/y"]}))
    assert error.key == "models.smart.tiers[1].targets[0]"
    assert error.value == "opneai/y"
    assert "did you mean 'openai'?" in error.expected


def test_a_target_stands_once_in_a_model() -> None:
    """The same target twice in a model is an error that names the first place."""
    error = fault(models=tiers({"targets": ["a/x"]}, {"targets": ["b/x", "a/x"]}))
    assert error.key == "models.smart.tiers[1].targets[1]"
    assert "models.smart.tiers[0].targets[0]" in error.expected


def test_a_tier_name_stands_once_in_a_model() -> None:
    """Two tiers of one name are an error; also when one got it by its place."""
    error = fault(models=tiers({"targets": ["a/x"]}, {"name": "frontier", "targets": ["b/x"]}))
    assert error.key == "models.smart.tiers[1].name"


def test_nameless_tiers_take_the_default_ladder() -> None:
    """Tiers without a name are called frontier, standard, economy, local, and then by their number."""
    given = [{"targets": [f"a/{number}"]} for number in range(5)]
    names = [tier.name for tier in read(models=tiers(*given)).models["smart"].tiers]
    assert names == ["frontier", "standard", "economy", "local", "tier-5"]


def test_a_model_of_a_target_may_contain_slashes() -> None:
    """The provider ends at the first slash; the rest is the model."""
    [target] = read(models=tiers({"targets": ["a/meta/llama/8b"]})).models["smart"].tiers[0].targets
    assert (target.provider, target.model) == ("a", "meta/llama/8b")


def test_several_credentials_are_several_targets() -> None:
    """Each key of a provider makes a target; the first keeps the bare id, and no id shows a key."""
    config = read(providers={**mapping()["providers"], "a": {"kind": "openai", "api_key": ["k1", "k2"]}})
    [mention] = config.models["smart"].tiers[1].targets
    assert config.targets_of(mention) == (Target("a/small", "a", "small", 0), Target("a/small#2", "a", "small", 1))


def test_a_provider_without_keys_has_one_target() -> None:
    """No key in the file is one credential: the catalog's."""
    config = read()
    assert [t.id for t in config.targets_of(TargetConfig(target="b/big"))] == ["b/big"]


def test_a_fact_of_a_target_holds_wherever_it_is_named() -> None:
    """What is said of a target in one tier is known in every other model, and what belongs to the tier is not."""
    models = {
        "one": {"tiers": [{"targets": [{"target": "a/x", "rpm": "1k", "reasoning": True, "weight": 3}]}]},
        "two": {"tiers": [{"targets": ["a/x"]}], "last_resort": ["a/x"]},
    }
    two = read(models=models).models["two"]
    assert two.last_resort is not None
    for mention in (*two.tiers[0].targets, *two.last_resort):
        assert (mention.rpm, mention.reasoning, mention.weight) == (1000, True, 1.0)


def test_two_places_that_disagree_about_a_target_are_an_error() -> None:
    """A target has one set of limits: the second place is named, and the first in what would be right."""
    models = {
        "one": {"tiers": [{"targets": [{"target": "a/x", "rpm": 10}]}]},
        "two": {"tiers": [{"targets": [{"target": "a/x", "rpm": 20}]}]},
    }
    error = fault(models=models)
    assert (error.key, error.value) == ("models.two.tiers[0].targets[0].rpm", 20)
    assert "10 is needed, as models.one.tiers[0].targets[0].rpm has for the same target" in error.expected


def test_a_need_is_not_both_asked_for_and_excluded() -> None:
    """`only` and `unless` of a target do not name the same need."""
    given = {"target": "a/x", "only": ["tools"], "unless": ["images", "tools"]}
    assert fault(models=tiers({"targets": [given]})).key == "models.smart.tiers[0].targets[0].unless"


def test_an_unknown_need_is_named_with_the_known_ones() -> None:
    """Needs are tools, images and schema."""
    error = fault(models=tiers({"targets": [{"target": "a/x", "only": ["tols"]}]}))
    assert error.key == "models.smart.tiers[0].targets[0].only[0]"
    assert error.expected == "'tools' or 'images' or 'schema' or 'pdf' or 'audio' is needed"


def test_a_list_of_one_text_may_be_the_text() -> None:
    """One key, one parameter, one need may be written without brackets."""
    a = {"kind": "openai", "drop_params": "logprobs", "api_key": "k"}
    provider = read(providers={**mapping()["providers"], "a": a}).providers["a"]
    assert provider.drop_params == ("logprobs",)
    assert [key.reveal() for key in provider.api_key] == ["k"]


def test_measures_reach_the_gates() -> None:
    """Serialised probes are switched off by the measure alone."""
    gate = read(resilience={"measures": {"serialized_probes": "off"}, "slow_start": "3s"}).resilience.gate
    assert gate.measures.serialized_probes is False
    assert gate.breaker.serialized_probes is False
    assert gate.slow_start == 3.0


@pytest.mark.parametrize("data", [None, [], "version: 1", 7, b"version: 1", object(), float("nan")], ids=short)
def test_a_document_that_is_no_mapping_is_refused(data: object) -> None:
    """What is not a mapping is no configuration; it is said without a traceback."""
    with pytest.raises(ConfigurationError):
        RouterConfig.from_mapping(data)


def test_a_mapping_that_holds_itself_is_refused() -> None:
    """Data without end is an error, too."""
    endless = mapping()
    endless["models"]["smart"]["tiers"] = endless["models"]
    endless["models"]["endless"] = endless["models"]
    with pytest.raises(ConfigurationError):
        RouterConfig.from_mapping(endless)


def test_a_tree_made_in_python_keeps_the_same_rules() -> None:
    """Names that do not exist are refused however the tree is made."""
    model = ModelConfig(name="m", tiers=(TierConfig(targets=(TargetConfig(target="nobody/x"),)),))
    with pytest.raises(ConfigurationError, match="nobody/x"):
        RouterConfig(version=1, providers={"a": ProviderConfig(kind="openai")}, models={"m": model})


@pytest.mark.parametrize("section", ["routing", "resilience", "local"])
def test_the_tree_is_frozen(section: str) -> None:
    """A configuration does not change under a running router."""
    config = read()
    with pytest.raises(AttributeError):
        setattr(config, section, None)
    with pytest.raises(AttributeError):
        getattr(config, section).attempts = 9
