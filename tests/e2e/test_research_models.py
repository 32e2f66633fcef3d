"""Research with models from the command line, over real sockets: answers by choice, and a provider that dies."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from smart_model_router_research.deep.verifying import verify
from tests.e2e.command import Smr
from tests.e2e.model_provider import ModelProvider
from tests.e2e.test_research_cli import AS_OF, id_of, written
from tests.scripted_models import competent, prose

PAGES = {
    "corpus.yaml": "{name: Library, publisher: P, tier: A, primary: true, independence: document, as_of: 2026-03-01}\n",
    "library.md": "# Library\n\nReaders bring a card. Loans last three weeks.\n\nThe cellar is closed. Dogs wait.\n",
    "kiln.md": "# Kiln\n\nThe kiln is fired on Mondays.\n",
}
LOAN, KILN_DAY = "How long may I borrow a book?", "On which day is the kiln fired?"
KNOWN = {LOAN: ["Loans last three weeks."]}


def configured(smr: Smr, providers: dict[str, ModelProvider]) -> Path:
    """Write the configuration of a model with these providers, in their order, and the documents."""
    written(smr.folder / "docs", PAGES)
    config = {
        "version": 1,
        "providers": {
            name: {"kind": "openai_compatible", "base_url": each.base_url, "api_key": "k"}
            for name, each in providers.items()
        },
        "models": {"smart": {"tiers": [{"targets": [f"{name}/m"]} for name in providers], "last_resort": []}},
    }
    file = smr.folder / "router.json"
    file.write_text(json.dumps(config), "utf-8")
    return file


def asked(smr: Smr, config: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Ask both questions of the documents."""
    topic = f"{KILN_DAY} {LOAN}"
    return smr("research", "run", topic, "--corpus", "docs", *AS_OF, "--config", str(config), *options)


def graph_of(smr: Smr, done: subprocess.CompletedProcess[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the claims of a run by their text, and its facts."""
    folder = smr.folder / "data" / "research" / "runs" / id_of(done)
    assert verify(folder).is_sound
    claims = json.loads((folder / "claim_graph.json").read_text("utf-8"))["claims"]
    return {each["text"]: each for each in claims}, json.loads((folder / "rag_manifest.json").read_text("utf-8"))["run"]


def test_a_model_answers_what_no_word_of_the_question_finds(tmp_path: Path) -> None:
    """Two providers agree, so it counts; `--offline` asks neither, and does not find it."""
    smr = Smr(tmp_path)
    with ModelProvider(competent(KNOWN)) as one, ModelProvider(competent(KNOWN)) as two:
        config = configured(smr, {"one": one, "two": two})
        done = asked(smr, config, "--model", "smart")
        offline = asked(smr, config, "--offline")

    claims, facts = graph_of(smr, done)
    assert done.returncode == 0, done.stderr
    assert "- Loans last three weeks. [S" in done.stdout
    assert "(chosen by a model)" in done.stdout
    chosen = claims["Loans last three weeks."]
    assert (chosen["chosen_by"], chosen["agreed_by"]) == ("one/m", "two/m")
    assert facts["models"] == ["one/m", "two/m"]
    assert "The price of one/m, two/m is not known" in done.stdout
    assert facts["usage"]["model_calls"] == len(one.asked) + len(two.asked)
    assert "Loans last" not in offline.stdout
    assert "The kiln is fired on Mondays." in offline.stdout


def test_a_provider_that_dies_in_mid_run_changes_no_claim(tmp_path: Path) -> None:
    """The others serve in its place, and the report says so."""
    smr = Smr(tmp_path)
    with ExitStack() as stack:
        first = stack.enter_context(ModelProvider(competent(KNOWN), dies_at=2))
        others = {name: stack.enter_context(ModelProvider(competent(KNOWN))) for name in ("two", "three")}
        done = asked(smr, configured(smr, {"one": first, **others}), "--model", "smart")

    claims, facts = graph_of(smr, done)
    assert done.returncode == 0, done.stderr
    assert len(first.asked) > 2
    assert set(claims) == {"Loans last three weeks.", "The kiln is fired on Mondays."}
    assert any("stood in for one/m" in note for note in facts["model_notes"])
    assert "stood in for one/m" in done.stdout
    assert "stood in for one/m" in done.stderr


def test_a_model_that_talks_leaves_the_report_as_it_is_without(tmp_path: Path) -> None:
    """Each step says that it went on without its model; no answer is lost."""
    smr = Smr(tmp_path)
    with ModelProvider(prose) as provider:
        config = configured(smr, {"one": provider})
        done, offline = asked(smr, config, "--model", "smart"), asked(smr, config, "--offline")

    answers = [line for line in offline.stdout.splitlines() if line.startswith("- The kiln")]
    assert answers
    assert set(answers) <= set(done.stdout.splitlines())
    assert "went on without its model: 3 replies did not fit their schema" in done.stderr
    assert done.returncode == offline.returncode


def test_an_evaluation_asks_a_model_too(tmp_path: Path) -> None:
    """The same two questions: one right answer of two without a model, two with it."""
    smr = Smr(tmp_path)
    rows = [{"question": LOAN, "answers": ["three weeks"]}, {"question": KILN_DAY, "answers": ["Mondays"]}]
    with ModelProvider(competent(KNOWN)) as one, ModelProvider(competent(KNOWN)) as two:
        config = configured(smr, {"one": one, "two": two})
        (smr.folder / "set.json").write_text(json.dumps(rows), "utf-8")
        options = ("--set", "set.json", "--corpus", "docs", "--as-of", "2026-03-31", "--config", str(config))
        without, found = smr("research", "eval", *options), smr("research", "eval", *options, "--model", "smart")

    assert "1 of 2 right." in without.stdout
    assert "no model was asked" in without.stderr
    assert "2 of 2 right." in found.stdout, found.stderr
    assert "the model smart was asked" in found.stderr


def test_a_plan_names_the_model_its_caps_and_the_tiers_that_it_has_not(tmp_path: Path) -> None:
    """Nothing is asked for it; a wish for a tier that is not there is told, with those that are."""
    smr = Smr(tmp_path)
    with ModelProvider(prose) as provider:
        config = configured(smr, {"one": provider})
        given = json.loads(config.read_text("utf-8")) | {"research": {"model": "smart", "tiers": {"economy": "small"}}}
        config.write_text(json.dumps(given), "utf-8")
        done = smr("research", "plan", LOAN, "--corpus", "docs", *AS_OF, "--config", str(config), "--budget-usd", "1.5")

    assert done.returncode == 0, done.stderr
    assert "the model smart is asked, at most 120 calls, 400,000 tokens, 1.5 USD" in done.stdout
    assert "research.tiers.economy: small is no tier of the model (frontier): asked without a tier" in done.stdout
    assert provider.asked == []


def test_a_model_that_is_not_configured_is_named_before_anything_is_asked(tmp_path: Path) -> None:
    """With the nearest known name, and without a traceback."""
    smr = Smr(tmp_path)
    with ModelProvider(prose) as provider:
        config = configured(smr, {"one": provider})
        done, both = asked(smr, config, "--model", "smrt"), asked(smr, config, "--model", "smart", "--offline")

    assert (done.returncode, both.returncode) == (2, 2)
    assert "--model" in done.stderr
    assert "smart" in done.stderr
    assert "--offline" in both.stderr
    assert provider.asked == []
