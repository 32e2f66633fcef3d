"""The installed command `smr`, run as a person or a script runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from smart_model_router_providers.fault import FaultServer
from tests.warm import warm

KEY = "k-very-secret"
SECONDS = 60.0
"""The most that any command may take that does not say otherwise."""


def program() -> str:
    """Where the command is: beside this interpreter, unless SMR_PROGRAM names it."""
    found = os.environ.get("SMR_PROGRAM") or shutil.which("smr", path=str(Path(sys.executable).parent))
    assert found is not None
    return found


def start_program(file: Path, *arguments: str | Path | int) -> subprocess.Popen[str]:
    """Begin a Python program of the tests in a process of its own, with its streams as pipes."""
    return subprocess.Popen(
        [sys.executable, file, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Smr:
    """Runs `smr` in `folder`, in a fork of a process that has imported it unless `may_be_warm` is False."""

    may_be_warm = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        self.environment.pop("SMART_ROUTER_CONFIG", None)
        self.environment |= {"SMART_ROUTER_DATA_DIR": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}
        self.program = program()

    def __call__(
        self, *arguments: str | Path, stdin: str = "", seconds: float = SECONDS
    ) -> subprocess.CompletedProcess[str]:
        argv = [self.program, *map(str, arguments)]
        if self.may_be_warm and self._is_ordinary():
            return warm("-W", "default").run(argv, cwd=self.folder, env=self.environment, stdin=stdin, seconds=seconds)
        return subprocess.run(
            argv,
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=seconds,
            check=False,
        )

    def _is_ordinary(self) -> bool:
        """Return whether the program runs on this interpreter, with the settings that it has here."""
        changed = self.environment.items() ^ os.environ.items()
        return "SMR_PROGRAM" not in os.environ and not any(name.startswith("PYTHON") for name, _ in changed)

    def start(self, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """Begin, and leave it running."""
        return subprocess.Popen(
            [self.program, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def configure(self, server: FaultServer, **changes: Any) -> None:
        """Write ./smart-router.yaml: one remote provider in two tiers (JSON is YAML)."""
        provider = {"kind": "openai_compatible", "base_url": server.base_url, "api_key": KEY}
        model = {
            "tiers": [{"name": "frontier", "targets": ["a/big"]}, {"name": "standard", "targets": ["a/small"]}],
            "last_resort": [],
        }
        config = {"version": 1, "providers": {"a": provider}, "models": {"smart": {**model, **changes}}}
        (self.folder / "smart-router.yaml").write_text(json.dumps(config), encoding="utf-8")


def one_line(text: str) -> bool:
    """Whether the text is exactly one line, and no traceback."""
    return text.count("\n") == 1 and text.startswith("smr: ") and "Traceback" not in text
