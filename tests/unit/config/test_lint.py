"""Findings about configurations that load and cannot do all that they say: certain, with a key and a way out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from smart_model_router.config import RouterConfig
from smart_model_router.config.discovery import default_config
from smart_model_router.config.lint import ConfigFinding, LintEnvironment, findings_of
from smart_model_router_providers.catalog import KINDS
from tests.meta.repository import ROOT

OPENAI = {"kind": "openai", "api_key": "sk-a"}
ANTHROPIC = {"kind": "anthropic", "api_key": "sk-b"}
GROQ = {"kind": "groq", "api_key": "sk-c"}
PROVIDERS = {"o": OPENAI, "a": ANTHROPIC, "g": GROQ}
SOUND: dict[str, Any] = {
    "version": 1,
    "providers": PROVIDERS,
    "models": {"smart": {"tiers": [{"targets": ["o/gpt-5", "a/claude-opus-4-5"]}], "last_resort": []}},
}
FENCE = re.compile(r"^```(?:yaml|python)[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def found(changes: Mapping[str, Any], environment: LintEnvironment | None = None) -> list[ConfigFinding]:
    """The findings about the sound configuration with these changes."""
    return findings_of(RouterConfig.from_mapping({**SOUND, **changes}), environment)


def model(*tiers: list[Any], **more: Any) -> dict[str, Any]:
    """Changes: one model of these tiers, without a last resort."""
    return {"models": {"smart": {"tiers": [{"targets": tier} for tier in tiers], "last_resort": [], **more}}}


def server(host: str, **more: Any) -> dict[str, Any]:
    """A server of one's own that speaks OpenAI's dialect."""
    return {"kind": "openai_compatible", "base_url": f"http://{host}/v1", "api_key": "k", **more}


def test_a_sound_configuration_has_no_finding() -> None:
    """Two first parties in one tier, keys, a window and a price for each."""
    assert found({}) == []


KEYS: dict[str, Any] = {"keys": {"team": {"key": "k" * 20, "usd_per_day": 5}}}
CASES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "a literal variable": (
        {"providers": {**PROVIDERS, "o": {"kind": "openai", "api_key": "$OPENAI_API_KEY"}}},
        "providers.o.api_key",
        "the text $OPENAI_API_KEY itself is the key",
        'write "${OPENAI_API_KEY}" and set OPENAI_API_KEY',
    ),
    "a literal variable as Windows has it": (
        {"providers": {**PROVIDERS, "o": {"kind": "openai", "api_key": ["sk-1", "%OPENAI_API_KEY%"]}}},
        "providers.o.api_key[1]",
        "the text %OPENAI_API_KEY% itself is the key",
        'write "${OPENAI_API_KEY}"',
    ),
    "a literal variable of a client": (
        {"gateway": {"keys": {"team": {"key": "$TEAM_KEY_OF_THE_GATEWAY"}}}},
        "gateway.keys.team.key",
        "itself is the key",
        'write "${TEAM_KEY_OF_THE_GATEWAY}"',
    ),
    "a path twice": (
        {"providers": {**PROVIDERS, "o": {**OPENAI, "base_url": "https://api.openai.com/v1/v1"}}},
        "providers.o.base_url",
        "it ends in /v1/v1",
        "let it end in /v1",
    ),
    "a path too far": (
        {"providers": {**PROVIDERS, "o": {**OPENAI, "base_url": "https://api.openai.com/v1/chat/completions"}}},
        "providers.o.base_url",
        "it ends in /chat/completions",
        "let it end in /v1",
    ),
    "a short key": (
        {"gateway": {"keys": {"team": {"key": "secret-one"}}}},
        "gateway.keys.team.key",
        "the key has 10 characters and can be guessed",
        "smr keys new NAME",
    ),
    "a budget without a price": (
        {**model(["o/gpt-5", "o/our-own"], ["a/claude-opus-4-5"]), "gateway": KEYS},
        "gateway.keys.team.usd_per_day",
        "not spent at o/our-own: the price is unknown",
        "routing.unpriced: allow",
    ),
    "no target that goes on": (
        model(["o/gpt-5", "a/claude-opus-4-5"], recovery="continue")
        | {
            "providers": {
                **PROVIDERS,
                "o": {**OPENAI, "wires": ["responses"]},
                "a": {**ANTHROPIC, "wires": ["responses"]},
            }
        },
        "models.smart.recovery",
        "`continue` cannot work for model smart: no target can go on with an answer",
        "`recovery: buffered` or `none`",
    ),
    "one target that goes on": (
        model(["o/gpt-5", {"target": "a/claude-opus-4-5", "prefill": "none"}]),
        "routing.recovery",
        "only o/gpt-5 can go on with an answer",
        "give it a target that can",
    ),
    "one provider for all tiers": (
        model(["o/gpt-5"], ["o/gpt-5-mini"]),
        "models.smart",
        "all 2 targets from tier frontier on fail together: they share the host api.openai.com",
        "add a target elsewhere",
    ),
    "the last tiers at one provider": (
        model(["a/claude-opus-4-5"], ["o/gpt-5"], ["o/gpt-5-mini"]),
        "models.smart",
        "all 2 targets from tier standard on fail together",
        "add a target elsewhere",
    ),
    "one host behind two entries": (
        model(["x/gpt-5", "y/claude"])
        | {"providers": {"x": {**OPENAI, "base_url": "http://proxy:4000/v1"}, "y": server("proxy:4000")}},
        "models.smart",
        "they share the host proxy:4000",
        "`failure_domain`",
    ),
    "one cloud": (
        model(["z/ours", "h/openai/gpt-5"])
        | {
            "providers": {
                "z": {"kind": "azure", "base_url": "https://r.openai.azure.com", "api_key": "k"},
                "h": {"kind": "github", "api_key": "k"},
            }
        },
        "models.smart",
        "they share the failure domain azure",
        "`failure_domain`",
    ),
    "spans without an SDK": (
        {"telemetry": {"traces": {"enabled": True}}},
        "telemetry.traces",
        "spans go nowhere: no SDK",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ),
    "a window that is unknown": (
        model(["o/gpt-5", "a/our-own"]),
        "models.smart.tiers[0].targets[1]",
        "no context window is known of a/our-own",
        "set its `context_tokens`",
    ),
    "no search": (
        model(["g/openai/gpt-oss-120b"]),
        "models",
        "are refused: no target has them, for smart",
        "`providers.g.hosted_tools: drop`",
    ),
    "a last resort for no agent": (
        model(["o/gpt-5", "a/claude-opus-4-5"], last_resort=["l/smollm2"])
        | {"providers": {**PROVIDERS, "l": {"kind": "local"}}},
        "last_resort.tools",
        "the last resort l/smollm2 of smart takes no tools",
        "tools: answer_without",
    ),
    "a search without a fallback": (
        model(["o/gpt-5", "g/openai/gpt-oss-120b"]),
        "models",
        "have no fallback: o alone has them, for smart",
        "`providers.g.hosted_tools: drop`",
    ),
}


@pytest.mark.parametrize(("changes", "key", "cannot", "remedy"), CASES.values(), ids=CASES.keys())
def test_a_finding_names_its_place_what_cannot_work_and_what_would_be_right(
    changes: dict[str, Any], key: str, cannot: str, remedy: str
) -> None:
    """One finding for one mistake; nothing else is said beside it."""
    said = found(changes, LintEnvironment(spans_lost="no SDK"))
    of_it = [finding for finding in said if cannot in finding.cannot]
    assert [(finding.key, remedy in finding.remedy) for finding in of_it] == [(key, True)], said
    assert {finding.key for finding in said if finding.level == "warning"} <= {key, "models.smart"}


SILENT: dict[str, dict[str, Any]] = {
    "a reference": {"providers": {**PROVIDERS, "o": {"kind": "openai", "api_key": "${LINTED:-sk-1}"}}},
    "a key with a dollar sign": {"gateway": {"keys": {"team": {"key": "$ecret-of-the-$-team"}}}},
    "a budget with prices": {"gateway": KEYS},
    "a single target": model(["o/gpt-5"]),
    "one target of a single provider, continued by itself": model(["o/gpt-5"], recovery="continue"),
    "recovery switched off": model(["o/gpt-5", {"target": "a/claude-opus-4-5", "prefill": "none"}], recovery="none"),
    "a tier that fails together before one elsewhere": model(["o/gpt-5", "o/gpt-5-mini"], ["a/claude-opus-4-5"]),
    "two servers of one's own on two hosts": model(
        [{"target": "x/m", "context_tokens": 8000}, {"target": "y/m", "context_tokens": 8000}]
    )
    | {
        "providers": {
            "x": server("10.0.0.1:8000", hosted_tools="drop"),
            "y": server("10.0.0.2:8000", hosted_tools="drop"),
        }
    },
    "domains that the owner named": model(["x/gpt-5", "y/gpt-5"])
    | {"providers": {"x": {**OPENAI, "failure_domain": "one"}, "y": {**OPENAI, "failure_domain": "two"}}},
    "two regions": model(["x/gpt-5", "y/gpt-5"])
    | {"providers": {"x": {**OPENAI, "region": "eu"}, "y": {**OPENAI, "region": "us"}}},
    "a search that is dropped": model(["o/gpt-5", "g/openai/gpt-oss-120b"])
    | {"providers": {**PROVIDERS, "g": {**GROQ, "hosted_tools": "drop"}}},
    **{
        f"a last resort for agents, {tools}": model(["o/gpt-5", "a/claude-opus-4-5"], last_resort=["l/smollm2"])
        | {"providers": {**PROVIDERS, "l": {"kind": "local"}}, "last_resort": {"tools": tools}}
        for tools in ("answer_without", "refuse")
    },
    "a last resort with tools": model(["o/gpt-5"], ["a/claude-opus-4-5"], last_resort=["g/openai/gpt-oss-120b"]),
    "a model of vectors": model(["g/text-embedding-3-small", "o/text-embedding-3-small"]),
    "spans that are exported": {"telemetry": {"traces": {"enabled": True}}},
}


@pytest.mark.parametrize("changes", SILENT.values(), ids=SILENT.keys())
def test_nothing_is_said_where_nothing_is_wrong(changes: dict[str, Any]) -> None:
    """The neighbours of each finding; each way out that a finding names ends it."""
    assert found(changes) == []


ENVIRON = {"OPENAI_API_KEY": "sk-o", "ANTHROPIC_API_KEY": "sk-a", "TEAM_KEY": "k" * 20}


@pytest.mark.parametrize(("providers", "level"), [({"o": OPENAI}, "note"), ({"o": OPENAI, "a": ANTHROPIC}, "warning")])
def test_one_account_alone_is_no_mistake(providers: dict[str, Any], level: str) -> None:
    """A warning only where a provider is configured that could have been named."""
    [finding] = found({"providers": providers, **model(["o/gpt-5"], ["o/gpt-5-mini"])})
    assert finding.level == level


def documented() -> dict[str, dict[str, Any]]:
    """Every whole configuration of the documents, by its place."""
    read = {}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            if match["code"].startswith("version: 1\n"):
                place = f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
                read[place] = yaml.safe_load(match["code"])
    return read


TOLD = {
    "docs/how-to/chaos.md": {"no context window is known"},
    "docs/how-to/gateway.md": set[str](),
    "README.md": set[str](),
    "docs/how-to/drop-in.md": {"fail together", "no context window is known", "are refused"},
    "docs/how-to/local-model.md": {"takes no tools"},
    "docs/how-to/model-names.md": {"have no fallback", "are refused"},
    "docs/how-to/passthrough.md": {"are refused"},
    "docs/how-to/recovery.md": {"no context window is known", "are refused"},
    "docs/how-to/streams-and-errors.md": {"are refused"},
    "docs/how-to/workflows.md": {"are refused"},
}
"""What is true, and said, of each configuration of the documents: most are cut down to what their page is about."""


def test_the_configurations_of_the_documents_have_no_finding_that_is_untrue() -> None:
    """Of the README's nothing is said; of others what is true of them, by name."""
    read = documented()
    assert {place.partition(":")[0] for place in read} == set(TOLD)
    for place, tree in read.items():
        said = [finding.text for finding in findings_of(RouterConfig.from_mapping(tree, environ=ENVIRON))]
        wanted = TOLD[place.partition(":")[0]]
        assert {words for words in wanted if any(words in text for text in said)} == wanted, (place, said)
        assert [text for text in said if not any(words in text for words in wanted)] == [], place


@pytest.mark.parametrize(
    "keys", [("OPENAI_API_KEY", "ANTHROPIC_API_KEY"), tuple(k for kind in KINDS.values() for k in kind.key_variables)]
)
def test_the_keys_of_the_environment_make_a_configuration_without_a_warning(
    keys: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found without a file is sensible: notes at most."""
    monkeypatch.chdir(tmp_path)
    config = default_config({**dict.fromkeys(keys, "sk-test"), "HOME": str(tmp_path)}, embedded=False)
    assert [finding for finding in findings_of(config) if finding.level == "warning"] == []
