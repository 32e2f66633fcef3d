"""One child process that serves the model, seen from the parent: started, ready, ended."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

_PROGRAM = Path(__file__).with_name("child.py")
_REMEMBERED_LINES = 3
_LONGEST_LINE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The options of a child: the model's file and name, its context in tokens, the threads that compute."""

    model: Path
    alias: str
    context_tokens: int
    threads: int


@dataclass(frozen=True, slots=True)
class Listening:
    """The child is ready: `url` is http://127.0.0.1:PORT, `api_key` opens it."""

    url: str
    api_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ended:
    """The child is gone and reaped. `at` is in the clock's seconds, `reason` for people."""

    at: float
    reason: str


class ModelProcess:
    """A child process, started at construction. It dies with this process, however that ends.

    Belongs to no event loop: a daemon thread that lives as long as the child sets `ready` and `ended`, never
    to an exception. Garbage collection and the interpreter's exit kill the child, too.
    """

    def __init__(self, settings: ModelSettings, *, clock: Callable[[], float]) -> None:
        self._child = _Child(settings, clock)
        self.owner = os.getpid()
        self.started_at = clock()
        threading.Thread(target=self._child.run, name="smart-model-router-local", daemon=True).start()
        weakref.finalize(self, self._child.kill)

    @property
    def ready(self) -> Future[Listening | Ended]:
        """Set when the child can be asked, or when it ended before."""
        return self._child.ready

    @property
    def ended(self) -> Future[Ended]:
        """Set when the child is gone."""
        return self._child.ended

    @property
    def pid(self) -> int | None:
        """The child's process id; None until it runs."""
        return self._child.pid

    def kill(self) -> None:
        """End the child now; `ended` follows soon. Safe to call twice, a no-op in a forked copy."""
        self._child.kill()


class _Child:
    """The state of the supervising thread; it refers to no object that refers to it."""

    def __init__(self, settings: ModelSettings, clock: Callable[[], float]) -> None:
        self.ready: Future[Listening | Ended] = Future()
        self.ended: Future[Ended] = Future()
        for future in (self.ready, self.ended):
            future.set_running_or_notify_cancel()  # a caller that gives up must not cancel it for the others
        self._settings = settings
        self._clock = clock
        self._owner = os.getpid()
        self._api_key = secrets.token_urlsafe(32)  # other users of the machine reach the port as well
        self._lock = threading.Lock()
        self._unwanted = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def kill(self) -> None:
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._unwanted = True
            if self._process is not None:
                self._process.kill()

    def run(self) -> None:
        """Start the child, pass on what it says, wait for its end."""
        try:
            reason = self._live()
        except OSError as error:
            reason = f"it could not be started ({error})"
        ended = Ended(self._clock(), reason)
        self.ended.set_result(ended)
        if not self.ready.done():
            self.ready.set_result(ended)

    def _live(self) -> str:
        with self._lock:
            if self._unwanted:
                return "it was not wanted any more"
            if not sys.executable:
                raise OSError("this Python does not know its own path")
            # -P: the folder of the program is no place to import from.
            self._process = process = subprocess.Popen(  # noqa: S603 - our own program, no shell
                [sys.executable, "-P", str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        said: deque[str] = deque(maxlen=_REMEMBERED_LINES)
        with process:  # closes the pipes, last of all, and reaps
            self._introduce(stdin)
            for line in iter(lambda: stdout.readline(_LONGEST_LINE), b""):
                self._hear(line.decode(errors="replace").strip(), said)
            code = process.wait()
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return f"{how}: {' | '.join(said)}" if said else how

    def _introduce(self, stdin: IO[bytes]) -> None:
        settings = self._settings
        line = {
            "parent": self._owner,
            "api_key": self._api_key,
            "model": str(settings.model),
            "alias": settings.alias,
            "context_tokens": settings.context_tokens,
            "threads": settings.threads,
        }
        try:
            stdin.write(json.dumps(line).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:  # it died at once: its last words are on the other pipe
            with contextlib.suppress(BrokenPipeError):
                stdin.close()  # now, and not when it is reaped: the line is still in the buffer

    def _hear(self, line: str, said: deque[str]) -> None:
        if line.startswith('{"listening"'):
            self.ready.set_result(Listening(json.loads(line)["listening"], self._api_key))
        elif line:
            said.append(line)
