"""Findings about configurations that load and cannot do all that they say: certain, with a key and a way out."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
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
FENCE = re.compile(r"^```(yaml|python)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WHOLE = re.compile(r"version: 1\n")


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
    "machines that share nothing": (
        {"store": {"machines": 3, "path": "stats.db"}},
        "store.machines",
        "3 machines share nothing: each probes for itself, and takes the whole of every limit",
        "name a server in store.shared_url",
    ),
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
        'write "${NAME}" and set the variable',
    ),
    "a key in quotation marks": (
        {"providers": {**PROVIDERS, "o": {"kind": "openai", "api_key": '"sk-a"'}}},
        "providers.o.api_key",
        "quotation marks are part of the key",
        "where it is set",
    ),
    "a credential twice": (
        {"providers": {**PROVIDERS, "o": {"kind": "openai", "api_key": ["sk-1", "sk-2", "sk-1 "]}}},
        "providers.o.api_key[2]",
        "it is the key of api_key[0] again",
        "write each key once",
    ),
    "two clients with one key": (
        {"gateway": {"keys": {"a": {"sha256": sha256(b"k" * 20).hexdigest().upper()}, "b": {"key": "k" * 20}}}},
        "gateway.keys.a",
        "it has the key of b, which requests with that key count for",
        "give each a key of its own",
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
    "a budget without a price at the end of an alias": (
        {
            "models": {
                "smart": {"targets": ["o/gpt-5", "a/claude-opus-4-5"], "last_resort": []},
                "ours": {"targets": ["o/our-own"], "last_resort": []},
            },
            "aliases": {"team-model": "ours"},
            "gateway": {"keys": {"team": {"key": "k" * 20, "usd_per_day": 5, "models": ["team-*"]}}},
        },
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
        "`recovery: continue` cannot work: no target can go on with an answer",
        "`recovery: buffered` or `none`",
    ),
    "one target that goes on": (
        model(["o/gpt-5", {"target": "a/claude-opus-4-5", "prefill": "none"}]),
        "models.smart",
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
        | {"providers": {"x": {**OPENAI, "base_url": "http://Proxy:4000/v1"}, "y": server("proxy:4000")}},
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


def test_no_key_that_lets_clients_in_is_shown() -> None:
    """Neither a literal variable nor a short key of the gateway stands in a finding."""
    said = found({"gateway": {"keys": {"a": {"key": "$SECRET_ONE"}, "b": {"key": "SecretTwo"}}}})
    assert len(said) == 3
    assert not [finding for finding in said if "SECRET_ONE" in str(finding) or "SecretTwo" in str(finding)]


SILENT: dict[str, dict[str, Any]] = {
    "a reference": {"providers": {**PROVIDERS, "o": {"kind": "openai", "api_key": "${LINTED:-sk-1}"}}},
    "a key with a dollar sign": {"gateway": {"keys": {"team": {"key": "$ecret-of-the-$-team"}}}},
    "a budget with prices": {"gateway": KEYS},
    "a budget and a wildcard, whose prices are known when it is asked": {
        "models": {"gpt-*": {"targets": ["o/gpt-*"], "last_resort": []}},
        "gateway": KEYS,
    },
    "a budget of a key that is not for the target without a price": {
        "models": {
            "smart": {"targets": ["o/gpt-5", "a/claude-opus-4-5"], "last_resort": []},
            "ours": {"targets": [{"target": "o/our-own", "context_tokens": 8000}], "last_resort": []},
        },
        "gateway": {"keys": {"team": {"key": "k" * 20, "usd_per_day": 5, "models": ["smart"]}}},
    },
    "a client's key in quotation marks, which it may send so": {
        "gateway": {"keys": {"team": {"key": f"'{'k' * 20}'"}}}
    },
    "a second credential that goes on": model(["o/gpt-5", {"target": "a/claude-opus-4-5", "prefill": "none"}])
    | {"providers": {**PROVIDERS, "o": {"kind": "openai", "api_key": ["sk-1", "sk-2"]}}},
    "a class of one's own, which reads its URL as it likes": model(["x/m"])
    | {"providers": {"x": {"kind": "ours:Provider", "base_url": "https://h/messages", "hosted_tools": "drop"}}},
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
    "a scripted stand-in beside one without a search": model(["g/openai/gpt-oss-120b", "s/any"])
    | {"providers": {**PROVIDERS, "s": {"kind": "scripted"}}},
    "a search that is dropped": model(["o/gpt-5", "g/openai/gpt-oss-120b"])
    | {"providers": {**PROVIDERS, "g": {**GROQ, "hosted_tools": "drop"}}},
    **{
        f"a last resort for agents, {tools}": model(["o/gpt-5", "a/claude-opus-4-5"], last_resort=["l/smollm2"])
        | {"providers": {**PROVIDERS, "l": {"kind": "local"}}, "last_resort": {"tools": tools}}
        for tools in ("answer_without", "refuse")
    },
    "a last resort with tools": model(["o/gpt-5"], ["a/claude-opus-4-5"], last_resort=["g/openai/gpt-oss-120b"]),
    "a model of vectors": model(["g/text-embedding-3-small", "o/text-embedding-3-small"]),
    "vectors of any name": {
        "providers": {"x": server("h1"), "y": server("h2")},
        "models": {
            "vectors": {
                "targets": [{"target": f"{name}/bge-m3", "embedding_space": "bge"} for name in "xy"],
                "last_resort": [],
            }
        },
    },
    "spans that are exported": {"telemetry": {"traces": {"enabled": True}}},
}


@pytest.mark.parametrize("changes", SILENT.values(), ids=SILENT.keys())
def test_nothing_is_said_where_nothing_is_wrong(changes: dict[str, Any]) -> None:
    """The neighbours of each finding; each way out that a finding names ends it."""
    assert found(changes) == []


ENVIRON = {"OPENAI_API_KEY": "sk-o", "ANTHROPIC_API_KEY": "sk-a", "TEAM_KEY": "k" * 20}


def test_what_is_the_same_in_many_models_is_told_once() -> None:
    """A hundred models of one account are two lines, which name the first of them and count the others."""
    models = {f"m{n}": {"targets": [f"x/own-{n}", f"x/other-{n}"], "last_resort": []} for n in range(100)}
    said = found({"providers": {"x": server("h", hosted_tools="drop")}, "models": models})
    assert [finding.key for finding in said] == ["models.m0", "models.m0.tiers[0].targets[0]"]
    assert "(also models.m1, models.m2, models.m3, models.m4 and 95 more)" in said[0].cannot
    assert "and 196 more" in said[1].cannot


@pytest.mark.parametrize(("providers", "level"), [({"o": OPENAI}, "note"), ({"o": OPENAI, "a": ANTHROPIC}, "warning")])
def test_one_account_alone_is_no_mistake(providers: dict[str, Any], level: str) -> None:
    """A warning only where a provider is configured that could have been named."""
    [finding] = found({"providers": providers, **model(["o/gpt-5"], ["o/gpt-5-mini"])})
    assert finding.level == level


def documented() -> dict[str, Any]:
    """Every whole configuration of the documents and examples, by its place: YAML, and what programs spell out."""
    read: dict[str, Any] = {}
    for path in (
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "examples").rglob("*.py")),
    ):
        text = path.read_text(encoding="utf-8")
        blocks = (
            [(0, "python", text)] if path.suffix == ".py" else [(m.start(), m[1], m[2]) for m in FENCE.finditer(text)]
        )
        for at, language, code in blocks:
            line = text.count("\n", 0, at) + 1
            found = spelled_out(code) if language == "python" else [yaml.safe_load(code)] if WHOLE.match(code) else []
            read |= {f"{path.relative_to(ROOT)}:{line}.{number}": tree for number, tree in enumerate(found)}
    return read


def spelled_out(code: str) -> list[Any]:
    """The configurations that a program has as literals."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Dict) and any(isinstance(k, ast.Constant) and k.value == "version" for k in node.keys):
            with suppress(ValueError):  # parts of it are computed
                found.append(ast.literal_eval(node))
    return [tree for tree in found if "models" in tree and "providers" in tree]


