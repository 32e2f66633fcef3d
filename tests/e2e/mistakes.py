"""The bench on which each row of the table of mistakes is made for real: a folder, a provider, the command."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from smart_model_router.cli import main
from smart_model_router_providers.catalog import KINDS
from smart_model_router_providers.fault import FaultServer
from tests.e2e.command import program
from tests.e2e.gateways import Served
from tests.warm import warm

FILE = "smart-router.yaml"
NOT_OURS = [
    *(variable for kind in KINDS.values() for variable in kind.key_variables),
    *("SMART_ROUTER_CONFIG", "SMART_ROUTER_GATEWAY_KEY", "NO_PROXY", "no_proxy"),
    *(f"{scheme}_proxy" for scheme in ("http", "https", "all")),
    *(f"{scheme}_PROXY" for scheme in ("HTTP", "HTTPS", "ALL")),
]
"""Variables of the machine that runs the tests, which a row sets by itself."""
PROMPT = "How do bees find their way home?"
LINES = 2
"""The cause and the remedy stand in so many of the first lines that are printed."""


@dataclass
class Bench:
    """A user's place of work: `folder` is the working directory, `server` a provider that is well unless told.

    `gateway` is a running `smr serve` before it; `environ` are variables beside a key for the provider.
    """

    folder: Path
    server: FaultServer
    gateway: Served
    environ: dict[str, str] = field(default_factory=dict)

    def tree(self, provider: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
        """A configuration that is right but for these changes of its provider and of its sections."""
        right = {"kind": "openai", "base_url": self.server.base_url, "api_key": "${OPENAI_API_KEY}"}
        return {
            "version": 1,
            "providers": {"openai": {**right, **(provider or {})}},
            "models": {"smart": {"targets": ["openai/gpt-5"], "last_resort": []}},
            **changes,
        }

    def write(self, content: str | bytes | Mapping[str, Any], name: str = FILE) -> Path:
        """Write a file of the folder; a mapping as JSON, which is YAML."""
        text = json.dumps(content) if isinstance(content, Mapping) else content
        file = self.folder / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def smr(self, *arguments: str, stdin: str = "") -> str:
        """Run the command in this process; return all that a terminal shows."""
        shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        typed = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        with (
            self._environment(),
            mock.patch.object(sys, "stdin", typed),
            contextlib.redirect_stdout(shown),
            contextlib.redirect_stderr(shown),
            contextlib.suppress(SystemExit),
        ):
            main(arguments)
        shown.seek(0)
        return shown.read()

    def ask(self, *arguments: str) -> str:
        """Ask once, with little patience."""
        return self.smr("ask", *arguments, "--timeout", "1.5", PROMPT)

    def asked(self, provider: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """Ask once with a configuration that has these changes."""
        self.write(self.tree(provider, **changes))
        return self.ask()

    def program(self, *arguments: str) -> str:
        """Run the command in a process of its own, for rows about its surroundings."""
        with self._environment() as environ:
            done = warm().run([program(), *arguments], cwd=self.folder, env=environ, seconds=60)
        return done.stderr + done.stdout

    def without(self, module: str, *arguments: str) -> str:
        """Run the command on a Python where a module is not installed."""
        code = f"import sys; sys.modules[{module!r}] = None; from smart_model_router.cli import main; main()"
        with self._environment() as environ:
            argv = [sys.executable, "-c", code, *arguments]
            done = subprocess.run(
                argv, cwd=self.folder, env=environ, capture_output=True, encoding="utf-8", timeout=60, check=False
            )
        return done.stderr + done.stdout

    @contextmanager
    def _environment(self) -> Generator[dict[str, str]]:
        """The variables of a row, and the working directory."""
        own = {
            "SMART_ROUTER_DATA_DIR": str(self.folder / "data"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "OPENAI_API_KEY": "sk-test",
            "COLUMNS": "200",
            **self.environ,
        }
        kept = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
        environ = {name: value for name, value in {**kept, **own}.items() if value != UNSET}
        with mock.patch.dict(os.environ, environ, clear=True), contextlib.chdir(self.folder):
            yield environ


UNSET = "\x00"
"""The value of a variable that is not set."""


@dataclass(frozen=True)
class Mistake:
    """A row: what a user does, and patterns for what the first two printed lines say of cause and remedy."""

    does: str
    act: Callable[[Bench], str]
    cause: str
    remedy: str

    def missing(self, shown: str) -> list[str]:
        """Return those of cause and remedy that the first lines lack."""
        first = "\n".join([line for line in shown.splitlines() if line.strip()][:LINES])
        return [wanted for wanted in (self.cause, self.remedy) if not re.search(wanted, first)]
