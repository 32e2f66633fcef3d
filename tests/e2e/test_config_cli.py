"""`smr config` and `smr import litellm` as people use them."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from smart_model_router.config.schema import json_schema
from smart_model_router_providers.fault import FaultServer
from tests.e2e.command import KEY, Smr

LITELLM = Path(__file__).parents[1] / "fixtures" / "litellm"
ROUTED = {
    "simple": "gpt-4o",
    "azure_load_balancing": "gpt-4",
    "fallbacks": "zephyr-beta",
    "budgets_and_keys": "gpt-4o-mini",
    "wildcards_and_tags": "gpt-4:free",
}
VARIABLES = (
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY", "HF_KEY", "FREE_KEY", "PAID_KEY", "LITELLM_MASTER_KEY"),
    *("AZURE_API_KEY_EU", "AZURE_API_KEY_CA", "OPENROUTER_API_KEY", "REDIS_HOST", "REDIS_PASSWORD"),
)


def test_check_tells_every_fault_at_once(smr: Smr) -> None:
    """Key, value, range, did-you-mean and line of each, in the order of the file; exit code 3."""
    (smr.folder / "smart-router.yaml").write_text(
        "version: 1\n"
        "providers:\n  a: {kind: opnai}\n  b: {kind: scripted, rpm: 0}\n"
        "models: {m: {tiers: [{targets: [b/x, c/y]}]}}\n"
        "routng: {}\n",
        encoding="utf-8",
    )
    done = smr("config", "check", "--json")
    problems = json.loads(done.stdout)["problems"]
    assert done.returncode == 3
    assert [problem["key"] for problem in problems] == [
        "providers.a.kind",
        "providers.b.rpm",
        "models.m.tiers[0].targets[1]",
        "routng",
    ]
    assert "did you mean 'openai'? (smart-router.yaml:3)" in problems[0]["expected"]
    assert (problems[1]["value"], "at least 1" in problems[1]["expected"]) == (0, True)
    assert "did you mean 'routing'?" in problems[3]["expected"]
    assert smr("config", "check").stdout.count("problem ") == 4
    assert "(and 2 more: smr config check lists all)" in smr("models").stderr


def test_check_warns_of_a_tier_that_fails_together(smr: Smr, server: FaultServer) -> None:
    """Two targets of one failure domain, where another provider is configured, are a warning, and no failure."""
    smr.configure(server, tiers=[{"targets": ["a/big", "a/small"]}])
    file = smr.folder / "smart-router.yaml"
    tree = json.loads(file.read_text("utf-8"))
    tree["providers"]["other"] = {"kind": "openai", "api_key": KEY}
    file.write_text(json.dumps(tree), "utf-8")
    done = smr("config", "check")
    assert done.returncode == 0
    assert "all 2 targets fail together" in done.stdout
    assert "0 problems, 1 warning, " in done.stderr


def test_a_key_that_is_gone_is_told_and_stops_nothing(smr: Smr) -> None:
    """The configuration is in force; key, line and what took its place are told once, and its value is not shown."""
    (smr.folder / "smart-router.yaml").write_text(
        "version: 1\nproviders: {s: {kind: scripted}}\nmodels: {m: {tiers: [{targets: [s/x]}]}}\n"
        f"resilience:\n  breaker: {{failure_ratio: {KEY}}}\n  adaptive: off\n",
        encoding="utf-8",
    )
    done = smr("config", "check")
    told = done.stdout + done.stderr
    assert done.returncode == 0
    assert told.count("resilience.breaker.failure_ratio") == 1
    assert "`failing_share`" in told
    assert "smart-router.yaml:5" in told
    assert KEY not in told
    assert "0 problems" in done.stderr
    assert json.loads(smr("config", "show", "--json").stdout)["config"]["resilience"]["adaptive"] == {"enabled": False}


def test_show_masks_secrets_and_names_origins(smr: Smr, server: FaultServer) -> None:
    """Values come from a line, a variable or are defaults; no key is on the screen."""
    smr.configure(server)
    done = smr("config", "show", "--origin")
    assert done.returncode == 0
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}
    assert lines["providers.a.api_key[0]"] == ["***", "smart-router.yaml:1"]
    assert lines["resilience.breaker.open"] == ["30.0", "default"]
    shown = smr("config", "show")
    assert KEY not in done.stdout + shown.stdout
    (smr.folder / "again.yaml").write_text(shown.stdout, encoding="utf-8")
    assert smr("config", "check", "-c", "again.yaml").returncode == 0


def test_a_key_of_the_environment_is_shown_as_its_variable(smr: Smr) -> None:
    """Without a file, the provider that a key brought says which variable it was."""
    smr.environment["GROQ_API_KEY"] = KEY
    values = {value["key"]: value for value in json.loads(smr("config", "show", "--origin", "--json").stdout)["values"]}
    found = {key: value for key, value in values.items() if key.startswith("providers.groq.api_key")}
    assert [(value["value"], value["origin"]) for value in found.values()] == [("***", "environment: $GROQ_API_KEY")]


def test_schema_is_json(smr: Smr) -> None:
    """What is printed is the schema."""
    assert json.loads(smr("config", "schema").stdout) == json_schema()


@pytest.mark.parametrize("name", sorted(ROUTED))
def test_an_imported_configuration_is_checked_and_routes(smr: Smr, server: FaultServer, name: str) -> None:
    """Written for its owner's eyes alone, accepted by `smr config check`, and a question is answered through it."""
    source = (LITELLM / f"{name}.yaml").read_text("utf-8")
    address = server.base_url.removesuffix("/v1")
    (smr.folder / "config.yaml").write_text(source.replace("http://127.0.0.1:9001", address), encoding="utf-8")
    smr.environment |= dict.fromkeys(VARIABLES, KEY)
    done = smr("import", "litellm", "config.yaml", "-o", "smart-router.yaml")
    assert (done.returncode, done.stdout) == (0, "")
    assert "values mapped" in done.stderr
    assert stat.S_IMODE((smr.folder / "smart-router.yaml").stat().st_mode) == 0o600
    assert smr("config", "check").returncode == 0
    assert smr("ask", "--model", ROUTED[name], "hello").stdout == "fault-server: echo of the last user message: hello\n"
    assert server.calls() == 1


