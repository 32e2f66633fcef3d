"""Coding agents, as users install them: one task, two tools, and a provider that fails in five ways meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_model_router_providers.fault import Fault, FaultServer, RecordedRequest
from tests.agents import plan
from tests.agents.elsewhere import Elsewhere
from tests.agents.environments import NODE, PACKAGES, node, run
from tests.agents.rows import Row, Verdict
from tests.e2e.gateways import served

SECONDS = 300
PROMPT = "Copy the number from in.txt into out.txt"
SECRET = "the number is 7321\n"
COPIED = "copied: 7321\n"
PATCH = f"*** Begin Patch\n*** Add File: out.txt\n+{COPIED}*** End Patch\n"
DONE = "The number is copied."
CALLS = (
    *((status, "answered") for status in (429, 529, 529, 200)),
    (200, "cut"),
    *((200, "answered") for _ in range(3)),
)
"""What the provider's book must hold: refused three times, then read; write: cut, failed, done; the last word."""
MIDDLE = 6
"""The pieces of content after which a call breaks off: its words are three, the call's name one, its arguments more."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A coding agent. `read` and `write` are the calls that the provider makes of its tools, in the working folder.

    `prepare` is given a home, the gateway's address, the model and what the provider speaks, and returns command and
    environment. `dialects` are those of the provider, one run each; `seen` is what the provider's last call must hold
    beside what was read.
    """

    client: str
    package: str
    dialects: tuple[str, ...]
    read: Callable[[Path], list[dict[str, Any]]]
    write: Callable[[Path], list[dict[str, Any]]]
    prepare: Callable[[Path, str, str, str], tuple[Sequence[str | Path], Mapping[str, str]]]
    model: str = "smart"
    said: str = "two tools"
    seen: tuple[str, ...] = ()

    def run(self) -> Iterator[Verdict]:
        """One verdict for each dialect of the provider."""
        for dialect in self.dialects:
            how = f"gateway, provider of {dialect.capitalize()}"
            wrong = tuple(self._played(dialect))
            said = f"{self.said}; 429, 529, 529, cut, error after content"
            yield Verdict(self.client, PACKAGES[self.package], how, said, wrong)

    def _played(self, dialect: str) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="smr-agents-") as name:
            folder = Path(name)
            work, home = folder / "work", folder / "home"
            work.mkdir()
            home.mkdir()
            (work / "in.txt").write_text(SECRET, encoding="utf-8")
            models = {self.model: f"{dialect}/big", "quick": f"{dialect}/small"}
            upstream = FaultServer({"big": script(self.read(work), self.write(work))})
            with (
                upstream,
                Elsewhere() as elsewhere,
                served(plan.config(upstream.base_url, models), folder) as gateway,
            ):
                command, extra = self.prepare(home, gateway.base_url, self.model, dialect)
                environment = {
                    "HOME": str(home),
                    "PATH": f"{NODE.parent}{os.pathsep}{os.defpath}",
                    "LANG": "C.UTF-8",
                    **elsewhere.variables(),
                    **extra,
                }
                done = run(command, SECONDS, cwd=work, env=environment)
                yield from _wrong(done, work, upstream.requests, (SECRET.strip(), *self.seen))
                if elsewhere.asked:
                    yield f"it asked for {', '.join(elsewhere.asked)}"


def script(read: list[dict[str, Any]], write: list[dict[str, Any]]) -> list[Fault]:
    """What the provider says, call by call: the words first, then what becomes of them."""
    said = [
        Fault.reply("I read it.", tool_calls=read, times=4),
        Fault.reply("I write it.", tool_calls=write, times=7),
        Fault.reply(DONE),
    ]
    well = Fault.delay(first=0, times=1)
    fates = [
        Fault.status(429, {"retry-after": "1"}, times=1),
        Fault.status(529, times=2),
        well,
        Fault.cut(after=MIDDLE, times=1),
        Fault.error_event(after=MIDDLE, times=1),
    ]
    return [*said, *fates]


def _wrong(
    done: subprocess.CompletedProcess[str], work: Path, calls: Sequence[RecordedRequest], seen: Sequence[str]
) -> Iterator[str]:
    """What is not as it should be."""
    if done.returncode:
        yield f"exit {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
    if DONE not in done.stdout:
        yield f"it never said its last word: {done.stdout[-2000:]}"
    out = work / "out.txt"
    written = out.read_text(encoding="utf-8") if out.exists() else None
    if written != COPIED:
        yield f"out.txt holds {written!r}"
    mine = [call for call in calls if call.model == "big"]
    met = tuple((call.status, call.ending) for call in mine)
    if met != CALLS:
        yield f"the provider's book: {met}"
    last = json.dumps(mine[-1].body if mine else {})
    yield from (f"the provider never saw {words!r}" for words in seen if words not in last)


def _claude_code(home: Path, base_url: str, model: str, dialect: str) -> tuple[Sequence[str | Path], Mapping[str, str]]:
    program = node() / "node_modules" / "@anthropic-ai" / "claude-code" / "cli-wrapper.cjs"
    command: list[str | Path] = [NODE, program, "-p", PROMPT, "--dangerously-skip-permissions"]
    environment = {
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": "unused",
        "ANTHROPIC_MODEL": model,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": "quick",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",  # root may then skip permissions: CI runs in containers
    }
    return command, environment


def _codex(home: Path, base_url: str, model: str, dialect: str) -> tuple[Sequence[str | Path], Mapping[str, str]]:
    program = node() / "node_modules" / "@openai" / "codex" / "bin" / "codex.js"
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


_AGENTS = (
    Agent(
        client="Claude Code",
        package="@anthropic-ai/claude-code",
        dialects=("messages", "chat", "responses"),
        read=lambda work: [{"name": "Read", "arguments": {"file_path": str(work / "in.txt")}}],
        write=lambda work: [{"name": "Write", "arguments": {"file_path": str(work / "out.txt"), "content": COPIED}}],
        prepare=_claude_code,
    ),
    Agent(
        client="Codex CLI",
        package="@openai/codex",
        dialects=("responses", "chat", "messages"),
        read=lambda work: [{"name": "exec_command", "arguments": {"cmd": "cat in.txt"}}],
        write=lambda work: [{"name": "exec_command", "arguments": {"cmd": f"printf {COPIED!r} > out.txt"}}],
        prepare=_codex,
    ),
    # By the name of a model that it knows, Codex brings tools of its own forms: free text, and a search for tools.
    Agent(
        client="Codex CLI, as gpt-5.5",
        package="@openai/codex",
        dialects=("chat", "messages"),
        read=lambda work: [
            {"name": "tool_search", "arguments": {"query": "spawn agent"}},
            {"name": "exec_command", "arguments": {"cmd": "cat in.txt"}},
        ],
        write=lambda work: [{"name": "apply_patch", "arguments": {"input": PATCH}}],
        prepare=_codex,
        model="gpt-5.5",
        seen=("multi_agent_v1__spawn_agent",),  # what its search finds is declared as a tool
        said="tool_search and exec_command at once, apply_patch",
    ),
)
ROWS = tuple(Row(agent.client, agent.run) for agent in _AGENTS)
