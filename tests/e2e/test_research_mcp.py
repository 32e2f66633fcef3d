"""Research as tools of MCP, asked by the protocol's own client: over stdio of a process, and over HTTP with keys."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from smart_model_router_providers.fault import FaultServer
from tests.e2e.command import program
from tests.e2e.eventually import becomes
from tests.e2e.gateways import fleet
from tests.e2e.research_gateway import (
    ADMIN,
    LONG,
    OTHER,
    SILENT,
    TEAM,
    TOPIC,
    ResearchGateway,
    countries,
    research_gateway,
)
from tests.store_files import one

Connect = Callable[[], Any]
MODES = ("auto", "legacy")
"""The protocol since 2026-07-28, and with a handshake, as most clients still speak it."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResearchGateway]:
    """A gateway with three keys and a corpus."""
    with research_gateway(tmp_path_factory.mktemp("gateway"), research={"runs_per_key": 3}) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, for a server over stdio."""
    found = tmp_path_factory.mktemp("stdio")
    countries(found / "atlas")
    return found


@pytest.fixture
def asks_a_silent_model(folder: Path) -> Iterator[str]:
    """A configuration whose runs do not end by themselves."""
    with FaultServer(SILENT) as model:
        config = folder / "silent.json"
        config.write_text(json.dumps(fleet(model, research={"model": "smart"})), encoding="utf-8")
        yield str(config)


@asynccontextmanager
async def over_http(gateway: ResearchGateway, key: Mapping[str, str], mode: str = "auto") -> AsyncGenerator[Client]:
    """A client of the gateway with a key."""
    async with httpx2.AsyncClient(headers=dict(key), timeout=60.0) as http:
        transport = streamable_http_client(f"{gateway.served.base_url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@asynccontextmanager
async def over_stdio(folder: Path, mode: str = "auto", *options: str) -> AsyncGenerator[Client]:
    """A client of a process of its own."""
    arguments = ["research", "mcp", "--corpus", str(folder / "atlas"), *options]
    environ = {"SMART_ROUTER_DATA_DIR": str(folder / "data")}
    server = StdioServerParameters(command=program(), args=arguments, env=environ, cwd=folder)
    with (folder / "stderr.log").open("w", encoding="utf-8") as log:
        async with Client(stdio_client(server, log), mode=mode) as client:
            yield client


def told(result: Any) -> dict[str, Any]:
    """Return what a call gave, which is structured and, the same, text."""
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content
    assert json.loads(result.content[0].text) == found
    return found


async def documents_are_found_and_fetched(client: Client) -> None:
    """Search and fetch take one string each, and give what clients for deep research look for."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"search", "fetch", "deep_research", "research_status", "research_report"}
    for name, parameter in (("search", "query"), ("fetch", "id")):
        schema = tools[name].input_schema
        assert {key: value["type"] for key, value in schema["properties"].items()} == {parameter: "string"}
        assert schema["required"] == [parameter]
    assert tools["deep_research"].input_schema["required"] == ["topic"]

    found = told(await client.call_tool("search", {"query": "capital of Land 7"}))["results"]
    first = found[0]
    assert first == {"id": "atlas/land-7.md", "title": "Land 7", "url": "https://atlas.example.org/land-7.md"}
    document = told(await client.call_tool("fetch", {"id": first["id"]}))
    assert set(document) == {"id", "title", "text", "url", "metadata"}
    assert (document["id"], document["url"], "City 7" in document["text"]) == (first["id"], first["url"], True)
    assert document["metadata"] == {"publisher": "Atlas", "tier": "A", "corpus": "atlas", "published": "2026-06-01"}


