"""`smr evaluate --tune` and `--fit`: chosen on one's own questions, written, used by the command and the gateway."""

from __future__ import annotations

import asyncio
import json
from itertools import islice, product
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from smart_model_router.cli.tune import VECTOR_WEIGHTS, _candidates
from smart_model_router.config.sections import SearchConfig, SearchWeightsConfig
from smart_model_router_providers.fault import FaultServer
from smart_model_router_scoring.retrieval import index_folder
from tests.e2e.command import Smr, one_line
from tests.e2e.gateways import fleet, served
from tests.unit.scoring.retrieval.folders import NOW, write

COUNT = 60
NAMES = tuple("".join(parts) for parts in islice(product(("ba", "ko", "lu", "mi"), ("dre", "fno", "gri", "plu"), ("xat", "vob", "zek", "quil")), COUNT))  # fmt: skip  # noqa: E501
COLOURS = ("amber", "beige", "coral", "denim", "ebony", "green")
AWAY = tuple(f"which {colour} hat did {name.title()} Smith {verb} at noon" for name, colour, verb in islice(product(
    ("alan", "berta", "carl", "dora", "emil"), COLOURS, ("wear", "lose")), COUNT))  # fmt: skip
SLOW = 300.0


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty documents in a circle of links, a question for each, and sixty questions about something else."""
    folder = tmp_path_factory.mktemp("corpus")
    documents = {
        f"{name}.md": f"# The {name}\n\nA {name} is {COLOURS[at % 6]}. Next: [one]({NAMES[(at + 1) % COUNT]}.md).\n"
        for at, name in enumerate(NAMES)
    }
    asyncio.run(index_folder(write(folder / "docs", documents), folder / "i.db", now=NOW))
    (folder / "own.txt").write_text("".join(f"q{at:02} what is a {name} like\n" for at, name in enumerate(NAMES)))
    (folder / "own.qrels").write_text("".join(f"q{at:02} 0 {name}.md 1\n" for at, name in enumerate(NAMES)))
    (folder / "away.txt").write_text("\n".join(AWAY) + "\n")
    return folder


@pytest.fixture
def smr(tmp_path: Path, corpus: Path, server: FaultServer) -> Smr:
    """The installed command beside the corpus and a configuration with comments, whose search ranks badly."""
    for file in corpus.iterdir():
        if file.is_file():
            (tmp_path / file.name).symlink_to(file)
    search = {"index": str(tmp_path / "i.db"), "weights": {"graph": 5}, "min_confidence": 0.99999}
    config = yaml.safe_dump({**fleet(server), "search": search}, sort_keys=False)
    (tmp_path / "smart-router.yaml").write_text("# of the library\n" + config)
    return Smr(tmp_path)


FILES = ("--index", "i.db", "--questions", "own.txt", "--qrels", "own.qrels")
CONFIG = "smart-router.yaml"


def written(smr: Smr) -> Any:
    """The search section of the configuration."""
    return yaml.safe_load((smr.folder / CONFIG).read_text())["search"]


def test_what_is_written_is_what_the_command_and_the_gateway_use(smr: Smr, server: FaultServer) -> None:
    """Weights, threshold and curve: before, the neighbours come first and everything is refused; after, nothing is."""
    question = ("query", "what is a badrexat like", "--json")
    before = json.loads(smr(*question).stdout)
    assert before["results"] == []
    assert not before["nearest"][0][0].startswith("badrexat.md")
    assert [one["chunk_id"] for one in before["passages"]] == [chunk_id for chunk_id, _ in before["nearest"]]
    done = smr("evaluate", "--tune", "--fit", *FILES, "--away", "away.txt", "--write", CONFIG, "--json", seconds=SLOW)
    told = json.loads(done.stdout)
    assert (told["tune"]["better"], told["written"]["file"]) == (True, CONFIG)
    assert told["tune"]["holdout"]["difference"]["low"] > 0
    assert told["fit"]["after"]["kept"] >= 0.95
    assert told["fit"]["after"]["accepted"] <= 0.1
    search = written(smr)
    assert {key: search[key] for key in told["search"] if key != "weights"} == {
        key: value for key, value in told["search"].items() if key != "weights"
    }
    assert search["weights"] == told["search"]["weights"]
    assert search["weights"]["graph"] < 5
    assert "answers" in search["evidence"]
    assert (smr.folder / CONFIG).read_text().startswith("# of the library\n")
    after = json.loads(smr(*question).stdout)
    assert after["results"][0][0].startswith("badrexat.md")
    assert after["answers"] != before["answers"]
    assert json.loads(smr("query", AWAY[0], "--json").stdout)["results"] == []
    config = yaml.safe_load((smr.folder / CONFIG).read_text())
    (smr.folder / "gateway").mkdir()
    with served(config, smr.folder / "gateway") as running:
        body = httpx2.post(f"{running.base_url}/query_documents", json={"query": question[1]}, timeout=30).json()
        refused = httpx2.post(f"{running.base_url}/query_documents", json={"query": AWAY[0]}, timeout=30).json()
    assert (body["results"], body["answers"]) == (after["results"], after["answers"])
    assert refused["results"] == []


def test_a_default_is_not_replaced_by_what_is_no_better(smr: Smr) -> None:
    """The shipped weights rank everything first: nothing is better, nothing is written, and it says so."""
    file = smr.folder / CONFIG
    file.write_text(file.read_text().replace("graph: 5", "graph: 0.05"))
    text = file.read_text()
    done = smr("evaluate", "--tune", *FILES, "--write", CONFIG, seconds=SLOW)
    assert (done.returncode, file.read_text()) == (0, text)
    assert "no better on the others: not taken" in done.stdout
    assert "nothing to write" in done.stdout
    assert done.stderr == ""
    assert not (smr.folder / f"{CONFIG}.bak").exists()


def test_a_threshold_that_is_as_good_stays(smr: Smr) -> None:
    """The shipped one keeps all of these questions and lets none of the others through: a higher one gains nothing."""
    file = smr.folder / CONFIG
    file.write_text(file.read_text().replace("min_confidence: 0.99999", "min_confidence: 0.6"))
    (smr.folder / "other.txt").write_text("\n".join(AWAY[:20]))
    own, away = ("--questions", "own.txt"), ("--away", "other.txt")
    told = json.loads(smr("evaluate", "--fit", "--index", "i.db", *own, *away, "--json", seconds=SLOW).stdout)
    assert (told["fit"]["before"]["kept"], told["fit"]["before"]["accepted"]) == (1.0, 0.0)
    assert told["fit"]["after"]["min_confidence"] > 0.6
    assert told["search"] == {}


def test_without_write_the_section_is_printed(smr: Smr) -> None:
    """A threshold by the questions alone; as YAML that can be pasted, and the file stays."""
    text = (smr.folder / CONFIG).read_text()
    done = smr("evaluate", "--fit", "--index", "i.db", "--questions", "own.txt", seconds=SLOW)
    assert done.returncode == 0
    assert 0 < yaml.safe_load(done.stdout[done.stdout.index("search:") :])["search"]["min_confidence"] < 0.99
    assert "--away FILE" in done.stdout
    assert "answers: unchanged (a fit needs 50 rows" in done.stdout
    assert (smr.folder / CONFIG).read_text() == text


def test_a_measurement_is_told_where_it_cannot_be_written(smr: Smr) -> None:
    """A file that cannot be changed without loss stays, and the values are there to be copied."""
    file = smr.folder / CONFIG
    config = yaml.safe_load(file.read_text())
    del config["search"]
    text = yaml.safe_dump(config) + f"search: {{index: {smr.folder / 'i.db'}}}\n"
    file.write_text(text)
    done = smr("evaluate", "--fit", *FILES[:4], "--write", CONFIG, seconds=SLOW)
    assert (done.returncode, file.read_text()) == (3, text)
    assert 0 < yaml.safe_load(done.stdout[done.stdout.index("search:") :])["search"]["min_confidence"] < 1


def test_vectors_are_tuned_where_keywords_take_no_part() -> None:
    """A weight of 0 for keywords is no measure: the others are tried as they are."""
    search = SearchConfig(weights=SearchWeightsConfig(keyword=0.0, vector=1.0))
    tried = {one.weights.vector for one in _candidates(search, has_vectors=True, has_links=False)}
    assert tried == set(VECTOR_WEIGHTS)


def test_lines_that_cannot_be_used_are_named_with_file_and_line(smr: Smr) -> None:
    """Unknown questions and documents, lines of another form, repeated ids; the rest is used."""
    own, qrels = (smr.folder / name for name in ("mine.txt", "mine.qrels"))
    own.write_text("alone\n" + (smr.folder / "own.txt").read_text() + "q00 again\n")
    qrels.write_text("q99 0 badrexat.md 1\nq01 0 gone.md 1\nnonsense\n" + (smr.folder / "own.qrels").read_text())
    files = ("--index", "i.db", "--questions", "mine.txt", "--qrels", "mine.qrels")
    done = smr("evaluate", "--fit", *files, "--json", seconds=SLOW)
    assert done.returncode == 0
    assert done.stderr.splitlines()[:5] == [
        "smr: mine.txt, line 1: left out, not `id question`",
        "smr: mine.txt, line 62: left out, 'q00' is there already",
        "smr: mine.qrels, line 3: left out, not `query 0 id grade`",
        "smr: mine.qrels, line 1: left out, no question 'q99'",
        "smr: mine.qrels, line 2: left out, no document 'gone.md' in the index",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tune", "--index", "i.db", "--questions", "own.txt"), "--qrels"),
        (("--fit", "--index", "i.db"), "--questions"),
        (("--fit", "--index", "none.db", "--questions", "own.txt"), "smr index DIR"),
        (("--fit", "--index", "i.db", "--questions", "few.txt"), "3 questions' - at least 20 questions are needed"),
        (
            ("--tune", "--index", "i.db", "--questions", "few.txt", "--qrels", "own.qrels"),
            "at least 20 questions with a",
        ),
        (("--fit", "--index", "i.db", "--questions", "empty.txt"), "at least one line `id question`"),
        (("--fit", "--index", "i.db", "--questions", "own.txt", "--away", "empty.txt"), "--away"),
        (("--fit", "--index", "i.db", "--questions", "own.txt", "--qrels", "empty.txt"), "--qrels"),
        (("--fit", "--index", "i.db", "--questions", "few.txt", "--away", "latin1.txt"), "at least 20 questions"),
        (("--fit", "--index", "i.db", "--questions", "no.txt"), "--questions: 'no.txt' - No such file"),
        (("--fit", "--index", "i.db", "--questions", "own.txt", "--qrels", "no.txt"), "--qrels: 'no.txt' - No such"),
        (("--fit", "--index", "i.db", "--questions", "own.txt", "--away", "."), "--away: '.' - Is a directory"),
        (
            ("--fit", "--index", "i.db", "--questions", "own.txt", "--config", CONFIG, "--write", "no.yaml"),
            "--write: 'no.yaml' - No such file",
        ),
    ],
    ids=str,
)
def test_what_is_missing_is_said(smr: Smr, arguments: tuple[str, ...], said: str) -> None:
    """Exit code 3 and one line that names the option and what would be right; how many are needed where too few."""
    (smr.folder / "few.txt").write_text("q00 one of them\nq01 another one\nq02 a third one\n")
    (smr.folder / "empty.txt").write_text("\n")
    (smr.folder / "latin1.txt").write_text("où est le café\n", encoding="latin-1")
    done = smr("evaluate", *arguments)
    assert done.returncode == 3, done.stderr
    assert said in done.stderr.splitlines()[-1]
    assert one_line(done.stderr.splitlines(keepends=True)[-1])


def test_options_of_the_two_uses_are_not_mixed(smr: Smr) -> None:
    """2 for usage."""
    assert smr("evaluate").returncode == 2
    assert smr("evaluate", "own.qrels", "own.qrels", "--tune").returncode == 2
    assert smr("evaluate", "own.qrels", "own.qrels", "--questions", "own.txt").returncode == 2
