"""Coding agents as clients of our MCP server: the model calls `deep_research`, and gets to see the checked answer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from tests.e2e.research_gateway import countries

SECONDS = 150
KEY = "agent-key"
TOPIC = "What is the capital of Land 1?"
PROMPT = f"{TOPIC} Ask the tool deep_research of the server research."
KNOWN = "Capital of Land 1: City 1"
"""The answer of a report, which only the tool can tell the model."""
DONE = "It is City 1, says the report."
LOST = "I do not know."
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
            Upstream([name], _turn) as upstream,
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
            done = self._done(folder, gateway.base_url, name, server)
            wrong = tuple(missed(done, upstream.calls))
        said = done.stdout.strip().splitlines()[-1:] or [""]
        return Verdict(self.client, self.version, f"MCP over {transport}", said[0][:200], wrong)

    def _done(self, folder: Path, base_url: str, model: str, server: Server) -> subprocess.CompletedProcess[str]:
        work, home = folder / "work", folder / "home"
        for place in (work, home):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        command, extra = self.prepare(home, base_url, model, server)
        path = f"{NODE.parent}{os.pathsep}{os.defpath}"
        environment = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", **extra}
        return run(command, SECONDS, cwd=work, env=environment)


def _turn(call: Call) -> Turn:
    """Call the tool until the conversation has its result, then tell what it told."""
    if KNOWN in call.text:
        return Turn(Reply(DONE, ()))
    if (name := _named(call)) and '"topic"' not in call.text.replace(json.dumps(call.body.get("tools")), ""):
        return Turn(Reply("I ask.", (ToolCall(name, json.dumps({"topic": TOPIC})),)))
    return Turn(Reply(LOST, ()))


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


def missed(done: subprocess.CompletedProcess[str], calls: Sequence[Call]) -> Iterator[str]:
    """Yield what is wrong with a run: a tool that its model was not offered, a report that it did not see or tell."""
    offered = {_plain(name) for call in calls for name in _names(call.body.get("tools") or ())}
    for tool in TOOLS:
        if tool not in offered:
            yield f"its model was never offered {tool}"
    if not any(KNOWN in call.text for call in calls):
        yield "its model never saw the report"
    if done.returncode or DONE not in done.stdout:
        yield f"exit {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}"


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
ROWS = tuple(Row(client.client, client.run) for client in _CLIENTS)
