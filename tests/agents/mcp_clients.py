"""Coding agents as clients of our MCP server: the model calls `deep_research`, and gets to see the checked answer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_model_router_providers.fault.parsed_request import Reply, ToolCall
from tests.agents import plan
from tests.agents.environments import NODE, PACKAGES, node, run
from tests.agents.rows import Row, Verdict
from tests.agents.upstream import Call, Turn, Upstream
from tests.e2e.command import program
from tests.e2e.gateways import served
from tests.e2e.model_provider import ModelProvider
from tests.e2e.research_gateway import countries
from tests.e2e.test_research_cli import written
from tests.e2e.test_research_models import PAGES
from tests.scripted_models import competent

SECONDS = 150
KEY = "agent-key"
TOPIC = "What is the capital of Land 1?"
ASK = " Ask the tool deep_research of the server research."
PROMPT = f"{TOPIC}{ASK}"
KNOWN = "Capital of Land 1: City 1"
"""The answer of a report, which only the tool can tell the model."""
DONE = "It is City 1, says the report."
LOST = "I do not know."
LOAN, LOANED = "How long may I borrow a book?", "Loans last three weeks."
"""A question, and the sentence that answers it, in which no word of it stands: a model has to find it."""
LENT = {LOAN: [LOANED]}
LOAN_DONE = "Three weeks, says the report."
DIES_AT = 2
STOOD_IN = "stood in for one/m"
TOOLS = ("search", "fetch", "deep_research", "research_status", "research_report")
Server = Mapping[str, Any]
Prepared = tuple[Sequence[str | Path], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class McpClient:
    """An agent that has our server, by stdio or by HTTP; its model is at a provider of `dialect`, behind a gateway.

    `prepare` is given a home, the gateway's address, the model and the server: `command`, `args` and `env`, or `url`.
    """

    client: str
    version: str
    dialect: str
    prepare: Callable[[Path, str, str, Server], Prepared]

    def run(self) -> Iterator[Verdict]:
        """Run it with each transport."""
        for transport in ("stdio", "http"):
            with tempfile.TemporaryDirectory(prefix="smr-mcp-") as name:
                yield self._verdict(Path(name), transport)

    def _verdict(self, folder: Path, transport: str) -> Verdict:
        corpus, name = countries(folder / "atlas"), f"{self.dialect}-none"
        environ = {"SMART_ROUTER_DATA_DIR": str(folder / "data")}
        sections: dict[str, Any] = {
            "research": {"gateway": True, "corpora": [str(corpus)]},
            "gateway": {"keys": {"agent": {"key": KEY}}},
        }
        with (
            Upstream([name], turn(TOPIC, KNOWN, DONE)) as upstream,
            served(
                plan.config(upstream.urls, {name: f"{name}/{name}"}), folder, environ=environ, **sections
            ) as gateway,
        ):
            arguments = ["research", "mcp", "--corpus", str(corpus)]
            local: Server = {
                "command": program(),
                "args": arguments,
                "env": {"SMART_ROUTER_DATA_DIR": str(folder / "local")},
            }
            server: Server = local if transport == "stdio" else {"url": f"{gateway.base_url}/mcp"}
            done = self.done(folder, gateway.base_url, name, server)
            wrong = tuple(missed(done, upstream.calls, KNOWN, DONE))
        said = done.stdout.strip().splitlines()[-1:] or [""]
        return Verdict(self.client, self.version, f"MCP over {transport}", said[0][:200], wrong)

    def done(self, folder: Path, base_url: str, model: str, server: Server) -> subprocess.CompletedProcess[str]:
        """Run the agent in a folder and a home of its own, and return what it did."""
        work, home = folder / "work", folder / "home"
        for place in (work, home):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        command, extra = self.prepare(home, base_url, model, server)
        path = f"{NODE.parent}{os.pathsep}{os.defpath}"
        environment = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", **extra}
        return run(command, SECONDS, cwd=work, env=environment)


@dataclass(frozen=True, slots=True)
class DyingProvider:
    """Claude Code asks for research with a model behind our gateway, and a provider of that model dies in mid-run.

    It has to end with the claims of a run whose providers live, and its report to say what stood in.
    """

    client: str
    version: str

    def run(self) -> Iterator[Verdict]:
        """Run it with providers that live, and with one that dies at its third call."""
        with tempfile.TemporaryDirectory(prefix="smr-mcp-") as name:
            living, wrong = self._claims(Path(name) / "living", None)
            found, missing = self._claims(Path(name) / "dying", DIES_AT)
        wrong = [*wrong, *missing]
        if not living or found != living:
            wrong.append(f"the claims are {sorted(found)}, and {sorted(living)} without the death")
        said = f"{len(found)} claims, the same as without it"
        yield Verdict(self.client, self.version, "a provider dies in mid-run", said, tuple(wrong))

    def _claims(self, folder: Path, dies_at: int | None) -> tuple[set[str], list[str]]:
        """Return the claims of one run, and what is wrong with it."""
        folder.mkdir()
        corpus = written(folder / "docs", PAGES)
        with ExitStack() as stack:
            first = stack.enter_context(ModelProvider(competent(LENT), dies_at))
            others = {at: stack.enter_context(ModelProvider(competent(LENT))) for at in ("two", "three")}
            providers = {"one": first, **others}
            upstream = stack.enter_context(Upstream(["messages-none"], turn(LOAN, LOANED, LOAN_DONE)))
            config = plan.config(upstream.urls, {"messages-none": "messages-none/messages-none"})
            config["providers"] |= {
                name: {"kind": "openai_compatible", "base_url": each.base_url, "api_key": "k"}
                for name, each in providers.items()
            }
            config["models"]["researcher"] = {
                "tiers": [{"targets": [f"{name}/m"]} for name in providers],
                "last_resort": [],
            }
            sections: dict[str, Any] = {
                "research": {"gateway": True, "corpora": [str(corpus)], "model": "researcher"},
                "gateway": {"keys": {"agent": {"key": KEY}}},
            }
            environ = {"SMART_ROUTER_DATA_DIR": str(folder / "data")}
            gateway = stack.enter_context(served(config, folder, environ=environ, **sections))
            agent = McpClient(self.client, self.version, "messages", _prepared(LOAN))
            done = agent.done(folder, gateway.base_url, "messages-none", {"url": f"{gateway.base_url}/mcp"})
            wrong = list(missed(done, upstream.calls, LOANED, LOAN_DONE))
            if dies_at is not None and not any(STOOD_IN in call.text for call in upstream.calls):
                wrong.append("the report does not say what stood in for the provider that died")
            if dies_at is not None and len(first.asked) <= dies_at:
                wrong.append("the provider did not die in mid-run")
        graphs = list((folder / "data").rglob("claim_graph.json"))
        claims = [each for graph in graphs for each in json.loads(graph.read_text("utf-8"))["claims"]]
        return {each["text"] for each in claims}, wrong


def turn(topic: str, known: str, done: str) -> Callable[[Call], Turn]:
    """Return a model that calls the tool until the conversation has its result, then tells what it told."""

    def take(call: Call) -> Turn:
        if known in call.text:
            return Turn(Reply(done, ()))
        if (name := _named(call)) and '"topic"' not in call.text.replace(json.dumps(call.body.get("tools")), ""):
            return Turn(Reply("I ask.", (ToolCall(name, json.dumps({"topic": topic})),)))
        return Turn(Reply(LOST, ()))

    return take


def _named(call: Call) -> str:
    """Return the name that the agent gives the tool."""
    return next((name for name in _names(call.body.get("tools") or ()) if _plain(name) == "deep_research"), "")


def _names(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names of tools, as the dialects have them: a provider of Responses is offered them in groups."""
    for tool in tools:
        yield str(tool.get("function", tool).get("name", ""))


