"""Research through the gateway: runs of keys, their events and reports, over real sockets and processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.research_gateway import (
    ADMIN,
    DISPUTED,
    OTHER,
    TEAM,
    TOPIC,
    ResearchGateway,
    research_gateway,
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResearchGateway]:
    """A gateway with three keys and a corpus."""
    with research_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture(scope="module")
def known(gateway: ResearchGateway) -> str:
    """A run of the key `team` that has ended."""
    run = gateway.begin()
    gateway.ended(run)
    return run


def test_a_run_from_its_question_to_its_report(gateway: ResearchGateway) -> None:
    """202 with its place; events up to its end; how it stands; its report in three forms, without paths of the host."""
    run = gateway.begin()
    events = list(gateway.events(run))
    assert [events[0]["kind"], events[-1]["kind"]] == ["run", "finished"]
    assert {"plan", "step", "query", "fetched", "claim", "metric", "gate", "round"} <= {each["kind"] for each in events}
    seqs = [each["seq"] for each in events]
    assert seqs == sorted(set(seqs))

    told = gateway.ask("GET", f"/research/{run}").json()
    assert (told["state"], told["status"], told["delivery"], told["round"]) == ("completed", "completed", "full", 1)
    assert (told["corpora"], told["topic"], told["answers"]) == (
        ["atlas", "towns"],
        TOPIC,
        ["Capital of Land 1: City 1"],
    )
    assert told["ci"] == pytest.approx(told["quality_metadata"]["best_ci_achieved"])

    markdown = gateway.ask("GET", f"/research/{run}/report")
    assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "City 1" in markdown.text
    page = gateway.ask("GET", f"/research/{run}/report", headers={"accept": "text/html,*/*"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.text.startswith("<!DOCTYPE html>")
    whole = gateway.ask("GET", f"/research/{run}/report?format=json").json()
    assert whole["report"] == markdown.text
    for answer in (told, whole, events):
        assert str(gateway.folder) not in str(answer)


def test_a_run_belongs_to_its_key(gateway: ResearchGateway, known: str) -> None:
    """To every other key it is not there, whatever is asked of it; an admin sees all, with the name of the key."""
    run = known
    asked = [("GET", ""), ("GET", "/events"), ("GET", "/report"), ("POST", "/cancel"), ("POST", "/accept")]
    for method, path in asked:
        refused = gateway.ask(method, f"/research/{run}{path}", OTHER)
        unknown = gateway.ask(method, f"/research/no-such-run{path}", OTHER)
        assert (refused.status_code, unknown.status_code) == (404, 404)
        assert refused.json()["error"]["message"].replace(run, "no-such-run") == unknown.json()["error"]["message"]
        assert gateway.ask(method, f"/research/{run}{path}", {}).status_code == 401
    listed = [each["run"] for each in gateway.ask("GET", "/research").json()["runs"]]
    assert run in listed
    assert run not in [each["run"] for each in gateway.ask("GET", "/research", OTHER).json()["runs"]]
    seen = next(each for each in gateway.ask("GET", "/research?limit=100", ADMIN).json()["runs"] if each["run"] == run)
    assert (seen["key"], seen["topic"]) == ("team", TOPIC)
    assert "key" not in gateway.ask("GET", f"/research/{run}").json()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "topic: missing"),
        ({"topic": "?"}, "topic: '?' - a question or a subject, with a letter or a digit is needed"),
        ({"topic": 3}, "topic: Input should be a valid string"),
        ({"topic": "x" * 20_001}, "topic: '20001 characters' - at most 20000 characters of text is needed"),
        ({"topic": "x", "max_rounds": 0}, "max_rounds: 0 - "),
        ({"topic": "x", "max_rounds": 5}, "max_rounds: 5 - at most 4 is needed (research.rounds)"),
        ({"topic": "x", "max_rounds": "2"}, "max_rounds: Input should be a valid integer"),
        ({"topic": "x", "as_of": "2999-01-01"}, "as_of: '2999-01-01' - a day up to today"),
        ({"topic": "x", "domain": "cooking"}, "domain: 'cooking' - a domain with a window of recency"),
        ({"topic": "x", "corpora": ["/etc"]}, "corpora: '/etc' - a corpus of this gateway is needed: atlas, towns"),
        ({"topic": "x", "corpora": []}, "corpora: [] - at least one is needed, of atlas, towns"),
        ({"topic": "x", "budget": {"usd": 3}}, "budget.usd: 3.0 - at most 2 is needed (research.budget.usd)"),
        ({"topic": "x", "budget": {"seconds": -1}}, "budget.seconds: -1.0 - "),
        ({"topic": "x", "budget": {"hours": 1}}, "budget.hours: "),
        ({"topic": "x", "tiers": {"example.org": "A"}}, "tiers: it is the operator's to decide"),
        ({"topic": "x", "tpoic": "y"}, "tpoic: the key is unknown; did you mean 'topic'?"),
        ({"topic": "x", "analysts": [{"name": "a b"}]}, "analysts.name: 'a b' - "),
        ([], 'a JSON object with the key "topic" is needed'),
    ],
)
def test_bad_input_is_told(gateway: ResearchGateway, body: Any, said: str) -> None:
    """400 in the manners of the API, with the input and what would be right."""
    answer = gateway.ask("POST", "/research", json=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith(said)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/research?limit=0", 400, "limit: '0' - a number from 1 to 100 is needed"),
        ("/research?limit=x", 400, "limit: 'x'"),
        ("/research/{run}/events?after=-1", 400, "Last-Event-ID: '-1'"),
        ("/research/{run}/report?format=pdf", 400, "format: 'pdf' is none of md, html, json"),
        ("/research/{run}/reports", 404, "there is no GET"),
    ],
)
def test_bad_queries_are_told(gateway: ResearchGateway, known: str, path: str, status: int, said: str) -> None:
    """With the name of the parameter."""
    answer = gateway.ask("GET", path.format(run=known))
    assert (answer.status_code, answer.json()["error"]["message"][: len(said)]) == (status, said)


def test_a_reader_comes_again_where_it_was(gateway: ResearchGateway, known: str) -> None:
    """From any event on it gets exactly what follows; after the last one it is told that it is over (204)."""
    run = known
    events = list(gateway.events(run))
    for at in (0, len(events) // 2, len(events) - 2):
        assert list(gateway.events(run, after=events[at]["seq"])) == events[at + 1 :]
    last = str(events[-1]["seq"])
    for behind in (last, "9" * 18):
        answer = gateway.ask("GET", f"/research/{run}/events", headers={"last-event-id": behind})
        assert (answer.status_code, answer.text) == (204, "")


def test_a_run_is_cancelled_for_good(gateway: ResearchGateway) -> None:
    """Its stream ends; a second time changes nothing; it has no report."""
    run = gateway.begin_endless()
    first = next(gateway.events(run))
    assert first["kind"] == "run"
    answer = gateway.ask("POST", f"/research/{run}/cancel")
    assert (answer.status_code, answer.json()) == (200, {"run": run, "state": "cancelled"})
    assert list(gateway.events(run))[-1]["data"]["state"] == "cancelled"
    assert gateway.ask("POST", f"/research/{run}/cancel").json()["state"] == "cancelled"
    report = gateway.ask("GET", f"/research/{run}/report")
    assert (report.status_code, report.json()["error"]["message"]) == (409, "the run has no report: it is cancelled")


def test_so_many_runs_of_a_key_and_no_more(gateway: ResearchGateway) -> None:
    """429 for the third one; another key has its own; one that ended makes room."""
    runs = [gateway.begin_endless() for _ in range(2)]
    refused = gateway.ask("POST", "/research", json={"topic": TOPIC})
    assert refused.status_code == 429
    assert refused.json()["error"]["message"] == (
        "the key 'team' has 2 runs already, and no more may go on at once (research.runs_per_key)"
    )
    gateway.ended(gateway.begin(TOPIC, OTHER), OTHER)
    for run in runs:
        gateway.ask("POST", f"/research/{run}/cancel")
    gateway.ended(gateway.begin())


def test_a_withheld_report_is_accepted_by_a_person(gateway: ResearchGateway) -> None:
    """Of the corpus that it names. Until then it shows no answer; the first acceptance counts, with both names."""
    run = gateway.begin(DISPUTED, corpora=["towns"])
    told = gateway.ended(run)
    assert (told["delivery"], told["corpora"]) == ("withheld", ["towns"])
    assert "12,400" not in gateway.ask("GET", f"/research/{run}/report").text
    assert gateway.ask("POST", f"/research/{run}/accept", json={"by": 3}).status_code == 400
    accepted = gateway.ask("POST", f"/research/{run}/accept", json={"by": "Ada"})
    assert (accepted.status_code, accepted.json()["delivery"]) == (200, "withheld")
    assert gateway.ask("POST", f"/research/{run}/accept", json={"by": "Bob"}).json() == accepted.json()
    assert gateway.ask("GET", f"/research/{run}/report").text == accepted.json()["report"]
    assert all(said in accepted.json()["report"] for said in ("12,400", "Ada (team)"))


def test_without_research_its_routes_do_not_exist(tmp_path: Path) -> None:
    """404, as for every path that is none."""
    with research_gateway(tmp_path, research={"gateway": False}) as running:
        for method, path in (("POST", "/research"), ("GET", "/research"), ("GET", "/research/x/events")):
            answer = running.ask(method, path, TEAM)
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert not (tmp_path / "data" / "runs.db").exists()
