"""`make agents` has no client here, but its lane judges: a client's report is held against what its provider saw."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import httpx2
import pytest

from tests.agents import faults, mcp_clients, plan
from tests.agents.coding import COPIED, DONE, Agent, judged
from tests.agents.programs import Program
from tests.agents.rows import Cell, Mark, Verdict, table
from tests.agents.upstream import Call, Upstream

ASKS = """
import os, openai
model = "{model}"
with openai.OpenAI(base_url=os.environ["SMR_AGENTS_GATEWAY"] + "/v1", api_key="unused") as client:
    client.chat.completions.create(model=model, messages=[{{"role": "user", "content": "hi"}}])
print('{{"model": "%s"{more}}}' % model)
"""
WHOLE = "gateway.messages.chat.whole"


def program(code: str) -> Program:
    """A client of one task."""
    return Program("some client", "1", {"gateway": 1}, lambda: [sys.executable, "-c", code])


def run(code: str) -> tuple[list[Verdict], list[Cell]]:
    """Its verdicts and its cells."""
    told = list(program(code).run())
    return [one for one in told if isinstance(one, Verdict)], [one for one in told if isinstance(one, Cell)]


def test_a_client_that_does_its_task_passes() -> None:
    """It says so, it ends well, and the provider was asked once."""
    verdicts, cells = run(ASKS.format(model=WHOLE, more=""))
    assert [verdict.wrong for verdict in verdicts] == [()]
    assert [(cell.api, cell.dialect, cell.fault, cell.mark) for cell in cells] == [
        ("chat", "messages", "none", Mark.WORKS)
    ]
    assert "| some client | 1 | gateway | 1 tasks |" in table(verdicts)


def test_a_report_decides_the_marks_of_the_cells() -> None:
    """The gateway waits the provider's 429 out; a task's report makes its cell, and of several the worst counts."""
    reports = {"cut": "", "stall": "error", "malformed": "hang", "529": "wrong"}
    report = '{{"model": "gateway.chat.chat.tools.{}", "{}": "so"}}'
    lines = [report.format(fault, key or "well") for fault, key in reports.items()]
    lines.append('{"model": "gateway.chat.chat.stream.529", "error": "so"}')
    _, cells = run(ASKS.format(model=f"{WHOLE}.429", more="") + "".join(f"print({line!r})\n" for line in lines))
    assert {cell.fault: cell.mark for cell in cells} == {
        "429": Mark.WORKS,
        "cut": Mark.WORKS,
        "stall": Mark.ERROR,
        "malformed": Mark.HANG,
        "529": Mark.SHORTENED,
    }


def test_a_task_that_the_provider_never_saw_is_wrong() -> None:
    """Whatever a client says of itself: without both calls and the tool's result at the provider it has failed."""
    (verdict,), _ = run('print(\'{"model": "gateway.chat.chat.tools"}\')')
    assert verdict.wrong == (
        "gateway.chat.chat.tools: 0 calls in place of 2",
        "gateway.chat.chat.tools: the tool's result did not reach the provider",
    )


@pytest.mark.parametrize(
    ("code", "said", "written", "mark"),
    [
        (0, DONE, COPIED, Mark.WORKS),
        (0, "", None, Mark.SHORTENED),
        (0, "Error: it was cut", None, Mark.ERROR),
        (1, "", None, Mark.ERROR),
        (0, f"error: no such patch. {DONE}", None, Mark.SHORTENED),
        (1, "Error: it was cut", "copied: 73", Mark.SHORTENED),
        (124, "", None, Mark.HANG),
    ],
)
def test_a_coding_agent_is_judged_by_its_file_and_its_words(
    code: int, said: str, written: str | None, mark: Mark
) -> None:
    """A file that holds a part is a shortened answer, whatever is said; silence about an undone task is one too."""
    assert judged(subprocess.CompletedProcess([], code, said, ""), written)[0] is mark


def test_an_agent_that_does_the_task_without_its_provider_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read must have reached the provider."""
    monkeypatch.setattr("tests.agents.coding.COLUMNS", {"none": faults.COLUMNS["none"]})
    code = f"open('out.txt', 'w').write({COPIED!r}); print({DONE!r})"
    agent = Agent(
        client="some agent",
        version="1",
        api="chat",
        read=lambda work: [{"name": "read", "arguments": {}}],
        write=lambda work: [{"name": "write", "arguments": {"content": COPIED}}],
        prepare=lambda home, base_url, model, dialect: ([sys.executable, "-c", code], {}),
        dialects=("chat",),
    )
    (cell,) = agent.run()
    assert (cell.mark, cell.failed) == (Mark.ERROR, True)
    assert cell.wrong == ("the provider never saw 'the number is 7321'",)


@pytest.fixture
def provider() -> Generator[httpx2.Client]:
    """A client of the lane's provider."""
    with (
        Upstream(("some",), plan.respond) as upstream,
        httpx2.Client(base_url=upstream.urls["some"], timeout=30) as client,
    ):
        yield client