def test_an_import_overwrites_nothing_and_names_what_is_wrong(smr: Smr) -> None:
    """An output that exists, and a file that is no configuration, are refused with 3."""
    smr.environment["OPENAI_API_KEY"] = KEY
    source = str(LITELLM / "simple.yaml")
    assert smr("import", "litellm", source, "-o", "x.yaml").returncode == 0
    assert smr("import", "litellm", source, "-o", "x.yaml").returncode == 3
    assert smr("import", "litellm", "x.yaml").returncode == 3
    told = json.loads(smr("import", "litellm", source, "--json").stdout)
    assert {entry["verdict"] for entry in told["entries"]} == {"mapped", "changed", "left out"}


def test_strict_tells_a_file_that_loses_something(smr: Smr) -> None:
    """`smr import litellm --strict` exits with 1 when a value is left out, and writes the file all the same."""
    whole, lossy = smr.folder / "whole.yaml", smr.folder / "lossy.yaml"
    whole.write_text("model_list: [{model_name: a, litellm_params: {model: openai/a}}]")
    lossy.write_text("model_list: [{model_name: a, litellm_params: {model: openai/a, seed: 7}}]")
    assert smr("import", "litellm", "whole.yaml", "--strict").returncode == 0
    done = smr("import", "litellm", "lossy.yaml", "--strict", "-o", "ours.yaml")
    assert done.returncode == 1
    assert "litellm_params.seed" in done.stderr
    assert (smr.folder / "ours.yaml").is_file()
