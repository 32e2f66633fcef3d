"""The installed command `smr`, run as a person or a script runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from smart_model_router_providers.fault import FaultServer
from tests.warm import warm

ROOT = Path(__file__).parents[2]
KEY = "k-very-secret"
SECONDS = 60.0
"""The most that any command may take that does not say otherwise."""


def program() -> str:
    """Where the command is: beside this interpreter, unless SMR_PROGRAM names it."""
    found = os.environ.get("SMR_PROGRAM") or shutil.which("smr", path=str(Path(sys.executable).parent))
    assert found is not None
    return found


class StartedProgram:
    """A Python program of the tests that was started, in a fork of a process that has imported the router.

    `stdin` and `stdout` are pipes. What it writes to stderr is kept for `communicate`.
    """

    def __init__(self, file: Path, *arguments: str | Path | float) -> None:
        theirs, ours = os.pipe(), os.pipe()
        self.stdin: TextIO = os.fdopen(theirs[1], "w", encoding="utf-8")
        self.stdout: TextIO = os.fdopen(ours[0], encoding="utf-8")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `communicate`
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        argv = [str(file), *map(str, arguments)]
        self._program = warm().start(argv, [theirs[0], ours[1], self._errors.fileno()], cwd=Path.cwd(), env=environment)
        os.close(theirs[0])
        os.close(ours[1])
        self.pid = self._program.pid
        self.kill = self._program.kill
        self.wait = self._program.wait
        self.send_signal = self._program.send_signal
        self.told: tuple[str, str] | None = None

    @property
    def returncode(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None before `wait` or `communicate`."""
        return self._program.returncode

    def tell(self, text: str) -> None:
        """Write to its stdin at once."""
        self.stdin.write(text)
        self.stdin.flush()

    def communicate(self, told: str = "", timeout: float | None = None) -> tuple[str, str]:
        """Write `told`, end its stdin and wait for its end; return the rest of its stdout, and its stderr.

        Raises subprocess.TimeoutExpired. A second call returns the same again.
        """
        if self.told is None:
            with suppress(BrokenPipeError):
                self.stdin.write(told)
                self.stdin.close()
            self.wait(timeout)
            with self.stdout, self._errors:
                self._errors.seek(0)
                self.told = self.stdout.read(), self._errors.read().decode()
        return self.told


STARTED: list[StartedProgram] = []
"""Programs of the present test, which end with it at the latest."""


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