WINDOW, SEARCH, ALONE, AGENTS = (
    "no context window is known",
    "are refused: no target",
    "have no fallback",
    "takes no tools",
)
TOGETHER = "fail together"
TOLD = {
    "README.md": {WINDOW},
    "docs/configuration.md": {WINDOW, SEARCH, AGENTS},
    "docs/how-to/chaos.md": {WINDOW},
    "docs/how-to/drop-in.md": {TOGETHER, WINDOW, SEARCH},
    "docs/how-to/local-model.md": {AGENTS},
    "docs/how-to/model-names.md": {ALONE, SEARCH},
    "docs/how-to/own-provider.md": {SEARCH},
    "docs/how-to/passthrough.md": {SEARCH},
    "docs/how-to/recovery.md": {WINDOW, SEARCH},
    "docs/how-to/requests.md": {TOGETHER, WINDOW, SEARCH},
    "docs/how-to/scoring.md": {SEARCH},
    "docs/how-to/streams-and-errors.md": {SEARCH},
    "docs/how-to/workflows.md": {SEARCH},
    "docs/observability.md": {SEARCH},
    "examples/own_provider.py": {WINDOW},
}
"""The findings on the configurations of each document: most of these are cut down to the subject of their page."""


def test_the_configurations_of_the_documents_have_no_finding_that_is_untrue() -> None:
    """Each finding is one that is listed for its page, and pages that are not listed have none."""
    said: dict[str, set[str]] = {}
    for place, tree in documented().items():
        texts = [finding.text for finding in findings_of(RouterConfig.from_mapping(tree, environ=ENVIRON))]
        page, known = place.partition(":")[0], (WINDOW, SEARCH, ALONE, AGENTS, TOGETHER)
        assert [text for text in texts if not any(words in text for words in known)] == [], place
        said.setdefault(page, set()).update(words for words in known if any(words in text for text in texts))
    assert {page: words for page, words in said.items() if words} == TOLD
    assert len(said) >= 15


def test_the_file_of_the_readme_has_no_finding() -> None:
    """It is the one that is copied."""
    (tree,) = [
        tree for place, tree in documented().items() if place.startswith("README.md") and "openai" in tree["providers"]
    ]
    assert findings_of(RouterConfig.from_mapping(tree, environ=ENVIRON)) == []


@pytest.mark.parametrize(
    "keys", [("OPENAI_API_KEY", "ANTHROPIC_API_KEY"), tuple(k for kind in KINDS.values() for k in kind.key_variables)]
)
def test_the_keys_of_the_environment_make_a_configuration_without_a_warning(
    keys: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration made without a file has notes at most."""
    monkeypatch.chdir(tmp_path)
    config = default_config({**dict.fromkeys(keys, "sk-test"), "HOME": str(tmp_path)}, embedded=False)
    assert [finding for finding in findings_of(config) if finding.level == "warning"] == []