async def a_run_is_followed_to_its_report(client: Client) -> str:
    """Progress arrives, and rises; the result is the report, which is found again by its id."""
    heard: list[tuple[float, str]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert total is None  # no percentage is invented
        heard.append((progress, message or ""))

    result = told(await client.call_tool("deep_research", {"topic": TOPIC, "max_rounds": 2}, progress_callback=hear))
    assert (result["state"], result["answers"]) == ("completed", ["Capital of Land 1: City 1"])
    assert result["report"].startswith(f"# {TOPIC}")
    assert [at for at, _ in heard] == sorted({at for at, _ in heard})
    assert heard[0][1] == f"run {result['run']}"
    assert any(message.startswith("q1 (") for _, message in heard)
    assert any(message.startswith("round 1: index") for _, message in heard)
    assert told(await client.call_tool("research_report", {"run": result["run"]})) == result
    status = told(await client.call_tool("research_status", {"run": result["run"]}))
    assert (status["state"], status["round"], status["max_rounds"]) == ("completed", 1, 2)
    return str(result["run"])


async def bad_input_is_told(client: Client) -> None:
    """An error of the tool that its model reads: the input, and what would be right."""
    for name, given, said in (
        ("deep_research", {"topic": "?"}, "topic: '?' - a question or a subject, with a letter or a digit is needed"),
        ("deep_research", {"topic": "x", "max_rounds": 9}, "max_rounds: 9 - "),
        ("deep_research", {"topic": "x", "budget_usd": -1}, "budget.usd: -1.0 - "),
        ("deep_research", {}, "topic"),
        ("fetch", {"id": "/etc/passwd"}, "id: '/etc/passwd' is no document; `search` gives ids"),
        ("fetch", {"id": "atlas/../../stderr.log"}, "is no document"),
        ("research_status", {"run": "no-such-run"}, "run 'no-such-run' is not known"),
        ("research_report", {"run": "no-such-run"}, "run 'no-such-run' is not known"),
        ("search", {"query": 3}, "query"),
    ):
        result = await client.call_tool(name, given)
        assert result.is_error
        assert said in result.content[0].text, result.content[0].text  # type: ignore[union-attr]


async def a_call_that_is_cancelled_cancels_its_run(client: Client, runs_file: Path) -> None:
    """Over stdio by the notification, over HTTP by the end of the stream; nothing goes on at the client's expense."""
    runs: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        runs.extend(re.findall(r"^run (\S+)$", message or ""))

    call = asyncio.create_task(client.call_tool("deep_research", {"topic": LONG}, progress_callback=hear))
    assert await becomes(lambda: bool(runs))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    state = f"SELECT state FROM runs WHERE id = '{runs[0]}'"
    assert await becomes(lambda: one(runs_file, state) != "running")
    assert one(runs_file, state) == "cancelled"


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", MODES)
async def test_the_tools_over_stdio(folder: Path, mode: str) -> None:
    """In a process of their own, which ends with its stdin, and writes nothing but the protocol to stdout."""
    async with over_stdio(folder, mode) as client:
        await documents_are_found_and_fetched(client)
        await a_run_is_followed_to_its_report(client)
        await bad_input_is_told(client)
    assert (folder / "stderr.log").read_text(encoding="utf-8") == ""


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", MODES)
async def test_a_call_over_stdio_that_is_cancelled(folder: Path, asks_a_silent_model: str, mode: str) -> None:
    """Its run is, too, and stderr does not say that it could be gone on with."""
    async with over_stdio(folder, mode, "--config", asks_a_silent_model) as client:
        await a_call_that_is_cancelled_cancels_its_run(client, folder / "data" / "runs.db")
    assert (folder / "stderr.log").read_text(encoding="utf-8") == ""


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", MODES)
async def test_the_tools_over_http(gateway: ResearchGateway, mode: str) -> None:
    """With the key that every request of the gateway has."""
    async with over_http(gateway, TEAM, mode) as client:
        await documents_are_found_and_fetched(client)
        run = await a_run_is_followed_to_its_report(client)
        await bad_input_is_told(client)
    assert gateway.state(run) == "completed"


@pytest.mark.asyncio
async def test_a_call_over_http_that_is_cancelled(tmp_path: Path) -> None:
    """The end of its stream says so; with a handshake, as clients speak it in the mode `legacy`, it says nothing."""
    with research_gateway(tmp_path, research={"model": "smart"}) as gateway:
        gateway.model.set(SILENT)
        async with over_http(gateway, TEAM) as client:
            await a_call_that_is_cancelled_cancels_its_run(client, tmp_path / "data" / "runs.db")


@pytest.mark.asyncio
async def test_two_clients_see_their_own_runs_only(gateway: ResearchGateway) -> None:
    """A run of another key is not known, as one that does not exist; an admin's key sees it."""
    async with over_http(gateway, TEAM) as team, over_http(gateway, OTHER) as other, over_http(gateway, ADMIN) as admin:
        mine = told(await team.call_tool("deep_research", {"topic": TOPIC}))["run"]
        for name in ("research_status", "research_report"):
            result = await other.call_tool(name, {"run": mine})
            assert result.is_error
            assert f"run {mine!r} is not known" in result.content[0].text  # type: ignore[union-attr]
        assert told(await admin.call_tool("research_status", {"run": mine}))["key"] == "team"


def test_a_wrong_key_is_refused_before_anything_is_read(gateway: ResearchGateway) -> None:
    """401 as everywhere; there are no streams to attach to and no sessions to end (405)."""
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    accept = {"accept": "application/json, text/event-stream"}
    for key in ({}, {"authorization": "Bearer wrong"}):
        answer = gateway.ask("POST", "/mcp", key, json=initialize, headers=accept)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    for method in ("GET", "DELETE"):
        assert gateway.ask(method, "/mcp", headers=accept).status_code == 405


@pytest.mark.asyncio
async def test_a_client_over_stdio_that_goes_leaves_its_run_to_be_gone_on_with(
    folder: Path, asks_a_silent_model: str
) -> None:
    """The end of stdin is no cancellation: stderr says how the run goes on."""
    runs: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        runs.extend(re.findall(r"^run (\S+)$", message or ""))

    async with over_stdio(folder, "auto", "--config", asks_a_silent_model) as client:
        call = asyncio.create_task(client.call_tool("deep_research", {"topic": LONG}, progress_callback=hear))
        assert await becomes(lambda: bool(runs))
    with pytest.raises(BaseException):  # noqa: B017, PT011 - of a connection that is gone; which one is the client's
        await call
    assert one(folder / "data" / "runs.db", f"SELECT state || owner FROM runs WHERE id = '{runs[0]}'") == "running"
    told_last = (folder / "stderr.log").read_text(encoding="utf-8")
    assert told_last == f"interrupted; to go on: smr research resume {runs[0]}\n"


@pytest.mark.asyncio
async def test_a_gateway_that_stops_answers_calls_that_wait(tmp_path: Path) -> None:
    """With the run as it stands; the next start goes on with it."""
    research = {"model": "smart"}
    with research_gateway(tmp_path, research=research) as gateway:
        gateway.model.set(SILENT)
        runs: list[str] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            runs.extend(re.findall(r"^run (\S+)$", message or ""))

        async with over_http(gateway, TEAM) as client:
            await client.list_tools()  # else it asks for the form of the result afterwards
            call = asyncio.create_task(client.call_tool("deep_research", {"topic": LONG}, progress_callback=hear))
            assert await becomes(lambda: bool(runs))
            gateway.served.process.send_signal(signal.SIGTERM)
            result = told(await call)
        assert (result["run"], result["state"], result["report"]) == (runs[0], "running", "")
        assert await asyncio.to_thread(gateway.served.process.wait, 30.0) == 0
    with research_gateway(tmp_path, research=research) as gateway:
        assert gateway.ended(runs[0])["state"] == "completed"
