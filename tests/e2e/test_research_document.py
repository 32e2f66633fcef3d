"""docs/how-to/research.md as people use it: its files, its commands in order, its program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import yaml

from tests.e2e.command import SECONDS, Smr, program
from tests.e2e.gateways import served

DOCUMENT = (Path(__file__).parents[2] / "docs" / "how-to" / "research.md").read_text("utf-8")
FILES = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', DOCUMENT, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^\$ smr (research .*)$", DOCUMENT, re.MULTILINE)
ASKED = re.findall(r"^\$ curl .*(/research) -d '(.*)'$", DOCUMENT, re.MULTILINE)
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Smr, list[Done]]:
    """The commands of the document, in its order, beside its files."""
    smr = Smr(tmp_path_factory.mktemp("document"))
    for name, text in FILES.items():
        if "." in name:
            file = smr.folder / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, "utf-8")
    words = [re.findall(r'"[^"]*"|\S+', command) for command in COMMANDS]
    return smr, [smr(*(word.strip('"') for word in each)) for each in words]


def test_the_questions_are_answered_as_the_document_says(run: tuple[Smr, list[Done]]) -> None:
    """The report begins as it is shown; the second question is answered from the table."""
    _, (first, second, *_) = run

    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith(FILES["report"])
    assert second.returncode == 0
    assert "Tom Okafor" in second.stdout.partition("## Answer")[2].partition("##")[0]


def test_what_the_documents_do_not_say_is_not_answered(run: tuple[Smr, list[Done]]) -> None:
    """Exit code 6, and the words that say it."""
    _, (_, _, third, *_) = run

    assert third.returncode == 6
    assert "Not found in these sources." in third.stdout


def test_plan_and_list_show_what_they_say(run: tuple[Smr, list[Done]]) -> None:
    """The questions, and the three runs."""
    _, (*_, plan, listed) = run

    assert plan.returncode == 0, plan.stderr
    assert "Who is the owner of Courier?" in plan.stdout
    assert listed.stdout.count("completed") == 3


def test_the_program_answers(run: tuple[Smr, list[Done]]) -> None:
    """An answer, and the events of a second question."""
    smr, _ = run
    done = subprocess.run(
        [sys.executable, "ask.py"], cwd=smr.folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "The gateway listens on port 8443." in done.stdout
    assert re.search("Tom Okafor.* supported", done.stdout)


def test_the_client_of_mcp_answers(run: tuple[Smr, list[Done]]) -> None:
    """The program starts the command, and prints what the tool gave."""
    smr, _ = run
    beside = f"{Path(program()).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": beside, "SMART_ROUTER_DATA_DIR": str(smr.folder / "mcp")}
    done = subprocess.run(
        [sys.executable, "ask_mcp.py"],
        cwd=smr.folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Tom Okafor" in done.stdout


def test_the_gateway_answers_the_request_of_the_document(run: tuple[Smr, list[Done]]) -> None:
    """With the configuration that the document shows: the place of a run, which ends with the answer."""
    smr, _ = run
    config = yaml.safe_load(FILES["research.yaml"])
    config["research"]["corpora"] = [str(smr.folder / name) for name in config["research"]["corpora"]]
    environ = {"SMART_ROUTER_DATA_DIR": str(smr.folder / "gateway")}
    [(path, body)] = ASKED
    with served(config, smr.folder, environ=environ) as running:
        headers = {"authorization": "Bearer a-key-of-sixteen-characters"}
        begun = httpx2.post(running.base_url + path, content=body, headers=headers)
        assert (begun.status_code, begun.headers["location"].rpartition("-")[0]) == (
            202,
            "/research/who-is-the-owner-of",
        )
        place = running.base_url + begun.headers["location"]
        events = httpx2.get(f"{place}/events", headers=headers, timeout=SECONDS).text
        assert events.count("event: finished") == 1
        assert "Tom Okafor" in httpx2.get(f"{place}/report", headers=headers).text
