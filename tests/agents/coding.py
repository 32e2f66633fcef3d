"""Coding agents, as users install them: one task, and a provider that fails once when the agent is to write."""

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
from tests.agents.elsewhere import Elsewhere
from tests.agents.environments import NODE, PACKAGES, PYTHON, node, python, run
from tests.agents.faults import COLUMNS, NONE
from tests.agents.rows import Cell, Mark, Row
from tests.agents.upstream import Call, Turn, Upstream
from tests.e2e.gateways import served

SECONDS = 150
PROMPT = "Copy the number from in.txt into out.txt"
SECRET = "the number is 7321\n"
COPIED = "copied: 7321\n"
PATCH = f"*** Begin Patch\n*** Add File: out.txt\n+{COPIED}*** End Patch\n"
DONE = "The number is copied."
SMALL = "small"
"""The model of titles and summaries."""

Calls = Sequence[Mapping[str, Any]]
Prepared = tuple[Sequence[str | Path], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Agent:
    """A coding agent that speaks `api`. `read` and `write` are the calls that the provider makes of its tools.

    An agent without tools is told what to write in words: `says`. `prepare` is given a home, the gateway's address, the
    model and what the provider speaks, and returns command and environment. `model` is the only name that it can be
    told, where it is not any. `seen` is what the provider's last call
    must hold beside what was read. `fetches`: at its start it asks for a package that it does without.
    """

    client: str
    version: str
    api: str
    prepare: Callable[[Path, str, str, str], Prepared]
    read: Callable[[Path], Calls] = lambda _: ()
    write: Callable[[Path], Calls] = lambda _: ()
    says: str = ""
    model: str = ""
    fetches: bool = False
    seen: tuple[str, ...] = ()
    dialects: tuple[str, ...] = plan.DIALECTS

    def run(self) -> Iterator[Cell]:
        """One cell for each dialect of the provider and each fault, all through one gateway where names allow it."""
        faults = [fault for fault, column in COLUMNS.items() if not (self.says and column.tools_only)]
        names = [f"{dialect}-{fault}" for dialect in self.dialects for fault in faults]
        for group in [[name] for name in names] if self.model else [names]:
            yield from self._through_one_gateway(group)

    def _through_one_gateway(self, names: Sequence[str]) -> Iterator[Cell]:
        """The cells of these names, each a provider and the model that reaches it."""
        with tempfile.TemporaryDirectory(prefix="smr-agents-") as name:
            folder = Path(name)
            models = {self.model or name: f"{name}/{name}" for name in names} | {SMALL: f"{names[0]}/{SMALL}"}
            with (
                Upstream(names, lambda call: self._turn(call, folder / "work")) as upstream,
                served(plan.config(upstream.urls, models), folder) as gateway,
            ):
                for cell in names:
                    began = len(upstream.calls)
                    with Elsewhere() as elsewhere:
                        mark, wrong = self._played(cell, folder, gateway.base_url, elsewhere)
                    dialect, _, fault = cell.partition("-")
                    if fault == NONE:
                        wrong += self._missed(upstream.calls[began:], elsewhere.asked)
                        mark = Mark.ERROR if wrong and mark is Mark.WORKS else mark
                    yield Cell(self.client, self.version, self.api, dialect, fault, mark, wrong)

    def _played(self, cell: str, folder: Path, base_url: str, elsewhere: Elsewhere) -> tuple[Mark, tuple[str, ...]]:
        """Run the agent in a home and a folder of its own."""
        work, home = folder / "work", folder / "home"
        for place in (work, home):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        (work / "in.txt").write_text(SECRET, encoding="utf-8")
        command, extra = self.prepare(home, base_url, self.model or cell, cell.partition("-")[0])
        environment = {
            "HOME": str(home),
            "PATH": f"{NODE.parent}{os.pathsep}{os.defpath}",
            "LANG": "C.UTF-8",
            **elsewhere.variables(),
            **extra,
        }
        done = run(command, SECONDS, cwd=work, env=environment)
        out = work / "out.txt"
        return judged(done, out.read_text(encoding="utf-8") if out.exists() else None)

    def _turn(self, call: Call, work: Path) -> Turn:
        """The provider's answer, by the results of tools that the conversation holds: however often it is asked."""
        fault = call.model.partition("-")[2]
        if call.model == SMALL:
            return Turn(Reply("A title", ()))
        if self.says:
            return Turn(Reply(self.says, ()), fault)
        read, write = self.read(work), self.write(work)
        results = _results(call)
        if results < len(read):
            return Turn(Reply("I read it.", _calls(read)))
        if results < len(read) + len(write):
            return Turn(Reply("I write it.", _calls(write)), fault)
        return Turn(Reply(DONE, ()))

    def _missed(self, calls: Sequence[Call], elsewhere: Sequence[str]) -> tuple[str, ...]:
        """What is wrong although the task was done: without a fault nothing may be."""
        asked = [call for call in calls if call.model != SMALL]
        last = json.dumps(asked[-1].body if asked else {})
        return (
            *(f"the provider never saw {words!r}" for words in (SECRET.strip(), *self.seen) if words not in last),
            *(f"the provider refused: {call.refusal}" for call in calls if call.refusal),
            *(f"it asked for {host}" for host in elsewhere if not self.fetches),
        )


def _calls(calls: Calls) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(call["name"], json.dumps(call["arguments"])) for call in calls)


