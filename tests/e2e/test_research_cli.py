"""`smr research` as people use it: a folder of files, questions, reports, and runs that were interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_research.deep.verifying import verify
from tests.e2e.command import SECONDS, Smr
from tests.e2e.gateways import fleet

PAGES = {
    "corpus.yaml": "{name: Alder, publisher: P, tier: A, primary: true, independence: document, as_of: 2026-03-01}\n",
    "harbour.md": "# Port Alder\n\nPort Alder was founded in 1871. The population of Port Alder is 12,400.\n",
    "lighthouse.md": "# Lighthouse\n\nThe lighthouse of Port Alder was built in 1902.\n",
}
TOPIC = "When was Port Alder founded? What is the population of Port Alder?"
AS_OF = ("--as-of", "2026-03-31")


def written(folder: Path, pages: dict[str, str]) -> Path:
    """Write files, and return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def id_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return the id of the run that a command printed."""
    return next(line for line in done.stderr.splitlines() if line.startswith("run ")).split()[1]


Answered = tuple[Smr, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Answered:
    """A folder with documents, and a run that answered from them."""
    smr = Smr(tmp_path_factory.mktemp("answered"))
    written(smr.folder / "docs", PAGES)
    return smr, smr("research", "run", TOPIC, "--corpus", "docs", *AS_OF, "--out", "out")


def test_a_report_goes_to_stdout_and_everything_about_it_to_stderr(answered: Answered) -> None:
    """Its folder verifies, and so does the copy of it."""
    smr, done = answered

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"# {TOPIC}")
    assert "Port Alder was founded in 1871. [S1]" in done.stdout
    assert "  q1 (date, critical): When was Port Alder founded?\n" in done.stderr
    assert "delivery full" in done.stderr.splitlines()[-1]
    assert verify(smr.folder / "data" / "research" / "runs" / id_of(done)).is_sound
    assert verify(smr.folder / "out").is_sound


def test_runs_are_listed_and_shown(answered: Answered) -> None:
    """As tables, and as JSON."""
    smr, done = answered
    (listed,) = json.loads(smr("research", "list", "--json").stdout)["runs"]
    shown = json.loads(smr("research", "status", id_of(done), "--json").stdout)

    assert (listed["run"], listed["topic"], listed["delivery"]) == (id_of(done), TOPIC, "full")
    assert (shown["status"], shown["delivery"], shown["usage"]["documents"]) == ("completed", "full", 2)
    assert id_of(done) in smr("research", "list").stdout
    assert "completed" in smr("research", "status", id_of(done)).stdout
    assert smr("research", "verify", id_of(done)).stderr.endswith("sound\n")


def test_a_report_is_printed_again_in_other_forms(answered: Answered) -> None:
    """As the page, and as fields with the text."""
    smr, done = answered
    page, fields = (smr("research", "report", id_of(done), "--format", form).stdout for form in ("html", "json"))

    assert page.startswith("<!DOCTYPE html>")
    assert json.loads(fields)["report"] == done.stdout


def test_a_run_that_has_ended_is_watched_and_resumed_without_its_sources(answered: Answered) -> None:
    """Nothing is done again."""
    smr, done = answered
    (smr.folder / "docs").rename(smr.folder / "moved")
    watched = smr("research", "watch", id_of(done), "--json")
    resumed = smr("research", "resume", id_of(done))
    (smr.folder / "moved").rename(smr.folder / "docs")

    assert (watched.returncode, resumed.returncode, resumed.stdout) == (0, 0, done.stdout)
    events = [json.loads(line) for line in watched.stdout.splitlines()]
    assert [events[0]["kind"], events[-1]["kind"]] == ["run", "finished"]


def test_a_level_that_is_asked_for_is_an_exit_code(smr: Smr) -> None:
    """`--fail-below`, and `--json` with all fields."""
    written(smr.folder / "docs", {**PAGES, "corpus.yaml": PAGES["corpus.yaml"].replace("2026-03", "2020-03")})
    done = smr("research", "run", TOPIC, "--corpus", "docs", *AS_OF, "--fail-below", "full", "--json")
    found = json.loads(done.stdout)

    assert done.returncode == 6
    assert (found["status"], found["delivery"]) == ("completed", "moderate")
    assert found["quality_metadata"]["floor_violations"] == ["recency", "recent_source_count"]


def test_a_withheld_report_is_shown_once_a_person_accepts_it(smr: Smr) -> None:
    """6, with the command that accepts; then 0, now and later."""
    written(
        smr.folder / "docs", {"one.md": "Port Alder was founded in 1871. The population of Port Alder is 12,400.\n"}
    )
    written(smr.folder / "docs", {"two.md": "Port Alder was founded in 1874.\n"})
    done = smr("research", "run", TOPIC, "--corpus", "docs")
    run = id_of(done)
    accept = f"smr research report {run} --accept"

    assert (done.returncode, accept in done.stderr.splitlines()[-1]) == (6, True)
    accepted, after = (smr(*words) for words in (accept.split()[1:], accept.split()[1:-1]))
    assert [accepted.returncode, after.returncode] == [0, 0]
    assert done.stdout != accepted.stdout == after.stdout
    assert "12,400" in accepted.stdout


@pytest.fixture
def silent() -> Iterator[FaultServer]:
    """A model that takes each call and does not answer it, so that no run that asks it ends by itself."""
    with FaultServer([Fault.hang()]) as server:
        yield server


def test_ctrl_c_stops_a_run_so_that_it_can_go_on(smr: Smr, silent: FaultServer) -> None:
    """It prints the command that does, from any folder; watching it says so too."""
    config = written(smr.folder, {"silent.json": json.dumps(fleet(silent))}) / "silent.json"
    written(smr.folder / "docs", PAGES)
    asked = ("--corpus", "docs", *AS_OF, "--config", str(config), "--model", "smart")
    running = smr.start("research", "run", TOPIC, *asked)
    assert running.stderr is not None
    run = running.stderr.readline().decode().split()[1]
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=SECONDS)
    assert running.returncode == 130, told
    assert f"interrupted; to go on: smr research resume {run}".encode() in told
    assert b"never awaited" not in told

    assert f"smr research resume {run}" in smr("research", "list").stderr
    standing = json.loads(smr("research", "status", run, "--json").stdout)
    assert [standing["state"], standing["status"]] == ["interrupted", "interrupted"]
    watched = smr("research", "watch", run)
    assert (watched.returncode, f"smr research resume {run}" in watched.stderr) == (1, True)
    (smr.folder / "docs").rename(smr.folder / "moved")
    lost = smr("research", "run", TOPIC, "--corpus", "docs", *AS_OF)
    assert (lost.returncode, "not there" in lost.stderr) == (2, True)
    (smr.folder / "moved").rename(smr.folder / "docs")
    smr.folder = written(smr.folder / "elsewhere", {})
    silent.set(None)
    done = smr("research", "resume", run, "--config", str(config))
    assert done.returncode == 0, done.stderr
    assert "  it goes on\n" in done.stderr
    assert "Port Alder was founded in 1871." in done.stdout


def test_a_list_says_what_it_leaves_out(smr: Smr) -> None:
    """With the option that lists them all."""
    written(smr.folder / "docs", PAGES)
    for _ in range(2):
        smr("research", "run", TOPIC, "--corpus", "docs", *AS_OF)

    assert "older runs that are not listed: 1; all of them: --limit 2" in smr("research", "list", "--limit", "1").stderr


def test_without_a_source_nothing_begins(smr: Smr) -> None:
    """The options that give one are named."""
    done = smr("research", "run", TOPIC)

    assert (done.returncode, done.stdout) == (2, "")
    assert "--corpus" in done.stderr
    assert "smr research corpus" in done.stderr


def test_what_cannot_be_used_is_told_in_a_line_each(smr: Smr) -> None:
    """Skipped files with the reason, paths that are not there, a wrong evaluation with its places."""
    written(smr.folder / "empty", {"table.xlsx": "x"})
    written(smr.folder, {"evaluation.yaml": "evaluation:\n  deep_research:\n    min_ci: 3\n    patiense: 1\n"})
    words = ("research", "run", TOPIC, "--corpus", "empty", "--corpus", "nowhere")
    corpora, evaluation = smr(*words), smr(*words, "--evaluation", "evaluation.yaml")

    assert (corpora.returncode, len(corpora.stderr.splitlines())) == (2, 2)
    assert ".xlsx (1)" in corpora.stderr
    assert (evaluation.returncode, len(evaluation.stderr.splitlines())) == (2, 2)
    assert "evaluation.yaml:4:5" in evaluation.stderr
    assert smr("research", "run", TOPIC, "--corpus", "empty", "--as-of", "2999-01-01").returncode == 2


def test_a_configuration_names_the_corpora_and_an_evaluation_of_its_own_the_gates(smr: Smr) -> None:
    """Unreadable files are told; the plan says which gates these documents cannot pass."""
    folder = written(smr.folder / "docs", PAGES)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    model = {"tiers": [{"targets": ["a/big"]}], "last_resort": []}
    config = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": "http://127.0.0.1:9/v1", "api_key": "k"}},
        "models": {"smart": model},
        "research": {"corpora": ["docs"], "rounds": 2},
    }
    written(smr.folder, {"smart-router.yaml": json.dumps(config)})
    written(smr.folder, {"evaluation.yaml": "evaluation: {deep_research: {min_recent_sources: 9}}\n"})
    done = smr("research", "plan", TOPIC, *AS_OF, "--evaluation", "evaluation.yaml", "--json")
    plan = json.loads(done.stdout)

    assert done.returncode == 0
    assert done.stderr.startswith(f"smr: not read: {folder}/broken.pdf: ")
    assert plan["inputs"]["max_rounds"] == 2
    assert [(gate["gate"], gate["best"], gate["needed"]) for gate in plan["unreachable_gates"]] == [
        ("recent_source_count", 2, 9)
    ]
    assert (
        "cannot pass: recent_source_count" in smr("research", "plan", TOPIC, *AS_OF, "--min-recent-sources", "9").stdout
    )


def test_a_shipped_corpus_is_written_into_a_new_folder(smr: Smr) -> None:
    """All of it or nothing; a folder with other files stays as it is."""
    first, again = smr("research", "corpus", "pydoc", "topics"), smr("research", "corpus", "pydoc", "topics")

    assert (first.returncode, first.stdout, again.returncode) == (0, "topics\n", 2)
    assert (smr.folder / "topics" / "corpus.yaml").is_file()
    assert len(list((smr.folder / "topics").iterdir())) > 70
    assert [each.name for each in smr.folder.iterdir() if "topics" in each.name] == ["topics"]


def test_the_web_is_asked_only_for_what_may_be_asked(smr: Smr) -> None:
    """An unknown back-end is told with those there are; a page of this machine is refused, and the run says so."""
    unknown = smr("research", "run", TOPIC, "--backend", "sarxng")
    inside = smr("research", "run", TOPIC, "--seed-url", "http://127.0.0.1/")
    password = smr("research", "run", TOPIC, "--seed-url", "http://me:secret@example.org/")
    planned = smr("research", "plan", TOPIC, "--backend", "arxiv")
    written(smr.folder / "docs", PAGES)
    beside = smr("research", "plan", TOPIC, "--backend", "arxiv", "--corpus", "docs")

    assert (unknown.returncode, unknown.stderr) == (
        2,
        "smr: --backend: 'sarxng' - one of these is needed: corpus, arxiv\n",
    )
    assert inside.returncode == 6
    assert "not used: http://127.0.0.1/: not public: " in inside.stderr
    assert "Not looked for" in inside.stdout
    assert password.returncode == 2
    assert "secret" not in password.stderr
    assert "sent: the questions and what is searched for them, to arxiv (export.arxiv.org)" in planned.stdout
    assert "sources: 2 documents and the web" in beside.stdout
    assert "in no words of your documents, to arxiv" in beside.stdout


def test_under_local_only_the_web_is_refused_by_the_configuration(smr: Smr) -> None:
    """And by the options of a run."""
    model = {"tiers": [{"targets": ["s/x"]}], "last_resort": []}
    config = {"version": 1, "providers": {"s": {"kind": "scripted"}}, "models": {"smart": model}}
    refused = {**config, "research": {"egress": "local_only", "backends": ["corpus", "arxiv"]}}
    written(smr.folder, {"smart-router.yaml": json.dumps({**config, "research": {"egress": "local_only"}})})
    written(smr.folder, {"refused.yaml": json.dumps(refused)})
    checked = smr("config", "check", "--config", "refused.yaml")
    asked = [smr("research", "run", TOPIC, *words) for words in (("--backend", "arxiv"), ("--seed-url", "http://a.b/"))]

    assert checked.returncode == 3
    assert "research.backends[1]" in checked.stderr + checked.stdout
    assert [(done.returncode, done.stderr.split(":")[1].strip()) for done in asked] == [
        (2, "--backend"),
        (2, "--seed-url"),
    ]
