"""Secrets seeded everywhere come out nowhere: not in logs, files, metrics, events, errors, spans or pages."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from smart_model_router import SmartModelRouter, SmartRouterError
from smart_model_router.observability.dashboard_history import DashboardHistory
from smart_model_router.observability.spans import SpanSink
from smart_model_router.testing import RecordingSink
from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.command import Smr
from tests.e2e.gateways import SECONDS, Served, becomes, fleet, served

SEEDS = {
    "a prompt": "seed-prompt-7f3a91",
    "an upstream key": "seed-upstream-key-7f3a92",
    "a client's key": "seed-client-key-7f3a93",
    "a header of the configuration": "seed-config-header-7f3a94",
    "a header of a request": "seed-request-header-7f3a95",
    "a query": "seed-query-7f3a96",
    "a tool": "seed-tool-7f3a97",
}
CONTENT = ("a prompt", "a tool")
CLIENT = SEEDS["a client's key"]
BODY: dict[str, Any] = {
    "model": "smart",
    "messages": [{"role": "user", "content": f"my password is {SEEDS['a prompt']}"}],
    "tools": [{"type": "function", "function": {"name": "f", "description": SEEDS["a tool"], "parameters": {}}}],
    "user": SEEDS["a prompt"],
}
ECHO = json.dumps({"error": {"message": f"you said {SEEDS['a prompt']} with key {SEEDS['an upstream key']}"}})
STATUSES = (400, 401, 403, 404, 429, 500, 529)


def configuration(*servers: FaultServer) -> dict[str, Any]:
    """A fleet whose keys and headers are seeds."""
    config = fleet(*servers)
    for provider in config["providers"].values():
        provider["api_key"] = SEEDS["an upstream key"]
        provider["headers"] = {"x-org": SEEDS["a header of the configuration"]}
    return config


def assert_clean(where: str, text: str) -> None:
    """No seed is in the text."""
    assert [what for what, seed in SEEDS.items() if seed in text] == [], f"{where}: {text[:2000]}"


def assert_keyless(where: str, text: str) -> None:
    """None of the seeds that are no content is in the text."""
    keys = [what for what, seed in SEEDS.items() if what not in CONTENT and seed in text]
    assert keys == [], f"{where}: {text[:2000]}"


@dataclass
class Seeded:
    """A gateway that met seeds: where its files are, and what it replied."""

    running: Served
    folder: Path
    replies: list[httpx2.Response]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeded]:
    """A gateway that was asked with seeds, and whose providers echoed them in every kind of error."""
    folder = tmp_path_factory.mktemp("seeded")
    sections = {
        "store": {"path": str(folder / "stats.db")},
        "telemetry": {"log": {"to": str(folder / "log.jsonl")}},
        "gateway": {"keys": {"team": {"key": SEEDS["a client's key"], "admin": True}}},
    }
    with FaultServer() as a, FaultServer() as b, served({**configuration(a, b), **sections}, folder) as running:
        (folder / "smart-router.yaml").rename(folder.parent / f"{folder.name}.yaml")  # it holds them by right
        seeded, address = Seeded(running, folder, []), running.base_url + "/v1/chat/completions"
        sent = {
            "authorization": f"Bearer {CLIENT}",
            "x-trace": SEEDS["a header of a request"],
            "x-router-session": SEEDS["a header of a request"],
            "x-router-timeout": "3s",
        }
        asks = {"smart": address + "?token=" + SEEDS["a query"], "claude": running.base_url + "/v1/messages"}
        for status in STATUSES:
            a.set([Fault.status(status, body=ECHO)])
            for model, url in asks.items():
                body = {**BODY, "model": model, "max_tokens": 10}
                seeded.replies.append(httpx2.post(url, json=body, headers=sent, timeout=SECONDS))
        b.set([Fault.status(500, body=ECHO)])
        for wrong in ({"model": "smart"}, {**BODY, "messages": SEEDS["a prompt"]}, BODY):
            seeded.replies.append(httpx2.post(address, json=wrong, headers=sent, timeout=SECONDS))
        stranger = {**sent, "authorization": f"Bearer {CLIENT}-not"}
        seeded.replies.append(httpx2.post(address, json=BODY, headers=stranger, timeout=SECONDS))
        yield seeded


def test_no_key_is_in_a_reply(gateway: Seeded) -> None:
    """Answers and errors go to who sent the prompt, and may quote it; keys and what the configuration holds never."""
    assert {reply.status_code for reply in gateway.replies} >= {200, 400, 401}
    for reply in gateway.replies:
        assert_keyless(f"reply {reply.status_code}", reply.text + repr(reply.headers))


def test_no_seed_is_in_a_file(gateway: Seeded) -> None:
    """Neither in the JSON log nor in the process's own, nor in any database, its write-ahead log included."""
    folder = gateway.folder
    log = folder / "log.jsonl"
    assert becomes(lambda: log.exists() and len(log.read_text("utf-8").splitlines()) >= 2 * len(STATUSES))
    assert becomes((folder / "stats.db").exists)
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    assert {"log.jsonl", "gateway.log", "stats.db", "stats.metrics.db", "state.db"} <= {path.name for path in found}
    for path in found:
        assert_clean(path.name, path.read_bytes().decode("latin-1"))