def _results(call: Call) -> int:
    """How many results of tools the conversation holds."""
    if call.dialect == "responses":
        items = call.body["input"] if isinstance(call.body["input"], list) else []
        return sum(str(item.get("type", "")).endswith("_output") for item in items)
    if call.dialect == "chat":
        return sum(message["role"] == "tool" for message in call.body["messages"])
    blocks = [part for message in call.body["messages"] for part in message["content"] if isinstance(part, dict)]
    return sum(block["type"] == "tool_result" for block in blocks)


def judged(done: subprocess.CompletedProcess[str], written: str | None) -> tuple[Mark, tuple[str, ...]]:
    """The mark of a run, and why it is not the best."""
    said = f"exit {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
    if written not in (None, COPIED) or (written is None and DONE in done.stdout):
        return Mark.SHORTENED, (f"out.txt holds {written!r}; {said}",)
    if done.returncode == 124:
        return Mark.HANG, (said,)
    if written == COPIED and DONE in done.stdout and not done.returncode:
        return Mark.WORKS, ()
    seen = done.returncode or "rror" in done.stdout + done.stderr
    return (Mark.ERROR if seen else Mark.SHORTENED), (said,)


def _claude_code(environment: str) -> Callable[[Path, str, str, str], Prepared]:
    def prepare(home: Path, base_url: str, model: str, dialect: str) -> Prepared:
        program = node(environment) / "node_modules" / "@anthropic-ai" / "claude-code" / "cli-wrapper.cjs"
        command: list[str | Path] = [NODE, program, "-p", PROMPT, "--dangerously-skip-permissions"]
        return command, {
            "ANTHROPIC_BASE_URL": base_url,
            "ANTHROPIC_API_KEY": "unused",
            "ANTHROPIC_MODEL": model,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": SMALL,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",  # root may then skip permissions: CI runs in containers
        }

    return prepare


def _codex(home: Path, base_url: str, model: str, dialect: str) -> Prepared:
    program = node("newest") / "node_modules" / "@openai" / "codex" / "bin" / "codex.js"
    settings = [
        f'model = "{model}"',
        'model_provider = "router"',
        # Web search runs at the provider: only one that speaks Responses itself can be asked for it.
        *([] if dialect == "responses" else ['web_search = "disabled"']),
        "[model_providers.router]",
        'name = "router"',
        f'base_url = "{base_url}/v1"',
        'wire_api = "responses"',
        'env_key = "ROUTER_KEY"',
        # What it would otherwise fetch from elsewhere, beside the task.
        "[features]",
        "plugins = false",
        "apps = false",
        "[analytics]",
        "enabled = false",
    ]
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text("\n".join(settings), encoding="utf-8")
    switches = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return [NODE, program, "exec", *switches, PROMPT], {"ROUTER_KEY": "unused"}