def body(api: str, task: str, fault: str = faults.NONE, **more: Any) -> dict[str, Any]:
    """A request for a task."""
    asked = {"responses": "input"}.get(api, "messages")
    return {
        "model": plan.model("gateway", api, api, task, fault),
        asked: [{"role": "user", "content": plan.QUESTION}],
        **more,
    }


@pytest.mark.parametrize(
    ("api", "path", "header", "more"),
    [
        ("messages", "/messages?beta=true", "context-management-2025-06-27", {"context_management": {"edits": []}}),
        ("responses", "/responses", "responses_multi_agent=v1", {"multi_agent": {"enabled": True}}),
    ],
)
def test_a_field_of_a_beta_needs_the_header(
    provider: httpx2.Client, api: str, path: str, header: str, more: dict[str, Any]
) -> None:
    """Without the beta the provider knows no such field, and a beta that it does not know it refuses."""
    name = {"messages": "anthropic-beta", "responses": "openai-beta"}[api]
    asked = body(api, "whole", **more)
    without = provider.post(path, json=asked)
    unknown = provider.post(path, json=asked, headers={name: f"{header},made-up-2020-01-01"})
    told = provider.post(path, json=asked, headers={name: header})
    assert (without.status_code, unknown.status_code, told.status_code) == (400, 400, 200)
    assert "Extra inputs are not permitted" in without.text
    assert "made-up-2020-01-01" in unknown.text


def test_a_reference_is_resolved_or_refused(provider: httpx2.Client) -> None:
    """Only what the provider stored can be named; the earlier turn is then known to it."""
    first = provider.post("/responses", json=body("responses", "turns")).json()
    forgotten = provider.post("/responses", json=body("responses", "turns", store=False)).json()
    further = {"role": "user", "content": plan.NEXT_QUESTION}

    def follow(reference: str) -> httpx2.Response:
        items = [{"type": "item_reference", "id": reference}, further]
        return provider.post("/responses", json={**body("responses", "turns"), "input": items})

    assert follow(first["output"][0]["id"]).json()["output"][0]["content"][0]["text"] == plan.NEXT_ANSWER
    assert follow(forgotten["output"][0]["id"]).status_code == 404
    lost = provider.post("/responses", json={**body("responses", "turns"), "previous_response_id": "resp_0"})
    assert (lost.status_code, lost.json()["error"]["code"]) == (400, "previous_response_not_found")


@pytest.mark.parametrize("fault", ["429", "529"])
def test_a_refusal_comes_once(provider: httpx2.Client, fault: str) -> None:
    """The second call is answered well."""
    asked = body("chat", "whole", fault)
    assert [provider.post("/chat/completions", json=asked).status_code for _ in range(2)] == [int(fault), 200]


@pytest.mark.parametrize(
    ("api", "path"), [("chat", "/chat/completions"), ("messages", "/messages"), ("responses", "/responses")]
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_malformed_call_loses_a_piece_that_leaves_valid_json(
    provider: httpx2.Client, api: str, path: str, stream: bool
) -> None:
    """One event of a stream, or the whole body, has a raw control character; every other event is well."""
    told = provider.post(path, json=body(api, "tools", "malformed", stream=stream)).text
    frames = [line.removeprefix("data: ") for line in told.splitlines() if line.startswith("data: {")]
    broken = [frame for frame in (frames if stream else [told]) if not _is_json(frame)]
    assert len(broken) == 1
    assert "\x01" in broken[0]


def test_a_cut_stream_breaks_off_in_its_middle(provider: httpx2.Client) -> None:
    """Some content comes, and no end."""
    told: list[str] = []

    def collect(answer: httpx2.Response) -> None:
        for line in answer.iter_lines():
            told.append(line)  # noqa: PERF402  what came before the cut is kept

    with (
        pytest.raises(httpx2.RemoteProtocolError),
        provider.stream("POST", "/chat/completions", json=body("chat", "stream", "cut", stream=True)) as answer,
    ):
        collect(answer)
    assert any('"content":"It i"' in line for line in told)
    assert not any("finish_reason" in line and "stop" in line for line in told)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_an_agent_whose_model_never_saw_the_report_fails_the_lane() -> None:
    """Each tool that was not offered, the report that did not come back, and what was said without it."""
    expected = (mcp_clients.KNOWN, mcp_clients.DONE)
    done = subprocess.CompletedProcess([], 0, stdout=mcp_clients.LOST, stderr="")
    offered = [{"type": "function", "function": {"name": f"research__{name}"}} for name in mcp_clients.TOOLS[1:]]
    call = Call("chat", "m", {"messages": [], "tools": offered}, {})
    wrong = list(mcp_clients.missed(done, [call], *expected))
    assert wrong[:2] == ["its model was never offered search", "its model never saw the report"]
    assert wrong[2].startswith("exit 0: ")
    seen = Call("chat", "m", {"messages": [mcp_clients.KNOWN], "tools": [*offered, {"name": "search"}]}, {})
    told = subprocess.CompletedProcess([], 0, stdout=mcp_clients.DONE, stderr="")
    assert list(mcp_clients.missed(told, [call, seen], *expected)) == []
