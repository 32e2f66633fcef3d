"""Runs Python programs in forks of a process that has imported what they import: a start costs little of its second.

A process of the tests starts its own at the first use; it ends with it. A program sees what it sees when it is started
by itself: its arguments, folder, environment and streams, a `__main__` of its own, and the interpreter's end.
"""

from __future__ import annotations

import gc
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TextIO

MODULES = (
    "httptools",
    "langgraph.graph",
    "uvloop",
    "smart_model_router.cli.app",
    "smart_model_router.cli.configured",
    "smart_model_router.cli.serve",
    "smart_model_router.clients",
    "smart_model_router.gateway.research.mcp_endpoint",
    "smart_model_router.gateway.workers",
    "smart_model_router_providers.http",
    "smart_model_router_scoring.retrieval",
    "rich.console",
    "rich.table",
)
"""The modules that most programs import, where extras brought them; others a program imports itself."""
_LARGEST = 200_000
"""Bytes of a request: arguments and environment."""


class Program:
    """A program that was started: what there is of subprocess.Popen, as far as tests use it."""

    def __init__(self, args: list[str], answers: TextIO) -> None:
        self.args = args
        self.pid = int(answers.readline())
        self.returncode: int | None = None
        self._answers = answers

    def poll(self) -> int | None:
        """Return its exit code, or minus the signal that ended it; None while it runs."""
        if self.returncode is None and select.select([self._answers], [], [], 0)[0]:
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._answers], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = int(self._answers.readline())
            self._answers.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Tell it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class Warm:
    """The process that forks, started with these options of the interpreter."""

    def __init__(self, *options: str) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, *options, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)

    def start(self, argv: Sequence[str], streams: Sequence[int], *, cwd: Path, env: Mapping[str, str]) -> Program:
        """Start the script `argv[0]` with these descriptors as its stdin, stdout and stderr."""
        told, tell = os.pipe()
        request = json.dumps({"argv": list(argv), "cwd": str(cwd), "env": dict(env)}).encode()
        socket.send_fds(self._control, [request], [*streams, tell])
        os.close(tell)
        return Program(list(argv), os.fdopen(told, encoding="ascii", buffering=1))

    def run(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: str = "", seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run the script `argv[0]` to its end. Raises subprocess.TimeoutExpired, and the script is killed."""
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            files[0].write(stdin.encode())
            files[0].seek(0)
            program = self.start(argv, [file.fileno() for file in files], cwd=cwd, env=env)
            try:
                code = program.wait(seconds)
            finally:
                program.kill()
                program.wait()
            for file in files:
                file.seek(0)
            _, out, errors = (file.read().decode() for file in files)
        return subprocess.CompletedProcess(program.args, code, out, errors)


@cache
def warm(*options: str) -> Warm:
    """This process's own."""
    return Warm(*options)


def _next_program(control: socket.socket) -> dict[str, Any]:
    """Fork for every request, and return in the new process that is to become the program."""
    while True:
        data, descriptors, *_ = socket.recv_fds(control, _LARGEST, 4)
        if not data:
            os._exit(0)
        if os.fork() == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
    control.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    tell = descriptors.pop()
    if pid := os.fork():
        os.write(tell, f"{pid}\n".encode())
        with suppress(BrokenPipeError):  # it was killed for taking too long
            os.write(tell, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())
        os._exit(0)
    os.close(tell)
    for place, descriptor in enumerate(descriptors):
        os.dup2(descriptor, place)
        os.close(descriptor)
    program: dict[str, Any] = json.loads(data)
    return program


def _become(program: Mapping[str, Any]) -> tuple[CodeType, ModuleType]:
    """Make this process what a new one would be; return what it is to execute, and where."""
    os.chdir(program["cwd"])
    os.environ.clear()
    os.environ.update(program["env"])
    random.seed()
    sys.argv = program["argv"]
    script = Path(sys.argv[0])
    given = program["env"].get("PYTHONPATH", "")
    sys.path[:1] = [str(script.parent.absolute()), *filter(None, given.split(os.pathsep))]
    for place, name in enumerate(("stdin", "stdout", "stderr")):
        errors = "backslashreplace" if name == "stderr" else "strict"
        buffering = 1 if name == "stderr" else -1
        stream = os.fdopen(place, "w" if place else "r", buffering, encoding="utf-8", errors=errors, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    main = ModuleType("__main__")
    main.__file__ = sys.argv[0]
    sys.modules["__main__"] = main
    return compile(script.read_bytes(), sys.argv[0], "exec"), main


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for each in MODULES:
        try:
            import_module(each)
        except ModuleNotFoundError as missing:
            if str(missing.name).startswith("smart_model_router"):
                raise
    gc.freeze()
    code, main_module = _become(_next_program(socket.socket(fileno=int(sys.argv[1]))))
    exec(code, main_module.__dict__)