def _plain(name: str) -> str:
    """Return the name of a tool without that of its server, which each agent puts before it."""
    return name.rpartition("__")[2]


def missed(done: subprocess.CompletedProcess[str], calls: Sequence[Call], known: str, told: str) -> Iterator[str]:
    """Yield what is wrong with a run: a tool that its model was not offered, a report that it did not see or tell."""
    offered = {_plain(name) for call in calls for name in _names(call.body.get("tools") or ())}
    for tool in TOOLS:
        if tool not in offered:
            yield f"its model was never offered {tool}"
    if not any(known in call.text for call in calls):
        yield "its model never saw the report"
    if done.returncode or told not in done.stdout:
        yield f"exit {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}"


def _prepared(topic: str) -> Callable[[Path, str, str, Server], Prepared]:
    """Return how Claude Code is asked for another topic."""

    def prepare(home: Path, base_url: str, model: str, server: Server) -> Prepared:
        command, environment = _claude(home, base_url, model, server)
        return [topic + ASK if part == PROMPT else part for part in command], environment

    return prepare


def _claude(home: Path, base_url: str, model: str, server: Server) -> Prepared:
    entry = {"type": "http", "headers": {"Authorization": f"Bearer {KEY}"}} if "url" in server else {"type": "stdio"}
    file = home / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"research": {**server, **entry}}}), encoding="utf-8")
    wrapper = node("newest") / "node_modules" / "@anthropic-ai" / "claude-code" / "cli-wrapper.cjs"
    switches: list[str | Path] = ["--dangerously-skip-permissions", "--strict-mcp-config", "--mcp-config", file]
    return [NODE, wrapper, "-p", PROMPT, *switches], {
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_MODEL": model,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ENABLE_TOOL_SEARCH": "false",  # the tools are declared, and not looked for by the model first
        "IS_SANDBOX": "1",  # root may then skip permissions: CI runs in containers
    }


def _codex(home: Path, base_url: str, model: str, server: Server) -> Prepared:
    if "url" in server:
        entry = [f'url = "{server["url"]}"', 'bearer_token_env_var = "ROUTER_KEY"']
    else:
        environment = ", ".join(f'{name} = "{value}"' for name, value in server["env"].items())
        entry = [
            f'command = "{server["command"]}"',
            f"args = {json.dumps(server['args'])}",
            f"env = {{ {environment} }}",
        ]
    settings = [
        f'model = "{model}"',
        'model_provider = "router"',
        'web_search = "disabled"',
        "[model_providers.router]",
        'name = "router"',
        f'base_url = "{base_url}/v1"',
        'wire_api = "responses"',
        'env_key = "ROUTER_KEY"',
        "[features]",
        "plugins = false",
        "apps = false",
        "[analytics]",
        "enabled = false",
        "[mcp_servers.research]",
        "required = true",  # else it begins without a server that is not there yet
        "startup_timeout_sec = 60",
        *entry,
    ]
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text("\n".join(settings), encoding="utf-8")
    switches = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    launcher = node("newest") / "node_modules" / "@openai" / "codex" / "bin" / "codex.js"
    return [NODE, launcher, "exec", *switches, PROMPT], {"ROUTER_KEY": KEY}


_CLIENTS = (
    McpClient("Claude Code, with MCP", PACKAGES["newest"]["@anthropic-ai/claude-code"], "messages", _claude),
    McpClient("Codex CLI, with MCP", PACKAGES["newest"]["@openai/codex"], "chat", _codex),
)
_DYING = DyingProvider("Claude Code, with MCP and a dying provider", _CLIENTS[0].version)
ROWS = (*(Row(client.client, client.run) for client in _CLIENTS), Row(_DYING.client, _DYING.run))