def _opencode(package: str) -> Callable[[Path, str, str, str], Prepared]:
    """`package` is the SDK that it speaks by; it has all of them in its program."""

    def prepare(home: Path, base_url: str, model: str, dialect: str) -> Prepared:
        program = node("newest") / "node_modules" / "opencode-linux-x64" / "bin" / "opencode"
        models = {model: {"name": model}, SMALL: {"name": SMALL}}
        options = {"baseURL": f"{base_url}/v1", "apiKey": "unused"}
        settings = {
            "model": f"router/{model}",
            "small_model": f"router/{SMALL}",
            "autoupdate": False,
            "share": "disabled",
            "provider": {"router": {"npm": package, "name": "router", "options": options, "models": models}},
        }
        folder = home / ".config" / "opencode"
        folder.mkdir(parents=True)
        (folder / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
        return [program, "run", PROMPT], {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_PURE": "1",
        }

    return prepare


def _aider(provider: str, base: str) -> Callable[[Path, str, str, str], Prepared]:
    """`provider` is the beginning of the model's name by which it chooses a dialect, `base` the end of its address."""

    def prepare(home: Path, base_url: str, model: str, dialect: str) -> Prepared:
        switches = [
            *("--yes-always", "--no-git", "--no-check-update", "--no-analytics", "--no-show-model-warnings"),
            *("--no-show-release-notes", "--no-detect-urls", "--no-suggest-shell-commands", "--no-pretty"),
            *("--edit-format", "whole", "--map-tokens", "0", "--read", "in.txt", "--message", PROMPT),
        ]
        program = python("aider").with_name("aider")
        # The table of models that it would otherwise fetch.
        cached = home / ".aider" / "caches" / "model_prices_and_context_window.json"
        cached.parent.mkdir(parents=True)
        cached.write_text('{"none": {}}', encoding="utf-8")
        return [program, "--model", f"{provider}/{model}", "--weak-model", f"{provider}/{SMALL}", *switches], {
            f"{provider.upper()}_API_BASE": f"{base_url}{base}",
            f"{provider.upper()}_API_KEY": "unused",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    return prepare


def _claude(client: str, environment: str) -> Agent:
    return Agent(
        client=client,
        version=PACKAGES[environment]["@anthropic-ai/claude-code"],
        api="messages",
        read=lambda work: [{"name": "Read", "arguments": {"file_path": str(work / "in.txt")}}],
        write=lambda work: [{"name": "Write", "arguments": {"file_path": str(work / "out.txt"), "content": COPIED}}],
        prepare=_claude_code(environment),
    )


def _opened(api: str, package: str) -> Agent:
    return Agent(
        client="opencode",
        version=PACKAGES["newest"]["opencode-ai"],
        api=api,
        read=lambda work: [{"name": "read", "arguments": {"filePath": str(work / "in.txt")}}],
        write=lambda work: [{"name": "write", "arguments": {"filePath": str(work / "out.txt"), "content": COPIED}}],
        prepare=_opencode(package),
        fetches=True,
    )


def _aided(api: str, provider: str, base: str) -> Agent:
    return Agent(
        client="aider",
        version=PYTHON["aider"]["aider-chat"],
        api=api,
        says=f"out.txt\n```\n{COPIED}```\n\n{DONE}",
        prepare=_aider(provider, base),
    )


_AGENTS = (
    _claude("Claude Code", "newest"),
    _claude("Claude Code 2.1.197", "previous"),
    Agent(
        client="Codex CLI",
        version=PACKAGES["newest"]["@openai/codex"],
        api="responses",
        read=lambda work: [{"name": "exec_command", "arguments": {"cmd": "cat in.txt"}}],
        write=lambda work: [{"name": "exec_command", "arguments": {"cmd": f"printf {COPIED!r} > out.txt"}}],
        prepare=_codex,
    ),
    # By the name of a model that it knows, Codex brings tools of its own forms: free text, and a search for tools.
    Agent(
        client="Codex CLI, as gpt-5.5",
        version=PACKAGES["newest"]["@openai/codex"],
        api="responses",
        read=lambda work: [
            {"name": "tool_search", "arguments": {"query": "spawn agent"}},
            {"name": "exec_command", "arguments": {"cmd": "cat in.txt"}},
        ],
        write=lambda work: [{"name": "apply_patch", "arguments": {"input": PATCH}}],
        prepare=_codex,
        model="gpt-5.5",
        seen=("multi_agent_v1__spawn_agent",),  # what its search finds is declared as a tool
        dialects=("chat", "messages"),
    ),
    _opened("chat", "@ai-sdk/openai-compatible"),
    _opened("responses", "@ai-sdk/openai"),
    _opened("messages", "@ai-sdk/anthropic"),
    _aided("chat", "openai", "/v1"),
    _aided("messages", "anthropic", ""),
)
ROWS = tuple(Row(agent.client, agent.run) for agent in _AGENTS)