@pytest.mark.parametrize(
    "path", ["/metrics", "/health", "/health/readiness", "/api/stats", "/api/targets", "/dashboard"]
)
def test_no_seed_is_on_a_page(gateway: Seeded, path: str) -> None:
    """Whatever is told of the fleet."""
    running = gateway.running
    key = {"authorization": f"Bearer {CLIENT}"}
    assert_clean(path, httpx2.get(running.base_url + path, headers=key, timeout=SECONDS).text)


def test_no_seed_is_in_a_picture(gateway: Seeded) -> None:
    """Nor in the ways of the requests in it."""
    running = gateway.running
    key = {"authorization": f"Bearer {CLIENT}"}
    data = ""
    with httpx2.stream("GET", running.base_url + "/dashboard/stream", headers=key, timeout=SECONDS) as reply:
        for line in reply.iter_lines():
            if line.startswith("data: ") and '"targets"' in line:
                data = line[6:]
                break
    assert_clean("the picture", data)
    requests = json.loads(data)["requests"]
    assert len(requests) >= len(STATUSES)
    for line in requests:
        way = httpx2.get(f"{running.base_url}/dashboard/requests/{line['request_id']}", headers=key, timeout=SECONDS)
        assert_clean("a way", way.text)


@pytest.mark.asyncio
@pytest.mark.parametrize("status", STATUSES)
async def test_no_key_is_in_an_event_a_span_or_an_error(status: int) -> None:
    """A provider that echoes the key and the prompt in its error puts neither into what is told of it."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    sink, recorder = RecordingSink(), DashboardHistory()
    with FaultServer([Fault.status(status, body=ECHO)]) as a:
        async with SmartModelRouter.from_config(configuration(a), sinks=[sink]) as router:
            router.monitor.watch(SpanSink({}, provider=provider))
            router.monitor.watch(recorder)
            with pytest.raises(SmartRouterError) as caught:
                await router.chat(BODY, timeout=2.0)
    provider.shutdown()
    report = caught.value.report
    assert report is not None
    assert_clean("events", repr(sink.events))
    assert_clean("spans", " ".join(span.to_json() for span in exporter.get_finished_spans()))
    assert_clean("the dashboard's past", repr(recorder.requests) + repr(recorder.transitions))
    # The error goes to who sent the prompt: the provider's words about it may quote it, but never a key.
    assert_keyless("the error", str(caught.value) + "".join(traceback.format_exception(caught.value)))
    assert_keyless("the report", report.to_json())


COMMANDS = {
    "index": ("index", "docs", "--json"),
    "ask": ("ask", "what?", "--explain"),
    "ask --json": ("ask", "what?", "--json"),
    "explain": ("explain", "what?", "--json"),
    "models": ("models", "--json"),
    "doctor": ("doctor", "--json"),
    "stats": ("stats", "--json"),
    "top": ("top", "--times", "1", "--json"),
    "config check": ("config", "check"),
    "config show": ("config", "show"),
    "chaos": ("chaos", "--scenario", "rate_limited_once", "--json"),
    "query": ("query", "what?", "--answer", "--json"),
}


@pytest.fixture(scope="module")
def commanded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder in which every command ran, and what each printed: one provider echoes its key, the other is well."""
    smr = Smr(tmp_path_factory.mktemp("commanded"))
    (smr.folder / "docs").mkdir()
    (smr.folder / "docs" / "a.md").write_text("# What\n\nThat is what it is.\n")
    file = smr.folder / "smart-router.yaml"
    with FaultServer([Fault.status(401, body=ECHO)]) as a, FaultServer() as b:
        config = {**configuration(a, b), "store": {"path": "stats.db"}, "search": {"index": "search.sqlite"}}
        file.write_text(json.dumps(config), encoding="utf-8")
        done = {name: smr(*command) for name, command in COMMANDS.items()}
    file.unlink()  # it holds them by right
    assert [name for name, one in done.items() if not one.stdout or "Traceback" in one.stderr] == []
    return smr.folder, {name: one.stdout + one.stderr for name, one in done.items()}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_key_is_in_what_a_command_prints(commanded: tuple[Path, dict[str, str]], command: str) -> None:
    """On neither of its streams."""
    assert_keyless(command, commanded[1][command])


def test_no_key_is_in_what_commands_leave(commanded: tuple[Path, dict[str, str]]) -> None:
    """Statistics, shared state, an index."""
    made = sorted(path for path in commanded[0].rglob("*") if path.is_file())
    assert {"stats.db", "state.db", "search.sqlite"} <= {path.name for path in made}
    for path in made:
        assert_keyless(path.name, path.read_bytes().decode("latin-1"))
